"""From the JSON of a recording to its types.  Raises `UserError` for a part of another type."""

import base64
import re
from pathlib import Path

import numpy as np

from tracer.errors import UserError
from tracer.trace import DTYPES, Array, Chapter, Step, Trace, View
from tracer.trace_files import ARRAY_SCHEMA, FILE, LABELS_SCHEMA, read_part

LARGEST = 2**26  # values of one array; no file of a few bytes may ask for more memory than a computer has
NONFINITE = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
_NUMBER = re.compile(r"0|[1-9][0-9]*")

_REQUIRED = object()
_TYPES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a whole number",
          float: "a number"}


def _all(items, kind: type) -> bool:
    """Whether every item, as JSON gave it, is a `kind`; true and false are no numbers, whole ones are."""
    return set(map(type, items)) <= ({int, float} if kind is float else {kind})


def _take(body, key: str, kind: type, where: str, *, of: type | None = None, default=_REQUIRED):
    """`body[key]`, which must be a `kind`; in a list or an object every item must be an `of`."""
    if not isinstance(body, dict):
        raise UserError(f"{where} is not an object")
    if key not in body:
        if default is _REQUIRED:
            raise UserError(f"{where} has no {key!r}")
        return default
    value = body[key]
    if not _all([value], kind):
        raise UserError(f"{key!r} of {where} is not {_TYPES[kind]}")
    if of and not _all(value.values() if kind is dict else value, of):
        raise UserError(f"{key!r} of {where} holds something that is not {_TYPES[of]}")
    return value


def from_json(body: dict, folder: Path) -> Trace:
    steps = [_step_from_json(s) for s in _take(body, "steps", list, "the trace", of=dict)]
    trace = Trace(
        route=_take(body, "route", str, "the trace"), make=_take(body, "make", dict, "the trace"),
        summary=_take(body, "summary", dict, "the trace"), labels=_take(body, "labels", dict, "the trace"),
        chapters=[_chapter_from_json(c) for c in _take(body, "chapters", list, "the trace", of=dict)],
        steps={step.id: step for step in steps},
        arrays={name: _array_from_json(name, a, folder)
                for name, a in _take(body, "arrays", dict, "the trace", of=dict).items()},
        folder=folder, outline_sha256=_take(body, "outline_sha256", str, "the trace"),
    )
    if len(trace.steps) < len(steps):
        raise UserError("two steps have the same id")
    for name, labels in trace.labels.items():
        _read_labels(trace, name, labels)
    return trace


def _chapter_from_json(body: dict) -> Chapter:
    chapter = _take(body, "id", str, "a chapter")
    views = _take(body, "views", list, f"chapter {chapter}", of=dict)
    return Chapter(chapter, [_view_from_json(view, chapter) for view in views])


def _view_from_json(body: dict, chapter: str) -> View:
    view = _take(body, "id", str, f"a view of chapter {chapter}")
    steps, arrays = (_take(body, key, list, f"view {view}", of=str) for key in ("steps", "arrays"))
    return View(view, steps, arrays)


def _step_from_json(body: dict) -> Step:
    name = _take(body, "id", str, "a step")
    where = f"step {name}"
    rounding = _take(body, "rounding", dict, where, of=float, default={})
    if not all(_NUMBER.fullmatch(index) for index in rounding):
        raise UserError(f"'rounding' of {where} has an index that is not a whole number")
    return Step(name, _take(body, "kind", str, where), _take(body, "target", str, where),
                _take(body, "operands", dict, where, of=str),
                _take(body, "attributes", dict, where, of=float, default={}),
                {int(index): float(value) for index, value in rounding.items()})


def _array_from_json(name: str, body: dict, folder: Path) -> Array:
    where = f"array {name}"
    file, same_as, sha256 = (_take(body, key, str, where, default=None) for key in ("file", "same_as", "sha256"))
    array = Array(name, tuple(_take(body, "shape", list, where, of=int)), _take(body, "dtype", str, where),
                  tuple(_take(body, "axes", list, where, of=str)),
                  _take(body, "labels", dict, where, of=str, default={}), file=file, same_as=same_as,
                  derived=_take(body, "derived", bool, where, default=False), sha256=sha256)
    if array.dtype not in DTYPES:
        raise UserError(f"{where} has unknown dtype {array.dtype!r}")
    if any(length < 0 for length in array.shape) or array.size > LARGEST:
        raise UserError(f"{where} has the impossible shape {list(array.shape)}")
    if sum(("values" in body, array.file is not None, array.same_as is not None, array.derived)) != 1:
        raise UserError(f"{where} must have exactly one of values, file, same_as and derived")
    if array.file:
        array.data = _load_file(folder, array)
    elif "values" in body:
        array.data = _values_from_json(array, body)
    return array


def _values_from_json(array: Array, body: dict) -> np.ndarray:
    where = f"array {array.name}"
    values = list(_take(body, "values", list, where))
    if len(values) != array.size:
        raise UserError(f"{where} has {len(values)} values, its shape {list(array.shape)} needs {array.size}")
    odd = {}
    for index, word in _take(body, "nonfinite", dict, where, of=str, default={}).items():
        if not _NUMBER.fullmatch(index) or int(index) >= len(values) or values[int(index)] is not None:
            raise UserError(f"{where} has no null at {index!r} for {word!r} to stand for")
        if word not in NONFINITE or array.dtype == "int64":
            raise UserError(f"{where} says {word!r} at {index}, which none of its values can be")
        odd[int(index)] = NONFINITE[word]
        values[int(index)] = 0
    if not _all(values, int if array.dtype == "int64" else float):
        raise UserError(f"{where} holds a value that is not a number of dtype {array.dtype}")
    return _as_array(array, values, odd)


def _as_array(array: Array, values: list, odd: dict[int, float]) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # a float32 too large becomes infinite
            flat = np.array(values, dtype=DTYPES[array.dtype])
    except OverflowError:
        flat = np.array([np.inf])
    if not np.isfinite(flat).all():
        raise UserError(f"array {array.name} holds a value that is too large for {array.dtype}")
    for index, value in odd.items():
        flat[index] = value
    return flat.reshape(array.shape)


def _load_file(folder: Path, array: Array) -> np.ndarray:
    where = f"array file {array.file}"
    if not FILE.fullmatch(array.file):
        raise UserError(f"{where} of array {array.name} has no name that this program gives")
    body = read_part(folder, array.file, ARRAY_SCHEMA)
    shape = tuple(_take(body, "shape", list, where, of=int))
    try:
        raw = base64.b64decode(_take(body, "base64", str, where), validate=True)
    except ValueError as error:  # not base64
        raise UserError(f"{where} is damaged ({error})") from None
    wanted = array.size * DTYPES[array.dtype].itemsize
    if _take(body, "dtype", str, where) != array.dtype or shape != array.shape or len(raw) != wanted:
        raise UserError(f"{where} does not hold the {array.dtype} {list(array.shape)} that {array.name} needs")
    return np.frombuffer(raw, dtype=DTYPES[array.dtype]).reshape(array.shape).copy()


def _read_labels(trace: Trace, name: str, labels) -> None:
    """Check a list of labels; one in a file is read, once a file."""
    if isinstance(labels, list):
        if not _all(labels, str):
            raise UserError(f"labels {name} hold something that is not a text")
        return
    if not isinstance(labels, dict):
        raise UserError(f"labels {name} are neither a list nor in a file")
    file, length = _take(labels, "file", str, f"labels {name}"), _take(labels, "length", int, f"labels {name}")
    if not FILE.fullmatch(file):
        raise UserError(f"label file {file} of labels {name} has no name that this program gives")
    if file not in trace.label_files:
        trace.label_files[file] = _take(read_part(trace.folder, file, LABELS_SCHEMA), "labels", list,
                                        f"label file {file}", of=str)
    if len(trace.label_files[file]) != length:
        raise UserError(f"label file {file} has {len(trace.label_files[file])} labels, not the {length} "
                        f"of labels {name}")
