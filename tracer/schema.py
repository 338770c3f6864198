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
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import orjson

from tracer.errors import UserError
from tracer.ops import KINDS
from tracer.ops.language import walk

SCHEMA = "two-routes/trace"
ARRAY_SCHEMA = "two-routes/array"
LABELS_SCHEMA = "two-routes/labels"
VERSION = 1
INLINE_LIMIT = 8192
DTYPES = {"float32": np.dtype("<f4"), "float64": np.dtype("<f8"), "int64": np.dtype("<i8")}
NONFINITE = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
RECORD_AGAIN = "record again with `make traces`"

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
        return int(np.prod(self.shape, dtype=np.int64))


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

    def values(self, name: str) -> np.ndarray:
        """The recorded numbers.  Raises `KeyError` for a derived array, which holds none."""
        array = self.arrays[name]
        while array.same_as:
            array = self.arrays[array.same_as]
        if array.data is None and array.file:
            array.data = _load_file(self.folder, array)
        if array.data is None:
            raise KeyError(f"{name} is derived: it holds no numbers")
        return array.data

    def label_list(self, name: str) -> list[str]:
        """The labels of an axis; a long list (a vocabulary) stands in a file of its own."""
        labels = self.labels[name]
        if isinstance(labels, list):
            return labels
        return _read_json(self.folder / labels["file"], "label file")["labels"]

    @cached_property
    def uses(self) -> dict[str, list[Step]]:
        """Array name → the steps that read it."""
        found: dict[str, list[Step]] = {}
        for step in self.steps.values():
            for name in dict.fromkeys(step.operands.values()):
                found.setdefault(name, []).append(step)
        return found


def content_hash(values: np.ndarray) -> str:
    """SHA-256 over dtype, shape and little-endian bytes."""
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
    trace.labels = body["labels"] = {name: _labels_to_json(lst, files) for name, lst in trace.labels.items()}
    trace.outline_sha256 = body["outline_sha256"] = outline_hash(trace)
    for name, content in files.items():
        target = path.parent / name
        if not target.exists() or target.read_bytes() != content:
            write_atomically(target, content)
    write_atomically(path, orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside `path`, then rename over it: a reader sees the old file or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
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
    return [p for p in sorted((folder / "arrays").glob("*.json")) if f"arrays/{p.name}" not in used]


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
    flat = np.ascontiguousarray(array.data).reshape(-1)
    odd = np.flatnonzero(~np.isfinite(flat)) if flat.dtype.kind == "f" else []
    if len(odd):
        body["nonfinite"] = {str(i): "nan" if np.isnan(flat[i]) else "inf" if flat[i] > 0 else "-inf" for i in odd}
    return body | {"values": flat}


def _labels_to_json(labels: list[str] | dict, files: dict[str, bytes]) -> list[str] | dict:
    if isinstance(labels, dict) or len(labels) <= INLINE_LIMIT:
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
    body = _read_json(path, "trace")
    if not isinstance(body, dict) or body.get("schema") != SCHEMA:
        raise UserError(f"{path} is not a trace: its \"schema\" is not {SCHEMA!r}; {RECORD_AGAIN}")
    if body.get("version") != VERSION:
        raise UserError(f"{path} has schema version {body.get('version')!r}, this program reads version "
                        f"{VERSION}; {RECORD_AGAIN}, or use the program that wrote it")
    try:
        trace = _from_json(body, path.parent)
        _validate(trace)
    except UserError as error:
        raise UserError(f"{path}: {error}; {RECORD_AGAIN}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path} is damaged ({type(error).__name__}: {error}); {RECORD_AGAIN}") from None
    return trace


def load_all(folder: Path) -> dict[str, Trace]:
    """Every trace in `folder` by file stem.  Raises `UserError` when there is none."""
    if folder.is_file():
        return {folder.stem: load(folder)}
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: name the folder that holds the recordings")
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise UserError(f"{folder} holds no recording (*.json): {RECORD_AGAIN}")
    return {path.stem: load(path) for path in paths}


def _read_json(path: Path, what: str):
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"the {what} {path} is missing: {RECORD_AGAIN}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; name a readable file") from None
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path} is cut off or damaged (JSON ends or breaks at character {error.pos} "
                        f"of {len(content)}); {RECORD_AGAIN}") from None


def _from_json(body: dict, folder: Path) -> Trace:
    return Trace(
        route=body["route"], make=body["make"], summary=body["summary"], labels=body["labels"],
        chapters=[Chapter(c["id"], [View(**v) for v in c["views"]]) for c in body["chapters"]],
        steps={s["id"]: _step_from_json(s) for s in body["steps"]},
        arrays={name: _array_from_json(name, a) for name, a in body["arrays"].items()},
        folder=folder, outline_sha256=body["outline_sha256"],
    )


def _step_from_json(body: dict) -> Step:
    rounding = {int(i): float(value) for i, value in body.get("rounding", {}).items()}
    return Step(body["id"], body["kind"], body["target"], body["operands"], body.get("attributes", {}), rounding)


def _array_from_json(name: str, body: dict) -> Array:
    array = Array(name, tuple(body["shape"]), body["dtype"], tuple(body["axes"]), body.get("labels", {}),
                  file=body.get("file"), same_as=body.get("same_as"), derived=body.get("derived", False),
                  sha256=body.get("sha256"))
    if array.dtype not in DTYPES:
        raise UserError(f"array {name} has unknown dtype {array.dtype!r}")
    if "values" in body:
        array.data = _values_from_json(array, body)
    return array


def _values_from_json(array: Array, body: dict) -> np.ndarray:
    values = body["values"]
    if len(values) != array.size:
        raise UserError(f"array {array.name} has {len(values)} values, its shape {list(array.shape)} "
                        f"needs {array.size}")
    if array.dtype != "int64":
        nonfinite = body.get("nonfinite", {})
        values = list(values)
        for index, word in nonfinite.items():
            values[int(index)] = NONFINITE[word]
    if any(value is None or isinstance(value, (str, bool)) for value in values):
        raise UserError(f"array {array.name} holds a value that is not a number")
    return np.array(values, dtype=DTYPES[array.dtype]).reshape(array.shape)


def _load_file(folder: Path, array: Array) -> np.ndarray:
    path = folder / array.file
    body = _read_json(path, "array file")
    try:
        if (body["schema"], body["version"]) != (ARRAY_SCHEMA, VERSION):
            raise UserError(f"{path} is not an array file of version {VERSION}; {RECORD_AGAIN}")
        raw = base64.b64decode(body["base64"], validate=True)
        wanted = array.size * DTYPES[array.dtype].itemsize
        if body["dtype"] != array.dtype or tuple(body["shape"]) != array.shape or len(raw) != wanted:
            raise UserError(f"{path} does not hold the {array.dtype} {list(array.shape)} that {array.name} "
                            f"needs; {RECORD_AGAIN}")
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is damaged ({type(error).__name__}: {error}); {RECORD_AGAIN}") from None
    return np.frombuffer(raw, dtype=DTYPES[array.dtype]).reshape(array.shape).copy()


# Checking ------------------------------------------------------------------------------------------

def _validate(trace: Trace) -> None:
    for array in trace.arrays.values():
        _validate_array(trace, array)
    for step in trace.steps.values():
        _validate_step(trace, step)
    for chapter in trace.chapters:
        for view in chapter.views:
            _need(view.id, "step", view.steps, trace.steps)
            _need(view.id, "array", view.arrays, trace.arrays)


def _need(where: str, what: str, names: Iterable[str], known: dict) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"{where} names {what} {name!r}, which the trace does not hold")


def _validate_array(trace: Trace, array: Array) -> None:
    if len(array.axes) != len(array.shape) or any(axis not in AXES for axis in array.axes):
        raise UserError(f"array {array.name} has shape {list(array.shape)} but axes {list(array.axes)}")
    for axis, label_list in array.labels.items():
        _need(f"array {array.name}", "labels", [label_list], trace.labels)
        length = array.shape[array.axes.index(axis)]
        labels = trace.labels[label_list]
        count = len(labels) if isinstance(labels, list) else labels["length"]
        if count != length:
            raise UserError(f"array {array.name} has {length} along {axis}, its labels {label_list} "
                            f"are {count}")
    if array.same_as is not None:
        _need(f"array {array.name}", "array", [array.same_as], trace.arrays)
        other = trace.arrays[array.same_as]
        if other.same_as or (other.shape, other.dtype) != (array.shape, array.dtype):
            raise UserError(f"array {array.name} cannot be the same as {array.same_as}: shape or dtype differs")
    if not (array.derived or array.same_as or array.file) and array.data is None:
        raise UserError(f"array {array.name} holds neither values nor a file")
    if array.file and not (trace.folder / array.file).is_file():
        raise UserError(f"the file {array.file} of array {array.name} is missing")
    if array.name not in trace.steps and (array.derived or not array.sha256):
        raise UserError(f"array {array.name} comes from no step and has no sha256")


def _validate_step(trace: Trace, step: Step) -> None:
    if step.kind not in KINDS or step.target not in KINDS[step.kind].targets:
        raise UserError(f"step {step.id} has unknown kind {step.kind}.{step.target}")
    _need(f"step {step.id}", "array", [step.id, *step.operands.values()], trace.arrays)
    missing = [n for n in KINDS[step.kind].operands(step.target) if n not in step.operands]
    if missing:
        raise UserError(f"step {step.id} lacks its operand {missing[0]}")
    for equation in KINDS[step.kind].targets[step.target]:
        for node in walk(equation.body):
            if node[0] == "name" and node[1] not in ("inf", "pi") and node[1] not in step.attributes:
                raise UserError(f"step {step.id} lacks its attribute {node[1]}")
