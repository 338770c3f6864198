"""Read recordings: one file, or all that stand in a folder; what is read has been checked."""

import re
import shlex
from pathlib import Path

from tracer.errors import UserError
from tracer.format.decode import from_json
from tracer.format.files import SCHEMA, VERSION, check_version
from tracer.format.roles import ROUTES
from tracer.format.trace import Trace, outline_hash
from tracer.format.validation import validate
from tracer.format.version_1 import upgrade
from tracer.storage.strict_json import parse, read_bytes
from tracer.storage.together import paths_in

LONGEST_MESSAGE = 500  # characters: what a file says may be long
_BEGINS = re.compile(rb'\s*\{\s*"schema"\s*:\s*"' + SCHEMA.encode() + b'"')


def record_again(folder: Path) -> str:
    """What makes the recordings in `folder` anew."""
    into = "" if folder == Path("traces") else f" --output {shlex.quote(str(folder))}"
    return f"record again with `python -m tracer record{into}`"


def load(path: Path) -> Trace:
    """Read and check a trace; one of version 1 comes as one of version 2.

    Raises `UserError` that says what is wrong, where, and what to do.
    """
    try:
        body = parse(read_bytes(path))
        old = check_version(body, SCHEMA, 1, VERSION) == 1
        body, whole = upgrade(body) if old else (body, True)
        trace = from_json(body, path.parent)
        if old:  # verify finds an outline that was changed by its hash: an old one is held by its old hash
            trace.outline_sha256 = outline_hash(trace) if whole else ""
        validate(trace)
    except UserError as error:
        what = " ".join(str(error).splitlines())
        shown = what if len(what) <= LONGEST_MESSAGE else what[:LONGEST_MESSAGE] + "…"
        raise UserError(f"{path}: {shown}; {record_again(path.parent)}") from None
    return trace


def load_all(folder: Path) -> dict[str, Trace]:
    """Every recording in `folder` by file stem: the files of the `ROUTES`, and other JSON that says it is one.

    Raises `UserError` when there is none, and as `load` does.
    """
    if folder.is_file():
        return {folder.stem: load(folder)}
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: name the folder that holds the recordings, or one recording")
    paths = [path for path in paths_in(folder, "*.json") if _is_recording(path)]
    if not paths:
        raise UserError(f"{folder} holds no recording (*.json): {record_again(folder)}")
    return {path.stem: load(path) for path in paths}


def left_alone(folder: Path) -> list[Path]:
    """The JSON files beside the recordings in `folder`: whatever they are, neither `load_all` nor a site reads them."""
    return [path for path in paths_in(folder, "*.json") if not _is_recording(path)]


def _is_recording(path: Path) -> bool:
    """Whether the file has the name of one of the `ROUTES`, or says, even where it is cut off, that it is a trace."""
    if path.stem in ROUTES:
        return True
    try:
        content = read_bytes(path)
        if _BEGINS.match(content):
            return True
        body = parse(content)
    except UserError:
        return False
    return isinstance(body, dict) and body.get("schema") == SCHEMA
