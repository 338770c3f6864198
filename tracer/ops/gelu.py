"""GELU, x·Φ(x), with Φ the standard normal distribution function: exact, and as GPT-2 approximates it."""

from tracer.ops.registry import define

GELU = define(
    "gelu",
    "Hendrycks and Gimpel 2016, equation 1 (exact, erf)",
    """
    cdf[...] = (1 + erf(x[...] / sqrt(2))) / 2
    out[...] = x[...] * cdf[...]
    """,
    place="activation",
    gradients={
        # The derived one is as stable; this one is better read: it names the density φ, which is Φ′.
        "x": """
            cdf[...] = (1 + erf(x[...] / sqrt(2))) / 2
            density[...] = exp(-(x[...] * x[...]) / 2) / sqrt(2 * pi)
            d_x[...] = d_out[...] * (cdf[...] + x[...] * density[...])
            """,
    },
)

GELU_TANH = define(
    "gelu_tanh",
    "Hendrycks and Gimpel 2016, section 2 (tanh approximation); GPT-2: Radford et al. 2019",
    """
    u[...] = sqrt(2 / pi) * (x[...] + 0.044715 * x[...] ** 3)
    cdf[...] = (1 + tanh(u[...])) / 2
    out[...] = x[...] * cdf[...]
    """,
    place="activation",
    differentiate=("x",),
    symbols={"out": "y"},
)
