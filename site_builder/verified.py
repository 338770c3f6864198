"""What the site is built from, verified: a recording is read only as one whose every number follows.

A recording that this verifier has found right, every byte of it and of its array files, is not verified again:
its hash is kept as the name of an empty file.  The hash is over the sources of the verifier too, so that another
verifier looks anew.
"""

import hashlib
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tracer.errors import UserError
from tracer.format import verify as verifier
from tracer.format.experiment_figures import verify_experiment
from tracer.format.experiments import RECORD_AGAIN as MEASURE_AGAIN
from tracer.format.experiments import experiment_path, load_experiments
from tracer.format.load import load, record_again
from tracer.format.roles import PASS
from tracer.format.trace import Trace
from tracer.resources import SITE_BUILDER, TRACER
from tracer.storage.strict_json import read_bytes
from tracer.storage.together import read_newest

FOLDER = SITE_BUILDER / "__pycache__" / "verified"
KEPT = 100  # hashes; the oldest go


def read_recording(path: Path, route: str) -> Trace:
    """The recording of that route.  Raises `UserError` that names the step whose numbers do not follow."""
    before = _content(path)
    trace = load(path)
    if trace.route != route and route == PASS:
        raise UserError(f"{path}: this is a recording of the route {trace.route!r}, not of the route {PASS!r}: put it "
                        "elsewhere")
    if trace.route != route:
        raise UserError(f"{path}: this is a recording of the route {trace.route!r}: name the file {trace.route}.json")
    content = _content_hash(path, trace)
    if _content(path) != before:
        raise UserError(f"{path} was replaced while it was read: build again")
    if not _is_known(content):
        checks = sorted(verifier.verify(trace), key=lambda check: not _is_given(trace, check))
        _refuse_wrong(path, checks, record_again(path.parent))
        _keep(content)
    return trace


def _content(path: Path) -> bytes:
    """Nothing for a file that cannot be read: `load` says why."""
    with suppress(UserError):
        return read_bytes(path)
    return b""


def read_experiments(traces: Path) -> dict[str, dict[str, Any]]:
    """Every experiment beside the recordings, by file stem.  Raises `UserError` that names what does not follow."""
    found = load_experiments(traces)
    for stem, body in found.items():
        _refuse_wrong(experiment_path(traces, stem), verify_experiment(body), MEASURE_AGAIN)
    return found


def _refuse_wrong(path: Path, checks: Iterable[verifier.Check], again: str) -> None:
    for check in checks:
        if check.problem:
            what = "" if check.name == check.kind else f" ({check.kind})"
            raise UserError(f"{path}: {check.name}{what}: {check.problem}; {again}")


def _is_given(trace: Trace, check: verifier.Check) -> bool:
    """Whether the check is of an array that no step makes: where it is wrong, what follows from it may be too."""
    return check.kind == "sha256" and check.name in trace.arrays


def _content_hash(path: Path, trace: Trace) -> str:
    """Of the recording, of the files that it names, and of what judges them."""
    digest = hashlib.sha256(_verifier_hash())
    files = {array.file for array in trace.arrays.values() if array.file}
    files |= {labels["file"] for labels in trace.labels.values() if isinstance(labels, dict)}
    for name in (path.name, *sorted(files)):
        digest.update(hashlib.sha256(read_newest(path.parent / name)).digest())
    return digest.hexdigest()


@cache
def _verifier_hash() -> bytes:
    """Of all sources of `tracer` that need no torch, and of what they compute with."""
    digest = hashlib.sha256(f"{sys.version} numpy {version('numpy')} orjson {version('orjson')}".encode())
    for path in sorted(TRACER.rglob("*.py")):
        digest.update(f"{path.name} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


def _is_known(content: str) -> bool:
    return (FOLDER / content).is_file()


def _keep(content: str) -> None:
    """Note it; where that cannot be, it is verified again next time."""
    with suppress(OSError):
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / content).touch()
        for path in sorted(FOLDER.iterdir(), key=lambda path: path.stat().st_mtime)[:-KEPT]:
            path.unlink()
