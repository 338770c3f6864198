"""A run whose numbers are no longer finite: where that is looked for, and what it is called."""

import math
from collections.abc import Iterable

import torch

from tracer.errors import UserError

ADVICE = "choose a smaller lr or a longer warmup"


class Diverged(UserError):
    """`what` became infinite or no number at `update`.  `numbers`: what the log shall say of it, by name."""

    def __init__(self, update: int, what: str, advice: str = ADVICE, **numbers: float):
        super().__init__(f"{what}: {advice}")
        self.update, self.what, self.numbers = update, what, numbers


def check_number(update: int, what: str, value: float, **numbers: float) -> None:
    """Raises `Diverged` unless `value` is finite."""
    if not math.isfinite(value):
        raise Diverged(update, f"{what} is {value}", ADVICE, **numbers)


@torch.no_grad()
def all_finite(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether every number is finite.  A sum that is finite shows it at once; one that is not may have overflowed."""
    floating = [each for each in tensors if each.is_floating_point()]
    if not floating or math.isfinite(float(torch.stack([each.sum() for each in floating]).sum())):
        return True
    return first_not_finite(floating) is None


def first_not_finite(part: object, name: str = "") -> str | None:
    """Where in nested dicts and lists a number is not finite, None when all are."""
    if isinstance(part, dict | list | tuple):
        items = part.items() if isinstance(part, dict) else enumerate(part)
        below = (first_not_finite(value, f"{name}/{key}" if name else str(key)) for key, value in items)
        return next((found for found in below if found is not None), None)
    if isinstance(part, torch.Tensor):
        # A sum would overflow, a mask is memory: the smallest and the largest are not finite when any number is not.
        return None if part.numel() == 0 or not part.is_floating_point() or all(
            math.isfinite(each) for each in part.aminmax()) else name
    return name if isinstance(part, float) and not math.isfinite(part) else None
