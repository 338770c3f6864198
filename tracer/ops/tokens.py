"""Whole numbers around the model: bytes to ids, merges, the shift by one, the appended id."""

from tracer.ops.registry import define

# An index written n + 0 is no plain letter: the array may have another length than the one made.

BYTE_TOKENS = define(
    "byte_tokens",
    "Radford et al. 2019, section 2.2: byte-level BPE starts from one token a byte",
    "out[n] = byte_table[bytes[n]]",
)

BPE_MERGE = define(
    "bpe_merge",
    "Sennrich et al. 2016, algorithm 1: the pair of lowest rank becomes one token",
    "out[n] = where(n < position, before[n + 0], where(n == position, merged, before[n + 1]))",
)

APPEND = define(
    "append",
    "an id is put at the end; the ids before it stay as they are",
    "out[n] = where(n < length, before[n + 0], token[()])",
)

IS_END = define(
    "is_end",
    "the loop ends after the end-of-text token",
    "out[()] = token[()] == eos[()]",
)

WINDOW = define(
    "window",
    "next-token prediction: inputs are ids 0…T−1, targets ids 1…T",
    "out[t] = ids[t + offset]",
)
