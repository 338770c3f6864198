"""Whether a site is already the one that would be built: by a hash of all that a build reads.

Imports next to nothing, so that a build with nothing to do ends at once.
"""

import hashlib
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from site_builder.listing import listed
from site_builder.output import is_whole
from tracer.errors import UserError
from tracer.resources import program_files
from tracer.storage.strict_json import read_bytes
from tracer.storage.together import paths_in

STAMP = "made_from"  # in the list of the site's files
MOST_BYTES = 2**29  # of a file of a recording: a build reads less of one
PACKAGES = ("jinja2", "latex2mathml", "markdown-it-py", "numpy", "orjson")


def stamp(traces: Path) -> str:
    """SHA-256 of the recordings and experiments, of the builder with its templates, and of the packages it uses."""
    digest = hashlib.sha256(f"{sys.version} {list(map(_version, PACKAGES))}".encode())
    places = {"recordings": traces, "arrays": traces / "arrays", "experiments": traces / "experiments",
              "passes": traces / "passes"}
    for place, folder in places.items():
        for path in paths_in(folder, "*.json"):
            _add(digest, f"{place}/{path.name}", _content(path))
    for name, path in program_files():
        _add(digest, name, path.read_bytes())
    return digest.hexdigest()


def is_current(traces: Path, output: Path) -> bool:
    """Whether the site in `output` is whole and was built from exactly what is there now."""
    with suppress(OSError, UserError):
        found = listed(output)
        return found is not None and found.about.get(STAMP) == stamp(traces) and is_whole(output)
    return False


def _content(path: Path) -> bytes:
    """Of what is no file or too large, why: a build that needs it refuses it, another one does not read it."""
    try:
        return read_bytes(path, MOST_BYTES)
    except UserError as error:
        return str(error).encode()


def _add(digest: "hashlib._Hash", name: str, content: bytes) -> None:
    digest.update(name.encode(errors="surrogateescape") + b"\0" + hashlib.sha256(content).digest())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
