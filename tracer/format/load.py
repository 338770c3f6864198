"""Read recordings: one file, or all that stand in a folder; what is read has been checked."""

from pathlib import Path

from tracer.errors import UserError
from tracer.format.decode import from_json
from tracer.format.files import SCHEMA, check_version
from tracer.format.trace import Trace
from tracer.format.validation import validate
from tracer.storage.strict_json import parse, read_bytes
from tracer.storage.together import paths_in

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
