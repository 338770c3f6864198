"""The shape of a model; torch not needed."""

from dataclasses import asdict, dataclass, fields

from tracer.errors import UserError
from tracer.model.shapes import LARGEST

# Config.activation → the `approximate` of torch's GELU.  GPT-2 was trained with the tanh form.
ACTIVATIONS = {"gelu": "none", "gelu_tanh": "tanh"}


@dataclass(frozen=True)
class Config:
    """The shape of a model.  The defaults are the teaching model: 810,960 parameters."""

    vocabulary: int = 50257
    context: int = 16
    width: int = 16
    heads: int = 2
    blocks: int = 2
    dropout: float = 0.1
    activation: str = "gelu"  # one of ACTIVATIONS
    tied: bool = True  # whether the token table also makes the logits
    norm_eps: float = 1e-5

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
        if self.activation not in ACTIVATIONS:
            raise UserError(f"activation must be one of {', '.join(ACTIVATIONS)}, not {self.activation!r}")
        if not 0 < self.norm_eps < 1:
            raise UserError(f"norm_eps must be between 0 and 1, not {self.norm_eps}")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    def to_json(self) -> dict[str, int | float | str]:
        """The sizes and the dropout; of what most models have in common only what differs."""
        common = {field.name: field.default for field in fields(self)[-3:]}
        return {name: value for name, value in asdict(self).items() if common.get(name) != value}
