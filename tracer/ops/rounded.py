"""Numbers that know how far float32 may have rounded them.

The recomputation runs in float64.  What it is compared with was computed in float32, where every
operation may be off by one part in 2²⁴ and sums may lose digits to cancellation.  `Rounded` carries,
beside each value, the first-order bound of that error (running error analysis: Higham, *Accuracy and
Stability of Numerical Algorithms*, 2002, section 3.3), so that a tolerance is derived, not chosen.
"""

import math

import numpy as np

from tracer.ops.functions import SMALLEST, UNIT, Function, Numbers

EXACT = np.float64(0)


def sum_error(count: float) -> float:
    """Bound of the float32 error of a sum, as a part of the sum of its terms' magnitudes.

    A term is rounded once for every addition on its way (Higham 2002, section 4.2).  Kernels add in at
    least 8 lanes, in each lane one term after the other, then the lanes in a tree.
    """
    return UNIT * (1 + count / 8 + math.log2(max(count, 1)))


class Rounded:
    """`value` and `error`: float64 arrays that broadcast together; `error` is an absolute bound."""

    __slots__ = ("error", "value")

    def __init__(self, value: Numbers, error: Numbers = EXACT):
        self.value = value
        self.error = error

    def __add__(self, other: "Rounded") -> "Rounded":
        return _rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other: "Rounded") -> "Rounded":
        """Layer norm's kernels subtract after scaling, x·s − m·s for (x − m)·s: each term is rounded too."""
        carried = self.error + other.error
        if np.ndim(self.value) and np.ndim(other.value):  # not 1 − β: the numbers of an equation are exact
            carried = carried + UNIT * (np.abs(self.value) + np.abs(other.value))
        return _rounded(self.value - other.value, carried)

    def __mul__(self, other: "Rounded") -> "Rounded":
        return _rounded(self.value * other.value, _scaled(self.value, other.error) + _scaled(other.value, self.error))

    def __truediv__(self, other: "Rounded") -> "Rounded":
        value = self.value / other.value
        return _rounded(value, (self.error + np.abs(value) * other.error) / np.abs(other.value))

    def __neg__(self) -> "Rounded":
        return Rounded(-self.value, self.error)

    def where(self, yes: "Rounded", no: "Rounded") -> "Rounded":
        return Rounded(np.where(self.value != 0, yes.value, no.value),
                       np.where(self.value != 0, yes.error, no.error))

    def sum(self, axes: tuple[int, ...]) -> "Rounded":
        """A float32 sum in any order."""
        count = math.prod(np.shape(self.value)[a] for a in axes)
        total = self.value.sum(axis=axes, keepdims=True)
        magnitude = np.abs(self.value).sum(axis=axes, keepdims=True)
        carried = np.broadcast_to(self.error, np.shape(self.value)).sum(axis=axes, keepdims=True)
        return Rounded(total, finite(carried + sum_error(count) * magnitude))

    def max(self, axes: tuple[int, ...]) -> "Rounded":
        error = np.broadcast_to(self.error, np.shape(self.value))
        return Rounded(self.value.max(axis=axes, keepdims=True), error.max(axis=axes, keepdims=True))

    def power(self, exponent: "Rounded") -> "Rounded":
        """To an exact exponent.  What an equation or a setting says is exact, and so is its power."""
        value = np.power(self.value, exponent.value)
        if not np.ndim(self.value):
            return Rounded(value)
        slope = np.abs(exponent.value * np.power(self.value, exponent.value - 1))
        return _rounded(value, _scaled(slope, self.error) + UNIT * np.abs(value))

    def apply(self, function: Function) -> "Rounded":
        value = function.numpy(self.value)
        return Rounded(value, finite(function.error(self.value, value, self.error)))


def _rounded(value: Numbers, carried: Numbers) -> Rounded:
    """`value` after one more float32 operation."""
    return Rounded(value, finite(carried + UNIT * np.abs(value) + SMALLEST))


def _scaled(value: Numbers, error: Numbers) -> Numbers:
    """|value| · error; of what is exact nothing."""
    return np.abs(value) * error if np.any(error) else EXACT


def finite(error: Numbers) -> Numbers:
    """No bound, where it is none: the values say what is not finite."""
    if np.isfinite(np.sum(error)):  # the common case, in one pass
        return error
    return np.where(np.isfinite(error), error, 0.0)
