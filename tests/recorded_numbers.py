"""Numbers in the JSON of a recording, and how one of them is changed."""

from pathlib import Path

TRACES = Path(__file__).resolve().parent.parent / "traces"
THOUSANDTH = 1e-3


def leaves(value, path=()):
    """Places and values of all numbers in JSON."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    elif type(value) in (int, float):
        yield path, value


def changed(value: float) -> float:
    return value + 1 if type(value) is int else value * (1 + THOUSANDTH) or THOUSANDTH


def put(body, path: tuple, value) -> None:
    for key in path[:-1]:
        body = body[key]
    body[path[-1]] = value
