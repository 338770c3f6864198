"""Arithmetic and memory of a model, counted from its config without building it."""

import math
from dataclasses import dataclass

from tracer.errors import UserError
from tracer.format.sizes import FLOAT, cache_bytes, flops_per_token, parameter_count, parameter_parts
from tracer.model.config import Config
from tracer.ops import KINDS

__all__ = ["cache_bytes", "flops_per_token", "mfu", "parameter_count", "parameter_parts", "training_memory"]


def mfu(config: Config, tokens_per_second: float, peak_flops: float, length: int | None = None) -> float:
    """Model FLOPs utilisation: the share of the device's peak that training uses.

    `peak_flops`: operations per second that the device can do at most, by its data sheet.
    """
    for what, value, unit in (("peak", peak_flops, "operations"), ("speed", tokens_per_second, "tokens")):
        if not 0 < value < math.inf:
            raise UserError(f"the {what} must be above 0 {unit} per second and finite, not {value}")
    return flops_per_token(config, length) * tokens_per_second / peak_flops


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


def training_memory(config: Config, batch: int, length: int | None = None) -> TrainingMemory:
    """What a training step of the fused form with AdamW needs in float32 on a processor.

    Gradients are there while another forward and backward runs (accumulation, or gradients kept).
    `activations`: what autograd keeps from the forward for the backward.  `backward`: what comes on top
    where the backward needs most.  `batch` sequences of `length` tokens, the whole context by default.
    """
    T = config.context if length is None else length
    if not 1 <= T <= config.context or batch < 1:
        raise UserError(f"a batch of {batch} × {T} tokens does not fit a context of {config.context}: at least one "
                        "sequence, at most the context")
    weights, kept = FLOAT * parameter_count(config), batch * T * _kept_per_token(config, T)
    most = _backward_numbers(config, batch * T, kept)
    return TrainingMemory(weights, weights, 2 * weights, FLOAT * kept, FLOAT * (most - kept))


def _kept_per_token(config: Config, length: int) -> int:
    """Numbers that autograd keeps of each token.

    Without dropout a block keeps its two norms' inputs and statistics, the inputs of its products (three widths and
    what is within the MLP), the fused Q, K, V, one log-sum a head, and what the activation keeps.  Turned queries
    and keys are others than those of the product.  With dropout there is no fused attention kernel on a processor:
    Q, K, V of every head are copied, and the weights, their mask and their product are kept, `length` numbers a head
    each, and the two masks of the residual branches.  (A single sequence then keeps 2 widths a block more.)
    """
    D, F, H, dropout = config.width, config.hidden_width, config.heads, config.dropout > 0
    turned = (H + config.key_value_heads) * config.head_width if config.position == "rotary" else 0
    attention = 5 * D + 3 * H * length if dropout else config.qkv_width + turned + H
    block = 3 * D + F + attention + 2 * _kept_by(config, "norm", D) + _kept_by(config, "activation", F)
    return config.blocks * block + _kept_by(config, "norm", D) + D + config.vocabulary + (D if dropout else 0)


KERNELS = {"layer_norm": 2, "gelu": 0, "gelu_tanh": 0}  # numbers kept of each token beside the input


def _kept_by(config: Config, place: str, width: int) -> int:
    """Numbers that autograd keeps of each token in a norm or an activation: its inputs, and what stands between.

    What it makes is the input of a product, and counted there.
    """
    kind = KINDS[getattr(config, place)]
    if kind.name in KERNELS:
        return width + KERNELS[kind.name]
    import torch

    own = {name: torch.ones(width, requires_grad=True) for name in kind.parameters}
    read = {name: torch.ones(1, width, requires_grad=True) for name in kind.operands("out") if name not in own}
    held: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if all(tensor is not parameter for parameter in own.values()):
            held[tensor.untyped_storage().data_ptr()] = tensor.numel()
        return tensor

    settings = {"eps": config.norm_eps} if place == "norm" else {}
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        made = kind.in_torch(**read, **own, **settings)  # kept until here: no memory is used twice
    held.pop(made.untyped_storage().data_ptr(), None)
    return sum(held.values())


def _backward_numbers(config: Config, tokens: int, kept: int) -> int:
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
    mlp = kept + waiting + own + tokens * (F - _kept_by(config, "norm", D)) + D * F
    # The backward of the tanh form of GELU has two temporary arrays, and that of a product by a gate.
    arrays = 2 if config.gated or config.activation == "gelu_tanh" else 1
    activation = mlp - D * F + tokens * ((arrays - 1) * F - (D if config.dropout else 0))
    embedding = logits + 2 * waiting + table
    return max(softmax, head, mlp, activation, embedding)
