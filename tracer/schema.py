"""The format of a recording: named arrays, and the steps that made them from one another.

This module is the wall between the recorder and all that reads: it knows neither torch nor pages.

A trace is one JSON file.  Arrays of more than `INLINE_LIMIT` values stand beside it in ``arrays/``,
one file each, named by their content.  An array is held in one of four ways:

* ``values``   the numbers themselves, row by row; float32 in its shortest exact form
* ``file``     base64 of little-endian float32 in another file
* ``same_as``  the name of an array with the same content
* ``derived``  not held: it follows from its step's operands

JSON knows no NaN and no infinity: such a value is ``null`` among the values, and ``nonfinite`` says
which one it is.  Arrays at the start of a computation (parameters, random words, series) come from no
step: ``sha256`` holds them.
"""

import base64
import hashlib
import math
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import orjson

from tracer.errors import UserError, naming
from tracer.ops import KINDS, Computation
from tracer.ops.replay import Replay

SCHEMA = "two-routes/trace"
ARRAY_SCHEMA = "two-routes/array"
LABELS_SCHEMA = "two-routes/labels"
VERSION = 1
INLINE_LIMIT = 8192
LARGEST = 2**26  # values of one array; no file of a few bytes may ask for more memory than a computer has
DTYPES = {"float32": np.dtype("<f4"), "float64": np.dtype("<f8"), "int64": np.dtype("<i8")}
NONFINITE = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
RECORD_AGAIN = "record again with `make traces`"
_FILE = re.compile(r"arrays/[0-9a-f]{16}\.json")  # nothing outside that folder is ever read or removed
_NUMBER = re.compile(r"0|[1-9][0-9]*")

# The letter that stands for an axis in formulas.
AXES = {"position": "t", "query_position": "i", "key_position": "j", "head": "h", "feature": "d",
        "head_feature": "d", "hidden": "f", "qkv": "o", "output": "o", "row": "r", "vocabulary": "v",
        "candidate": "c", "update": "s", "token": "n", "byte": "n", "used_row": "r", "round": "n"}


@dataclass
class Array:
    """A named array.  `axes`: one name of `AXES` for each axis.  `labels`: axis → name of a label list."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[str, ...]
    labels: dict[str, str] = field(default_factory=dict)
    data: np.ndarray | None = None
    file: str | None = None
    same_as: str | None = None
    derived: bool = False
    sha256: str | None = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass
class Step:
    """One array made from others.  `id` is the name of the array it makes.

    `operands`: operand name of the kind → array name.  `rounding`: flat index → (recorded − exact), for
    the few values whose terms cancel so far that float32 keeps fewer than about three digits.
    """

    id: str
    kind: str
    target: str
    operands: dict[str, str]
    attributes: dict[str, float] = field(default_factory=dict)
    rounding: dict[int, float] = field(default_factory=dict)


@dataclass
class View:
    """What is shown at once: one module call, one parameter's update, one series."""

    id: str
    steps: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)


@dataclass
class Chapter:
    """A main step: an ordered list of views."""

    id: str
    views: list[View]


@dataclass
class Trace:
    """A whole recording.  `make` says how to make it again; `summary` holds its headline figures."""

    route: str
    make: dict
    summary: dict
    labels: dict[str, list[str] | dict]
    chapters: list[Chapter]
    steps: dict[str, Step]
    arrays: dict[str, Array]
    folder: Path | None = None
    outline_sha256: str = ""
    _label_files: dict[str, list[str]] = field(default_factory=dict, repr=False, compare=False)  # what has been read

    def values(self, name: str) -> np.ndarray:
        """The recorded numbers.  Raises `KeyError` for a derived array, which holds none."""
        array = self.arrays[name]
        while array.same_as:
            array = self.arrays[array.same_as]
        if array.data is None:
            raise KeyError(f"{name} is derived: it holds no numbers")
        return array.data

    def label_list(self, name: str) -> list[str]:
        """The labels of an axis; a long list (a vocabulary) stands in a file of its own."""
        labels = self.labels[name]
        if isinstance(labels, list):
            return labels
        file = str(labels.get("file"))  # named by its content
        if file not in self._label_files:
            self._label_files[file] = _read_labels(self.folder, name, labels)
        return self._label_files[file]

    @cached_property
    def uses(self) -> dict[str, list[Step]]:
        """Array name → the steps that read it."""
        found: dict[str, list[Step]] = {}
        for step in self.steps.values():
            for name in dict.fromkeys(step.operands.values()):
                found.setdefault(name, []).append(step)
        return found


def content_hash(values: np.ndarray) -> str:
    """SHA-256 over dtype, shape and little-endian bytes.  A NaN is a NaN: its sign and payload do not count."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    digest = hashlib.sha256(f"{values.dtype.name} {list(values.shape)} ".encode())
    digest.update(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False).tobytes())
    return digest.hexdigest()


def outline_hash(trace: Trace) -> str:
    """SHA-256 of what is neither an array's numbers nor a computed value: how it was made, labels, steps."""
    body = {"route": trace.route, "make": trace.make, "labels": trace.labels,
            "chapters": _chapters_to_json(trace.chapters),
            "steps": [[s.id, s.kind, s.target, s.operands, s.attributes] for s in trace.steps.values()],
            "arrays": [[a.name, a.shape, a.dtype, a.axes, a.labels, a.derived] for a in trace.arrays.values()]}
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def labels_are_as_written(trace: Trace, name: str) -> bool:
    """Whether a list of labels in a file of its own still has the content that the file is named by."""
    labels = trace.labels[name]
    if isinstance(labels, list):
        return True
    content = (trace.folder / labels["file"]).read_bytes()
    return labels["file"] == f"arrays/{hashlib.sha256(content).hexdigest()[:16]}.json"


# Writing -------------------------------------------------------------------------------------------

def save(trace: Trace, path: Path) -> None:
    """Write the trace and its array files.  Atomic: until it is whole, the old recording stays."""
    share_content(trace)
    files: dict[str, bytes] = {}
    arrays = {name: _array_to_json(array, files) for name, array in trace.arrays.items()}
    body = {
        "schema": SCHEMA, "version": VERSION, "route": trace.route, "make": trace.make,
        "summary": trace.summary, "labels": {},
        "chapters": _chapters_to_json(trace.chapters),
        "steps": [_step_to_json(step) for step in trace.steps.values()],
        "arrays": arrays, "outline_sha256": "",
    }
    trace.labels = body["labels"] = {name: _labels_to_json(trace.label_list(name), files) for name in trace.labels}
    trace.folder = path.parent
    trace.outline_sha256 = body["outline_sha256"] = outline_hash(trace)
    for name, content in files.items():
        target = path.parent / name
        if not target.exists() or target.read_bytes() != content:
            write_atomically(target, content)
    write_atomically(path, orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside `path`, then rename over it: a reader sees the old file or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def share_content(trace: Trace) -> None:
    """Hold equal arrays once: half of what hooks record is the same numbers under two names."""
    first: dict[str, str] = {}
    for array in trace.arrays.values():
        if array.data is None or array.same_as:
            continue
        digest = content_hash(array.data)
        if digest in first:
            array.same_as, array.data = first[digest], None
        else:
            first[digest] = array.name


def unused_files(folder: Path, traces: Iterable[Trace]) -> list[Path]:
    """Array and label files in `folder` that none of the traces names."""
    used = {array.file for trace in traces for array in trace.arrays.values() if array.file}
    used |= {labels["file"] for trace in traces for labels in trace.labels.values() if isinstance(labels, dict)}
    paths = [p for p in sorted((folder / "arrays").glob("*.json")) if _FILE.fullmatch(f"arrays/{p.name}")]
    return [p for p in paths if f"arrays/{p.name}" not in used]


def _array_to_json(array: Array, files: dict[str, bytes]) -> dict:
    body: dict = {"shape": list(array.shape), "dtype": array.dtype, "axes": list(array.axes)}
    if array.labels:
        body["labels"] = array.labels
    if array.sha256:
        body["sha256"] = array.sha256
    if array.derived:
        return body | {"derived": True}
    if array.same_as:
        return body | {"same_as": array.same_as}
    if array.size > INLINE_LIMIT:
        digest = content_hash(array.data)
        array.file = f"arrays/{digest[:16]}.json"
        raw = np.ascontiguousarray(array.data, dtype=DTYPES[array.dtype]).tobytes()
        files[array.file] = orjson.dumps({"schema": ARRAY_SCHEMA, "version": VERSION, "dtype": array.dtype,
                                          "shape": list(array.shape),
                                          "base64": base64.b64encode(raw).decode()}) + b"\n"
        return body | {"file": array.file}
    flat = np.ascontiguousarray(array.data, dtype=DTYPES[array.dtype]).reshape(-1)
    odd = np.flatnonzero(~np.isfinite(flat)) if flat.dtype.kind == "f" else []
    if len(odd):
        body["nonfinite"] = {str(i): "nan" if np.isnan(flat[i]) else "inf" if flat[i] > 0 else "-inf" for i in odd}
    return body | {"values": flat}


def _labels_to_json(labels: list[str], files: dict[str, bytes]) -> list[str] | dict:
    if len(labels) <= INLINE_LIMIT:
        return labels
    content = orjson.dumps({"schema": LABELS_SCHEMA, "version": VERSION, "labels": labels}) + b"\n"
    file = f"arrays/{hashlib.sha256(content).hexdigest()[:16]}.json"
    files[file] = content
    return {"file": file, "length": len(labels)}


def _step_to_json(step: Step) -> dict:
    body: dict = {"id": step.id, "kind": step.kind, "target": step.target, "operands": step.operands}
    if step.attributes:
        body["attributes"] = step.attributes
    if step.rounding:
        body["rounding"] = {str(i): value for i, value in step.rounding.items()}
    return body


def _chapters_to_json(chapters: list[Chapter]) -> list:
    return [{"id": c.id, "views": [{"id": v.id, "steps": v.steps, "arrays": v.arrays} for v in c.views]}
            for c in chapters]


# Reading -------------------------------------------------------------------------------------------

def load(path: Path) -> Trace:
    """Read and check a trace.  Raises `UserError` that says what is wrong, where, and what to do."""
    try:
        body = _read_json(path)
        _check_version(body, SCHEMA)
        trace = _from_json(body, path.parent)
        _validate(trace)
    except UserError as error:
        message = f"{path}: {error}; {RECORD_AGAIN}"
        raise UserError(" ".join(message.splitlines())) from None
    return trace


def load_all(folder: Path) -> dict[str, Trace]:
    """Every trace in `folder` by file stem.  Raises `UserError` when there is none."""
    if folder.is_file():
        return {folder.stem: load(folder)}
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: name the folder that holds the recordings, or one recording")
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise UserError(f"{folder} holds no recording (*.json): {RECORD_AGAIN}")
    return {path.stem: load(path) for path in paths}


def _read_json(path: Path):
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError("the file is missing") from None
    except OSError as error:
        raise UserError(f"the file cannot be read ({error.strerror})") from None
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise UserError(f"the file is cut off or damaged (JSON ends or breaks at character {error.pos} "
                        f"of {len(content)})") from None


def _read_part(folder: Path, file: str, schema: str) -> dict:
    """The content of an array file or a label file."""
    try:
        body = _read_json(folder / file)
        _check_version(body, schema)
        return body
    except UserError as error:
        raise UserError(f"{file}: {error}") from None


def _check_version(body, schema: str) -> None:
    if not isinstance(body, dict) or body.get("schema") != schema:
        raise UserError(f"its \"schema\" is not {schema!r}")
    version = body.get("version")
    if version != VERSION or type(version) is not int:
        raise UserError(f"it has schema version {version!r}, this program reads version {VERSION}")


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


def _from_json(body: dict, folder: Path) -> Trace:
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
    if not _FILE.fullmatch(array.file):
        raise UserError(f"{where} of array {array.name} has no name that this program gives")
    body = _read_part(folder, array.file, ARRAY_SCHEMA)
    shape = tuple(_take(body, "shape", list, where, of=int))
    try:
        raw = base64.b64decode(_take(body, "base64", str, where), validate=True)
    except ValueError as error:  # not base64
        raise UserError(f"{where} is damaged ({error})") from None
    wanted = array.size * DTYPES[array.dtype].itemsize
    if _take(body, "dtype", str, where) != array.dtype or shape != array.shape or len(raw) != wanted:
        raise UserError(f"{where} does not hold the {array.dtype} {list(array.shape)} that {array.name} needs")
    return np.frombuffer(raw, dtype=DTYPES[array.dtype]).reshape(array.shape).copy()


def _read_labels(folder: Path, name: str, entry: dict) -> list[str]:
    file, length = _take(entry, "file", str, f"labels {name}"), _take(entry, "length", int, f"labels {name}")
    if not _FILE.fullmatch(file):
        raise UserError(f"label file {file} of labels {name} has no name that this program gives")
    labels = _take(_read_part(folder, file, LABELS_SCHEMA), "labels", list, f"label file {file}", of=str)
    if len(labels) != length:
        raise UserError(f"label file {file} has {len(labels)} labels, not the {length} of labels {name}")
    return labels


# Checking ------------------------------------------------------------------------------------------

def _validate(trace: Trace) -> None:
    lengths = {name: _label_count(trace, name) for name in trace.labels}
    for array in trace.arrays.values():
        _validate_array(trace, array, lengths)
    replay = Replay(trace, AXES)
    made = {name for name in trace.arrays if name not in trace.steps}
    for step in trace.steps.values():
        _validate_step(trace, step, made)
        _validate_shapes(trace, step, replay)
        made.add(step.id)
    for chapter in trace.chapters:
        for view in chapter.views:
            _need(f"view {view.id}", "step", view.steps, trace.steps)
            _need(f"view {view.id}", "array", view.arrays, trace.arrays)


def _need(where: str, what: str, names: Iterable[str], known: dict) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"{where} names {what} {name!r}, which the trace does not hold")


def _label_count(trace: Trace, name: str) -> int:
    if not isinstance(trace.labels[name], list | dict):
        raise UserError(f"labels {name} are neither a list nor in a file")
    labels = trace.label_list(name)
    if not all(isinstance(label, str) for label in labels):
        raise UserError(f"labels {name} hold something that is not a text")
    return len(labels)


def _validate_array(trace: Trace, array: Array, lengths: dict[str, int]) -> None:
    if len(array.axes) != len(array.shape) or any(axis not in AXES for axis in array.axes):
        raise UserError(f"array {array.name} has shape {list(array.shape)} but axes {list(array.axes)}")
    for axis, labels in array.labels.items():
        _need(f"array {array.name}", "labels", [labels], lengths)
        _need(f"array {array.name}", "axis", [axis], dict.fromkeys(array.axes))
        length = array.shape[array.axes.index(axis)]
        if lengths[labels] != length:
            raise UserError(f"array {array.name} has {length} along {axis}, its labels {labels} "
                            f"are {lengths[labels]}")
    if array.same_as is not None:
        _need(f"array {array.name}", "array", [array.same_as], trace.arrays)
        other = trace.arrays[array.same_as]
        if other.data is None or (other.shape, other.dtype) != (array.shape, array.dtype):
            raise UserError(f"array {array.name} cannot be the same as {array.same_as}: that one has another "
                            "shape or dtype, or holds no numbers itself")
    if array.name not in trace.steps and (array.derived or not array.sha256):
        raise UserError(f"array {array.name} comes from no step and has no sha256")


def _validate_step(trace: Trace, step: Step, made: set[str]) -> None:
    """`made`: the arrays that are there before this step."""
    if step.kind not in KINDS or step.target not in KINDS[step.kind].targets:
        raise UserError(f"step {step.id} has unknown kind {step.kind}.{step.target}")
    _need(f"step {step.id}", "array", [step.id, *step.operands.values()], trace.arrays)
    late = [name for name in step.operands.values() if name not in made]
    if late:
        raise UserError(f"step {step.id} reads {late[0]}, which no step before it makes")
    missing = [n for n in KINDS[step.kind].operands(step.target) if n not in step.operands]
    if missing:
        raise UserError(f"step {step.id} lacks its operand {missing[0]}")
    for equation in KINDS[step.kind].targets[step.target]:
        for name in equation.settings:
            if name not in step.attributes:
                raise UserError(f"step {step.id} lacks its attribute {name}")


def _validate_shapes(trace: Trace, step: Step, replay: Replay) -> None:
    operands = {operand: trace.arrays[name] for operand, name in step.operands.items()}
    try:
        Computation(replay.equations(step), operands, step.attributes, trace.arrays[step.id].shape).sizes()
    except ValueError as error:
        raise UserError(f"step {step.id} does not fit its arrays: {error}") from None
