"""Sites of a few small files, with files of a user's in them, and processes that are killed while they build."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

from shared import files as tree

from site_builder import exchange
from site_builder.listing import LIST
from site_builder.output import replacing

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT / "traces"
TRIALS = int(os.environ.get("TWO_ROUTES_TRIALS", "1"))
OLD = {"index.html": "old door", "en/index.html": "old", "en/gone.html": "gone", "data/a.js": "same", "old/b.js": "b"}
NEW = {"index.html": "new door", "en/index.html": "new", "en/more.html": "more", "data/a.js": "same", "new/c.js": "c"}
MINE = {".git/HEAD": "ref", ".git/objects/ab/c": "object", "CNAME": "example.org", "en/mine.txt": "mine",
        "old/mine/deep.txt": "deep"}


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


def a_site(tmp_path: Path) -> Path:
    """A site with files of the user's in it."""
    publish(tmp_path / "site", OLD)
    put(tmp_path / "site", MINE)
    (tmp_path / "site" / "latest").symlink_to("en")
    (tmp_path / "site" / "empty").mkdir()
    return tmp_path / "site"


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
