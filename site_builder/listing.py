"""The list of the files that the builder wrote into a folder: by it a rebuild knows its own."""

import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from tracer.errors import UserError

LIST = "two-routes.json"
FORMAT = "two-routes/site/1"


@dataclass(frozen=True)
class Listed:
    """What the builder wrote into a folder."""

    files: dict[str, str]  # path from the folder, with "/" → SHA-256 in hexadecimal
    about: dict[str, str] = field(default_factory=dict)  # what the builder notes of the site: its policy, a stamp

    @property
    def owned(self) -> set[str]:
        """The files, and the list itself."""
        return {*self.files, LIST}


def listed(folder: Path) -> Listed | None:
    """The list in `folder`; None where there is none.  Raises `UserError` for one that is damaged."""
    try:
        content = (folder / LIST).read_bytes() if _is_file(folder / LIST) else b""
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        body = orjson.loads(content)
        found = Listed(body["files"], body["about"])
        right = body["format"] == FORMAT and all(map(_is_inside, found.files))
        right = right and all(isinstance(text, str) for table in (found.files, found.about) for text in table.values())
    except (ValueError, KeyError, TypeError, AttributeError):
        right = False
    if not right:
        raise UserError(f"{folder / LIST} is not a list that this builder wrote: remove the folder, "
                        "or choose another --output")
    return found


def write_list(folder: Path, about: dict[str, str]) -> Listed:
    """List every file in `folder`, in a file there."""
    files = {path.relative_to(folder).as_posix(): digest(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    body = {"format": FORMAT, "about": about, "files": files}
    (folder / LIST).write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")
    return Listed(files, about)


def holds(path: Path, sha256: str) -> bool:
    """Whether `path` is a file, no link, of this hash."""
    try:
        return not path.is_symlink() and _is_file(path) and digest(path) == sha256
    except OSError:
        return False


def _is_file(path: Path) -> bool:
    """Whether a file stands there: to open a pipe would be to wait.  Raises `OSError` where nothing does."""
    return stat.S_ISREG(os.stat(path).st_mode)


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_inside(path: str) -> bool:
    return path != LIST and not set(path.split("/")) & {"", ".", ".."} and not set(path) & set("\\:\0")
