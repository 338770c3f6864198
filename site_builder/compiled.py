"""What takes long to make and hardly ever changes is kept beside Python's own compiled modules.

Compiling the templates takes half as long as the build, converting the formulas a fifth.
"""

import importlib.util
import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import jinja2
import orjson
from jinja2.bccache import Bucket

from tracer.errors import UserError
from tracer.resources import SITE_BUILDER

FOLDER = SITE_BUILDER / "__pycache__" / "templates"
FORMULAS = "formulas-{}.json"
LONGEST = 3600  # seconds that no build takes


class _Kept(jinja2.FileSystemBytecodeCache):
    """What cannot be read is compiled again, what cannot be written is not kept (a read-only installation)."""

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except Exception:  # a file cut off anywhere: whatever unpickling makes of it
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        _keep(Path(self._get_cache_filename(bucket)), bucket.bytecode_to_string())


class Formulas:
    """LaTeX → MathML in both displays, for this process; what builds before have converted is known from the start."""

    def __init__(self) -> None:
        self._converter = _converter()
        self._known = self._read()
        self._new = False

    def convert(self, source: str, display: str) -> str:
        """MathML of the LaTeX `source`, `display` "block" or "inline"."""
        key = f"{display} {source}"
        if key not in self._known:
            from latex2mathml.converter import convert  # slow to import, and mostly not needed

            self._known[key] = convert(source, display=display)
            self._new = True
        return self._known[key]

    def keep(self, name: str) -> None:
        """Write what is known to a file of that name, when something is new; if that cannot be, it is not kept."""
        if self._new:
            _keep(FOLDER / FORMULAS.format(name),
                  orjson.dumps({"converter": self._converter, "formulas": self._known}))
            self._new = False

    def _read(self) -> dict[str, str]:
        known: dict[str, str] = {}
        for path in FOLDER.glob(FORMULAS.format("*")):
            with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # cut off, or something else
                content = orjson.loads(path.read_bytes())
                if content["converter"] == self._converter:
                    known |= {str(key): str(value) for key, value in content["formulas"].items()}
        return known


@cache
def formulas() -> Formulas:
    return Formulas()


def _converter() -> str:
    """Another text for another version of the converter, which is not imported for it."""
    spec = importlib.util.find_spec("latex2mathml")
    if spec is None or spec.origin is None:
        raise UserError("latex2mathml is not installed: `pip install latex2mathml`")
    source = Path(spec.origin).with_name("converter.py").stat()
    return f"{source.st_mtime_ns} {source.st_size}"


def compiled() -> jinja2.BytecodeCache:
    """Where compiled templates are kept; what a killed build has left half written goes."""
    with suppress(OSError):
        FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*.tmp"):
        if _is_left(path):
            with suppress(OSError):
                path.unlink()
    return _Kept(str(FOLDER))


def _keep(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all; where that cannot be, it is not kept."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        os.replace(temporary, path)


def _is_left(temporary: Path) -> bool:
    """Whether the process that wrote this file has ended, so that it was killed."""
    try:
        if os.name == "posix":
            os.kill(int(temporary.name.split(".")[-2]), 0)
            return False
        return time.time() - temporary.stat().st_mtime > LONGEST
    except (ProcessLookupError, ValueError, IndexError, OverflowError):
        return True
    except OSError:  # of another user, or just gone
        return False
