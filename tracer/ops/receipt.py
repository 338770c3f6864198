"""What the gradient promised for an update, and what the next forward shows."""

from tracer.ops.registry import define

PREDICTED_CHANGE = define(
    "predicted_change",
    "first-order Taylor expansion: ΔL ≈ Σ (∂L/∂θ)·Δθ",
    {
        "first": "first[()] = sum(..., gradient[...] * (after[...] - before[...]))",
        "running": "running[()] = previous[()] + sum(..., gradient[...] * (after[...] - before[...]))",
    },
)

DIFFERENCE = define(
    "difference",
    "a change: what is after, less what was before",
    "out[()] = after[()] - before[()]",
)

CHANGE = define(
    "change",
    "what training did to a parameter: as it is, less as it was drawn",
    "out[...] = after[...] - before[...]",
)
