"""The shape of a model; torch not needed."""

from dataclasses import asdict, dataclass

from tracer.errors import UserError
from tracer.format.shapes import LARGEST
from tracer.format.sizes import CHOICES, COMMON, POSITIONS, Shape
from tracer.ops.registry import kinds_for

__all__ = ["CHOICES", "COMMON", "POSITIONS", "Config", "check_kind"]

@dataclass(frozen=True)
class Config(Shape):
    """A shape that a model can have.  The defaults are the teaching model: 810,960 parameters."""

    def __post_init__(self) -> None:
        for name in ("vocabulary", "context", "width", "heads", "blocks", "kv_heads", "hidden"):
            least = 0 if name in ("kv_heads", "hidden") else 1
            if getattr(self, name) < least:
                raise UserError(f"{name} must be at least {least}, not {getattr(self, name)}")
            if getattr(self, name) > LARGEST:
                raise UserError(f"{name} must be at most {LARGEST:,}, not {getattr(self, name)}")
        if self.width % self.heads:
            raise UserError(f"width {self.width} cannot be cut into {self.heads} heads: "
                            f"choose a width that {self.heads} divides")
        if self.heads % self.key_value_heads:
            raise UserError(f"{self.heads} heads cannot share {self.key_value_heads} heads of keys and values: "
                            f"choose a kv_heads that divides {self.heads}")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout must be at least 0 and below 1, not {self.dropout}")
        for place in ("activation", "norm"):
            check_kind(place, getattr(self, place))
        if not 0 < self.norm_eps < 1:
            raise UserError(f"norm_eps must be between 0 and 1, not {self.norm_eps}")
        self._check_positions()

    def _check_positions(self) -> None:
        if self.position not in POSITIONS:
            raise UserError(f"position must be one of {', '.join(POSITIONS)}, not {self.position!r}")
        if self.position == "rotary" and self.head_width % 2:
            raise UserError(f"rotary positions turn pairs of features, a head has {self.head_width}: choose a width "
                            "of which each head gets an even part")
        if not 1 < self.rope_base <= 1e12:
            raise UserError(f"rope_base must be above 1 and at most 1e12, not {self.rope_base}")

    def to_json(self) -> dict[str, int | float | str]:
        """The sizes and the dropout; of the choices only those that differ from the defaults."""
        return {name: value for name, value in asdict(self).items() if COMMON.get(name) != value}


def check_kind(place: str, kind: str) -> None:
    """Raises `UserError` for a kind that may not stand at that place of a model."""
    if kind not in kinds_for(place):
        raise UserError(f"{place} must be one of {', '.join(kinds_for(place))}, not {kind!r}")
