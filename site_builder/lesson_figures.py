"""What lessons may name: figures that are computed when the site is built, from shapes, recordings and experiments.

Prose names them as Jinja expressions, exercises name their answers so: ``{{ num(gpt2.parameters) }}``,
``answer = "softmax([2, 6, 4], 4)[1]"``.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jinja2
import numpy as np

from site_builder.language import Language
from site_builder.parts import number_in_prose
from site_builder.strings import count
from tracer.errors import UserError
from tracer.format.shapes import SHAPES
from tracer.format.sizes import (
    Shape,
    cache_bytes,
    flops_per_token,
    parameter_count,
    parameter_parts,
    shape_of,
)
from tracer.ops import KINDS, Computation, evaluate, expand_ellipsis
from tracer.ops.rounded import Rounded

Figures = dict[str, Any]
BYTES = {"float32": 4, "bfloat16": 2}
EXPERIMENTS = {"cache", "depth", "families", "induction", "initial", "noun"}  # that lessons speak of
PASSES = {"plain", "norm", "rotary", "gate", "grouped", "bias", "llama"}
RECIPE = {"accumulation": 40, "batch": 12, "length": 1024, "devices": 8}  # how nanoGPT trains GPT-2 small


class Sized:
    """What is counted of a shape."""

    def __init__(self, **shape: Any):
        self.shape: Shape = shape_of(shape)
        self.parts = {part.name: part for part in parameter_parts(self.shape)}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shape, name)

    @property
    def parameters(self) -> int:
        """All of them."""
        return parameter_count(self.shape)

    @property
    def multiplied(self) -> int:
        """Those that multiply: without tables that are only looked up."""
        return parameter_count(self.shape, looked_up=False)

    @property
    def block(self) -> int:
        """Parameters of one block."""
        return sum(part.count for name, part in self.parts.items() if name.startswith("block"))

    @property
    def mlp(self) -> int:
        """Those of its MLP."""
        return sum(part.count for name, part in self.parts.items() if "MLP" in name)

    @property
    def attention(self) -> int:
        """Those of its attention."""
        return sum(part.count for name, part in self.parts.items() if "attention" in name)

    def table(self, name: str = "token table") -> int:
        """Parameters of one part, by its name in `tracer.format.sizes`; 0 where there is none."""
        return self.parts[name].total if name in self.parts else 0

    def cache(self, tokens: int = 1, number: str = "float32") -> int:
        """Bytes of the keys and values of so many tokens."""
        return tokens * cache_bytes(self.shape, BYTES[number])

    def flops(self, length: int | None = None) -> int:
        """Floating-point operations of training, for one token."""
        return flops_per_token(self.shape, length)

    def logits(self, batch: int, length: int, number: str = "float32") -> int:
        """Bytes of the logits of every position."""
        return batch * length * self.shape.vocabulary * BYTES[number]


def figures(language: Language, recordings: dict[str, Figures], experiments: list[Figures]) -> Figures:
    """Everything that a lesson may name.

    `recordings`: by route, `summary` and `make`; `experiments`: as the page of experiments has them.
    """
    named = {name.replace("-", "_"): Sized(**shape) for name, shape in SHAPES.items()}
    named["gpt2"] = Sized(**SHAPES["gpt2"])
    return {
        **named, "shape": Sized, "recipe": RECIPE, **recordings,
        "experiments": {one["id"]: one for one in experiments},
        "num": number, "count": partial(count, language), "percent": percent, "bytes": in_bytes,
        "million": million, "ln": math.log, "exp": math.exp, "sqrt": math.sqrt, "sum": sum,
        "softmax": softmax, "dots": dots, "attention": attention, "positions": positions,
        "tokens": TOKENS,
    }


# Written ---------------------------------------------------------------------------------------------------

def number(value: float, digits: int = 4) -> str:
    """As prose has numbers; a whole one without decimals."""
    return number_in_prose(int(value) if value == int(value) else value, digits)


def percent(share: float, digits: int = 1) -> str:
    """A share of one whole: 66.6 %."""
    return f"{100 * share:.{digits}f} %"


def million(number: float, digits: int = 2) -> str:
    """124.44 M."""
    return f"{number / 1e6:,.{digits}f} M"


def in_bytes(number: float) -> str:
    """In the unit that suits: 128 KiB, 2.10 GB where it is no whole number of KiB or MiB."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size <= number < 1024 * size and number % size == 0:
            return f"{number // size:,} {unit}"
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:g} B"


# Computed as the equations of the kinds say ----------------------------------------------------------------

TOKENS = ((1.0, 0.0, 1.0, 0.0), (0.0, 1.0, 0.0, 1.0), (1.0, 1.0, 0.0, 0.0))  # of attention by hand


def _made(kind: str, shape: tuple[int, ...], leading: Sequence[str] = (), **operands: Any) -> np.ndarray:
    equations = expand_ellipsis(KINDS[kind].targets["out"], list(leading))
    arrays: dict[str, np.ndarray | Rounded] = {
        name: np.asarray(value, dtype=np.float64) for name, value in operands.items()}
    return np.asarray(evaluate(Computation(equations, arrays, {}, shape)).value)


def softmax(scores: Sequence[float], width: int = 1) -> list[float]:
    """Shares of scores that were divided by the root of a head's width."""
    scaled = np.asarray(scores, dtype=np.float64) / math.sqrt(width)
    made: list[float] = _made("softmax", scaled.shape, (), x=scaled).tolist()
    return made


def dots(tokens: Sequence[Sequence[float]]) -> list[list[float]]:
    """Every token's query times every key, where both are the token itself; not divided."""
    made: list[list[float]] = (np.asarray(tokens) @ np.asarray(tokens).T).tolist()
    return made


def attention(tokens: Sequence[Sequence[float]] = TOKENS, masked: bool = True) -> dict[str, list[list[float]]]:
    """One head of which queries, keys and values are the tokens themselves: `scores`, `weights`, `out`."""
    x = np.asarray(tokens, dtype=np.float64)[None]
    T = x.shape[1]
    scores = _made("scaled_scores", (1, T, T), query=x, key=x)
    seen = _made("causal_mask", (1, T, T), scores=scores) if masked else scores
    weights = _made("softmax", (1, T, T), ("h", "q"), x=seen)
    out = _made("weighted_sum", x.shape, weights=weights, value=x)
    return {"scores": scores[0].tolist(), "weights": weights[0].tolist(), "out": out[0].tolist()}


def positions(prompt: int, new: int, cached: bool) -> int:
    """Positions that go through the network until so many new tokens are there."""
    return prompt + new if cached else sum(prompt + k for k in range(1, new + 1))


# Answers ---------------------------------------------------------------------------------------------------

_environment = jinja2.Environment(undefined=jinja2.StrictUndefined)


def computed(expression: str, known: Figures, where: str) -> float:
    """The number that an exercise names.  Raises `UserError` for what is none."""
    try:
        compute: Callable[..., Any] = _environment.compile_expression(expression, undefined_to_none=False)
        value = compute(**known)
        return float(value)
    except (jinja2.TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise UserError(f"{where}: {expression} is no number: {error}") from None
