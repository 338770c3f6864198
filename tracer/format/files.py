"""A recording as files: written whole, and read again part by part."""

import base64
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from tracer.errors import UserError
from tracer.format.trace import DTYPES, Array, Operation, Trace, content_hash, outline_hash, structure_to_json
from tracer.storage.strict_json import MOST_BYTES, parse, read_bytes
from tracer.storage.together import replace_together

SCHEMA = "two-routes/trace"
ARRAY_SCHEMA = "two-routes/array"
LABELS_SCHEMA = "two-routes/labels"
VERSION = 2
PART_VERSION = 1  # of array and label files, which are as they were
INLINE_LIMIT = 8192
FILE = re.compile(r"arrays/[0-9a-f]{16}\.json")  # nothing outside that folder is ever read or removed


# Writing -------------------------------------------------------------------------------------------

def save(trace: Trace, path: Path) -> None:
    """Write the trace and its array files.  Atomic: until it is whole, the old recording stays."""
    replace_together(path.parent, files_of(trace, path))


def files_of(trace: Trace, path: Path) -> dict[str, bytes]:
    """The files of the trace, by name in the folder of `path`, where it is going to be.

    Raises `UserError` for a trace that is too large to be read again.
    """
    share_content(trace)
    files: dict[str, bytes] = {}
    arrays = {name: _array_to_json(array, files) for name, array in trace.arrays.items()}
    body = {
        "schema": SCHEMA, "version": VERSION, "route": trace.route, "make": trace.make,
        "summary": trace.summary, "labels": {}, **structure_to_json(trace),
        "operations": [_operation_to_json(operation) for operation in trace.operations.values()],
        "arrays": arrays, "outline_sha256": "",
    }
    lists = {name: trace.label_list(name) for name in trace.labels}
    trace.labels = body["labels"] = {name: _labels_to_json(own, files) for name, own in lists.items()}
    trace.label_files = {entry["file"]: lists[name] for name, entry in trace.labels.items() if isinstance(entry, dict)}
    trace.folder = path.parent
    trace.outline_sha256 = body["outline_sha256"] = outline_hash(trace)
    content = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n"
    if len(content) > MOST_BYTES:
        raise UserError(f"{path} would be {len(content):,} bytes, of which {MOST_BYTES:,} can be read: record less")
    return files | {path.name: content}


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
    paths = [p for p in sorted((folder / "arrays").glob("*.json")) if FILE.fullmatch(f"arrays/{p.name}")]
    return [p for p in paths if f"arrays/{p.name}" not in used]


def _array_to_json(array: Array, files: dict[str, bytes]) -> dict[str, Any]:
    body: dict[str, Any] = {"shape": list(array.shape), "dtype": array.dtype, "axes": list(array.axes)}
    if array.labels:
        body["labels"] = array.labels
    if array.sha256:
        body["sha256"] = array.sha256
    if array.derived:
        return body | {"derived": True}
    if array.same_as:
        return body | {"same_as": array.same_as}
    if array.data is None:
        raise AssertionError(f"{array.name} holds nothing that can be written")
    if array.size > INLINE_LIMIT:
        digest = content_hash(array.data)
        array.file = f"arrays/{digest[:16]}.json"
        raw = np.ascontiguousarray(array.data, dtype=DTYPES[array.dtype]).tobytes()
        files[array.file] = array_file(array, raw)
        return body | {"file": array.file}
    flat = np.ascontiguousarray(array.data, dtype=DTYPES[array.dtype]).reshape(-1)
    odd = np.flatnonzero(~np.isfinite(flat)).tolist() if flat.dtype.kind == "f" else []
    if odd:
        body["nonfinite"] = {str(i): "nan" if np.isnan(flat[i]) else "inf" if flat[i] > 0 else "-inf" for i in odd}
    return body | {"values": flat}


def array_file(array: Array, raw: bytes) -> bytes:
    """The content of the file of an array whose numbers are `raw`."""
    return orjson.dumps({"schema": ARRAY_SCHEMA, "version": PART_VERSION, "dtype": array.dtype,
                         "shape": list(array.shape), "base64": base64.b64encode(raw).decode()}) + b"\n"


def _labels_to_json(labels: list[str], files: dict[str, bytes]) -> list[str] | dict[str, Any]:
    if len(labels) <= INLINE_LIMIT:
        return labels
    content = orjson.dumps({"schema": LABELS_SCHEMA, "version": PART_VERSION, "labels": labels}) + b"\n"
    file = f"arrays/{hashlib.sha256(content).hexdigest()[:16]}.json"
    files[file] = content
    return {"file": file, "length": len(labels)}


def _operation_to_json(operation: Operation) -> dict[str, Any]:
    body: dict[str, Any] = {name: getattr(operation, name) for name in ("id", "kind", "target", "operands")}
    if operation.settings:
        body["settings"] = operation.settings
    if operation.rounding:
        body["rounding"] = {str(i): value for i, value in operation.rounding.items()}
    return body


# Reading -------------------------------------------------------------------------------------------

def read_part(folder: Path, file: str, schema: str) -> dict[str, Any]:
    """The content of an array file or a label file."""
    try:
        body: dict[str, Any] = parse(read_bytes(folder / file))
        check_version(body, schema, PART_VERSION)
        return body
    except UserError as error:
        raise UserError(f"{file}: {error}") from None


def check_version(body: object, schema: str, *versions: int) -> int:
    """The version of what was read.  Raises `UserError` for another schema and for none of the `versions`."""
    if not isinstance(body, dict) or body.get("schema") != schema:
        raise UserError(f"its \"schema\" is not {schema!r}")
    version = body.get("version")
    if type(version) is not int or version not in versions:
        raise UserError(f"it has schema version {version!r:.40}, this program reads version "
                        f"{' and '.join(map(str, versions))}")
    return version


def labels_are_as_written(trace: Trace, name: str) -> bool:
    """Whether a list of labels in a file of its own still has the content that the file is named by."""
    labels = trace.labels[name]
    if isinstance(labels, list) or trace.folder is None:
        return True
    try:
        content = read_bytes(trace.folder / labels["file"])
    except UserError:
        return False
    return str(labels["file"]) == f"arrays/{hashlib.sha256(content).hexdigest()[:16]}.json"
