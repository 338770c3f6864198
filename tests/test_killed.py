"""A run killed anywhere in what it writes: nothing is lost, and it ends with the bits of a run that was not."""

import errno
import json
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from runs import ALONE, TRIALS, generator, log_without_time, same_bits

from tracer.errors import os_error_line
from tracer.trainer import checkpoints as run_checkpoint
from tracer.trainer import log as run_log
from tracer.trainer.fit import Fit
from tracer.trainer.settings import FitSettings, resumed_settings

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
FILES = ["best.pt", "last.pt", "log.jsonl", "settings.toml"]


class Torn:
    """A file that reaches a point before, in the middle of and after each write; half of it is on the disk then."""

    def __init__(self, file, point: Callable[[], None]):
        self._file, self._point = file, point

    def write(self, content) -> None:
        self._point()
        half = len(content) // 2
        for part in (content[:half], content[half:]):
            self._file.write(part)
            self._file.flush()
            self._point()

    def __getattr__(self, name: str):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


class Points:
    """While it is entered, all that changes a file comes to numbered points; at `deadly` something happens."""

    names = ((os, "replace"), (os, "fsync"), (os, "chmod"), (os, "unlink"), (os, "mkdir"), (tempfile, "mkstemp"))

    def __init__(self, deadly: int = 0):
        self.count, self.deadly, self._stack = 0, deadly, ExitStack()

    def point(self) -> None:
        self.count += 1
        if self.count == self.deadly:
            self.happen()

    def happen(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _around(self, function: Callable) -> Callable:
        def wrapped(*arguments, **options):
            self.point()
            result = function(*arguments, **options)
            self.point()
            return result
        return wrapped

    def _torn(self, function: Callable) -> Callable:
        return lambda *arguments, **options: Torn(function(*arguments, **options), self.point)

    def __enter__(self):
        for owner, name in self.names:
            self._stack.enter_context(patch.object(owner, name, self._around(getattr(owner, name))))
        self._stack.enter_context(patch.object(os, "fdopen", self._torn(os.fdopen)))
        self._stack.enter_context(patch.object(run_log, "open", self._torn(open), create=True))
        return self

    def __exit__(self, *_):
        self._stack.close()


class FullDisk(Points):
    """The system refuses to write, without a word on the file."""

    names = ((os, "replace"), (os, "fsync"), (tempfile, "mkstemp"))

    def happen(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def go_on(settings: FitSettings) -> None:
    """As the command: with --resume as soon as there is a run."""
    folder = Path(settings.output)
    resume = (folder / "settings.toml").exists()
    Fit(resumed_settings(folder, {}) if resume else settings, ALONE, resume).run()


def in_a_fork(settings: FitSettings, deadly: int) -> int:
    """How a process ended that goes on with the run and is killed at that point: the signal, or the status."""
    child = os.fork()
    if not child:
        signal.alarm(60)
        status = 1
        try:
            with Points(deadly):
                go_on(settings)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture(scope="module")
def whole(prepared, tmp_path_factory) -> tuple[FitSettings, int]:
    """A run that nothing stops, and how many points it has."""
    from runs import SMALL

    settings = FitSettings(**SMALL | {"dropout": 0.1}, data=str(prepared), output=str(tmp_path_factory.mktemp("whole")))
    with Points() as points:
        Fit(settings, ALONE).run()
    return settings, points.count


def test_killed_at_any_point_and_resumed_ends_with_the_same_bits(whole, tmp_path):
    """The points are spread evenly over the run.  Every second run is killed once more while it goes on."""
    settings, count = whole
    assert count > 150
    seed, random = generator()
    trials = 8 * TRIALS
    for trial in range(trials):
        own = replace(settings, output=str(tmp_path / str(trial)))
        point = 1 + int((trial + random.random()) * count / trials)
        assert in_a_fork(own, point) == -signal.SIGKILL, (seed, point)
        if trial % 2:
            again = random.randint(1, count)
            assert in_a_fork(own, again) in (-signal.SIGKILL, 0), (seed, point, again)  # less may be left to write
        go_on(own)
        check_same(settings, own, (seed, point))


def check_same(settings: FitSettings, own: FitSettings, case: object) -> None:
    folders = Path(settings.output), Path(own.output)
    for name in ("last.pt", "best.pt"):
        same_bits(*(run_checkpoint.load_run(folder / name) for folder in folders))
    for line in (folders[1] / "log.jsonl").read_text(encoding="utf-8").splitlines():
        json.loads(line)
    assert log_without_time(folders[1]) == log_without_time(folders[0]), case
    assert sorted(path.name for path in folders[1].iterdir()) == FILES, case


def test_killed_at_any_moment_and_resumed_ends_with_the_same_bits(whole, tmp_path):
    """From outside, at random moments, again and again until the run is through."""
    settings = whole[0]
    seed, random = generator()
    own = replace(settings, output=str(tmp_path / "run"))
    kills = 0
    for longest in (0.02, 0.15, 0.15, 0.15):  # the first does not come through
        child = os.fork()
        if not child:
            try:
                go_on(own)
            finally:
                os._exit(0)
        time.sleep(random.uniform(0.01, longest))
        os.kill(child, signal.SIGKILL)
        kills += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    go_on(own)
    assert kills, seed
    check_same(settings, own, seed)


def test_a_disk_that_is_full_at_any_point_loses_nothing(whole, tmp_path):
    """The line names the file that could not be written; with room again the run ends with the same bits."""
    settings = whole[0]
    with FullDisk() as points:
        Fit(replace(settings, output=str(tmp_path / "counted")), ALONE).run()
    seed, random = generator()
    trials = 6 * TRIALS
    for trial in range(trials):
        own = replace(settings, output=str(tmp_path / str(trial)))
        point = 1 + int((trial + random.random()) * points.count / trials)
        with FullDisk(point), pytest.raises(OSError) as stop:
            go_on(own)
        where, _, says = os_error_line(stop.value).partition(": ")
        assert Path(where) in [Path(own.output) / name for name in FILES], (seed, point, where)
        assert says.startswith("the disk is full"), (seed, point)
        go_on(own)
        check_same(settings, own, (seed, point))
