"""The operations that Llama has where GPT-2 has others, each a module as in `tracer.model.layers`.

K is the number of heads of keys and values.
"""

import torch
from torch import Tensor, nn

Rotation = tuple[Tensor, Tensor]  # cosines and sines: (T, D/H), or (B, 1, T, D/H) where rows count differently


def rotation(positions: Tensor, head_width: int, base: float, dtype: torch.dtype) -> Rotation:
    """By what angle each feature is turned at each of `positions`, (T,) or (B, T); Su et al. 2021, section 3.2.2.

    Worked out in float64 and rounded once: so every processor has the same.
    """
    pair = torch.arange(head_width, device=positions.device) % (head_width // 2)
    angle = positions.double().unsqueeze(-1) / base ** (2 * pair.double() / head_width)  # (T, D/H) or (B, T, D/H)
    if angle.dim() == 3:
        angle = angle.unsqueeze(1)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def rotate(x: Tensor, by: Rotation) -> Tensor:
    """Each feature turned together with the one half a head further: (B, H, T, D/H) → the same."""
    low, high = x.chunk(2, dim=-1)
    return x * by[0] + torch.cat((-high, low), dim=-1) * by[1]


class Rotary(nn.Module):
    """Queries or keys turned by angles that grow with their position."""

    kind, axes = "rotary", ("head", "position", "head_feature")

    def __init__(self, head_width: int, base: float):
        super().__init__()
        self.settings = {"base": base, "half": head_width // 2}

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return rotate(x, rotation(positions, x.size(-1), self.settings["base"], x.dtype))  # (B, H, T, D/H)


class SplitGroupedHeads(nn.Module):
    """Fewer heads of keys and values than of queries."""

    kind = "split_grouped_heads"
    outputs = {name: ("head", "position", "head_feature") for name in ("query", "key", "value")}

    def __init__(self, heads: int, kv_heads: int, head_width: int):
        super().__init__()
        self.sizes = [heads, kv_heads, kv_heads]
        self.settings = {"heads": heads, "kv_heads": kv_heads, "head_width": head_width}

    def forward(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        B, T, _ = qkv.shape
        heads = qkv.view(B, T, sum(self.sizes), self.settings["head_width"]).transpose(1, 2)
        query, key, value = heads.split(self.sizes, dim=1)  # (B, H or K, T, D/H)
        return query, key, value


class RepeatHeads(nn.Module):
    """Each head of keys or values for `group` heads of queries."""

    kind, axes = "repeat_heads", ("head", "key_position", "head_feature")

    def __init__(self, group: int):
        super().__init__()
        self.settings = {"group": group}

    def forward(self, x: Tensor) -> Tensor:
        return x.repeat_interleave(self.settings["group"], dim=1)  # (B, K, S, D/H) → (B, H, S, D/H)
