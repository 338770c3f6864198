"""GELU in its exact form, x·Φ(x), with Φ the standard normal distribution function."""

from tracer.ops.registry import define

GELU = define(
    "gelu",
    "Hendrycks and Gimpel 2016, equation 1 (exact, erf)",
    """
    cdf[...] = (1 + erf(x[...] / sqrt(2))) / 2
    out[...] = x[...] * cdf[...]
    """,
    gradients={
        # The derived one is as stable; this one is better read: it names the density φ, which is Φ′.
        "x": """
            cdf[...] = (1 + erf(x[...] / sqrt(2))) / 2
            density[...] = exp(-(x[...] * x[...]) / 2) / sqrt(2 * pi)
            d_x[...] = d_out[...] * (cdf[...] + x[...] * density[...])
            """,
    },
)
