"""How large a model is, counted from its shape: parameters and cache.  Recorded experiments say both."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

from tracer.ops import KINDS


class Shape(Protocol):
    """The sizes of a model, as `tracer.model.config.Config` has them."""

    @property
    def vocabulary(self) -> int: ...
    @property
    def context(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def tied(self) -> bool: ...
    @property
    def norm(self) -> str: ...
    @property
    def head_width(self) -> int: ...


FLOAT = 4  # bytes of a float32


@dataclass(frozen=True)
class Part:
    """`count` numbers of the shapes named in `shapes`, `times` times in the model."""

    name: str
    shapes: str
    count: int
    times: int

    @property
    def total(self) -> int:
        return self.count * self.times


def parameter_parts(config: Shape) -> list[Part]:
    """Every part that has parameters, in the order of the model.  V tokens, C positions, width D."""
    V, C, D, L = config.vocabulary, config.context, config.width, config.blocks
    each = len(KINDS[config.norm].parameters)  # of a norm: a number for each feature
    norm = f"{each} × D" if each != 1 else "D"
    parts = [
        Part("token table", "V × D", V * D, 1),
        Part("position table", "C × D", C * D, 1),
        Part("block: norm 1", norm, each * D, L),
        Part("block: attention, Q K V", "D × 3D + 3D", 3 * D * D + 3 * D, L),
        Part("block: attention, output", "D × D + D", D * D + D, L),
        Part("block: norm 2", norm, each * D, L),
        Part("block: MLP, up", "D × 4D + 4D", 4 * D * D + 4 * D, L),
        Part("block: MLP, down", "4D × D + D", 4 * D * D + D, L),
        Part("final norm", norm, each * D, 1),
    ]
    return parts if config.tied else [*parts, Part("head", "V × D", V * D, 1)]


def parameter_count(config: Shape, positions: bool = True) -> int:
    """Independent trainable numbers, with the position table or without."""
    return sum(part.total for part in parameter_parts(config) if positions or part.name != "position table")


def cache_bytes(config: Shape, number_bytes: int = FLOAT) -> int:
    """Key-value cache of one token of one sequence: 2 · L · H · D/H numbers."""
    return 2 * config.blocks * config.heads * config.head_width * number_bytes


def shape_of(vocabulary: int, context: int, width: int, heads: int, blocks: int, **other: Any) -> SimpleNamespace:
    """A shape by its sizes, for who has no `Config`."""
    return SimpleNamespace(vocabulary=vocabulary, context=context, width=width, heads=heads, blocks=blocks,
                           head_width=width // heads, tied=other.get("tied", True),
                           norm=other.get("norm", "layer_norm"))
