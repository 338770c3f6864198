"""Dropout with the very mask that was drawn."""

from tracer.ops.registry import define

DROPOUT_MASK = define(
    "dropout_mask",
    "MKL's MCG31m1 stream, see tracer/ops/mcg31m1.py",
    """
    u[...] = mcg31m1(word[()], flat(...))
    out[...] = u[...] < 1 - p
    """,
)

DROPOUT = define(
    "dropout",
    "Srivastava et al. 2014, section 4 (inverted: scaled while training)",
    "out[...] = x[...] * (mask[...] / (1 - p))",
    differentiate=("x",),
)
