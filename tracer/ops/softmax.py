"""Softmax along the last axis, with the largest value taken off first so that exp cannot overflow."""

from tracer.ops.registry import define

TOKEN_PROBABILITY = define(
    "token_probability",
    "softmax where its sum is known by its logarithm: Goodfellow et al. 2016, equation 6.29",
    "out[..., c] = exp(logits[..., c] - log_sum_exp[...])",
)

SOFTMAX = define(
    "softmax",
    "Bridle 1990; stable form: Goodfellow et al. 2016, section 4.1",
    """
    largest[...] = max(k, x[..., k])
    e[..., k] = exp(x[..., k] - largest[...])
    total[...] = sum(k, e[..., k])
    out[..., k] = e[..., k] / total[...]
    """,
    gradients={
        # More stable, and cheaper: from the result alone, without another exp and without a way through the maximum.
        "x": """
            inner[...] = sum(k, d_out[..., k] * out[..., k])
            d_x[..., k] = out[..., k] * (d_out[..., k] - inner[...])
            """,
    },
)
