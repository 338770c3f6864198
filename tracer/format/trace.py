"""What a recording is: named arrays, and the operations that made them from one another."""

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import orjson

DTYPES = {"float32": np.dtype("<f4"), "float64": np.dtype("<f8"), "int64": np.dtype("<i8")}

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
class Operation:
    """One array made from others.  `id` is the name of the array it makes.

    `operands`: operand name of the kind → array name.  `rounding`: flat index → (recorded − exact), for
    the few values whose terms cancel so far that float32 keeps fewer than about three digits.
    """

    id: str
    kind: str
    target: str
    operands: dict[str, str]
    settings: dict[str, float] = field(default_factory=dict)
    rounding: dict[int, float] = field(default_factory=dict)


@dataclass
class Step:
    """What is shown at once: one module call, one parameter's update, one series."""

    id: str
    operations: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)


@dataclass
class Chapter:
    """A chapter: an ordered list of steps."""

    id: str
    steps: list[Step]


@dataclass
class Trace:
    """A whole recording.  `make` says how to make it again; `summary` holds its headline figures."""

    route: str
    make: dict
    summary: dict
    labels: dict[str, list[str] | dict]
    chapters: list[Chapter]
    operations: dict[str, Operation]
    arrays: dict[str, Array]
    folder: Path | None = None
    outline_sha256: str = ""
    label_files: dict[str, list[str]] = field(default_factory=dict, repr=False, compare=False)  # file → its labels

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
        return self.label_files[labels["file"]]

    @cached_property
    def uses(self) -> dict[str, list[Operation]]:
        """Array name → the operations that read it."""
        found: dict[str, list[Operation]] = {}
        for operation in self.operations.values():
            for name in dict.fromkeys(operation.operands.values()):
                found.setdefault(name, []).append(operation)
        return found


def content_hash(values: np.ndarray) -> str:
    """SHA-256 over dtype, shape and little-endian bytes.  A NaN is a NaN: its sign and payload do not count."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    digest = hashlib.sha256(f"{values.dtype.name} {list(values.shape)} ".encode())
    digest.update(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False).tobytes())
    return digest.hexdigest()


def outline_hash(trace: Trace) -> str:
    """SHA-256 of what is neither an array's numbers nor a computed value: how it was made, labels, operations."""
    body = {"route": trace.route, "make": trace.make, "labels": trace.labels,
            "chapters": chapters_to_json(trace.chapters),
            "steps": [[s.id, s.kind, s.target, s.operands, s.settings] for s in trace.operations.values()],
            "arrays": [[a.name, a.shape, a.dtype, a.axes, a.labels, a.derived] for a in trace.arrays.values()]}
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def chapters_to_json(chapters: list[Chapter]) -> list:
    return [{"id": c.id, "views": [{"id": v.id, "steps": v.operations, "arrays": v.arrays} for v in c.steps]}
            for c in chapters]
