"""Dropout with the very mask that was drawn."""

from tracer.ops.registry import define

DROPOUT = define(
    "dropout",
    "Srivastava et al. 2014, section 4 (inverted: scaled while training); the stream: tracer/ops/mcg31m1.py",
    {
        "mask": """
            u[...] = mcg31m1(word[()], flat(...))
            mask[...] = u[...] < 1 - p
            """,
        "out": "out[...] = x[...] * (mask[...] / (1 - p))",
    },
    differentiate=("x",),
)
