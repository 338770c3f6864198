"""SwiGLU: one half of the MLP opens and closes the other, as in Llama."""

from typing import Any

from tracer.ops.registry import define


def swiglu(x: Any, gate: Any) -> Any:
    return gate * gate.sigmoid() * x


SWIGLU = define(
    "swiglu",
    "Shazeer 2020, equation 6 (Swish: Ramachandran et al. 2017)",
    """
    silu[...] = gate[...] * sigmoid(gate[...])
    out[...] = silu[...] * x[...]
    """,
    differentiate=("x", "gate"), place="activation", torch=swiglu,
    symbols={"gate": "g", "silu": r"s", "out": "y"},
)
