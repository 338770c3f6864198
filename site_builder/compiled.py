"""Compiled templates are kept beside Python's own compiled modules: compiling them takes half as long as the build."""

from pathlib import Path

import jinja2

FOLDER = Path(__file__).parent / "__pycache__" / "templates"


def compiled() -> jinja2.BytecodeCache | None:
    """The folder of compiled templates; none where it cannot be written, as in a read-only installation."""
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return jinja2.FileSystemBytecodeCache(str(FOLDER))
