"""The shape of a model; torch not needed."""

from dataclasses import asdict, dataclass, fields

from tracer.errors import UserError
from tracer.model.shapes import LARGEST
from tracer.ops.registry import kinds_for


@dataclass(frozen=True)
class Config:
    """The shape of a model.  The defaults are the teaching model: 810,960 parameters.

    `activation` and `norm` are kinds of operation that may stand there (`tracer.ops.registry.kinds_for`); GPT-2
    itself has "gelu_tanh" and "layer_norm".
    """

    vocabulary: int = 50257
    context: int = 16
    width: int = 16
    heads: int = 2
    blocks: int = 2
    dropout: float = 0.1
    activation: str = "gelu"
    tied: bool = True  # whether the token table also makes the logits
    norm_eps: float = 1e-5
    norm: str = "layer_norm"

    def __post_init__(self) -> None:
        for name in ("vocabulary", "context", "width", "heads", "blocks"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
            if getattr(self, name) > LARGEST:
                raise UserError(f"{name} must be at most {LARGEST:,}, not {getattr(self, name)}")
        if self.width % self.heads:
            raise UserError(f"width {self.width} cannot be cut into {self.heads} heads: "
                            f"choose a width that {self.heads} divides")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout must be at least 0 and below 1, not {self.dropout}")
        for place in ("activation", "norm"):
            check_kind(place, getattr(self, place))
        if not 0 < self.norm_eps < 1:
            raise UserError(f"norm_eps must be between 0 and 1, not {self.norm_eps}")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    def to_json(self) -> dict[str, int | float | str]:
        """The sizes and the dropout; of what most models have in common only what differs."""
        return {name: value for name, value in asdict(self).items() if COMMON.get(name) != value}


COMMON = {item.name: item.default for item in fields(Config)[-4:]}  # what most models have in common


def check_kind(place: str, kind: str) -> None:
    """Raises `UserError` for a kind that may not stand at that place of a model."""
    if kind not in kinds_for(place):
        raise UserError(f"{place} must be one of {', '.join(kinds_for(place))}, not {kind!r}")
