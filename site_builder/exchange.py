"""A new site takes the place of the old one.

On Linux and macOS the two folders are exchanged by one call of the system: at any moment there is the old site or
the new one, whole.  What is not the builder's own is there before and after: it was linked into the new folder.
A folder that cannot be exchanged (Windows; a mount point; a parent that may not be written; files that cannot be
linked) is changed in place: file by file, each old or new.  A kill during these few milliseconds leaves files of
both; the next build, and `serve`, finish it before they do anything else.
"""

import ctypes
import errno
import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path, PurePosixPath

from site_builder.listing import LIST, Listed, holds, listed
from tracer.errors import UserError

# In the stage, the folder in which a new site is made.
SITE = "site"  # the new site, and after the exchange the old one
NOTE = "exchange.json"  # which folder is the new one, and what was carried over to it
DONE = "done"  # the old site when nothing in it is needed any more
# In the site's folder, while it is changed in place.
INCOMING = ".two-routes.incoming"
READY = ".two-routes.ready"
LEFT = (INCOMING, READY)
NOTHING = Listed({})


def take_place(stage: Path, output: Path) -> None:
    """Put ``stage/site``, which has its list, in the place of `output`."""
    fresh = stage / SITE
    if not output.exists():
        os.rename(fresh, output)
        return
    try:
        if stage.parent == output:
            raise OSError(errno.EINVAL, "a folder cannot be exchanged with one inside of it")
        note = {"carried": _carry_over(output, fresh), "new": fresh.stat().st_ino}
        (stage / NOTE).write_text(json.dumps(note), encoding="ascii")  # names that are no UTF-8 too
        _exchange(fresh, output)
    except OSError:
        _bring_inside(fresh, output)
        _finish_inside(output)
    else:
        _finish_exchange(stage, output)


def finish(stage: Path, output: Path) -> None:
    """Bring to its end what a killed build had begun, and remove what it left.

    Raises `UserError` when somebody changed a file of a site that is half in place, and for a link or a file where
    a build has its folders.
    """
    for folder in (stage, *(output / name for name in LEFT)):
        if folder.is_symlink() or folder.is_file():
            raise UserError(f"{folder} is where a build needs a folder: move it away")
    _finish_exchange(stage, output)
    remove(stage)
    _finish_inside(output)
    remove(output / INCOMING)


def is_left(stage: Path, output: Path) -> bool:
    """Whether a killed build left something there, or a running one is at work."""
    return any(os.path.lexists(path) for path in (stage, *(output / name for name in LEFT)))


def is_half(output: Path) -> bool:
    """Whether a killed build left files of two sites in `output`, which `finish` makes one."""
    return (output / READY).is_dir()


def remove(folder: Path) -> None:
    """Remove a folder if it is there, folders in it that may not be written included.  Links are not followed."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except PermissionError:
        for root, folders, _ in os.walk(folder):
            for name in folders:
                inside = os.path.join(root, name)
                if not os.path.islink(inside):  # and no files: they may be the user's, under a second name
                    os.chmod(inside, 0o700)
        shutil.rmtree(folder)


# By an exchange --------------------------------------------------------------------------------------

def _exchange(one: Path, other: Path) -> None:
    """Exchange the names of two folders at once.  Raises `OSError` where that cannot be."""
    names = [os.fsencode(path) for path in (one, other)]
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform in ("linux", "darwin") else None
    if libc is not None and hasattr(libc, "renameat2"):
        here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        failed = libc.renameat2(here, names[0], here, names[1], exchange)
    elif libc is not None and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(*names, 2)  # RENAME_SWAP
    else:
        raise OSError(errno.ENOSYS, "folders cannot be exchanged here")
    if failed:
        raise OSError(ctypes.get_errno(), "folders cannot be exchanged here")


def _carry_over(old: Path, new: Path) -> dict[str, int]:
    """Link what in `old` is not the builder's into `new`, the same files; path → inode.

    Raises `OSError` for what cannot be there exactly as it is.
    """
    ours = listed(old) or NOTHING
    our_folders = {str(folder) for path in ours.owned for folder in PurePosixPath(path).parents}
    carried = {}

    def carry(inside: str) -> None:
        for entry in sorted(os.scandir(old / inside), key=lambda entry: entry.name):
            path = entry.name if inside == "." else f"{inside}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if path not in our_folders:
                    os.makedirs(new / path, exist_ok=True)
                carry(path)
            elif path not in ours.owned:
                os.makedirs(new / inside, exist_ok=True)
                os.link(entry.path, new / path, follow_symlinks=False)
                carried[path] = entry.inode()
        if (new / inside).exists():
            _make_alike(old / inside, new / inside)

    carry(".")
    return carried


def _make_alike(old: Path, new: Path) -> None:
    """Give the folder `new` the owner and the permissions of `old`."""
    shutil.copystat(old, new)
    had, has = old.stat(), new.stat()
    if (had.st_uid, had.st_gid) != (has.st_uid, has.st_gid):
        os.chown(new, had.st_uid, had.st_gid)
        os.chmod(new, had.st_mode & 0o7777)  # a change of the owner clears some


def _finish_exchange(stage: Path, output: Path) -> None:
    """After an exchange: what came into the old folder too late to be carried over follows; then it may go."""
    old = stage / SITE
    try:
        note = json.loads((stage / NOTE).read_bytes())
        carried, new = note["carried"], note["new"]
        if old.stat().st_ino == new:
            return  # it was killed before
    except (OSError, ValueError):  # or even before that
        return
    ours = listed(old) or NOTHING
    for root, folders, files in os.walk(old):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        for name in [*files, *links]:
            path = Path(root, name).relative_to(old).as_posix()
            if path not in ours.owned and (old / path).lstat().st_ino != carried.get(path):
                _follow(old / path, output / path)
    os.rename(old, stage / DONE)


def _follow(late: Path, place: Path) -> None:
    if os.path.lexists(place) and place.lstat().st_mtime_ns >= late.lstat().st_mtime_ns:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    os.replace(late, place)


# In place --------------------------------------------------------------------------------------------

def _bring_inside(fresh: Path, output: Path) -> None:
    """Move the new site into the folder of the old one, whole: from then on, it can be put in place."""
    incoming, new = output / INCOMING, listed(fresh) or NOTHING
    remove(incoming)
    try:
        os.rename(fresh, incoming)
    except OSError:  # another file system
        try:
            for path in sorted(new.owned):
                (incoming / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(fresh / path, incoming / path)
        except OSError:
            remove(incoming)
            raise
    os.rename(incoming, output / READY)


def _finish_inside(output: Path) -> None:
    """Put every file of the site that is ready in its place, its list last."""
    ready = output / READY
    new = listed(ready)
    if new:
        old = listed(output) or NOTHING
        _check_half(output, old, new)
        for path in sorted(new.files):
            if (ready / path).exists():  # else it is in its place
                (output / path).parent.mkdir(parents=True, exist_ok=True)
                os.replace(ready / path, output / path)
        for path in sorted(old.files.keys() - new.files.keys()):
            (output / path).unlink(missing_ok=True)
            with suppress(OSError):  # others need them
                for folder in PurePosixPath(path).parents[:-1]:
                    (output / folder).rmdir()
        os.replace(ready / LIST, output / LIST)
    remove(ready)


def _check_half(output: Path, old: Listed, new: Listed) -> None:
    for path in sorted({*old.files, *new.files}):
        digests = {one.files[path] for one in (old, new) if path in one.files}
        linked = any((output / folder).is_symlink() for folder in PurePosixPath(path).parents[:-1])
        if linked or (os.path.lexists(output / path) and not any(holds(output / path, digest) for digest in digests)):
            raise UserError(f"{output / path} was changed while a killed build was half in place: "
                            "move it away, and build again")
