"""Affine maps of the features of each position; `weight` is stored output × input."""

from tracer.ops.registry import define

LINEAR = define(
    "linear",
    "torch.nn.Linear: y = x Wᵀ + b",
    "out[..., o] = sum(d, x[..., d] * weight[o, d]) + bias[o]",
    differentiate=("x", "weight", "bias"),
)

LINEAR_WITHOUT_BIAS = define(
    "linear_without_bias",
    "torch.nn.Linear with bias=False: y = x Wᵀ",
    "out[..., o] = sum(d, x[..., d] * weight[o, d])",
    differentiate=("x", "weight"),
)

TIED_HEAD = define(
    "tied_head",
    "Press and Wolf 2017: the token table is also the output matrix",
    "out[t, v] = sum(d, x[t, d] * table[v, d])",
    differentiate=("x", "table"),
)

LAST_POSITION = define(
    "last_position",
    "generation needs the next token of the last position only",
    "out[t, d] = x[position + t, d]",
)
