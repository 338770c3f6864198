"""The folder of the site: the builder owns what it wrote there, and nothing else."""

import errno
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from small_sites import (
    MINE,
    NEW,
    OLD,
    ROOT,
    TRACES,
    TRIALS,
    WAYS,
    a_site,
    in_child,
    in_place,
    publish,
    put,
    tree,
    without_list,
)

from site_builder import build as build_module
from site_builder import exchange
from site_builder.listing import LIST, listed
from site_builder.output import is_whole, remove_site, replacing
from tracer.errors import UserError


@pytest.fixture(params=WAYS)
def way(request, monkeypatch) -> str:
    WAYS[request.param](monkeypatch)
    return request.param


@pytest.fixture
def output(tmp_path) -> Path:
    """A site with files of the user's in it."""
    return a_site(tmp_path)


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
