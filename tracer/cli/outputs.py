"""Whether a command may write where it is told to, asked before any work is done."""

import os
from pathlib import Path
from typing import Literal

from tracer.errors import UserError
from tracer.storage.together import ARRAYS, CHECKPOINT
from tracer.trainer.settings import BEST, LAST, META, SETTINGS

Kind = Literal["recordings", "a run", "prepared data", "runs"]


def check_output(folder: Path, kind: Kind, option: str = "--output") -> None:
    """Raises `UserError` for a folder that cannot be written, or holds something of another kind than `kind`.

    In one folder the one would be taken for the other, or overwritten.
    """
    from tracer.format.roles import ROUTES

    known_by: dict[Kind, tuple[str, ...]] = {
        "recordings": (*(f"{route}.json" for route in ROUTES), CHECKPOINT, ARRAYS),
        "a run": (SETTINGS, LAST, BEST), "prepared data": (META,)}
    for other, names in known_by.items():
        if other != kind and any((folder / name).exists() for name in names):
            raise UserError(f"{folder} holds {other}: choose another {option} for {kind}")
    _check_writable(folder, option)


def check_output_file(path: Path) -> None:
    """Raises `UserError` for a file that cannot be written."""
    if path.is_dir():
        raise UserError(f"{path} is a folder: name a file as --output")
    _check_writable(path.parent, "--output")


def _check_writable(folder: Path, option: str) -> None:
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {folder}: choose another {option} ({_why_not(place)})")


def _why_not(place: Path) -> str:
    if not place.is_dir():
        return f"{place} is a file"
    if hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"{place} lies on a disk that can only be read"
    return f"this user may not write into {place}"
