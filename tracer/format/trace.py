"""What a recording is: named arrays, and the operations that made them from one another."""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson

DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float64": np.dtype("<f8"), "int64": np.dtype("<i8")}

# The letter that stands for an axis in formulas.
AXES = {"position": "t", "query_position": "i", "key_position": "j", "head": "h", "feature": "d",
        "head_feature": "d", "hidden": "f", "qkv": "o", "output": "o", "row": "r", "vocabulary": "v",
        "candidate": "c", "update": "s", "moment": "u", "token": "n", "byte": "n", "used_row": "r", "round": "n"}


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
    """One array made from others.  `id` is the name of the array that it makes.

    `kind`, `target`: what it computes, by the names of `tracer.ops`.  `operands`: operand of the kind → array name.
    `settings`: the constants that its equations name.  `rounding`: flat index → (recorded − exact), for the few
    values whose terms cancel so far that float32 keeps fewer than about three digits.
    """

    id: str
    kind: str
    target: str
    operands: dict[str, str]
    settings: dict[str, float] = field(default_factory=dict)
    rounding: dict[int, float] = field(default_factory=dict)


@dataclass
class Step:
    """What a learner sees at once: the operations of one module call, one parameter's update, one series.

    `arrays`: what is shown besides what its operations make.  The rest says where the step belongs, so that nobody
    has to read it out of a name.  `kind`: of the module, or of its operations; "" where they are of several.
    `role`: what that kind is for there (`tracer.format.roles`).  `direction`: "forward", "backward" or "update", ""
    outside of them.  `pass_`, `split` and `round` name the pass (`Pass`), "" and None outside of one; `split` also the
    text.  `block`: counted from 0.  `of`: of a step backward the step forward, of a parameter's step its name.
    """

    id: str
    operations: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)
    kind: str = ""
    role: str = ""
    direction: str = ""
    pass_: str = ""
    split: str = ""
    block: int | None = None
    round: int | None = None
    of: str = ""


@dataclass
class Chapter:
    """An ordered list of steps.  `kind`: one of `CHAPTERS`; `block`, `round`: of which block or round it is."""

    id: str
    steps: list[Step]
    kind: str = ""
    block: int | None = None
    round: int | None = None


@dataclass
class Pass:
    """One run through the model.  `kind`: one of `PASSES`; `split` of an evaluation, `round` of a generation.

    `arrays`: role → array name, for all that is read of a pass by what it is (`tracer.format.roles`).
    """

    kind: str
    split: str = ""
    round: int | None = None
    arrays: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in a table: ``first``, ``evaluation.training``, ``round1``."""
        return self.kind + (f".{self.split}" if self.split else "") + str(self.round or "")


@dataclass
class Parameter:
    """A parameter of the model by its `name` there.  `arrays`: role → array name: its values, gradient, moments."""

    name: str
    role: str
    block: int | None = None
    arrays: dict[str, str] = field(default_factory=dict)


PASSES = ("single", "first", "again", "evaluation", "round", "cached")
DIRECTIONS = ("", "forward", "backward", "update")
SPLITS = ("", "training", "validation")
CHAPTERS = ("text", "embedding", "block", "head", "loss", "backward", "adamw", "receipt", "updates", "evaluation",
            "prompt", "round", "cached", "parameters")


@dataclass(repr=False)
class Trace:
    """A whole recording.  `make` says how to make it again; `summary` holds its headline figures.

    `passes`: every run through the model, in order.  `texts`: which text ("training", "validation", "prompt") → role
    → array name.  `parameters`: in the model's order.  `roles`: role → array name of all else that is read by what it
    is.  `outline_sha256` holds all of it but numbers and summary.
    """

    route: str
    make: dict[str, Any]
    summary: dict[str, Any]
    labels: dict[str, list[str] | dict[str, Any]]
    chapters: list[Chapter]
    operations: dict[str, Operation]
    arrays: dict[str, Array]
    passes: list[Pass] = field(default_factory=list)
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    parameters: list[Parameter] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    folder: Path | None = None
    outline_sha256: str = ""
    label_files: dict[str, list[str]] = field(default_factory=dict, repr=False, compare=False)  # file → its labels

    def __repr__(self) -> str:
        return f"<Trace of {self.route}: {len(self.operations)} operations, {len(self.arrays)} arrays>"

    def steps(self) -> Iterator[Step]:
        """Every step, chapter by chapter."""
        return (step for chapter in self.chapters for step in chapter.steps)

    def find_pass(self, kind: str, split: str = "", round: int | None = None) -> Pass | None:
        """The pass of that kind, split and round; None where there is none."""
        return next((one for one in self.passes if (one.kind, one.split, one.round) == (kind, split, round)), None)

    def arrays_of(self, kind: str, split: str = "", round: int | None = None) -> dict[str, str]:
        """Role → array name of that pass.  Raises `LookupError` where there is none."""
        found = self.find_pass(kind, split, round)
        if found is None:
            raise LookupError(Pass(kind, split, round).name)
        return found.arrays

    def pass_of(self, step: Step) -> Pass | None:
        """The pass that a step belongs to."""
        return self.find_pass(step.pass_, step.split, step.round) if step.pass_ else None

    def table(self) -> Parameter:
        """The parameter that embeds tokens.  Raises `LookupError` where there is none."""
        found = next((one for one in self.parameters if one.role == "token_table"), None)
        if found is None:
            raise LookupError("the token table")
        return found

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
    """SHA-256 of what is neither an array's numbers nor a computed value: how it was made, labels, structure."""
    body = {"route": trace.route, "make": trace.make, "labels": trace.labels,
            "structure": structure_to_json(trace),
            "operations": [[o.id, o.kind, o.target, o.operands, o.settings] for o in trace.operations.values()],
            "arrays": [[a.name, a.shape, a.dtype, a.axes, a.labels, a.derived] for a in trace.arrays.values()]}
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def structure_to_json(trace: Trace) -> dict[str, Any]:
    """Chapters, passes, texts, parameters and roles, as a file holds them."""
    return {"chapters": [_given(chapter, steps=[_given(step) for step in chapter.steps]) for chapter in trace.chapters],
            "passes": [_given(one) for one in trace.passes], "texts": trace.texts,
            "parameters": [_given(one) for one in trace.parameters], "roles": trace.roles}


def _given(body: Chapter | Step | Pass | Parameter, **other: object) -> dict[str, Any]:
    """Its fields but those that say nothing ("" or None); `other` in the place of some."""
    said = {name.rstrip("_"): value for name, value in vars(body).items() if value not in ("", None)}
    return said | other
