"""The folder of the site: the builder owns the files that it wrote there, and nothing else.

The list of them, with their hashes, lies in the folder itself (`site_builder.listing`).  A new site is written
beside the old one, whole, and then takes its place as `site_builder.exchange` says.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from site_builder.exchange import NOTHING, SITE, finish, is_half, is_left, remove, take_place
from site_builder.listing import LIST, holds, listed, write_list
from tracer.errors import UserError
from tracer.storage.lock import Busy, locked

PATIENCE = 1.0  # seconds for another build: one that was killed is soon gone, one that works takes longer
# What a web host keeps in the folder that it serves: a site may be built beside it, as beside hidden files.
HOST_FILES = {"CNAME", "_headers", "_redirects", "robots.txt"}


@contextmanager
def replacing(output: Path, about: dict[str, str]) -> Iterator[Path]:
    """``with replacing(output, about) as fresh:`` write a site into the folder `fresh`; it then replaces `output`.

    Files in `output` that are not on its list stay as they are.  `about` is kept in the list, with what is added
    to it meanwhile.

    Raises `UserError`, and leaves everything as it was, when another build writes there, when `output` can be no
    folder of a site, when a file of the user's is where the site needs one, and when a file that the builder wrote
    was changed since.  When the body raises, everything is left as it was too.
    """
    output = resolved(output)  # a link stays, and leads to the new site
    check(output)
    made = _make_parents(output)
    stage, lock = _beside(output)
    try:
        with _alone(output, lock):
            finish(stage, output)
            _check_ours(output, ())
            try:
                (stage / SITE).mkdir(parents=True)
                yield stage / SITE
                _check_ours(output, write_list(stage / SITE, about).files)
            except BaseException:
                remove(stage)
                raise
            try:
                take_place(stage, output)
            finally:
                finish(stage, output)
    finally:
        for folder in made:
            with suppress(OSError):  # it holds the site
                folder.rmdir()


def is_whole(folder: Path) -> bool:
    """Whether every file on the list is there as it was written, and no killed or running build left anything."""
    folder = resolved(folder)
    try:
        found = listed(folder)
    except UserError:
        return False
    stage, lock = _beside(folder)
    if found is None or lock.exists() or is_left(stage, folder):
        return False
    return all(holds(folder / path, sha256) for path, sha256 in found.files.items())


def recover(folder: Path) -> None:
    """Make one site of what a killed build left half in place; where there is nothing of the kind, do nothing."""
    folder = resolved(folder)
    if is_half(folder):
        stage, lock = _beside(folder)
        with _alone(folder, lock):
            finish(stage, folder)


def remove_site(folder: Path) -> None:
    """Remove what the builder wrote into `folder`, and the folder when it is then empty; without a site, do nothing.

    Raises `UserError`, before anything is removed, when a file that the builder wrote was changed since.
    """
    folder = resolved(folder)
    stage, lock = _beside(folder)
    if listed(folder) is None:
        return
    with _alone(folder, lock):
        finish(stage, folder)
        _check_ours(folder, ())
        for path in (*(listed(folder) or NOTHING).files, LIST):  # the list last: killed, this can be done again
            (folder / path).unlink(missing_ok=True)
            with suppress(OSError):  # others need them
                for parent in PurePosixPath(path).parents[:-1]:
                    (folder / parent).rmdir()
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def _alone(folder: Path, lock: Path) -> Iterator[None]:
    try:
        with locked(lock, PATIENCE):
            yield
    except Busy:
        raise UserError(f"{folder}: another build is writing it: wait until it has ended") from None


def check(output: Path) -> None:
    """Raises `UserError` for what can be no folder of a site: a file, or a folder that holds something else."""
    if not os.path.lexists(output):
        return
    if not output.is_dir():
        raise UserError(f"{output} is not a folder, so it is not a site: choose another --output")
    if not os.access(output, os.W_OK | os.X_OK):
        raise UserError(f"{output} may not be written: change its permissions, or choose another --output")
    if listed(output) is None:
        others = sorted(path.name for path in output.iterdir() if not _is_of_a_host(path.name))
        if others:
            raise UserError(f"{output} is not a site that this builder wrote (no {LIST}), and holds {others[0]}: "
                            "choose another --output, or empty it")


def _is_of_a_host(name: str) -> bool:
    return name.startswith(".") or name in HOST_FILES


def _check_ours(output: Path, coming: Iterable[str]) -> None:
    """Nothing of the user's is where the files of the site are, or where they are to come."""
    old = listed(output)
    files = old.files if old else {}
    for folder in sorted({str(parent) for path in (*files, *coming) for parent in PurePosixPath(path).parents}):
        place = output / folder
        if folder != "." and os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
            raise UserError(f"{place} is where the site needs a folder: move it away")
    for path, sha256 in files.items():
        if os.path.lexists(output / path) and not holds(output / path, sha256):
            raise UserError(f"{output / path} was changed after it was built: move it away, then build again")
    for path in sorted({*coming} - {*files}):
        if os.path.lexists(output / path):
            raise UserError(f"{output / path} is where the site needs a file, and the builder did not write it: "
                            "move it away")


def resolved(folder: Path) -> Path:
    """Where a folder is, links followed.  Raises `UserError` for links that lead in a circle."""
    try:
        return folder.resolve()
    except (RuntimeError, OSError) as error:
        if getattr(error, "errno", errno.ELOOP) != errno.ELOOP:
            raise  # the folder that one is in was removed
        raise UserError(f"{folder} is a link that leads to itself: choose another --output") from None


def _make_parents(output: Path) -> list[Path]:
    """The folders above `output` that had to be made, the deepest first."""
    missing = [folder for folder in output.parents if not folder.exists()]
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError(f"{output}: a file is where a folder above it should be: choose another --output") from None
    return missing


def _beside(output: Path) -> tuple[Path, Path]:
    """The folder in which a new site is made, and the lock: beside `output`, or inside where that cannot be."""
    place = output.parent
    if output.exists() and not (os.access(place, os.W_OK | os.X_OK) and output.stat().st_dev == place.stat().st_dev):
        place = output
    return place / f".{output.name}.two-routes", place / f".{output.name}.two-routes.lock"
