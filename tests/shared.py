"""What is made once for all processes that run tests: the first one that needs it makes it, the others wait."""

import fcntl
import pickle
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest


def common_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same folder in every process of one run (each has its own folder inside of it), gone with the run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if own.name.startswith("popen-") else own


@contextmanager
def _alone(path: Path):
    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # the system lets go of it when the process ends, however it ends
        yield


def shared_object(folder: Path, name: str, make: Callable[[], object]):
    """What `make` returns, pickled by the process that made it."""
    path = folder / f"{name}.pickle"
    with _alone(folder / f"{name}.lock"):
        if not path.exists():
            made = make()
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_bytes(pickle.dumps(made, pickle.HIGHEST_PROTOCOL))
            unfinished.rename(path)
            return made
    return pickle.loads(path.read_bytes())


def shared_folder(folder: Path, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that `make` fills.  Tests only read it."""
    path = folder / name
    with _alone(folder / f"{name}.lock"):
        if not path.exists():
            unfinished = folder / f"{name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)  # of a process that failed to make it
            make(unfinished)
            unfinished.rename(path)
    return path


def files(folder: Path) -> dict[str, bytes]:
    """Every file below `folder`, by its path from there."""
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}
