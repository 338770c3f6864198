"""The folder of the site: the builder owns what it wrote; killed, it leaves the old site or the new one.

Sites here are a few small files; real ones are built at the end, and in `test_site`.
"""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from site_builder import build as build_module
from site_builder import compiled, exchange
from site_builder import output as output_module
from site_builder.listing import LIST, listed
from site_builder.output import is_whole, recover, remove_site, replacing
from tracer.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT / "traces"
TRIALS = int(os.environ.get("TWO_ROUTES_TRIALS", "1"))
OLD = {"index.html": "old door", "en/index.html": "old", "en/gone.html": "gone", "data/a.js": "same", "old/b.js": "b"}
NEW = {"index.html": "new door", "en/index.html": "new", "en/more.html": "more", "data/a.js": "same", "new/c.js": "c"}
MINE = {".git/HEAD": "ref", ".git/objects/ab/c": "object", "CNAME": "example.org", "en/mine.txt": "mine",
        "old/mine/deep.txt": "deep"}


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def put(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def publish(output: Path, files: dict[str, str]) -> None:
    with replacing(output, {"about": "a test"}) as fresh:
        put(fresh, files)


def without_list(folder: Path) -> dict[str, str]:
    return {path: content.decode() for path, content in tree(folder).items() if path != LIST}


def in_place(monkeypatch) -> None:
    def refuse(one, other):
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(exchange, "_exchange", refuse)


WAYS = {"exchanged": lambda monkeypatch: None, "in place": in_place}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch) -> str:
    WAYS[request.param](monkeypatch)
    return request.param


@pytest.fixture
def output(tmp_path) -> Path:
    """A site with files of the user's in it."""
    publish(tmp_path / "site", OLD)
    put(tmp_path / "site", MINE)
    (tmp_path / "site" / "latest").symlink_to("en")
    (tmp_path / "site" / "empty").mkdir()
    return tmp_path / "site"


# What is whose ---------------------------------------------------------------------------------------

def test_a_rebuild_replaces_its_own_files_and_no_others(output, way):
    (output / ".git" / "HEAD").chmod(0o640)
    (output / ".git").chmod(0o750)
    output.chmod(0o711)
    before = {path: (output / path).lstat() for path in (*MINE, "latest")}
    publish(output, NEW)
    assert without_list(output) == NEW | MINE
    after = {path: (output / path).lstat() for path in before}
    for path, was in before.items():  # not copies: the very files
        assert (after[path].st_ino, after[path].st_mode, after[path].st_mtime_ns, after[path].st_nlink) == (
            was.st_ino, was.st_mode, was.st_mtime_ns, 1), path
    assert os.readlink(output / "latest") == "en"
    assert [folder.stat().st_mode & 0o777 for folder in (output, output / ".git")] == [0o711, 0o750]
    assert (output / "empty").is_dir()
    assert not (output / "old" / "b.js").exists()
    assert [path.name for path in output.parent.iterdir()] == ["site"]
    assert is_whole(output)


def test_the_list_holds_every_file_with_its_hash(output):
    assert sorted(listed(output).files) == sorted(OLD)
    for path, sha256 in listed(output).files.items():
        done = subprocess.run(["sha256sum", output / path], capture_output=True, text=True, check=True)
        assert done.stdout.split()[0] == sha256
    assert listed(output).about == {"about": "a test"}


HOW_CHANGED = {
    "changed": lambda path: path.write_text("by hand"),
    "a link": lambda path: (path.rename(path.with_name("other")), path.symlink_to("other")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("change", HOW_CHANGED)
def test_a_file_that_was_changed_is_kept_and_named(output, change):
    HOW_CHANGED[change](output / "en" / "index.html")
    before = tree(output)
    assert not is_whole(output)
    with pytest.raises(UserError, match=r"en/index\.html was changed after it was built"):
        publish(output, NEW)
    assert tree(output) == before
    assert [path.name for path in output.parent.iterdir()] == ["site"]


def test_a_file_that_was_deleted_comes_back(output, way):
    (output / "en" / "index.html").unlink()
    assert not is_whole(output)
    publish(output, OLD)
    assert without_list(output) == OLD | MINE


def foreign_ones(rng: random.Random, count: int) -> dict[str, str]:
    """Files of a user at random places, on the builder's own names too."""
    names = ["a", "b", "CNAME", ".git"]
    found: dict[str, str] = {}
    for _ in range(count):
        path = "/".join(rng.choices(names, k=rng.randint(1, 3)))
        if not any(f"{one}/".startswith(f"{path}/") or f"{path}/".startswith(f"{one}/") for one in found):
            found[path] = f"mine: {path}"
    return found


@pytest.mark.parametrize("seed", range(40 * TRIALS))
def test_any_files_of_a_user_are_kept_or_named(tmp_path, seed, monkeypatch):
    """All that is listed is replaced and the user's is as it was; or nothing at all is done, and it is said why."""
    rng = random.Random(seed)
    WAYS[rng.choice(list(WAYS))](monkeypatch)
    places = ["a", "b", "d/a", "d/b", "e/a", "e/e/b", "a.html", "z"]
    old, new = ({path: f"{age}: {path}" for path in rng.sample(places, rng.randint(1, 5))} for age in ("old", "new"))
    output = tmp_path / "site"
    publish(output, old)
    mine = {path: text for path, text in foreign_ones(rng, rng.randint(0, 4)).items()
            if path not in old and not any(f"{path}/".startswith(f"{one}/") for one in old)}
    put(output, mine)
    changed = rng.random() < 0.2
    if changed:
        (output / rng.choice(sorted(old))).write_text("by hand")
    before = tree(output)
    meets = any(f"{path}/".startswith(f"{one}/") or f"{one}/".startswith(f"{path}/") for path in mine for one in new)
    try:
        publish(output, new)
    except UserError as error:
        assert meets or changed, error
        assert "\n" not in str(error)
        assert tree(output) == before
    else:
        assert not (meets or changed)
        assert without_list(output) == new | mine
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_folder_of_a_web_host_may_become_a_site(tmp_path, way):
    output = tmp_path / "site"
    put(output, {".git/HEAD": "ref", "CNAME": "example.org", ".nojekyll": ""})
    publish(output, NEW)
    assert without_list(output) == NEW | {".git/HEAD": "ref", "CNAME": "example.org", ".nojekyll": ""}
    assert listed(output).files.keys() == NEW.keys()


@pytest.mark.parametrize("content", [
    "", "[]", "{}", '{"format":"two-routes/site/2","about":{},"files":{}}', '{"format":"two-routes/site/1","files":[]}',
    *(f'{{"format":"two-routes/site/1","about":{{}},"files":{{"{path}":"00"}}}}'
      for path in ("../mine", "/etc/passwd", "en/../../mine", "", "en//a", "C:/mine", "en\\\\a", LIST))])
def test_a_list_that_the_builder_did_not_write_is_refused(output, content):
    (output / LIST).write_text(content)
    before = tree(output.parent)
    assert not is_whole(output)
    with pytest.raises(UserError, match="is not a list that this builder wrote"):
        publish(output, NEW)
    assert tree(output.parent) == before


@pytest.mark.parametrize("where", ["file", "file/site", "loop", "linked"])
def test_an_output_that_can_be_no_folder(tmp_path, where):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "linked").symlink_to("file")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UserError, match="choose another --output") as refusal:
        publish(tmp_path / where, NEW)
    assert "\n" not in str(refusal.value)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "file").read_text() == "mine"


def test_links_to_the_output_stay(output, tmp_path, way):
    (tmp_path / "link").symlink_to("site")
    publish(tmp_path / "link", NEW)
    assert (tmp_path / "link").is_symlink()
    assert without_list(output) == NEW | MINE
    (tmp_path / "ahead").symlink_to("to-come")  # leads to what is not there yet
    publish(tmp_path / "ahead", NEW)
    assert without_list(tmp_path / "to-come") == NEW


@pytest.mark.parametrize("inside", [".", "arrays", "experiments", "experiments/site"])
def test_a_folder_of_recordings_is_no_site(tmp_path, inside):
    traces = tmp_path / "traces"
    traces.mkdir()
    with pytest.raises(UserError, match="is a folder of recordings"):
        build_module.build(traces, traces / inside)
    assert list(traces.iterdir()) == []


def test_a_site_beside_the_recordings_in_their_folder(site, tmp_path):
    for path in TRACES.iterdir():
        (tmp_path / path.name).symlink_to(path)
    build_module.build(tmp_path, tmp_path / "site")
    build_module.build(tmp_path, tmp_path / "site")
    assert tree(tmp_path / "site") == tree(site)


@pytest.mark.parametrize("source", [".", "static", "tests", "site_builder"])
def test_the_checkout_is_no_site(source):
    with pytest.raises(UserError, match="is not a site"):
        publish(ROOT / source, NEW)


@pytest.mark.parametrize("change", [False, True])
def test_to_remove_a_site_removes_its_own_files_alone(output, change):
    if change:
        (output / "en" / "index.html").write_text("by hand")
        before = tree(output)
        with pytest.raises(UserError, match=r"en/index\.html was changed"):
            remove_site(output)
        assert tree(output) == before
        (output / "en" / "index.html").unlink()
    remove_site(output)
    assert {path: text.decode() for path, text in tree(output).items()} == MINE
    remove_site(output)  # no site, nothing to do
    publish(output.parent / "other", OLD)
    remove_site(output.parent / "other")
    assert [path.name for path in output.parent.iterdir()] == ["site"]


# Killed ----------------------------------------------------------------------------------------------

WRITES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod", "os.chown", "os.truncate")


def in_child(job: Callable[[], None], kill_at: int = 0, user: int | None = None) -> int:
    """Run `job` in a process of its own that ends, without a chance to tidy up, before its write number `kill_at`.

    Returns 0 when it came to its end, 9 when it was killed, 1 when it raised.  Without `kill_at`, the number of
    its writes (at most 255) is the status.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if user is not None and os.geteuid() == 0:
            os.setuid(user)
        count = 0

        def on_write(event, arguments):
            nonlocal count
            if event in WRITES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
                count += 1
                if count == kill_at:
                    os._exit(9)

        sys.addaudithook(on_write)
        job()
        os._exit(0 if kill_at or user is not None else count)
    except BaseException as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)


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


def test_files_that_cannot_be_linked_are_left_where_they_are(output, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    publish(output, NEW)
    assert without_list(output) == NEW | MINE


def test_another_file_system_between_the_stage_and_the_site(output, monkeypatch):
    """As with a folder that is mounted over itself: no exchange, and no renaming into it."""
    in_place(monkeypatch)
    rename = os.rename

    def refuse(source, target):
        if Path(target).name == exchange.INCOMING:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse)
    publish(output, NEW)
    assert without_list(output) == NEW | MINE
    assert [path.name for path in output.parent.iterdir()] == ["site"]


def test_a_build_that_fails_leaves_all_as_it_was(output, tmp_path):
    before = tree(output)
    for target in (output, tmp_path / "not" / "yet" / "there"):
        with pytest.raises(ZeroDivisionError), replacing(target, {}) as fresh:
            put(fresh, {"en/index.html": "half"})
            raise ZeroDivisionError
    assert tree(output) == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


# Permissions -----------------------------------------------------------------------------------------

NOBODY = 65534


@pytest.fixture
def open_folder():
    """A folder that another user may write too, when the tests run as root."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o777)
    shutil.rmtree(folder)


def test_a_site_that_may_not_be_written_is_refused(open_folder, capfd):
    output = open_folder / "site"
    assert in_child(lambda: publish(output, OLD), user=NOBODY) == 0
    output.chmod(0o555)
    before = tree(open_folder)
    assert in_child(lambda: publish(output, NEW), user=NOBODY) == 1
    assert "may not be written" in capfd.readouterr().err
    assert tree(open_folder) == before


def test_a_parent_that_may_not_be_written_is_not_needed(open_folder):
    output = open_folder / "site"
    assert in_child(lambda: publish(output, OLD), user=NOBODY) == 0
    put(output, {"CNAME": "example.org"})
    open_folder.chmod(0o555)
    assert in_child(lambda: publish(output, NEW), user=NOBODY) == 0
    assert without_list(output) == NEW | {"CNAME": "example.org"}
    assert [path.name for path in open_folder.iterdir()] == ["site"]


def test_folders_of_the_users_that_may_not_be_written_stay_so(open_folder):
    output = open_folder / "site"
    elsewhere = open_folder / "elsewhere"

    def start() -> None:
        publish(output, OLD)
        put(output, MINE)
        elsewhere.mkdir(mode=0o755)
        (output / "out").symlink_to(elsewhere)
        (output / ".git" / "out").symlink_to(elsewhere)
        (output / ".git").chmod(0o555)

    assert in_child(start, user=NOBODY) == 0
    assert in_child(lambda: publish(output, NEW), user=NOBODY) == 0
    assert without_list(output) == NEW | MINE
    assert (output / ".git").stat().st_mode & 0o777 == 0o555
    assert elsewhere.stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in open_folder.iterdir()) == ["elsewhere", "site"]


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


def test_ctrl_c_is_one_word(tmp_path):
    process = subprocess.Popen([sys.executable, "-m", "site_builder", "build", "--output", tmp_path / "site"], cwd=ROOT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    end = time.monotonic() + 30
    while not list(tmp_path.glob(".site.two-routes/site/data/*.js")) and time.monotonic() < end:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode != 0
    assert out + err.strip() == "Aborted!"
    assert list(tmp_path.iterdir()) == []


def test_a_helper_that_is_killed_is_one_line():
    """As the system does when memory runs out."""
    with pytest.raises(UserError, match="was ended from outside"):
        build_module._side_by_side([int, _kill_oneself])


def _kill_oneself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
