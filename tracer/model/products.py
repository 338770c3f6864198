"""Matrix products whose bits do not depend on who made the processor, for the form that is recorded.

MKL has kernels of their own for products of fewer than 4 rows or 12 columns, and AMD's processors get others than
Intel's there, whatever `tracer.kernels` asks for.  With rows or columns of zeros beside it, such a product is
computed by the kernels of the larger ones, which agree.
"""

import torch.nn.functional as F
from torch import Tensor

ROWS, COLUMNS = 4, 12
SMALL_BATCHED = 400  # multiplications of one matrix, below which torch computes a batch of them without MKL


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b, as `torch.nn.functional.linear`: (B, T, in) → (B, T, out)."""
    B, T, width = x.shape
    if B * T >= ROWS:
        return F.linear(x, weight, bias)
    rows = F.pad(x.reshape(B * T, width), (0, 0, 0, ROWS - B * T))
    return F.linear(rows, weight, bias)[:B * T].reshape(B, T, -1)


def weighted_sum(weights: Tensor, value: Tensor) -> Tensor:
    """weights · value: (B, H, T, S), (B, H, S, D) → (B, H, T, D)."""
    width = value.size(-1)
    if width >= COLUMNS or weights.size(-2) * weights.size(-1) * width < SMALL_BATCHED:
        return weights @ value
    return (weights @ F.pad(value, (0, COLUMNS - width)))[..., :width].contiguous()
