"""What stands in the parts of a recorded experiment: its fields, each of its kind, and columns of numbers."""

from collections.abc import Callable
from typing import Any

from tracer.errors import UserError

LONGEST = 10**9  # updates, or anything else that is counted
MOST_NEW_TOKENS = 20_000  # after a prompt: each is drawn
MOST_EVALUATIONS = 10_000  # of a run
LARGEST_WHOLE = 2**53  # parameters, bytes
LARGEST_STD = 100.0  # of weights
LARGEST_NUMBER = 2.0**128  # losses and seconds: no float32 is larger


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < LARGEST_NUMBER


def is_amount(value: Any) -> bool:
    return is_number(value) and value >= 0


def is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_WHOLE


def is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= LONGEST


def is_size(value: Any) -> bool:
    return is_whole(value) and value > 0


def is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1


def is_seed(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**64


def is_new_tokens(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MOST_NEW_TOKENS


Kind = type | Callable[[Any], bool]  # a type, or what says whether a value is of the kind
Kinds = dict[str, Kind]
EXPERIMENT: Kinds = {"schema": str, "version": is_count, "make": dict, "summary": list, "sha256": dict}
MACHINE: Kinds = {"torch": str, "machine": str, "threads": is_count}  # where it was recorded


def check_times(times: list[object], where: str) -> None:
    if not times or not all(map(is_amount, times)):
        raise UserError(f"the times of {where} are no list of seconds")


def check_fields(body: object, kinds: Kinds, where: str, more: Kinds | None = None) -> None:
    """Exactly these fields, each of its kind; those of `more` may be there."""
    kinds = kinds | {name: kind for name, kind in (more or {}).items() if isinstance(body, dict) and name in body}
    if not isinstance(body, dict):
        raise UserError(f"{where} is not an object")
    for name, kind in kinds.items():
        if name not in body:
            raise UserError(f"{where} has no {name!r}")
        if not is_of(kind, body[name]):
            raise UserError(f"{name!r} of {where} cannot be {body[name]!r:.40}")
    if extra := sorted(set(body) - set(kinds)):
        raise UserError(f"{where} has the unknown field {extra[0]!r:.80}")


def is_of(kind: Kind, value: object) -> bool:
    return type(value) is kind if isinstance(kind, type) else kind(value)


def check_columns(body: dict[str, Any], names: tuple[str, ...], where: str, more: tuple[str, ...] = ()) -> None:
    """Lists of equally many numbers; the updates are whole and rise.  Those of `more` may be there."""
    names = (*names, *(name for name in more if name in body))
    check_fields(body, dict.fromkeys(names, list), where)
    lengths = {len(body[name]) for name in names}
    if len(lengths) > 1 or lengths == {0}:
        raise UserError(f"{where} has columns of different length, or nothing")
    for name in names:
        if not all(map(is_number, body[name])):
            raise UserError(f"{name!r} of {where} holds something that is not a number")
    check_rising(body["update"], f"the updates of {where}")


def check_rising(values: list[Any], what: str) -> None:
    if not all(map(is_whole, values)) or values != sorted(set(values)):
        raise UserError(f"{what} are no rising whole numbers")


def check_heads(shape: dict[str, Any]) -> None:
    """Whether the heads share the width among them."""
    if shape["width"] % shape["heads"]:
        raise UserError(f"'heads' cannot be {shape['heads']}: they do not divide the 'width' {shape['width']}")


def check_evaluations(settings: dict[str, Any]) -> None:
    """Whether the updates at which a run was looked at can be counted out."""
    if settings["updates"] // settings["evaluate_every"] > MOST_EVALUATIONS:
        raise UserError(f"'evaluate_every' of settings cannot be {settings['evaluate_every']}: "
                        f"of {settings['updates']} 'updates' that is more than {MOST_EVALUATIONS} evaluations")
