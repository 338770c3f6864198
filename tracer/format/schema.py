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

from pathlib import Path

from tracer.errors import UserError
from tracer.format.decode import LARGEST, from_json
from tracer.format.files import (
    INLINE_LIMIT,
    SCHEMA,
    check_version,
    files_of,
    labels_are_as_written,
    save,
    share_content,
    unused_files,
)
from tracer.format.trace import AXES, DTYPES, Array, Chapter, Step, Trace, View, content_hash, outline_hash
from tracer.format.validation import validate
from tracer.storage.atomic import write_atomically
from tracer.storage.strict_json import parse, read_bytes
from tracer.storage.together import paths_in

__all__ = ["AXES", "DTYPES", "INLINE_LIMIT", "LARGEST", "RECORD_AGAIN", "Array", "Chapter", "Step", "Trace", "View",
           "content_hash", "files_of", "labels_are_as_written", "load", "load_all", "outline_hash", "save",
           "share_content", "unused_files", "write_atomically"]

RECORD_AGAIN = "record again with `python -m tracer record`"
LONGEST_MESSAGE = 500  # characters: what a file says may be long


def load(path: Path) -> Trace:
    """Read and check a trace.  Raises `UserError` that says what is wrong, where, and what to do."""
    try:
        body = parse(read_bytes(path))
        check_version(body, SCHEMA)
        trace = from_json(body, path.parent)
        validate(trace)
    except UserError as error:
        what = " ".join(str(error).splitlines())
        shown = what if len(what) <= LONGEST_MESSAGE else what[:LONGEST_MESSAGE] + "…"
        raise UserError(f"{path}: {shown}; {RECORD_AGAIN}") from None
    return trace


def load_all(folder: Path) -> dict[str, Trace]:
    """Every trace in `folder` by file stem.  Raises `UserError` when there is none."""
    if folder.is_file():
        return {folder.stem: load(folder)}
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: name the folder that holds the recordings, or one recording")
    paths = paths_in(folder, "*.json")
    if not paths:
        raise UserError(f"{folder} holds no recording (*.json): {RECORD_AGAIN}")
    return {path.stem: load(path) for path in paths}
