"""Layer normalisation over the features of each position."""

from tracer.ops.registry import define

LAYER_NORM = define(
    "layer_norm",
    "Ba, Kiros, Hinton 2016, equation 3",
    {
        "mean": "mean[...] = sum(d, x[..., d]) / size(d)",
        "rstd": """
            variance[...] = sum(d, (x[..., d] - mean[...]) * (x[..., d] - mean[...])) / size(d)
            rstd[...] = 1 / sqrt(variance[...] + eps)
            """,
        "out": """
            normalised[..., d] = (x[..., d] - mean[...]) * rstd[...]
            out[..., d] = normalised[..., d] * weight[d] + bias[d]
            """,
    },
    place="norm",
    differentiate=("weight", "bias"),
    gradients={
        # More stable than the derived one, which adds what comes by way of the variance and takes it off again; and
        # better read: the mean and the standard deviation depend on x too, so two corrections are taken off.
        "x": """
            normalised[..., d] = (x[..., d] - mean[...]) * rstd[...]
            g[..., d] = d_out[..., d] * weight[d]
            shift[...] = sum(d, g[..., d]) / size(d)
            stretch[...] = sum(d, g[..., d] * normalised[..., d]) / size(d)
            d_x[..., d] = rstd[...] * (g[..., d] - shift[...] - normalised[..., d] * stretch[...])
            """,
    },
)
