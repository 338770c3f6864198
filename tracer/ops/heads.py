"""Features cut into heads and joined again; no arithmetic, only another index."""

from tracer.ops.registry import define

SPLIT_HEADS = define(
    "split_heads",
    "Vaswani et al. 2017, section 3.2.2; fused rows: all of Q, then K, then V, head by head",
    {
        "query": "query[h, t, d] = qkv[t, h * size(d) + d]",
        "key": "key[h, t, d] = qkv[t, size(h) * size(d) + h * size(d) + d]",
        "value": "value[h, t, d] = qkv[t, 2 * size(h) * size(d) + h * size(d) + d]",
    },
    # Cheaper than the derived ones, which look for each number among all: these say where it comes from.
    gradients={
        "qkv": """
            n[()] = heads * head_width
            d_qkv[t, o] = where(o < n[()], d_query[o // head_width, t, o % head_width],
                where(o < 2 * n[()], d_key[(o - n[()]) // head_width, t, o % head_width],
                    d_value[(o - 2 * n[()]) // head_width, t, o % head_width]))
            """,
    },
)

SPLIT_GROUPED_HEADS = define(
    "split_grouped_heads",
    "Ainslie et al. 2023, section 2.2: fewer heads of keys and values than of queries; fused rows: all of Q, K, V",
    {
        "query": "query[h, t, d] = qkv[t, h * size(d) + d]",
        "key": "key[h, t, d] = qkv[t, (heads + h) * size(d) + d]",
        "value": "value[h, t, d] = qkv[t, (heads + size(h) + h) * size(d) + d]",
    },
    # Cheaper, as above.
    gradients={
        "qkv": """
            n[()] = heads * head_width
            m[()] = (heads + kv_heads) * head_width
            d_qkv[t, o] = where(o < n[()], d_query[o // head_width, t, o % head_width],
                where(o < m[()], d_key[(o - n[()]) // head_width, t, o % head_width],
                    d_value[(o - m[()]) // head_width, t, o % head_width]))
            """,
    },
)

REPEAT_HEADS = define(
    "repeat_heads",
    "Ainslie et al. 2023, section 2.2: every head of keys and values serves a group of query heads",
    "out[h, t, d] = x[h // group, t, d]",
    differentiate=("x",),
)

CONCATENATE_HEADS = define(
    "concatenate_heads",
    "Vaswani et al. 2017, section 3.2.2",
    "out[t, o] = x[o // head_width, t, o % head_width]",
    # Cheaper, as above.
    gradients={"x": "d_x[h, t, d] = d_out[t, h * size(d) + d]"},
)
