"""Which bytes can be shown: UTF-8 says how long a character is in its first byte (RFC 3629, section 3)."""

from tracer.ops.registry import define

JOIN_BYTES = define(
    "join_bytes",
    "bytes held back from the rounds before, then the bytes of the new token",
    "out[n] = where(n < length, held[n + 0], new[n - length])",
)

# A lead byte near the end waits when it and all bytes after it can still become one character; whatever
# else is not UTF-8 is shown at once, as U+FFFD.  After E0, F0 and F4 the range of the second byte is
# narrower (RFC 3629, section 4); after ED too, but there Python's decoder waits for the third byte.
COMPLETE_BYTES = define(
    "complete_bytes",
    "RFC 3629, section 4: C2 to DF start 2 bytes, E0 to EF 3, F0 to F4 4; 80 to BF continue",
    """
    leads[n] = (bytes[n] >= 194) * (bytes[n] <= 244)
    length[n] = where(leads[n], 2 + (bytes[n] >= 224) + (bytes[n] >= 240), 1)
    low[n] = where(bytes[n] == 224, 160, where(bytes[n] == 240, 144, 128))
    high[n] = where(bytes[n] == 244, 143, 191)
    second[n] = where(n + 1 < size(n), (bytes[n + 1] >= low[n]) * (bytes[n + 1] <= high[n]), 1)
    third[n] = where(n + 2 < size(n), (bytes[n + 2] >= 128) * (bytes[n + 2] <= 191), 1)
    waits[n] = (n + length[n] > size(n)) * second[n] * third[n]
    out[()] = size(n) - sum(n, waits[n] * (size(n) - n))
    """,
)
