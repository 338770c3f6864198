"""A build that is killed leaves the old site or the new one, and of two at once one is told to wait."""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_sites import (
    MINE,
    NEW,
    OLD,
    ROOT,
    TRIALS,
    a_site,
    in_child,
    in_place,
    publish,
    put,
    tree,
    without_list,
)

from site_builder import build as build_module
from site_builder import compiled, exchange
from site_builder import output as output_module
from site_builder.listing import LIST
from site_builder.output import is_whole, recover, replacing
from tracer.errors import UserError


@pytest.fixture
def output(tmp_path) -> Path:
    """A site with files of the user's in it."""
    return a_site(tmp_path)


def kill_points(count: int, seed: int) -> list[int]:
    """Some of the writes, the last one always: by then the new site is in its place."""
    return [*sorted(random.Random(seed).sample(range(1, count), min(count - 1, 10 * TRIALS))), count]


@pytest.mark.parametrize("start", ["from nothing", "from a site"])
def test_killed_at_any_write_the_site_is_the_old_one_or_the_new_one(tmp_path, start):
    model = tmp_path / "model" / "site"
    if start == "from a site":
        publish(model, OLD)
        put(model, MINE)
    old = tree(model)
    output = tmp_path / "trial" / "site"
    mine = MINE if old else {}

    def fresh_start() -> None:
        shutil.rmtree(output.parent, ignore_errors=True)
        output.parent.mkdir()
        if old:
            shutil.copytree(model, output)

    fresh_start()
    writes = in_child(lambda: publish(output, NEW))
    new = tree(output)
    assert {path: text.decode() for path, text in new.items() if path != LIST} == NEW | mine
    assert writes > (40 if old else 12)
    seen = set()
    for point in kill_points(writes, writes):
        fresh_start()
        assert in_child(lambda: publish(output, NEW), point) == 9
        left = tree(output)
        assert left in (old, new), point
        seen.add(left == new)
        publish(output, NEW)
        assert tree(output) == new
        assert [path.name for path in output.parent.iterdir()] == ["site"]
        assert is_whole(output)
    assert seen == {True, False}  # before and after


def test_killed_in_place_every_file_is_old_or_new_and_the_next_run_makes_them_one(tmp_path, monkeypatch):
    in_place(monkeypatch)
    model = tmp_path / "model" / "site"
    publish(model, OLD)
    put(model, MINE)
    old = tree(model)
    output = tmp_path / "trial" / "site"

    def fresh_start() -> None:
        shutil.rmtree(output.parent, ignore_errors=True)
        shutil.copytree(model, output)

    fresh_start()
    writes = in_child(lambda: publish(output, NEW))
    new = tree(output)
    mixed = 0
    for point in kill_points(writes, 3):
        fresh_start()
        assert in_child(lambda: publish(output, NEW), point) == 9
        left = {path: content for path, content in tree(output).items()
                if not path.startswith((*exchange.LEFT, ".site.two-routes"))}
        assert set(left) <= {*old, *new}
        for path, content in left.items():
            assert content in (old.get(path), new.get(path)), (point, path)
        assert MINE.items() <= {path: content.decode() for path, content in left.items()}.items()
        half = left not in (old, new)
        mixed += half
        assert not (half and is_whole(output))
        if half and point % 2:
            recover(output)
            assert tree(output) == new
        publish(output, NEW)
        assert tree(output) == new
        assert [path.name for path in output.parent.iterdir()] == ["site"]
    assert mixed


def test_what_is_changed_while_two_sites_are_half_in_place_is_kept_and_named(output, monkeypatch):
    in_place(monkeypatch)
    replace = os.replace

    def stop(source, target):
        if Path(target).name == "index.html" and Path(target).parent.name == "site":
            raise OSError(errno.EIO, "Input/output error", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(OSError, match="Input/output"):
        publish(output, NEW)
    monkeypatch.setattr(os, "replace", replace)
    assert (output / "en" / "index.html").read_text() == "new"
    assert (output / "index.html").read_text() == "old door"
    (output / "index.html").write_text("by hand")
    for act in (recover, lambda folder: publish(folder, NEW)):
        with pytest.raises(UserError, match=r"index\.html was changed"):
            act(output)
        assert (output / "index.html").read_text() == "by hand"
    (output / "index.html").unlink()
    recover(output)
    assert without_list(output) == NEW | MINE
    assert is_whole(output)


def test_what_a_user_writes_at_the_moment_of_the_exchange_is_there_after_it(output, monkeypatch):
    swap = exchange._exchange

    def slow(one, other):
        put(output, {"en/late.txt": "late", "late/deep/x": "late"})
        (output / "CNAME.new").write_text("changed")
        os.replace(output / "CNAME.new", output / "CNAME")  # as editors do
        swap(one, other)

    monkeypatch.setattr(exchange, "_exchange", slow)
    publish(output, NEW)
    assert without_list(output) == NEW | MINE | {"CNAME": "changed", "en/late.txt": "late", "late/deep/x": "late"}


def test_what_a_user_removed_after_a_kill_does_not_come_back(output, monkeypatch):
    swap = exchange._exchange
    with monkeypatch.context() as patch:
        patch.setattr(exchange, "_exchange", lambda one, other: (swap(one, other), os._exit(9)))
        assert in_child(lambda: publish(output, NEW)) == 9
    assert without_list(output) == NEW | MINE  # exchanged, not tidied up
    (output / "CNAME").unlink()
    assert not is_whole(output)
    publish(output, OLD)
    assert without_list(output) == OLD | {path: text for path, text in MINE.items() if path != "CNAME"}


# Two at once -----------------------------------------------------------------------------------------

def test_of_two_builds_one_is_told_to_wait(output, monkeypatch):
    monkeypatch.setattr(output_module, "PATIENCE", 0.05)
    ready, go = os.pipe(), os.pipe()

    def slow() -> None:
        with replacing(output, {}) as fresh:
            put(fresh, NEW)
            os.write(ready[1], b".")
            os.read(go[0], 1)

    child = os.fork()
    if not child:
        slow()
        os._exit(0)
    os.read(ready[0], 1)
    assert not is_whole(output)
    with pytest.raises(UserError, match="another build is writing it: wait"):
        publish(output, {"index.html": "mine"})
    assert without_list(output) == OLD | MINE
    os.write(go[1], b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert without_list(output) == NEW | MINE
    assert [path.name for path in output.parent.iterdir()] == ["site"]


def test_many_at_once_leave_one_whole_site(tmp_path, monkeypatch):
    """Each waits a little, so most have their turn; whoever was last, the site is whole, and never one in another."""
    monkeypatch.setattr(output_module, "PATIENCE", 5)
    output = tmp_path / "site"
    sites = [{"index.html": f"{n}", f"en/{n}.html": "own"} for n in range(6)]
    children = []
    for site in sites:
        child = os.fork()
        if not child:
            try:
                for _ in range(4):
                    publish(output, site)
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * len(sites)
    assert without_list(output) in sites
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_temporary_files_of_a_killed_build_go_and_those_of_a_running_one_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    dead = os.fork()
    if not dead:
        os._exit(0)
    os.waitpid(dead, 0)
    (tmp_path / f"formulas-a.json.{dead}.tmp").write_text("{")
    running = tmp_path / f"formulas-a.json.{os.getpid()}.tmp"
    running.write_text("{")
    compiled.compiled()
    assert list(tmp_path.iterdir()) == [running]


# The real build --------------------------------------------------------------------------------------

@pytest.mark.parametrize("trial", range(1 * TRIALS))
def test_a_real_build_that_is_killed_with_its_processes(site, tmp_path, trial):
    """Killed while it works: the old site is whole, nothing goes on, and the next build needs no help."""
    output = tmp_path / "site"
    publish(output, OLD)
    put(output, {"CNAME": "example.org"})
    old, new = tree(output), tree(site) | {"CNAME": b"example.org"}
    command = [sys.executable, "-m", "site_builder", "build", "--output", output]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + (0.4 + 2.4 * random.Random(trial).random() if trial else 30)
    while process.poll() is None and time.monotonic() < end:
        if not trial and list(tmp_path.glob(".site.two-routes/site/data/*.js")):
            break  # its helpers are writing
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert tree(output) in (old, new)
    end = time.monotonic() + 10
    while (running := in_session(process.pid)) and time.monotonic() < end:
        time.sleep(0.02)
    assert running == []
    publish(output, OLD)
    assert tree(output) == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site"]


def in_session(leader: int) -> list[str]:
    """Processes of a session that still run, on Linux."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.append(path.parent.name)
    return found


def test_ctrl_c_is_one_line(tmp_path):
    process = subprocess.Popen([sys.executable, "-m", "site_builder", "build", "--output", tmp_path / "site"], cwd=ROOT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                               preexec_fn=lambda: os.nice(19))  # this process looks often enough, however busy
    end = time.monotonic() + 30
    while not list(tmp_path.glob(".site.two-routes/site/data/*.js")) and time.monotonic() < end:
        time.sleep(0.001)
    assert process.poll() is None, "the build ended before it could be interrupted"
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (out, err.strip()) == ("", "error: interrupted; what was there before is as it was")
    assert list(tmp_path.iterdir()) == []


def test_a_helper_that_is_killed_is_one_line():
    """As the system does when memory runs out."""
    with pytest.raises(UserError, match="was ended from outside"):
        build_module._side_by_side([int, _kill_oneself])


def _kill_oneself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
