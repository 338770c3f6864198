"""From logits to one id: temperature, top-k, the draw by inverse distribution function."""

from tracer.ops.registry import define

TEMPERATURE = define(
    "temperature",
    "Ackley, Hinton, Sejnowski 1985 (T > 0 divides the logits)",
    "out[t, v] = logits[t, v] / temperature",
)

TOP_K = define(
    "top_k",
    "Fan, Lewis, Dauphin 2018, section 5.4; largest first, ties to the lower id",
    {
        "ids": "ids[c] = nth_largest(v, logits[0, v], c)",
        "kept": "kept[c] = logits[0, ids[c]]",
    },
)

TOP_P = define(
    "top_p",
    "Holtzman et al. 2020, section 3.1: of the candidates, largest first, as few as hold that much together",
    """
    kept[c] = probabilities[c] * (sum(k, probabilities[k] * (k < c)) < top_p)
    out[c] = kept[c] / sum(k, kept[k])
    """,
)

CUMULATIVE = define(
    "cumulative",
    "distribution function of the candidates, largest first",
    "out[c] = sum(k, probabilities[k] * (k <= c))",
)

GREEDY = define(
    "greedy",
    "the largest logit, ties to the lower id: what temperature 0 would choose",
    "out[()] = nth_largest(v, logits[0, v], 0)",
)

DRAW = define(
    "draw",
    "inverse transform sampling: Devroye 1986, section II.2",
    {
        # What rounding leaves between the sum and 1 goes to the last candidate that adds anything to it.
        "choice": "choice[()] = sum(c, (uniform[()] >= cumulative[c]) * (cumulative[c] < cumulative[size(c) - 1]))",
        "token": "token[()] = ids[choice[()]]",
    },
)
