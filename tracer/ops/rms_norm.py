"""Root mean square normalisation: a layer norm that takes no mean off and adds no shift, as in Llama."""

from typing import Any

from tracer.ops.registry import define


def rms_norm(x: Any, weight: Any, eps: float) -> Any:
    return x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * weight


RMS_NORM = define(
    "rms_norm",
    "Zhang and Sennrich 2019, equation 4",
    """
    rms[...] = sqrt(sum(d, x[..., d] * x[..., d]) / size(d) + eps)
    out[..., d] = x[..., d] / rms[...] * weight[d]
    """,
    differentiate=("x", "weight"), place="norm", torch=rms_norm, symbols={"weight": r"\gamma", "out": "u"},
)
