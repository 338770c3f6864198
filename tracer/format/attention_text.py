"""Attention weights as text, in whole thousandths, so that many fit into a file."""

import base64
import binascii
from collections.abc import Iterable, Sequence

import numpy as np

from tracer.errors import UserError

WHOLE = 1000  # a weight of one


def pack(maps: np.ndarray) -> str:
    """Weights (heads, T, T) as base64: 16-bit thousandths, little-endian, head by head, each row up to its query.

    The weights of a row, rounded, need not add up to one in the last digit.
    """
    T = maps.shape[-1]
    return _text(maps[:, *np.tril_indices(T)])


def pack_whole(maps: Iterable[np.ndarray]) -> str:
    """Matrices (T, S) of weights, each of its own size, one after the other; every query sees every key."""
    return _text(np.concatenate([each.reshape(-1) for each in maps]))


def _text(weights: np.ndarray) -> str:
    return base64.b64encode(np.rint(WHOLE * weights).astype("<u2").tobytes()).decode()


def unpack(text: str, heads: int, T: int) -> np.ndarray:
    """Thousandths (heads, T, T), zero where nothing is seen.

    Raises `UserError` for a text that holds other than weights of so many heads and tokens.
    """
    seen = _weights(text, heads * T * (T + 1) // 2, f"{heads} heads of {T} tokens").reshape(heads, -1)
    maps = np.zeros((heads, T, T), np.int64)
    maps[:, *np.tril_indices(T)] = seen
    _check_rows(maps, np.arange(T) + 1)
    return maps


def unpack_whole(text: str, shapes: Sequence[tuple[int, int]]) -> list[np.ndarray]:
    """Matrices of thousandths of these shapes, as `pack_whole` packs them.  Raises `UserError` as `unpack` does."""
    ends = np.cumsum([T * S for T, S in shapes])
    seen = _weights(text, int(ends[-1]), f"matrices of {', '.join(f'{T} × {S}' for T, S in shapes)}")
    maps = [part.reshape(shape) for part, shape in zip(np.split(seen, ends[:-1]), shapes, strict=True)]
    for each in maps:
        _check_rows(each, each.shape[-1])
    return maps


def _weights(text: str, count: int, what: str) -> np.ndarray:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise UserError("attention weights are no base64") from None
    if len(content) != 2 * count:
        raise UserError(f"attention weights have {len(content)} bytes, {what} have {2 * count}")
    return np.frombuffer(content, "<u2").astype(np.int64)


def _check_rows(maps: np.ndarray, keys: np.ndarray | int) -> None:
    """Whether what each query looks at adds up to one; each of its `keys` is up to half a thousandth off."""
    if (np.abs(maps.sum(-1) - WHOLE) > (keys + 1) / 2).any():
        raise UserError("attention weights of a query do not add up to one")
