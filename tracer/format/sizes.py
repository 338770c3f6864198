"""How large a model is, counted from its shape: parameters, cache, arithmetic.  Experiments and lessons say them."""

from dataclasses import dataclass, field, fields
from typing import Any

from tracer.errors import UserError
from tracer.ops import KINDS
from tracer.ops.registry import kinds_for

POSITIONS = ("learned", "rotary")


def _choice(default: object, help: str) -> Any:  # as `dataclasses.field`, which is typed as its default
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Shape:
    """The sizes of a model, and the choices, from `activation` on, that make it GPT-2, Llama or something between.

    `activation` and `norm` are kinds of operation that may stand there (`tracer.ops.registry.kinds_for`); an activation
    that reads a gate makes the MLP three products.  `tracer.format.shapes` has those of GPT-2 and of Llama.
    """

    vocabulary: int = 50257
    context: int = 16
    width: int = 16
    heads: int = 2
    blocks: int = 2
    dropout: float = 0.1
    activation: str = _choice("gelu", f"Activation of the MLP, one of {', '.join(kinds_for('activation'))}.")
    tied: bool = _choice(True, "Whether the token table also makes the logits.")
    norm_eps: float = _choice(1e-5, "What a norm adds under its root.")
    norm: str = _choice("layer_norm", f"Normalisation, one of {', '.join(kinds_for('norm'))}.")
    bias: bool = _choice(True, "Whether the linear maps add a bias.")
    kv_heads: int = _choice(0, "Heads of keys and values, each for a group of query heads; 0: as many as of queries.")
    hidden: int = _choice(0, "Width within the MLP; 0: four times the width.")
    position: str = _choice("learned", f"How positions are told, one of {', '.join(POSITIONS)}.")
    rope_base: float = _choice(10000.0, "Base of the angles of rotary positions.")
    causal: bool = _choice(True, "")  # false: each position sees all of them; no command trains such a model

    @property
    def head_width(self) -> int:
        """Features of one head."""
        return self.width // self.heads

    @property
    def key_value_heads(self) -> int:
        """Heads of keys and values (Ainslie et al. 2023)."""
        return self.kv_heads or self.heads

    @property
    def hidden_width(self) -> int:
        """Features within the MLP."""
        return self.hidden or 4 * self.width

    @property
    def qkv_width(self) -> int:
        """Features of the fused product for queries, keys and values."""
        return (self.heads + 2 * self.key_value_heads) * self.head_width

    @property
    def gated(self) -> bool:
        """Whether the activation reads a gate, a product of its own (Shazeer 2020)."""
        return "gate" in KINDS[self.activation].operands("out")


CHOICES = {item.name: item.metadata["help"] for item in fields(Shape)
           if item.metadata.get("help")}  # name → what it is
COMMON = {item.name: item.default for item in fields(Shape) if item.metadata}  # what is so where nothing is said


def shape_of(said: dict[str, Any]) -> Shape:
    """The shape that a recorded config tells, which may tell more.  Raises `UserError` for what no model could have."""
    for name, default in COMMON.items():
        value = said.get(name, default)
        if type(value) is not type(default) and not (type(default) is float and type(value) is int):
            raise UserError(f"{name} must be {type(default).__name__}, not {value!r:.40}")
    shape = Shape(**{item.name: said[item.name] for item in fields(Shape) if item.name in said})
    for place in ("activation", "norm"):
        if getattr(shape, place) not in kinds_for(place):
            raise UserError(f"{place} must be one of {', '.join(kinds_for(place))}, not {getattr(shape, place)!r:.40}")
    if not 0 <= shape.kv_heads <= shape.heads or shape.hidden < 0:
        raise UserError(f"kv_heads {shape.kv_heads} and hidden {shape.hidden} are no sizes of a model")
    return shape


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
    """Every part that has parameters, in the order of the model.  V tokens, C positions, width D, F within the MLP."""
    V, C, D, L, F = config.vocabulary, config.context, config.width, config.blocks, config.hidden_width
    each = len(KINDS[config.norm].parameters)  # of a norm: a number for each feature
    norm = f"{each} × D" if each != 1 else "D"
    Q = "3D" if config.key_value_heads == config.heads else f"{config.qkv_width}"
    H = "4D" if not config.hidden else f"{F}"

    def linear(name: str, inputs: tuple[str, int], outputs: tuple[str, int]) -> Part:
        bias = f" + {outputs[0]}" if config.bias else ""
        return Part(f"block: {name}", f"{inputs[0]} × {outputs[0]}{bias}",
                    inputs[1] * outputs[1] + outputs[1] * config.bias, L)

    parts = [
        Part("token table", "V × D", V * D, 1),
        *([Part("position table", "C × D", C * D, 1)] if config.position == "learned" else []),
        Part("block: norm 1", norm, each * D, L),
        linear("attention, Q K V", ("D", D), (Q, config.qkv_width)),
        linear("attention, output", ("D", D), ("D", D)),
        Part("block: norm 2", norm, each * D, L),
        *([linear("MLP, gate", ("D", D), (H, F))] if config.gated else []),
        linear("MLP, up", ("D", D), (H, F)),
        linear("MLP, down", (H, F), ("D", D)),
        Part("final norm", norm, each * D, 1),
    ]
    return parts if config.tied else [*parts, Part("head", "V × D", V * D, 1)]


def parameter_count(config: Shape, looked_up: bool = True) -> int:
    """Independent trainable numbers; or those alone that multiply, without tables of which rows are only looked up."""
    tables = {"position table"} if config.tied else {"position table", "token table"}
    return sum(part.total for part in parameter_parts(config) if looked_up or part.name not in tables)


def cache_bytes(config: Shape, number_bytes: int = FLOAT) -> int:
    """Key-value cache of one token of one sequence: 2 · L · K · D/H numbers, of K heads of keys and values."""
    return 2 * config.blocks * config.key_value_heads * config.head_width * number_bytes


def flops_per_token(config: Shape, length: int | None = None) -> int:
    """6N + 12·L·H·Q·T: floating-point operations of forward and backward for one token.

    N: parameters without tables that are only looked up, which multiply nothing: that of the positions, and that of
    the tokens where the head has its own; Q: width of a head; T: `length` of the sequence, the whole context by
    default.  (Chowdhery et al. 2022, PaLM, appendix B.)
    """
    T = config.context if length is None else length
    attention = 12 * config.blocks * config.heads * config.head_width * T
    return 6 * parameter_count(config, looked_up=False) + attention
