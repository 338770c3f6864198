"""Compiled templates are kept beside Python's own compiled modules: compiling them takes half as long as the build."""

from contextlib import suppress
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

FOLDER = Path(__file__).parent / "__pycache__" / "templates"


class _Kept(jinja2.FileSystemBytecodeCache):
    """What cannot be read is compiled again, what cannot be written is not kept (a read-only installation)."""

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except Exception:  # a file cut off anywhere: whatever unpickling makes of it
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


def compiled() -> jinja2.BytecodeCache:
    with suppress(OSError):
        FOLDER.mkdir(parents=True, exist_ok=True)
    return _Kept(str(FOLDER))
