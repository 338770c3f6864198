"""`serve`: one answer to everything that is asked, and nothing that is not in the site."""

import gzip
import http.client
import os
import random
import re
import socket
import sys
import threading
import time
from email.utils import formatdate
from pathlib import Path

import pytest

from site_builder import cli, server
from site_builder.output import replacing
from site_builder.server import Handler, server_of

TRIALS = int(os.environ.get("TWO_ROUTES_TRIALS", "1"))
POLICY = "default-src 'none'; script-src 'self'"
TEXT = "text 你\n" * 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A small site, with files of the user's around and in it."""
    around = tmp_path_factory.mktemp("served")
    with replacing(around / "site", {"policy": POLICY}) as fresh:
        for path in ("index.html", "en/index.html", "boot.js", "two-routes.css"):
            (fresh / path).parent.mkdir(exist_ok=True)
            (fresh / path).write_text(f"{path}\n{TEXT}", "utf-8")
        (fresh / "data").mkdir()
        (fresh / "data" / "a b.js").write_text(TEXT, "utf-8")
        (fresh / "picture.png").write_bytes(bytes(range(256)))
    site = around / "site"
    (around / "secret.html").write_text("secret")
    (site / "out.html").symlink_to("../secret.html")
    (site / "up").symlink_to("..")
    (site / "again.html").symlink_to("index.html")
    (site / "loop").symlink_to("loop")
    (site / ".git").mkdir()
    (site / ".git" / "config").write_text("secret")
    (site / "shown").symlink_to(".git")
    return site


@pytest.fixture(scope="module")
def running(folder):
    """A server of that site; its log is dropped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handler, "log_message", lambda *_: None)
        with server_of(folder, 0) as running:
            threading.Thread(target=running.serve_forever, daemon=True).start()
            yield running
            running.shutdown()


@pytest.fixture
def ask(running):
    """``ask(path, method="GET", **headers)`` → (answer, body)."""
    def ask(path: str, method: str = "GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", running.server_port, timeout=20)
        connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    return ask


def raw(port: int, content: bytes) -> bytes:
    """What comes back for these bytes, until the server ends the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(content)
        found = b""
        while piece := connection.recv(1 << 16):
            found += piece
        return found


TYPES = {"": "text/html; charset=utf-8", "en/": "text/html; charset=utf-8", "en/index.html": "text/html; charset=utf-8",
         "boot.js": "text/javascript; charset=utf-8", "two-routes.css": "text/css; charset=utf-8",
         "two-routes.json": "application/json", "data/a%20b.js": "text/javascript; charset=utf-8",
         "again.html": "text/html; charset=utf-8", "picture.png": "image/png"}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", TYPES)
def test_files_of_the_site(ask, folder, path, method):
    answer, body = ask(f"/{path}", method)
    file = folder / (f"{path}index.html" if path == "" or path.endswith("/") else path.replace("%20", " "))
    assert answer.status == 200
    assert body == (file.read_bytes() if method == "GET" else b"")
    assert int(answer.headers["Content-Length"]) == file.stat().st_size
    assert answer.headers["Content-Type"] == TYPES[path]
    assert ask(f"/{path}?query=1#x", method)[0].status == 200


@pytest.mark.parametrize(("path", "status"), [
    ("/missing.html", 404), ("/en/missing/", 404), ("/data/", 404), ("/boot.js/", 404), ("/boot.js/x", 404),
    ("/out.html", 404), ("/up/secret.html", 404), ("/up/", 404), ("/up", 404), ("/loop", 404), ("/shown/config", 404),
    ("/.git/config", 404), ("/en/..%2f..%2fsecret.html", 404), ("/../secret.html", 404), ("/%2e%2e/secret.html", 404),
    ("/en\\..\\boot.js", 404), ("/C:/boot.js", 404), ("/two-routes.css:", 404),
    ("/%00", 400), ("/boot.js%00.html", 400), ("/%0d%0aX: y", 400), ("/%ff", 400), ("*", 400), ("boot.js", 400),
    ("/" + "a" * 300, 414), ("/" + "a/" * 9000, 404), ("/" + "a" * 60_000, 414), ("/" + "a" * 200_000, 414)])
def test_what_is_not_there_is_said_in_one_line(running, path, status):
    answer = raw(running.server_port, f"GET {path.replace(' ', '%20')} HTTP/1.1\r\nHost: localhost\r\n"
                                      "Connection: close\r\n\r\n".encode("latin-1"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert re.fullmatch(rb"%d [^\n]+\n" % status, body), answer
    assert b"secret" not in answer
    assert b"Directory listing" not in answer


@pytest.mark.parametrize(("path", "to"), [("/en", "/en/"), ("//en", "/en/"), ("/data?x", "/data/")])
def test_a_folder_without_its_slash(ask, path, to):
    answer, body = ask(path)
    assert (answer.status, answer.headers["Location"], body) == (301, to, b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW", "get"])
def test_other_methods(ask, method):
    answer, body = ask("/", method)
    assert answer.status == (501 if method in ("BREW", "get") else 405)
    assert answer.headers["Allow"] == "GET, HEAD"
    assert re.fullmatch(rb"\d+ [^\n]+\n", body)


@pytest.mark.parametrize("content", [b"", b"\r\n", b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                                     b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"GET /boot.js\r\n",
                                     b"GET / HTTP/1.1\r\nContent-Length: 30\r\n\r\nGET /missing HTTP/1.1\r\n\r\n",
                                     b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
                                     b"POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000])
def test_requests_that_are_none_end(running, content):
    with socket.create_connection(("127.0.0.1", running.server_port), timeout=20) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert answer or content in (b"", b"\r\n") or b"\x16" in content


@pytest.mark.parametrize("seed", range(60 * TRIALS))
def test_random_requests_get_an_answer(running, seed, capfd):
    """And no traceback."""
    rng = random.Random(seed)
    pieces = ["/", "..", "%2e", "%00", "%", "en", "é", "~", "//", ":", "\\", "?", "#", "%2F", "a" * 400, "index.html",
              "%F0%9F", "*", ";", "&", "%25", "http://x/", "|", "\"", "<"]
    path = "/" * rng.randint(0, 1) + "".join(rng.choices(pieces, k=rng.randint(1, 9)))
    names = ["Range", "If-None-Match", "If-Modified-Since", "Accept-Encoding", "Host"]
    values = ["", "*", "bytes=0-1", "gzip;q=x", "Thu, 99 Jan 1970", "localhost:1", "[::1", "W/\"x\", *", "0", "-1"]
    headers = "".join(f"{rng.choice(names)}: {rng.choice(values)}\r\n" for _ in range(rng.randint(0, 4)))
    answer = raw(running.server_port, f"GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n".encode())
    assert re.match(rb"HTTP/1.1 (200|301|304|400|404|406|414|421) ", answer), (path, headers, answer)
    assert b"secret" not in answer
    assert capfd.readouterr().err == ""


# What browsers accept ---------------------------------------------------------------------------------

@pytest.mark.parametrize(("accepted", "coding"), [
    (None, "identity"), ("", "identity"), ("gzip", "gzip"), ("gzip, deflate, br, zstd", "gzip"), ("GZIP;Q=1", "gzip"),
    ("x-gzip", "gzip"), ("br", "identity"), ("identity", "identity"), ("*", "gzip"), ("gzip;q=0", "identity"),
    ("gzip; q=0.000", "identity"), ("*;q=0.5, gzip;q=0", "identity"), ("gzip;q=0.5, identity;q=0.6", "identity"),
    ("gzip;q=0.6, identity;q=0.5", "gzip"), ("identity;q=0, gzip", "gzip"), ("identity;q=0", None), ("*;q=0", None),
    ("*;q=0, gzip;q=0.1", "gzip"), ("br, *;q=0", None), ("*;q=0, identity", "identity"), ("gzip;q=x", "identity"),
    ("identity;q=0.5, *;q=0", "identity"), ("deflate, gzip;q=1.0, *;q=0.5", "gzip")])
def test_what_is_accepted_is_what_is_sent(ask, folder, accepted, coding):
    answer, body = ask("/boot.js", **({} if accepted is None else {"Accept_Encoding": accepted}))
    assert answer.status == (200 if coding else 406)
    if coding:
        assert answer.headers["Content-Encoding"] == (coding if coding == "gzip" else None)
        assert int(answer.headers["Content-Length"]) == len(body)
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert (gzip.decompress(body) if coding == "gzip" else body) == (folder / "boot.js").read_bytes()


def test_pictures_are_not_compressed_again(ask, folder):
    answer, body = ask("/picture.png", Accept_Encoding="gzip")
    assert (body, answer.headers["Content-Encoding"], answer.headers["Vary"]) == (bytes(range(256)), None, None)
    assert ask("/picture.png", Accept_Encoding="gzip, identity;q=0")[0].status == 406


def test_only_what_changed_is_sent_again(ask, folder, tmp_path):
    for accepted in ("gzip", "identity"):
        first, _ = ask("/boot.js", Accept_Encoding=accepted)
        assert first.headers["Cache-Control"] == "no-cache"
        mark = first.headers["ETag"]
        for header in (mark, f"W/{mark}", f'"other", {mark}', "*"):
            answer, body = ask("/boot.js", Accept_Encoding=accepted, If_None_Match=header)
            assert (answer.status, body, answer.headers["ETag"]) == (304, b"", mark)
        assert ask("/boot.js", Accept_Encoding=accepted, If_None_Match='"other"',
                   If_Modified_Since=formatdate(usegmt=True))[0].status == 200
    modified = (folder / "boot.js").stat().st_mtime
    for date, status in ((formatdate(modified, usegmt=True), 304), (formatdate(modified - 60, usegmt=True), 200),
                         ("yesterday", 200), ("Thu, 01 Jan 1970 00:00:00", 200), ("", 200)):
        assert ask("/boot.js", If_Modified_Since=date)[0].status == status, date


def test_a_site_that_is_built_again_is_seen_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(Handler, "log_message", lambda *_: None)
    site = tmp_path / "site"

    def publish(text: str) -> None:
        with replacing(site, {"policy": f"default-src 'none'; script-src '{text}'"}) as fresh:
            (fresh / "index.html").write_text(text)

    publish("old")
    with server_of(site, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        connection = http.client.HTTPConnection("127.0.0.1", running.server_port, timeout=20)
        for text in ("old", "new", "new again"):
            publish(text)
            connection.request("GET", "/", headers={"Accept-Encoding": "gzip"})  # over one connection
            answer = connection.getresponse()
            assert gzip.decompress(answer.read()).decode() == text
            assert f"'{text}'" in answer.headers["Content-Security-Policy"]
        connection.close()
        running.shutdown()


@pytest.mark.parametrize("path", ["/", "/missing", "/en", "/%00"])
def test_every_answer_has_the_policy_of_the_pages(ask, path):
    answer, _ = ask(path)
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_what_is_no_page_may_run_nothing(ask):
    """The hashes of all modules are some thousand bytes, which no script needs."""
    assert ask("/boot.js")[0].headers["Content-Security-Policy"] == "default-src 'none'"


def test_a_part_of_a_file_is_not_offered_and_the_whole_is_sent(ask, folder):
    answer, body = ask("/boot.js", Range="bytes=0-3")
    assert (answer.status, body) == (200, (folder / "boot.js").read_bytes())
    assert answer.headers["Accept-Ranges"] is None


@pytest.mark.parametrize(("host", "status"), [
    ("localhost", 200), ("localhost:8000", 200), ("127.0.0.1:1", 200), ("[::1]:80", 200), ("LOCALHOST", 200),
    ("example.org", 421), ("localhost.example.org", 421), ("127.0.0.1.example.org:80", 421), ("", 421), ("[::1", 421)])
def test_a_name_of_elsewhere_that_leads_here_is_refused(ask, host, status):
    assert ask("/", Host=host)[0].status == status


def test_a_slow_browser_holds_up_no_other(running, ask):
    slow = [socket.create_connection(("127.0.0.1", running.server_port)) for _ in range(20)]
    for connection in slow:
        connection.sendall(b"GET / HT")
    start = time.monotonic()
    assert ask("/")[0].status == 200
    assert time.monotonic() - start < 5
    for connection in slow:
        connection.close()


def test_browsers_that_leave_are_no_error(running, ask, capfd):
    for _ in range(5):
        connection = socket.create_connection(("127.0.0.1", running.server_port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # leaves with a reset
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        connection.close()
    assert ask("/")[0].status == 200
    assert capfd.readouterr().err == ""


# The command -----------------------------------------------------------------------------------------

def run(monkeypatch, *arguments) -> int:
    monkeypatch.setattr(sys, "argv", ["site_builder", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as stop:
        return stop.code or 0
    return 0


@pytest.mark.parametrize("port", ["-1", "65536", "70000", "x", "8e3"])
def test_ports_that_are_none(monkeypatch, capfd, folder, port):
    assert run(monkeypatch, "serve", "--site", folder, f"--port={port}") == 2
    assert f"'{port}'" in capfd.readouterr().err.splitlines()[-1] or port.lstrip("-").isdigit()


def test_a_port_that_is_in_use_is_named(monkeypatch, capfd, folder, running):
    assert run(monkeypatch, "serve", "--site", folder, "--port", running.server_port) == 2
    err = capfd.readouterr().err
    assert re.fullmatch(rf"error: port {running.server_port} is in use[^\n]*--port[^\n]*\n", err), err


def test_port_0_prints_the_port_that_it_took(monkeypatch, capfd, folder):
    def serve_one(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(server.Server, "serve_forever", serve_one)
    assert run(monkeypatch, "serve", "--site", folder, "--port", "0") == 0
    port = int(re.search(r"http://localhost:(\d+)/", capfd.readouterr().out)[1])
    assert port > 1023


def test_the_server_is_for_this_machine_alone(running):
    assert running.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("what", ["nothing", "a folder", "a file", "another page"])
def test_what_is_no_site_is_not_served(monkeypatch, capfd, tmp_path, what):
    site = tmp_path / "site"
    if what in ("a folder", "another page"):
        site.mkdir()
    if what == "another page":
        (site / "index.html").write_text("mine")
    if what == "a file":
        site.write_text("mine")
    assert run(monkeypatch, "serve", "--site", site) == 2
    assert re.fullmatch(r"error: [^\n]+`python -m site_builder build`\n", capfd.readouterr().err)
