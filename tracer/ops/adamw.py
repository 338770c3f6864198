"""AdamW, first update: both moments start from zero."""

from tracer.ops.registry import define

ADAMW = define(
    "adamw",
    "Loshchilov and Hutter 2019, algorithm 2",
    {
        "m": "m[...] = beta1 * 0 + (1 - beta1) * gradient[...]",
        "v": "v[...] = beta2 * 0 + (1 - beta2) * (gradient[...] * gradient[...])",
        "after": """
            m_hat[...] = m[...] / (1 - beta1 ** step)
            v_hat[...] = v[...] / (1 - beta2 ** step)
            after[...] = (1 - lr * weight_decay) * before[...] - lr * m_hat[...] / (sqrt(v_hat[...]) + eps)
            """,
    },
)
