"""Recordings of one pass of a small model each, in ``traces/passes/``.  Torch is not needed.

They stand in a folder of their own because every ``*.json`` beside a recording belongs to its training.
"""

import re
from pathlib import Path

from tracer.errors import UserError
from tracer.storage.together import paths_in

FOLDER = "passes"
_NAME = re.compile(r"[a-z][a-z0-9-]*")  # it is a file of the site, and a part of an address


def pass_files(traces: Path) -> list[Path]:
    """The recordings of single passes beside the recordings in `traces`.

    Raises `UserError` for a name that no page can have.
    """
    found = paths_in(traces / FOLDER, "*.json")
    for path in found:
        if not _NAME.fullmatch(path.stem):
            raise UserError(f"{path} cannot be the name of a page: use small letters, digits and hyphens")
    return found
