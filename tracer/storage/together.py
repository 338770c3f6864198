"""Several files of a folder replaced at one moment: a kill at any time leaves all the old ones or all the new ones.

The new files are written whole into a folder of their own, `.new-<random>`.  One rename to `.new` is the moment
from which they count: whoever reads through `newest` finds them there.  Then each takes its place.  What a kill
leaves behind the next `replace_together` finishes or removes.

Files in ``arrays/`` are named by their content, so that old and new never meet: they are written first.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracer.storage.atomic import write_atomically

NEW = ".new"
ARRAYS = "arrays"
CHECKPOINT = "checkpoint.pt"


def places(path: Path) -> tuple[Path, Path]:
    """Where the file that counts as `path` is: in the first place that has one."""
    return path.parent / NEW / path.name, path


def newest(path: Path) -> Path:
    """Where the file that counts as `path` is, unless another process moves it there just now."""
    staged, own = places(path)
    return staged if staged.exists() else own


def read_newest(path: Path) -> bytes:
    """The content that counts as that of `path`.  Raises `OSError` as reading does."""
    staged, own = places(path)
    try:
        return staged.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return own.read_bytes()


def paths_in(folder: Path, pattern: str) -> list[Path]:
    """The files that match, also those that are about to take their place, sorted by name."""
    return [folder / name for name in sorted({path.name for place in (folder, folder / NEW)
                                              for path in place.glob(pattern)})]


def replace_together(folder: Path, files: dict[str, bytes]) -> None:
    """Write `files`, each by its name in `folder` or in ``arrays/`` below it.  Until they are whole the old ones stay.

    Raises `OSError` as writing does; nothing has changed then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fixed = {name: content for name, content in files.items() if not name.startswith(f"{ARRAYS}/")}
    with _alone(folder):
        _take_place(folder)
        _remove_leftovers(folder, fixed)
        added: list[Path] = []
        try:
            for name in files.keys() - fixed.keys():
                if not _holds(folder / name, files[name]):
                    added += [] if (folder / name).exists() else [folder / name]
                    write_atomically(folder / name, files[name])
            _replace(folder, fixed)
        except BaseException:
            for path in added:
                path.unlink(missing_ok=True)
            raise
        _take_place(folder)


def _replace(folder: Path, files: dict[str, bytes]) -> None:
    if len(files) == 1:  # no need of a moment for several
        for name, content in files.items():
            write_atomically(folder / name, content)
        return
    staged = Path(tempfile.mkdtemp(dir=folder, prefix=f"{NEW}-"))
    try:
        os.chmod(staged, 0o755)
        for name, content in files.items():
            write_atomically(staged / name, content)
        os.rename(staged, folder / NEW)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _holds(path: Path, content: bytes) -> bool:
    with suppress(OSError):
        return path.stat().st_size == len(content) and path.read_bytes() == content
    return False


def _take_place(folder: Path) -> None:
    """Every file that counts already moves to where it belongs."""
    if not (folder / NEW).is_dir():
        return
    for path in sorted((folder / NEW).iterdir()):
        os.replace(path, folder / path.name)
    os.rmdir(folder / NEW)


def _remove_leftovers(folder: Path, names: Iterable[str]) -> None:
    """What processes that were killed have left: folders that never counted, files that were not renamed."""
    for path in folder.glob(f"{NEW}-*"):
        shutil.rmtree(path, ignore_errors=True)
    left = [path for path in folder.glob(".*.tmp") if path.name[1:].rsplit(".", 2)[0] in names]
    for path in [*left, *(folder / ARRAYS).glob(".*.json.*.tmp")]:
        path.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time: another waits, and a killed one holds nothing up.  (Windows locks no folder.)"""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
