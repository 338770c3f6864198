"""Parts of parsed JSON, by type.  Raises `UserError` for a part of another type, or with more to it."""

from collections.abc import Iterable, Sized
from typing import Any, TypeVar

from tracer.errors import UserError

MOST_PARTS = 50_000  # operations, arrays, steps or lists of labels
LONGEST_NAME = 200
C = TypeVar("C", bound=Sized)
_REQUIRED = object()
_TYPES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a whole number",
          float: "a number"}


def all_are(items: Iterable[object], kind: type) -> bool:
    """Whether every item, as JSON gave it, is a `kind`; true and false are no numbers, whole ones are."""
    return set(map(type, items)) <= ({int, float} if kind is float else {kind})


def take(body: object, key: str, kind: type, where: str, *, of: type | None = None, default: object = _REQUIRED) -> Any:
    """`body[key]`, which must be a `kind`; in a list or an object every item must be an `of`."""
    if not isinstance(body, dict):
        raise UserError(f"{where} is not an object")
    if key not in body:
        if default is _REQUIRED:
            raise UserError(f"{where} has no {key!r}")
        return default
    value = body[key]
    if not all_are([value], kind):
        raise UserError(f"{key!r} of {where} is not {_TYPES[kind]}")
    if of and not all_are(value.values() if kind is dict else value, of):
        raise UserError(f"{key!r} of {where} holds something that is not {_TYPES[of]}")
    return value


def only(body: dict[str, Any], keys: set[str], where: str) -> None:
    for key in body:
        if key not in keys:
            raise UserError(f"{where} has {key!r}, which this program does not know")


def name_of(name: str, what: str) -> str:
    """A name that can stand in a message, in a table and in an address."""
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UserError(f"{name[:LONGEST_NAME]!r} is no name for {what}: it is empty, too long, or holds signs "
                        "that cannot be shown")
    return name


def few(items: C, what: str) -> C:
    """`items`, of which there must not be too many."""
    if len(items) > MOST_PARTS:
        raise UserError(f"the trace has {len(items):,} {what}, of which {MOST_PARTS:,} are read at most")
    return items
