"""One process at a time: a lock on a file that the system gives back when its holder ends, killed or not."""

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tracer.errors import UserError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = ".lock"  # in the folder that one process alone may write into
NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # a link that somebody put in the place of the file leads nowhere


class Busy(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path, patience: float = 0) -> Iterator[None]:
    """Hold the lock of the file `path`, which is there only meanwhile.

    Raises `Busy` when another holds it for longer than `patience` seconds, `UserError` when the file is a link.
    """
    handle = _open_and_lock(path, patience)
    try:
        yield
    finally:
        if sys.platform == "win32":
            os.close(handle)
            with suppress(OSError):  # somebody opened it meanwhile, and removes it
                path.unlink()
        else:
            path.unlink(missing_ok=True)  # while it is held: whoever waits for this file finds it gone, and retries
            os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a running process holds the lock."""
    if not path.exists():
        return False
    try:
        handle = os.open(path, os.O_RDWR | NO_LINK)
    except OSError:
        return False
    try:
        return not _try(handle)
    finally:
        os.close(handle)


@contextmanager
def only_writer(folder: Path, option: str) -> Iterator[None]:
    """Hold the folder, which is made when it is not there.  Raises `UserError` as `check_free` does."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / LOCK))
        except Busy:
            raise _taken(folder, option) from None
        yield


def check_free(folder: Path, option: str) -> None:
    """Raises `UserError` while another process holds the folder that `option` names; changes nothing."""
    if is_locked(folder / LOCK):
        raise _taken(folder, option)


def _taken(folder: Path, option: str) -> UserError:
    return UserError(f"another process writes into {folder}: wait until it has ended, or choose another {option}")


def _open_and_lock(path: Path, patience: float) -> int:
    start = time.monotonic()
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK, 0o644)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EMLINK):
                raise
            raise UserError(f"{path} is a link, through which nothing is locked: remove it") from None
        if _try(handle):
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
            os.close(handle)  # its holder removed it between our opening and our locking
        else:
            os.close(handle)
            if time.monotonic() - start >= patience:
                raise Busy
            time.sleep(0.02)


def _try(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without locks: a second process is then not noticed
        return True
    return True
