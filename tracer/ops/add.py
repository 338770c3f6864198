"""Element-wise sums: embedding sum, residual connection, and gradients that meet."""

from tracer.ops.registry import define

ADD = define(
    "add",
    "residual connection: He et al. 2016",
    "out[...] = a[...] + b[...]",
    differentiate=("a", "b"),
)

GRADIENT_SUM = define(
    "gradient_sum",
    "multivariate chain rule: a value that is used twice receives both gradients",
    "out[...] = first[...] + second[...]",
)
