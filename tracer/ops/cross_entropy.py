"""Cross-entropy of next-token prediction, in the steps a stable implementation takes.

ℓ_t = −ln softmax(z_t)[y_t] = log Σ_v exp z[t, v] − z[t, y_t].
"""

from tracer.ops.registry import define

CROSS_ENTROPY = define(
    "cross_entropy",
    "Goodfellow et al. 2016, equation 6.30; stable form: Blanchard, Higham, Higham 2021, equation 1.3",
    {
        "log_sum_exp": """
            largest[t] = max(v, logits[t, v])
            total[t] = sum(v, exp(logits[t, v] - largest[t]))
            log_sum_exp[t] = largest[t] + log(total[t])
            """,
        "target_logit": "target_logit[t] = logits[t, targets[t]]",
        # = log_sum_exp − target_logit, with the largest logit taken off both before they are rounded.
        "out": """
            largest[t] = max(v, logits[t, v])
            total[t] = sum(v, exp(logits[t, v] - largest[t]))
            out[t] = log(total[t]) - (logits[t, targets[t]] - largest[t])
            """,
        "target_probability": "target_probability[t] = exp(-out[t])",
    },
    gradients={
        # More stable: from the logarithm that was recorded, without a way through the maximum.
        "logits": """
            probability[t, v] = exp(logits[t, v] - log_sum_exp[t])
            d_logits[t, v] = (probability[t, v] - (targets[t] == v)) * d_out[t]
            """,
    },
)

MEAN = define(
    "mean",
    "the mean over positions with a target",
    "out[()] = sum(t, x[t]) / size(t)",
    differentiate=("x",),
)

LOSS_SEED = define(
    "loss_seed",
    "reverse mode starts from ∂L/∂L = 1 (Griewank and Walther 2008, section 3.2)",
    "out[()] = 1",
)
