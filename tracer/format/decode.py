"""From the JSON of a recording to its types.  Raises `UserError` for a part of another type, or with more to it."""

import base64
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from tracer.errors import UserError
from tracer.format.decode_structure import structure_from_json
from tracer.format.files import ARRAY_SCHEMA, FILE, LABELS_SCHEMA, PART_VERSION, array_file, check_version, read_part
from tracer.format.trace import DTYPES, Array, Operation, Trace
from tracer.format.typed import all_are, few, name_of, only, take
from tracer.storage.strict_json import parse, read_bytes

LARGEST = 2**26  # values of one array; no file of a few bytes may ask for more memory than a computer has
MOST_HELD = 2**28  # bytes of all numbers that a recording holds in files
MOST_AXES = 8
NONFINITE = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_HASH = re.compile(r"[0-9a-f]{64}")
TRACE_KEYS = {"schema", "version", "route", "make", "summary", "labels", "chapters", "passes", "texts", "parameters",
              "roles", "operations", "arrays", "outline_sha256"}
_OPERATION_KEYS = {"id", "kind", "target", "operands", "settings", "rounding"}
_ARRAY_KEYS = {"shape", "dtype", "axes", "labels", "sha256", "values", "nonfinite", "file", "same_as", "derived"}

def from_json(body: dict[str, Any], folder: Path) -> Trace:
    """The trace that the parsed file of a recording in `folder` holds, with the numbers of its array files."""
    only(body, TRACE_KEYS, "the trace")
    operations = [_operation_from_json(s) for s in few(take(body, "operations", list, "the trace", of=dict),
                                                          "operations")]
    arrays = few(take(body, "arrays", dict, "the trace", of=dict), "arrays")
    labels = few(take(body, "labels", dict, "the trace"), "lists of labels")
    trace = Trace(
        route=take(body, "route", str, "the trace"), make=take(body, "make", dict, "the trace"),
        summary=take(body, "summary", dict, "the trace"), labels=labels,
        operations={operation.id: operation for operation in operations},
        arrays={name: _array_from_json(name, array) for name, array in arrays.items()},
        **structure_from_json(body), folder=folder, outline_sha256=take(body, "outline_sha256", str, "the trace"),
    )
    if len(trace.operations) < len(operations):
        raise UserError("two operations have the same id")
    _load_files(trace, folder)
    for name, labels in trace.labels.items():
        _read_labels(trace, folder, name, labels)
    return trace


def _operation_from_json(body: dict[str, Any]) -> Operation:
    name = name_of(take(body, "id", str, "an operation"), "an operation")
    where = f"operation {name}"
    only(body, _OPERATION_KEYS, where)
    rounding = take(body, "rounding", dict, where, of=float, default={})
    if not all(_NUMBER.fullmatch(index) for index in rounding):
        raise UserError(f"'rounding' of {where} has an index that is not a whole number")
    return Operation(name, take(body, "kind", str, where), take(body, "target", str, where),
                take(body, "operands", dict, where, of=str),
                take(body, "settings", dict, where, of=float, default={}),
                {int(index): float(value) for index, value in rounding.items()})


def _array_from_json(name: str, body: dict[str, Any]) -> Array:
    where = f"array {name_of(name, 'an array')}"
    only(body, _ARRAY_KEYS, where)
    file, same_as, sha256 = (take(body, key, str, where, default=None) for key in ("file", "same_as", "sha256"))
    array = Array(name, tuple(take(body, "shape", list, where, of=int)), take(body, "dtype", str, where),
                  tuple(take(body, "axes", list, where, of=str)),
                  take(body, "labels", dict, where, of=str, default={}), file=file, same_as=same_as,
                  derived=take(body, "derived", bool, where, default=False), sha256=sha256)
    if array.dtype not in DTYPES:
        raise UserError(f"{where} has unknown dtype {array.dtype!r}")
    if len(array.shape) > MOST_AXES or not all(0 <= n <= LARGEST for n in array.shape) or array.size > LARGEST:
        raise UserError(f"{where} has the impossible shape {list(array.shape[:MOST_AXES])}")
    if sha256 is not None and not _HASH.fullmatch(sha256):
        raise UserError(f"'sha256' of {where} is not 64 hexadecimal digits")
    if sum(("values" in body, array.file is not None, array.same_as is not None, array.derived)) != 1:
        raise UserError(f"{where} must have exactly one of values, file, same_as and derived")
    if "nonfinite" in body and "values" not in body:
        raise UserError(f"{where} has 'nonfinite' and no values")
    if "values" in body:
        array.data = _values_from_json(array, body)
    return array


def _values_from_json(array: Array, body: dict[str, Any]) -> np.ndarray:
    where = f"array {array.name}"
    values = list(take(body, "values", list, where))
    if len(values) != array.size:
        raise UserError(f"{where} has {len(values)} values, its shape {list(array.shape)} needs {array.size}")
    odd = {}
    for index, word in take(body, "nonfinite", dict, where, of=str, default={}).items():
        if not _NUMBER.fullmatch(index) or int(index) >= len(values) or values[int(index)] is not None:
            raise UserError(f"{where} has no null at {index!r} for {word!r} to stand for")
        if word not in NONFINITE or array.dtype == "int64":
            raise UserError(f"{where} says {word!r} at {index}, which none of its values can be")
        odd[int(index)] = NONFINITE[word]
        values[int(index)] = 0
    if not all_are(values, int if array.dtype == "int64" else float):
        raise UserError(f"{where} holds a value that is not a number of dtype {array.dtype}")
    return _as_array(array, values, odd)


def _as_array(array: Array, values: list[Any], odd: dict[int, float]) -> np.ndarray:
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


def _load_files(trace: Trace, folder: Path) -> None:
    """The numbers in files, once it is known that they are not too many."""
    arrays = [(array, array.file) for array in trace.arrays.values() if array.file is not None]
    held = sum(array.size * DTYPES[array.dtype].itemsize for array, _ in arrays)
    if held > MOST_HELD:
        raise UserError(f"its array files hold {held:,} bytes of numbers, of which {MOST_HELD:,} are read at most")
    for array, file in arrays:
        try:
            array.data = _load_file(folder, file, array)
        except UserError as error:
            raise UserError(f"array file {file}: {error}") from None


def _load_file(folder: Path, file: str, array: Array) -> np.ndarray:
    """The numbers in a file, which has one form only: what `array_file` writes."""
    if not FILE.fullmatch(file):
        raise UserError(f"it has no name that this program gives, array {array.name} cannot be in it")
    raw_size = array.size * DTYPES[array.dtype].itemsize
    before, after = array_file(array, b"")[:-3], b'"}'
    whole = len(before) + 4 * math.ceil(raw_size / 3) + len(after)
    content = read_bytes(folder / file, whole + 1000).removesuffix(b"\n")
    if len(content) != whole or not content.startswith(before) or not content.endswith(after):
        raise UserError(_why_not(content, array))
    text = content[len(before):-len(after)]
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError as error:  # not base64
        raise UserError(f"it is damaged ({error})") from None
    if len(raw) != raw_size:
        raise UserError(f"it does not hold the {array.dtype} {list(array.shape)} that {array.name} needs")
    return np.frombuffer(raw, dtype=DTYPES[array.dtype]).reshape(array.shape).copy()


def _why_not(content: bytes, array: Array) -> str:
    """What is wrong with an array file that is not as it is written."""
    body = parse(content)
    check_version(body, ARRAY_SCHEMA, PART_VERSION)
    text = take(body, "base64", str, "it")
    if body.get("dtype") != array.dtype or body.get("shape") != list(array.shape):
        return f"it does not hold the {array.dtype} {list(array.shape)} that {array.name} needs"
    try:
        base64.b64decode(text, validate=True)
    except ValueError as error:
        return f"it is damaged ({error})"
    return f"it does not hold the {array.dtype} {list(array.shape)} that {array.name} needs, in the form that it has"


def _read_labels(trace: Trace, folder: Path, name: str, labels: object) -> None:
    """Check a list of labels; one in a file is read, once a file."""
    if isinstance(labels, list):
        if not all_are(labels, str):
            raise UserError(f"labels {name} hold something that is not a text")
        return
    if not isinstance(labels, dict):
        raise UserError(f"labels {name} are neither a list nor in a file")
    only(labels, {"file", "length"}, f"labels {name}")
    file, length = take(labels, "file", str, f"labels {name}"), take(labels, "length", int, f"labels {name}")
    if not FILE.fullmatch(file):
        raise UserError(f"label file {file} of labels {name} has no name that this program gives")
    if file not in trace.label_files:
        body = read_part(folder, file, LABELS_SCHEMA)
        only(body, {"schema", "version", "labels"}, f"label file {file}")
        trace.label_files[file] = take(body, "labels", list, f"label file {file}", of=str)
    if len(trace.label_files[file]) != length:
        raise UserError(f"label file {file} has {len(trace.label_files[file])} labels, not the {length} "
                        f"of labels {name}")
