"""Rows looked up in a table: token embedding (by id) and position embedding (by position)."""

from tracer.ops.registry import define

POSITIONS = define(
    "positions",
    "positions are numbered from 0; with a cache, from the first new one",
    "out[t] = t + start",
)

EMBEDDING = define(
    "embedding",
    "Bengio et al. 2003, section 2; Radford et al. 2018",
    "out[t, d] = table[ids[t], d]",
    # A row gets the gradients of every position that looked it up; the other rows get zero.  Much cheaper than the
    # derived Σ_t where(ids[t] == v, …), which is no matrix product: that would take V·T·D numbers at once.
    gradients={"table": "d_table[v, d] = sum(t, d_out[t, d] * (ids[t] == v))"},
)
