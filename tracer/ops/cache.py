"""A key-value cache: rows of earlier rounds kept, the new one put after them; and what is compared."""

from tracer.ops.registry import define

APPEND_ROWS = define(
    "append_rows",
    "Pope et al. 2022, section 3.1: keys and values of earlier positions are kept, queries are not",
    "out[h, j, d] = where(j < length, past[h, j + 0, d], new[h, j - length, d])",
)

DROP_ROWS = define(
    "drop_rows",
    "a window that slides: the oldest rows leave",
    "out[h, j, d] = past[h, j + count, d]",
)

KEPT_ROWS = define(
    "kept_rows",
    "rows of two rounds, compared by token: how many numbers are bit for bit the same, and the largest difference",
    {
        "equal": "equal[h, j] = sum(d, before[h, j + shift, d] == now[h, j + 0, d])",
        "apart": """
            was[h, j, d] = before[h, j + shift, d]
            became[h, j, d] = now[h, j + 0, d]
            apart[h, j] = max(d, where(was[h, j, d] >= became[h, j, d], was[h, j, d] - became[h, j, d],
                became[h, j, d] - was[h, j, d]))
            """,
    },
)

LARGEST_DIFFERENCE = define(
    "largest_difference",
    "maximum norm of the difference of two arrays",
    "out[()] = max(..., where(a[...] >= b[...], a[...] - b[...], b[...] - a[...]))",
)
