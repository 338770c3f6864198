"""Attention weights as text: what causal attention sees, in whole thousandths, so that many fit into a file."""

import base64
import binascii

import numpy as np

from tracer.errors import UserError

WHOLE = 1000  # a weight of one


def pack(maps: np.ndarray) -> str:
    """Weights (heads, T, T) as base64: 16-bit thousandths, little-endian, head by head, each row up to its query.

    The weights of a row, rounded, need not add up to one in the last digit.
    """
    T = maps.shape[-1]
    seen = np.rint(WHOLE * maps[:, *np.tril_indices(T)]).astype("<u2")
    return base64.b64encode(seen.tobytes()).decode()


def unpack(text: str, heads: int, T: int) -> np.ndarray:
    """Thousandths (heads, T, T), zero where nothing is seen.

    Raises `UserError` for a text that holds other than weights of so many heads and tokens.
    """
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise UserError("attention weights are no base64") from None
    if len(content) != heads * T * (T + 1):
        raise UserError(f"attention weights have {len(content)} bytes, {heads} heads of {T} tokens have "
                        f"{heads * T * (T + 1)}")
    seen = np.frombuffer(content, "<u2").reshape(heads, -1)
    maps = np.zeros((heads, T, T), np.int64)
    maps[:, *np.tril_indices(T)] = seen
    if (np.abs(maps.sum(-1) - WHOLE) > (np.arange(T) + 2) / 2).any():  # each weight is up to half a thousandth off
        raise UserError("attention weights of a query do not add up to one")
    return maps
