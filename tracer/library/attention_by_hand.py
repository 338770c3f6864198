"""One attention head by plain arithmetic: three tokens of width four, no library, every table kept.

Attention(Q, K, V) = softmax(Q Kᵀ / √d + mask) V  (Vaswani et al. 2017, equation 1).  Here Q, K and V
are the tokens themselves: nothing is projected, so that every number can be followed by eye.
"""

from math import exp, inf, sqrt

Table = list[list[float]]

TOKENS: Table = [[1.0, 0.0, 1.0, 0.0],
                 [0.0, 1.0, 0.0, 1.0],
                 [1.0, 1.0, 0.0, 0.0]]


def scores(query: Table, key: Table) -> Table:
    """How well each query (row) fits each key (column): the dot product.  (T, d), (T, d) → (T, T)."""
    return [[sum(a * b for a, b in zip(q, k, strict=True)) for k in key] for q in query]


def scale(table: Table, width: int) -> Table:
    """÷ √d.  Dot products of d random numbers spread like √d, and softmax would give one key everything."""
    return [[number / sqrt(width) for number in row] for row in table]


def mask(table: Table) -> Table:
    """−∞ where the key comes after the query: a token does not see its future."""
    return [[number if j <= i else -inf for j, number in enumerate(row)] for i, row in enumerate(table)]


def softmax(table: Table) -> Table:
    """Each row as shares that sum to 1.  The largest number is taken off first, so that `exp` stays small."""
    return [_shares(row) for row in table]


def _shares(row: list[float]) -> list[float]:
    powers = [exp(number - max(row)) for number in row]
    return [power / sum(powers) for power in powers]


def weighted_sum(weights: Table, value: Table) -> Table:
    """The values of all tokens, each by its share.  (T, T), (T, d) → (T, d)."""
    return [[sum(share * v[column] for share, v in zip(row, value, strict=True)) for column in range(len(value[0]))]
            for row in weights]


def attention(query: Table, key: Table, value: Table) -> dict[str, Table]:
    """Every table on the way, by name, in the order of the arithmetic; the last is the output."""
    tables = {"scores": scores(query, key)}
    tables["scaled"] = scale(tables["scores"], len(query[0]))
    tables["masked"] = mask(tables["scaled"])
    tables["weights"] = softmax(tables["masked"])
    tables["output"] = weighted_sum(tables["weights"], value)
    return tables


def difference_from_torch(query: Table, key: Table, value: Table) -> float:
    """The largest difference of the output from torch's own attention kernel, which computes in float32."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (torch.tensor([table]) for table in (query, key, value))
    expected = scaled_dot_product_attention(q, k, v, is_causal=True)
    ours = torch.tensor(attention(query, key, value)["output"], dtype=torch.float64)
    return (ours - expected[0].double()).abs().max().item()
