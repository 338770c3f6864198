"""A block in as few kernels as torch has: the same function as its steps in `tracer.model.gpt`, faster."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from tracer.model.config import Config
from tracer.model.kv_cache import LayerCache
from tracer.model.llama_layers import Rotation, rotate
from tracer.ops import KINDS

Affine = tuple[Tensor, Tensor | None]  # weight and bias


@dataclass(slots=True)
class FusedBlock:
    """What a block computes with, looked up once.

    When there is one new token, looking up a module's parameters and calling its `forward` takes as long as
    the arithmetic; who generates keeps this for as long as no parameter is replaced by another object.
    """

    heads: int
    kv_heads: int
    head_width: int
    dropout: float  # 0 outside training
    causal: bool
    norm: Callable[..., Tensor]
    activation: Callable[..., Tensor]
    norm_1: dict[str, Tensor]
    norm_2: dict[str, Tensor]
    qkv: Affine
    projection: Affine
    up: Affine
    down: Affine
    gate: Affine | None = None

    def __call__(self, x: Tensor, cache: LayerCache | None = None, allowed: Tensor | None = None,
                 places: Tensor | Rotation | None = None) -> Tensor:
        """(B, T, D) → (B, T, D).  `allowed`: (B, 1, T, S), where the causal mask alone is not enough.

        `places`: the rotation of the positions, where they are rotary.
        """
        x = x + self._attention(self.norm(x, **self.norm_1), cache, allowed, places)
        return x + self._dropped(F.linear(self._activated(self.norm(x, **self.norm_2)), *self.down))

    def _activated(self, x: Tensor) -> Tensor:
        gate = () if self.gate is None else (F.linear(x, *self.gate),)
        return self.activation(F.linear(x, *self.up), *gate)                            # (B, T, F)

    def _attention(self, x: Tensor, cache: LayerCache | None, allowed: Tensor | None,
                   places: Tensor | Rotation | None) -> Tensor:
        B, T, D = x.shape
        if self.kv_heads == self.heads:
            parts = F.linear(x, *self.qkv).view(B, T, 3, self.heads, self.head_width)
            query, *new = parts.permute(2, 0, 3, 1, 4)                                  # (3, B, H, T, D/H)
        else:
            heads = F.linear(x, *self.qkv).view(B, T, -1, self.head_width).transpose(1, 2)
            query, *new = heads.split([self.heads, self.kv_heads, self.kv_heads], dim=1)  # (B, H or K, T, D/H)
        key, value = new
        if isinstance(places, tuple):
            query, key = rotate(query, places), rotate(key, places)
        if cache is not None:
            key, value = cache.append(key, value)                                       # (B, H or K, S, D/H)
        S = key.size(2)
        if allowed is None and self.causal and 1 < T < S:  # the kernel's own causal mask starts at the first key
            allowed = causal(T, S, query.device)
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=self.dropout,
                                               is_causal=allowed is None and self.causal and T > 1,
                                               enable_gqa=self.kv_heads < self.heads)   # (B, H, T, D/H)
        return self._dropped(F.linear(heads.transpose(1, 2).reshape(B, T, D), *self.projection))

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout) if self.dropout else x


def norm(config: Config) -> Callable[..., Tensor]:
    """The normalisation that the config names, as a function of x and of its parameters by name."""
    if config.norm == "layer_norm":
        return partial(_layer_norm, eps=config.norm_eps)
    kind = KINDS[config.norm]
    return partial(kind.in_torch, **{name: config.norm_eps for name in kind.settings("out")})


def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return torch.layer_norm(x, (x.size(-1),), weight, bias, eps)


def activation(config: Config) -> Callable[..., Tensor]:
    """The activation that the config names, a function of x, and of the gate where it is gated."""
    kernels: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "gelu_tanh": _tanh_gelu}
    return kernels.get(config.activation) or KINDS[config.activation].in_torch


def _tanh_gelu(x: Tensor) -> Tensor:
    slow = x.requires_grad and x.device.type == "cpu" and x.element_size() >= 4
    if slow and not torch.compiler.is_compiling():
        made: Tensor = LogisticGELU.apply(x)  # type: ignore[no-untyped-call]  # torch says no types here
        return made
    return F.gelu(x, approximate="tanh")


class LogisticGELU(torch.autograd.Function):
    """GELU in the tanh approximation, by the logistic function: (1 + tanh u) / 2 = σ(2u).

    On a processor torch's kernel for it takes twice the time, in the backward one and a half times, most of it
    for the tanh.  For float32 and float64: narrower types would be rounded after each of these operations.
    """

    LINEAR = 2 * math.sqrt(2 / math.pi)  # 2u = LINEAR · x + CUBIC · x³
    CUBIC = LINEAR * 0.044715

    generate_vmap_rule = True  # for torch.func

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return LogisticGELU._gate(x, x * x).mul_(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """d(x·s)/dx = s · (1 + (1 − s) · x · d(2u)/dx), with s = σ(2u)."""
        x, = ctx.saved_tensors
        square = x * x
        s = LogisticGELU._gate(x, square.clone())
        rise = square.mul_(3 * LogisticGELU.CUBIC).add_(LogisticGELU.LINEAR).mul_(x)
        return rise.addcmul_(rise, s, value=-1).add_(1).mul_(s).mul_(gradient)

    @staticmethod
    def _gate(x: Tensor, square: Tensor) -> Tensor:
        """σ(2u), in the memory of `square`, which holds x²."""
        return square.mul_(LogisticGELU.CUBIC).add_(LogisticGELU.LINEAR).mul_(x).sigmoid_()


def causal(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """Which of `keys` positions each of the last `queries` of them may see: bool (queries, keys)."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
