"""A block in as few kernels as torch has: the same function as its steps in `tracer.model`, faster."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from tracer.cache import LayerCache

Affine = tuple[Tensor, Tensor]  # weight and bias


@dataclass(slots=True)
class FusedBlock:
    """What a block computes with, looked up once.

    When there is one new token, looking up a module's parameters and calling its `forward` takes as long as
    the arithmetic; who generates keeps this for as long as no parameter is replaced by another object.
    """

    heads: int
    head_width: int
    norm_eps: float
    approximate: str  # of torch's GELU
    dropout: float  # 0 outside training
    norm_1: Affine
    qkv: Affine
    projection: Affine
    norm_2: Affine
    up: Affine
    down: Affine

    def __call__(self, x: Tensor, cache: LayerCache | None = None, allowed: Tensor | None = None) -> Tensor:
        """(B, T, D) → (B, T, D).  `allowed`: (B, 1, T, S), where the causal mask alone is not enough."""
        x = x + self._attention(self._norm(x, *self.norm_1), cache, allowed)
        hidden = F.gelu(F.linear(self._norm(x, *self.norm_2), *self.up), approximate=self.approximate)
        return x + self._dropped(F.linear(hidden, *self.down))

    def _attention(self, x: Tensor, cache: LayerCache | None, allowed: Tensor | None) -> Tensor:
        B, T, D = x.shape
        parts = F.linear(x, *self.qkv).view(B, T, 3, self.heads, self.head_width)
        new = parts.permute(2, 0, 3, 1, 4)                                              # (3, B, H, T, D/H)
        if cache is None:
            query, key, value = new.unbind()
        else:
            query, (key, value) = new[0], cache.append(new[1:]).unbind()                # (B, H, T or S, D/H)
        S = key.size(2)
        if allowed is None and 1 < T < S:  # the kernel's own causal mask starts at the first key
            allowed = causal(T, S, query.device)
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=self.dropout,
                                               is_causal=allowed is None and T > 1)     # (B, H, T, D/H)
        return self._dropped(F.linear(heads.transpose(1, 2).reshape(B, T, D), *self.projection))

    def _norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.layer_norm(x, (x.size(-1),), weight, bias, self.norm_eps)

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout) if self.dropout else x


def causal(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """Which of `keys` positions each of the last `queries` of them may see: bool (queries, keys)."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
