"""The multiplicative congruential stream MCG31m1, from which dropout masks are drawn.

PyTorch on an Intel processor draws its CPU dropout masks through MKL's ``VSL_BRNG_MCG31``
(L'Ecuyer, *Tables of linear congruential generators*, 1999); on other processors it does not, so a
recording that used ``F.dropout`` could not be made again elsewhere.  Written out, it is the same
everywhere.
"""

import functools

import numpy as np

MULTIPLIER = 1132489760
MODULUS = 2**31 - 1


@functools.lru_cache(maxsize=8)
def _powers(count: int) -> np.ndarray:
    """MULTIPLIER⁰ … MULTIPLIERᶜᵒᵘⁿᵗ⁻¹ modulo MODULUS, int64."""
    powers = np.ones(max(count, 1), dtype=np.int64)
    for n in range(1, count):
        powers[n] = powers[n - 1] * MULTIPLIER % MODULUS  # below 2⁶², so int64 holds it
    return powers


def mcg31m1(word: int, n: np.ndarray | np.float64) -> np.ndarray:
    """The n-th numbers, in [0, 1), float64, of the stream that the 32-bit `word` starts."""
    places = np.asarray(n, dtype=np.int64)
    start = word % MODULUS or 1
    return np.asarray(start * _powers(int(places.max(initial=0)) + 1)[places] % MODULUS / MODULUS)
