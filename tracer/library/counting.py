"""Arithmetic and memory of a model, counted from its config without building it."""

import math

from tracer.errors import UserError
from tracer.format import memory
from tracer.format.memory import KEPT, Kept, TrainingMemory
from tracer.format.sizes import cache_bytes, flops_per_token, parameter_count, parameter_parts
from tracer.model.config import Config
from tracer.ops import KINDS

__all__ = ["TrainingMemory", "cache_bytes", "flops_per_token", "mfu", "parameter_count", "parameter_parts",
           "training_memory"]


def mfu(config: Config, tokens_per_second: float, peak_flops: float, length: int | None = None) -> float:
    """Model FLOPs utilisation: the share of the device's peak that training uses.

    `peak_flops`: operations per second that the device can do at most, by its data sheet.
    """
    for what, value, unit in (("peak", peak_flops, "operations"), ("speed", tokens_per_second, "tokens")):
        if not 0 < value < math.inf:
            raise UserError(f"the {what} must be above 0 {unit} per second and finite, not {value}")
    return flops_per_token(config, length) * tokens_per_second / peak_flops


def training_memory(config: Config, batch: int, length: int | None = None) -> TrainingMemory:
    """As `tracer.format.memory.training_memory`; what a kind keeps that is not listed there is measured."""
    others = {kind for kind in (config.norm, config.activation) if kind not in KEPT}
    return memory.training_memory(config, batch, length, KEPT | {kind: measured(kind) for kind in others})


def measured(kind: str) -> Kept:
    """What autograd keeps of each token in the PyTorch form of a norm or an activation, as `KEPT` has it."""
    one, two = (_held(kind, width) for width in (8, 16))
    feature = (two - one) // 8
    return feature, one - 8 * feature


def _held(kind: str, width: int) -> int:
    import torch

    form, parameters = KINDS[kind].in_torch, KINDS[kind].parameters
    own = {name: torch.ones(width, requires_grad=True) for name in parameters}
    read = {name: torch.ones(1, width, requires_grad=True) for name in KINDS[kind].operands("out") if name not in own}
    held: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if all(tensor is not parameter for parameter in own.values()):
            held[tensor.untyped_storage().data_ptr()] = tensor.numel()
        return tensor

    settings = dict.fromkeys(KINDS[kind].settings("out"), 1e-5)
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        made = form(**read, **own, **settings)  # kept until here: no memory is used twice
    held.pop(made.untyped_storage().data_ptr(), None)
    return sum(held.values())
