"""Memory that training needs, counted from the shape of a model; torch not needed."""

from collections.abc import Mapping
from dataclasses import dataclass

from tracer.errors import UserError
from tracer.format.sizes import FLOAT, Shape, parameter_count

Kept = tuple[int, int]
# Kind of a norm or an activation → what autograd keeps of each token: numbers for each feature, and numbers beside.
# Its inputs, and what stands between; what it makes is the input of a product, and counted there.
KEPT: dict[str, Kept] = {"layer_norm": (1, 2), "rms_norm": (2, 1), "gelu": (1, 0), "gelu_tanh": (1, 0),
                         "swiglu": (4, 0)}


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes that training needs at once, in float32; see `training_memory`."""

    parameters: int
    gradients: int
    moments: int
    activations: int
    backward: int

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self.parameters + self.gradients + self.moments + self.activations + self.backward


def training_memory(config: Shape, batch: int, length: int | None = None, kept_by: Mapping[str, Kept] = KEPT,
                    ) -> TrainingMemory:
    """What a training step of the fused form with AdamW needs in float32 on a processor.

    Gradients are there while another forward and backward runs (accumulation, or gradients kept).
    `activations`: what autograd keeps from the forward for the backward.  `backward`: what comes on top
    where the backward needs most.  `batch` sequences of `length` tokens, the whole context by default.
    `kept_by`: what each norm and activation of the model keeps.
    """
    T = config.context if length is None else length
    if not 1 <= T <= config.context or batch < 1:
        raise UserError(f"a batch of {batch} × {T} tokens does not fit a context of {config.context}: at least one "
                        "sequence, at most the context")
    angles = 2 * T * config.head_width if config.position == "rotary" else 0  # cosines and sines, for all blocks
    weights, kept = FLOAT * parameter_count(config), batch * T * _kept_per_token(config, T, kept_by) + angles
    most = _backward_numbers(config, batch * T, kept, kept_by)
    return TrainingMemory(weights, weights, 2 * weights, FLOAT * kept, FLOAT * (most - kept))


def _kept_per_token(config: Shape, length: int, kept_by: Mapping[str, Kept]) -> int:
    """Numbers that autograd keeps of each token.

    Without dropout a block keeps its two norms' inputs and statistics, the inputs of its products (three widths and
    what is within the MLP), the fused Q, K, V, one log-sum a head, and what the activation keeps.  Turned queries
    and keys are others than those of the product.  With dropout there is no fused attention kernel on a processor:
    Q, K, V of every head are copied, and the weights, their mask and their product are kept, `length` numbers a head
    each, and the two masks of the residual branches.  (A single sequence then keeps 2 widths a block more.)
    """
    D, F, H, dropout = config.width, config.hidden_width, config.heads, config.dropout > 0
    norm = _kept(kept_by[config.norm], D)
    turned = (H + config.key_value_heads) * config.head_width if config.position == "rotary" else 0
    attention = 5 * D + 3 * H * length if dropout else config.qkv_width + turned + H
    block = 3 * D + F + attention + 2 * norm + _kept(kept_by[config.activation], F)
    return config.blocks * block + norm + D + config.vocabulary + (D if dropout else 0)


def _kept(by: Kept, width: int) -> int:
    feature, beside = by
    return feature * width + beside


def _backward_numbers(config: Shape, tokens: int, kept: int, kept_by: Mapping[str, Kept]) -> int:
    """Numbers alive, the parameters' own apart, at the moment of the backward that has most of them.

    The caller holds the logits all the while.  The gradient that the shared table gets from the head waits
    for the one from the embedding.
    """
    V, D, F = config.vocabulary, config.width, config.hidden_width
    logits, table, waiting = tokens * V, V * D, V * D if config.tied else 0
    softmax = kept + 3 * logits  # logits, the gradient of the loss, the gradient of the logits
    head = kept + logits + tokens * D + table  # the logarithms are free by now
    own = 0 if config.tied else table  # the gradient of a head of its own is there from now on
    # What the last norm and the head kept is free; the gradient of what is within the MLP comes, then that of `down`.
    mlp = kept + waiting + own + tokens * (F - _kept(kept_by[config.norm], D)) + D * F
    # The backward of the tanh form of GELU has two temporary arrays, and that of a product by a gate.
    arrays = 2 if config.gated or config.activation == "gelu_tanh" else 1
    activation = mlp - D * F + tokens * ((arrays - 1) * F - (D if config.dropout else 0))
    embedding = logits + 2 * waiting + table
    return max(softmax, head, mlp, activation, embedding)
