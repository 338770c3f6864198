"""``FORMAT.md``, made from the types, tables and limits of this folder: ``python -m tracer.format.document``."""

from collections.abc import Iterable
from dataclasses import fields
from inspect import cleandoc
from pathlib import Path
from typing import get_args

from tracer.format import decode, files, roles, route_steps, routes, typed
from tracer.format.trace import (
    AXES,
    CHAPTERS,
    DIRECTIONS,
    DTYPES,
    PASSES,
    SPLITS,
    Array,
    Chapter,
    Operation,
    Parameter,
    Pass,
    Step,
    Trace,
)
from tracer.storage.strict_json import MOST_BYTES

FILE = Path(__file__).resolve().parent / "FORMAT.md"
INTRODUCTION = f"""# The format of a recording, version {files.VERSION}

Made by `python -m tracer.format.document` from `tracer/format/`; a test compares. Do not edit it by hand.

A recording is named arrays, and the operations that made them from one another. It is one JSON file, with
`"schema": "{files.SCHEMA}"` and `"version": {files.VERSION}`. A recording of version 1 is read too, and becomes one of
version {files.VERSION} (`tracer/format/version_1.py`); any other version is refused, with the versions that are read.

What every operation computes is said by its equations in `tracer/ops/`. What a step is for is said by the step: no
reader takes a name apart. Empty texts and numbers that are not given (`""`, null) are left out of the JSON, where
`operations` are a list, in the order in which they are computed.

A key that is not listed here is refused, and so is one that stands twice.
"""
ARRAYS = f"""An array is held in one of four ways, by the key that it has:

| key | what stands there |
|---|---|
| `values` | the numbers themselves, row by row; float32 in its shortest exact form |
| `file` | a file in `arrays/`: base64 of more than {files.INLINE_LIMIT:,} little-endian numbers, named by their hash |
| `same_as` | the name of an array with the same content |
| `derived` | true: not held, it follows from its operation's operands |

JSON knows no NaN and no infinity: such a value is null among the `values`, and `nonfinite` says which one it is (index
→ `"nan"`, `"inf"` or `"-inf"`). What starts a computation (parameters, random words, series) comes from no operation:
`sha256` holds it, of the text `float32 [5, 16] ` (dtype, shape, a space) and the little-endian bytes after it. In
files beside the recording (`{files.ARRAY_SCHEMA}`, `{files.LABELS_SCHEMA}`, version {files.PART_VERSION}) stand long
arrays (`dtype`, `shape`, `base64`) and lists of labels (`labels`), which a recording names by `file` and `length`.
"""
JSON_NAMES = {"pass_": "pass", "data": "values"}
NOT_WRITTEN = {"name", "folder", "label_files"}


def document() -> str:
    """The whole text."""
    return "\n".join([INTRODUCTION, *_types(), *_words(), *_step_roles(), *_array_roles(), *_make(), *_limits()])


def _types() -> Iterable[str]:
    yield "## The whole\n"
    yield from _type(Trace)
    yield "## Arrays\n"
    yield from _type(Array)
    yield ARRAYS
    yield f"`dtype` is one of {', '.join(map(_code, DTYPES))}. Axes, with their letters in equations:\n"
    yield ", ".join(f"`{axis}` {letter}" for axis, letter in AXES.items()) + ".\n"
    for title, kind in {"Operations": Operation, "Chapters": Chapter, "Steps": Step, "Passes": Pass,
                        "Parameters": Parameter}.items():
        yield f"## {title}\n"
        yield from _type(kind)


def _type(kind: type) -> Iterable[str]:
    """What a type says of itself, and its fields."""
    yield cleandoc(kind.__doc__ or "").replace("  ", " ") + "\n"
    hidden = NOT_WRITTEN - ({"name"} if kind is Parameter else set())
    yield _table(("key", "type in Python"), [
        (f"`{JSON_NAMES.get(field.name, field.name)}`", f"`{_type_name(field.type)}`")
        for field in fields(kind) if field.name not in hidden])


def _type_name(kind: object) -> str:
    name = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    return name.replace(f"{Trace.__module__}.", "").replace("numpy.ndarray", "numbers")


def _words() -> Iterable[str]:
    yield "## Words\n"
    yield _table(("of", "one of"), [
        (what, ", ".join(f"`{word}`" for word in words if word)) for what, words in {
            "`kind` of a chapter": CHAPTERS, "`kind` of a pass, `pass` of a step": PASSES,
            "`direction` of a step": DIRECTIONS, "`split`": SPLITS,
            "`role` of a parameter": tuple(roles.PARAMETER_ROLES)}.items()])


def _step_roles() -> Iterable[str]:
    yield "## Kinds and roles of steps\n"
    yield ("A step has the kind of its operations; where they are of several, or it shows none, it has a role alone. A "
           "model may have other kinds in these roles.\n")
    for where, steps in roles.STEPS.items():
        yield f"### Of {where}\n"
        yield _table(("kind", "role", "what it is"), [(_code(kind), _code(role), what)
                                                      for (kind, role), what in steps.items()])


def _array_roles() -> Iterable[str]:
    yield "## Arrays by their roles\n"
    yield ("In a training (route `training`), a generation ("
           f"{', '.join(map(_code, roles.GENERATIONS))}) and a pass ({_code(roles.PASS)}) they must be "
           "there, but where it says otherwise.\n")
    for where, specs in {
            "A text, in `texts`; the prompt without the last two": roles.TRAINED_TEXT_ARRAYS,
            "The pass `first`; `again` and `evaluation` without the last one": roles.FIRST_PASS_ARRAYS,
            "The pass `single`": roles.SINGLE_PASS_ARRAYS,
            "The pass `round`": roles.ROUND_ARRAYS, "The pass `cached`": roles.CACHED_ARRAYS,
            "`roles` of a training": roles.TRAINING_ROLES, "`roles` of a generation": roles.GENERATION_ROLES,
            "The token table, besides what every parameter has": roles.USED_ROWS}.items():
        yield f"### {where}\n"
        yield _table(("role", "what it is", "axes", "made by"), [
            (f"`{role}`", spec.what + ("" if spec.always else " (not always there)"), _code(spec.axes),
             ", ".join(_code(kind) or "nothing" for kind in spec.made_by) or "any operation")
            for role, spec in specs.items()])
    yield "### A parameter\n"
    yield _table(("role", "what it is", "made by"), [
        (f"`{role}`", what, _code(roles.MADE_BY.get(role, "any operation")) or "nothing")
        for role, what in (roles.TRAINING_PARAMETER_ARRAYS | roles.CHANGE_PARAMETER_ARRAYS).items()])


def _make() -> Iterable[str]:
    yield "## How it was made\n"
    yield "`make` of a training, of a generation and of a pass; other texts and numbers may stand there.\n"
    objects: dict[str, Iterable[str]] = {
        "`make` of a training": routes.TRAINING,
        "`make` of a training with an early moment": routes.MORE_TRAINING, "`make` of a generation": routes.GENERATION,
        "`make` of a pass": routes.PASS, "`settings` of a pass, beside other numbers and texts": routes.PASS_SETTINGS,
        "`config`": routes.CONFIG, "`config`, where it is not as usual": routes.MORE_CONFIG,
        "`settings`": routes.SETTINGS, "`kernels`": routes.KERNELS}
    yield _table(("in", "keys"), [(name, ", ".join(map(_code, keys))) for name, keys in objects.items()])


def _limits() -> Iterable[str]:
    yield "## Limits\n"
    yield _table(("what", "at most"), [(what, f"{most:,}") for what, most in {
        "bytes of the JSON": MOST_BYTES, "bytes of all numbers in files": decode.MOST_HELD,
        "numbers of an array": decode.LARGEST, "axes of an array": decode.MOST_AXES,
        "operations, arrays or steps": typed.MOST_PARTS, "characters of a name": typed.LONGEST_NAME,
        "blocks": routes.MOST_BLOCKS, "rounds": routes.MOST_ROUNDS,
        "steps of a chapter": route_steps.MOST_STEPS}.items()])


def _code(word: str) -> str:
    return f"`{word}`" if word else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(document(), encoding="utf-8")
