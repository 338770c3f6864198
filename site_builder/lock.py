"""One process at a time: a lock on a file that the system gives back when its holder ends, killed or not."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt


PATIENCE = 1.0  # seconds: who was killed is soon gone, who works takes longer


class Busy(Exception):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of the file `path`, which is there only meanwhile.  Raises `Busy` when another holds it."""
    handle = _open_and_lock(path)
    try:
        yield
    finally:
        if fcntl:
            path.unlink(missing_ok=True)  # while it is held: whoever waits for this file finds it gone, and retries
            os.close(handle)
        else:
            os.close(handle)
            with suppress(OSError):  # somebody opened it meanwhile, and removes it
                path.unlink()


def _open_and_lock(path: Path) -> int:
    start = time.monotonic()
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if _try(handle):
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
            os.close(handle)  # its holder removed it between our opening and our locking
        else:
            os.close(handle)
            if time.monotonic() - start > PATIENCE:
                raise Busy
            time.sleep(0.02)


def _try(handle: int) -> bool:
    try:
        if fcntl:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without locks: a second build is then not noticed
        return True
    return True
