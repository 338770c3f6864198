"""What else may lie in the folder of a site or beside it: names that are no text, pipes, links, a list made by hand."""

import os
import threading
from pathlib import Path

import orjson
import pytest
from small_sites import MINE, NEW, OLD, WAYS, a_site, in_child, publish, tree, without_list

from site_builder import build as build_module
from site_builder import exchange
from site_builder.listing import LIST
from site_builder.output import is_whole, remove_site
from site_builder.stamp import stamp
from tracer.errors import UserError


@pytest.fixture
def output(tmp_path) -> Path:
    return a_site(tmp_path)


def soon(job):
    """What `job` returns or raises; it fails instead of waiting for a pipe."""
    found = []

    def run() -> None:
        try:
            found.append(job())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(5)
    assert found, "it still waits"
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


@pytest.mark.parametrize("way", WAYS)
def test_a_name_of_the_users_that_is_no_text_stays(output, way, monkeypatch):
    WAYS[way](monkeypatch)
    names = [b"\xff.txt", b"en/\xc3(", "en/é\u202e\n".encode()]
    for name in names:
        with open(os.path.join(os.fsencode(output), name), "w") as file:
            file.write("mine")
    publish(output, NEW)
    for name in names:
        path = os.path.join(os.fsencode(output), name)
        with open(path) as file:
            assert file.read() == "mine"
        os.unlink(path)
    assert without_list(output) == NEW | MINE


def test_a_build_killed_beside_such_a_name_is_finished(output):
    with open(os.fsencode(output) + b"/\xff.txt", "w") as file:
        file.write("mine")
    writes = in_child(lambda: publish(output, NEW))
    for number in range(1, writes + 1, 3):
        in_child(lambda: publish(output, NEW), kill_at=number)
        publish(output, OLD)
    publish(output, NEW)
    with open(os.fsencode(output) + b"/\xff.txt") as file:
        assert file.read() == "mine"
    os.unlink(os.fsencode(output) + b"/\xff.txt")
    assert without_list(output) == NEW | MINE
    assert [path.name for path in output.parent.iterdir()] == ["site"]


def test_a_pipe_in_place_of_a_file_is_not_waited_for(output):
    (output / "en" / "index.html").unlink()
    os.mkfifo(output / "en" / "index.html")
    assert not soon(lambda: is_whole(output))
    with pytest.raises(UserError, match=r"en/index\.html was changed"):
        soon(lambda: publish(output, NEW))
    with pytest.raises(UserError, match=r"en/index\.html was changed"):
        soon(lambda: remove_site(output))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_is_no_list(output, make):
    (output / LIST).unlink()
    make(output / LIST)
    assert not soon(lambda: is_whole(output))
    with pytest.raises(UserError, match="is not a list that this builder wrote"):
        soon(lambda: publish(output, NEW))


@pytest.mark.parametrize("work", [remove_site, lambda output: publish(output, NEW)])
def test_a_path_that_no_system_takes_is_in_no_list(output, work):
    body = orjson.loads((output / LIST).read_bytes())
    body["files"]["en/a\0b"] = "0" * 64
    (output / LIST).write_bytes(orjson.dumps(body))
    before = tree(output)
    with pytest.raises(UserError, match="is not a list that this builder wrote"):
        work(output)
    assert tree(output) == before


@pytest.mark.parametrize("name", [".site.two-routes", f"site/{exchange.READY}", f"site/{exchange.INCOMING}"])
@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_link_or_a_file_where_a_build_needs_a_folder_is_named(output, name, kind):
    mine = output.parent / "mine"
    publish(mine, OLD)
    place = output.parent / name
    place.symlink_to(mine) if kind == "link" else place.write_text("mine")
    before, others = tree(output), tree(mine)
    with pytest.raises(UserError, match="is where a build needs a folder: move it away") as refusal:
        publish(output, NEW)
    assert str(place) in str(refusal.value)
    assert tree(output) == before and tree(mine) == others
    assert place.is_symlink() if kind == "link" else place.read_text() == "mine"


@pytest.mark.parametrize("inside", [".new", ".new-1", ".new/site"])
def test_where_new_recordings_wait_is_no_site(tmp_path, inside):
    """The next recording would move a site there among the recordings, or remove it."""
    with pytest.raises(UserError, match="is a folder of recordings"):
        build_module.build(tmp_path, tmp_path / inside)
    assert list(tmp_path.iterdir()) == []


def endless(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


STRANGE = {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "endless": endless,
           "nowhere": lambda path: path.symlink_to("nowhere"), "loop": lambda path: path.symlink_to(path)}


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("place", ["x.json", "arrays/x.json", "experiments/x.json", ".new/training.json"])
def test_what_is_no_file_among_recordings_is_not_read_for_the_stamp(tmp_path, place, kind):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    before = stamp(tmp_path)
    STRANGE[kind](path)
    assert soon(lambda: stamp(tmp_path)) != before
    path.unlink()
    assert stamp(tmp_path) == before


@pytest.mark.skipif(os.name == "nt", reason="Windows opens links as what they lead to")
@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_a_link_planted_in_place_of_the_lock_is_not_followed(output, tmp_path, there):
    elsewhere = tmp_path / "elsewhere"
    if there:
        elsewhere.write_text("mine")
    lock = output.parent / f".{output.name}.two-routes.lock"
    lock.symlink_to(elsewhere)
    with pytest.raises(UserError, match="is a link"):
        publish(output, NEW)
    assert elsewhere.exists() == there and lock.is_symlink()
    assert without_list(output) == OLD | MINE
    lock.unlink()
    publish(output, NEW)
    assert without_list(output) == NEW | MINE
