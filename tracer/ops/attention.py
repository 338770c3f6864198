"""Scaled dot-product attention, step by step (Vaswani et al. 2017, equation 1)."""

from tracer.ops.registry import define

SCALED_SCORES = define(
    "scaled_scores",
    "Vaswani et al. 2017, section 3.2.1",
    "out[h, i, j] = sum(d, query[h, i, d] * key[h, j, d]) / sqrt(size(d))",
    differentiate=("query", "key"),
)

CAUSAL_MASK = define(
    "causal_mask",
    "Vaswani et al. 2017, section 3.2.3: illegal connections are set to −∞",
    "out[h, i, j] = where(j <= i, scores[h, i, j], -inf)",
    differentiate=("scores",),
)

WEIGHTED_SUM = define(
    "weighted_sum",
    "Vaswani et al. 2017, equation 1",
    "out[h, i, d] = sum(j, weights[h, i, j] * value[h, j, d])",
    differentiate=("weights", "value"),
)
