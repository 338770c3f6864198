"""AdamW, one update of one parameter; before the first update both moments are zero."""

from tracer.ops.registry import define

ADAMW = define(
    "adamw",
    "Loshchilov and Hutter 2019, algorithm 2",
    {
        "m": "m[...] = beta1 * m_before[...] + (1 - beta1) * gradient[...]",
        "v": "v[...] = beta2 * v_before[...] + (1 - beta2) * (gradient[...] * gradient[...])",
        "after": """
            m_hat[...] = m[...] / (1 - beta1 ** update)
            v_hat[...] = v[...] / (1 - beta2 ** update)
            after[...] = (1 - lr * weight_decay) * before[...] - lr * m_hat[...] / (sqrt(v_hat[...]) + eps)
            """,
    },
)

INITIAL_MOMENTS = define(
    "initial_moments",
    "Kingma and Ba 2015, algorithm 1: both moments start from zero",
    {"m_before": "m_before[...] = 0", "v_before": "v_before[...] = 0"},
)
