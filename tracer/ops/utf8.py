"""Which bytes can be shown: UTF-8 says how long a character is in its first byte (RFC 3629, section 3)."""

from tracer.ops.registry import define

JOIN_BYTES = define(
    "join_bytes",
    "bytes held back from the rounds before, then the bytes of the new token",
    "out[n] = where(n < length, held[n + 0], new[n - length])",
)

COMPLETE_BYTES = define(
    "complete_bytes",
    "RFC 3629, section 3: lead bytes 0xxxxxxx, 110xxxxx, 1110xxxx, 11110xxx; 10xxxxxx continues",
    """
    length[n] = where(bytes[n] < 128, 1, where(bytes[n] < 192, 0, where(bytes[n] < 224, 2, where(bytes[n] < 240, 3, 4))))
    out[()] = sum(n, length[n] * (n + length[n] <= size(n)))
    """,
)
