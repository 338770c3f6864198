"""The one kind of error a user is meant to read: one line that says what is wrong and what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class UserError(Exception):
    """Bad input or a missing file. The command line prints the message alone and exits with 2."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An `OSError` from within names `path`: writing names no file by itself, and a temporary one tells nobody much."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def os_error_line(error: OSError) -> str:
    """What the system refused, at which file, and what to do."""
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{where}the disk is full ({error.strerror}); what was there before is as it was: make room, then go on"
    if error.errno == errno.EROFS:
        return f"{where}it lies on a disk that can only be read ({error.strerror}); choose another place to write to"
    return f"{where}{error.strerror or error}; check the path and the disk"
