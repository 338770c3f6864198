"""Damaged recordings: each is refused in one line, found wrong, or is a whole recording again that can be built.

`TWO_ROUTES_TRIALS` multiplies how many are tried.
"""

import os
import resource
import shutil
import time
from collections import Counter
from pathlib import Path

import orjson
import pytest
from damage import Damage, Damager, record_tiny, reseal

from site_builder import build as site
from site_builder import verified
from tracer.errors import UserError
from tracer.format.load import load
from tracer.format.trace import Trace
from tracer.format.verify import verify

TRACES = Path(__file__).resolve().parent.parent / "traces"
TRIALS = int(os.environ.get("TWO_ROUTES_TRIALS", "1"))
MEMORY, SECONDS = 2**30, 20


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    record_tiny(folder)
    return folder


@pytest.fixture(scope="module")
def output(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("output")


def outcome(path: Path, output: Path) -> str:
    """What becomes of a recording.  Whatever is raised but a `UserError` of one line goes to the caller."""
    try:
        trace = load(path)
        if any(check.problem for check in verify(trace)):
            return "found wrong"
        build(trace, path.stem, output)
    except UserError as error:
        message = str(error)
        assert len(message.splitlines()) == 1 and message.startswith(f"{path}: "), message
        assert len(message) < 1000, message
        return "refused"
    return "built"


def build(trace: Trace, route: str, output: Path) -> None:
    """The numbers and pages of a recording, as `build` makes them."""
    (output / "data").mkdir(exist_ok=True)
    if route == "pass":
        site._write_pass(site._Site(trace.folder, output, (), False), trace.folder / "pass.json")
        return
    _, told = site._write_route(site._Site(trace.folder, output, (route,), False), route)
    assert {*told} == {*site.languages()}


def tried(source: Path, folder: Path, output: Path, route: str, seed: int, count: int, seal: bool) -> Counter:
    """`count` damaged copies of a recording, one after the other in `folder`."""
    verified.FOLDER = output / "verified"  # this process is a child
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("experiments", "*.pt"))
    path, found, slowest = folder / f"{route}.json", Counter(), 0.0
    damager = Damager(path, seed)
    kept = {file: file.read_bytes() for file in folder.rglob("*.json")}
    for number in range(count):
        damage = damager()
        damage.file.write_bytes(damage.content)
        if seal:
            reseal(damage, path)
        start = time.process_time()
        try:
            found[outcome(path, output)] += 1
        except Exception as error:
            raise AssertionError(f"{route}, seed {seed}, damage {number}, sealed {seal}: {damage.what}") from error
        slowest = max(slowest, time.process_time() - start)
        for file in {*folder.rglob("*.json")} - {*kept}:
            file.unlink()
        for file in {damage.file, path}:
            file.write_bytes(kept[file])
    assert slowest < SECONDS
    return found


def in_child(work, *arguments):
    """What `work` returns, from a process that may not take more than `MEMORY` beyond what this one has."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        status = 1
        try:
            taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
            os.write(writer, repr(work(*arguments)).encode())
            status = 0
        except BaseException as error:
            import traceback
            os.write(writer, "".join(traceback.format_exception(error))[-4000:].encode())
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        said = file.read().decode()
    status = os.waitpid(child, 0)[1]
    assert status == 0, said
    return said


@pytest.mark.parametrize("seal", [False, True], ids=["hashes as they were", "hashes made to fit"])
@pytest.mark.parametrize("route", ["training", "generation", "pass"])
def test_a_damaged_recording_is_refused_or_found_or_whole(tiny, tmp_path, output, route, seal):
    found = Counter(eval(in_child(tried, tiny, tmp_path / "copy", output, route, 1, 40 * TRIALS, seal),
                         {"Counter": Counter}))
    print(route, "sealed" if seal else "unsealed", dict(found))
    assert sum(found.values()) == 40 * TRIALS
    assert found["refused"] > 10 * TRIALS


def test_the_tiny_recording_is_whole(tiny, output):
    for route in ("training", "generation", "pass"):
        assert outcome(tiny / f"{route}.json", output) == "built"


@pytest.mark.parametrize("route", ["training", "generation"])
def test_steps_shown_before_what_they_read_are_refused(tiny, tmp_path, route):
    """Nor is their network drawn: its roads are found in the order of the steps."""
    shutil.copytree(tiny, tmp_path / "copy")
    path = tmp_path / "copy" / f"{route}.json"
    body = orjson.loads(path.read_bytes())
    steps = next(one["steps"] for one in body["chapters"] if one["id"] in ("blocks.0", "round1"))
    steps.reverse()
    path.write_bytes(orjson.dumps(body))
    reseal(Damage("reversed", path, b""), path)
    with pytest.raises(UserError, match=r"is shown before .*, which it reads"):
        load(path)
