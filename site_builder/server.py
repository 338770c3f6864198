"""Serving the built site as web hosts do: text is compressed on its way.

For this machine alone, and for what is in the site alone: no listings, no hidden files, no links out of it.
"""

import errno
import gzip
import os
import socket
import sys
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseServer
from urllib.parse import quote, unquote, urlsplit

from site_builder.listing import listed
from tracer.errors import UserError

HERE = {"localhost", "127.0.0.1", "::1"}
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".txt": "text/plain; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".json": "application/json", ".svg": "image/svg+xml",
         ".png": "image/png"}
COMPRESSED = set(TYPES) - {".png"}
NOTHING = "default-src 'none'"  # the policy of what is no page


class _Refused(Exception):
    """Another answer than a file: its status, and for a redirection its place."""

    def __init__(self, status: HTTPStatus, place: str = ""):
        self.status, self.place = status, place


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD with files of `site`, compressed for browsers that accept it."""

    protocol_version = "HTTP/1.1"
    server_version = "TwoRoutes"
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"
    timeout = 30  # seconds without a byte, after which a connection is closed
    may_run = True  # whether the answer is a page, or may be shown as one

    def __init__(self, request: socket.socket, client: tuple[str, int], server: BaseServer, *, site: Path):
        self.site = site
        super().__init__(request, client, server)

    def do_GET(self) -> None:
        """Answer with the file that the request names, or with why not."""
        self.may_run = True
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # a body, which means nothing here, is no next request
        try:
            if not self._is_for_us():
                raise _Refused(HTTPStatus.MISDIRECTED_REQUEST)
            path = self._find(*self._names())
            self.may_run = path.suffix == ".html"
            self._send(path, self._coding(path.suffix in COMPRESSED))
        except _Refused as refused:
            if refused.place:
                self._answer(refused.status, {"Location": refused.place})
            else:
                self.send_error(refused.status)

    do_HEAD = do_GET

    def _not_allowed(self) -> None:
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _not_allowed

    def end_headers(self) -> None:
        """Every answer has a policy, and stays no longer than the site does.

        Errors and pages have that of the pages, some thousand bytes of hashes; what is no page needs to run nothing.
        """
        self.send_header("Content-Security-Policy", _policy(self.site) if self.may_run else NOTHING)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")  # kept, but asked for again: the site may be built again
        self.send_header("Allow", "GET, HEAD")
        super().end_headers()

    def _is_for_us(self) -> bool:
        """A page of elsewhere whose name was made to lead to this machine asks under that name."""
        with suppress(ValueError):
            return urlsplit(f"//{self.headers.get('Host', 'localhost')}").hostname in HERE
        return False

    def _names(self) -> tuple[list[str], bool]:
        """What is asked for: the folders down to it and its own name, and whether it is a folder itself."""
        target = self.path.partition("?")[0].partition("#")[0]
        if "://" in target:  # as proxies are asked
            target = "/" + target.partition("://")[2].partition("/")[2]
        try:
            first, *parts = unquote(target, errors="strict").split("/")
        except UnicodeDecodeError:
            raise _Refused(HTTPStatus.BAD_REQUEST) from None
        if first or not parts or any(ord(letter) < 32 for letter in target + "".join(parts)):
            raise _Refused(HTTPStatus.BAD_REQUEST)
        return [part for part in parts if part], parts[-1] == ""

    def _find(self, names: list[str], is_folder: bool) -> Path:
        """The file: in the site, where links lead too, and not hidden, which the files of a web host are."""
        site = self.site.resolve()
        if any(name in (".", "..") or set(name) & set("\\:") for name in names):
            raise _Refused(HTTPStatus.NOT_FOUND)
        try:
            path = site.joinpath(*names).resolve(strict=True)
            if path.is_dir() and not is_folder and path.is_relative_to(site):
                raise _Refused(HTTPStatus.MOVED_PERMANENTLY, "/" + "".join(f"{quote(name)}/" for name in names))
            if path.is_dir():
                path = (path / "index.html").resolve(strict=True)
            elif is_folder:
                raise _Refused(HTTPStatus.NOT_FOUND)
        except (OSError, RuntimeError) as error:  # missing, a loop of links, too long
            too_long = getattr(error, "errno", 0) == errno.ENAMETOOLONG
            raise _Refused(HTTPStatus.REQUEST_URI_TOO_LONG if too_long else HTTPStatus.NOT_FOUND) from None
        inside = path.relative_to(site).parts if path.is_relative_to(site) else (".",)
        if not path.is_file() or any(part.startswith(".") for part in inside):
            raise _Refused(HTTPStatus.NOT_FOUND)
        return path

    def _coding(self, is_text: bool) -> str:
        """``gzip`` or ``identity``, whichever the browser would rather have."""
        wanted = self.headers.get("Accept-Encoding")
        if wanted is None:
            return "identity"
        weights = {}
        for entry in wanted.lower().split(","):
            name, *parameters = (part.strip() for part in entry.split(";"))
            weights[name.removeprefix("x-")] = _weight(parameters)
        gzipped = weights.get("gzip", weights.get("*", 0)) if is_text else 0
        plain = weights.get("identity", 0 if weights.get("*") == 0 else None)
        if gzipped and gzipped >= (plain or 0):
            return "gzip"
        if plain == 0:
            raise _Refused(HTTPStatus.NOT_ACCEPTABLE)
        return "identity"

    def _send(self, path: Path, coding: str) -> None:
        try:
            status = path.stat()
            content = _compressed(path, status.st_mtime_ns, status.st_size) if coding == "gzip" else path.read_bytes()
        except OSError:  # just gone, or not for us to read
            raise _Refused(HTTPStatus.NOT_FOUND) from None
        mark = f'"{status.st_mtime_ns:x}-{status.st_size:x}-{coding}"'
        headers = {"ETag": mark, "Last-Modified": self.date_time_string(int(status.st_mtime))}
        if path.suffix in COMPRESSED:
            headers["Vary"] = "Accept-Encoding"
        if self._has(mark, int(status.st_mtime)):
            self._answer(HTTPStatus.NOT_MODIFIED, headers)
            return
        headers["Content-Type"] = TYPES.get(path.suffix, "application/octet-stream")
        if coding == "gzip":
            headers["Content-Encoding"] = coding
        self._answer(HTTPStatus.OK, headers, content)

    def _has(self, mark: str, modified: int) -> bool:
        """Whether the browser has this version; `modified` in seconds since 1970."""
        marks = self.headers.get("If-None-Match")
        if marks is not None:
            return marks.strip() == "*" or mark in [one.strip().removeprefix("W/") for one in marks.split(",")]
        try:
            since = parsedate_to_datetime(self.headers["If-Modified-Since"])
        except (TypeError, ValueError, IndexError, OverflowError):  # none, or no date
            return False
        return modified <= (since if since.tzinfo else since.replace(tzinfo=UTC)).timestamp()

    def _answer(self, status: HTTPStatus, headers: dict[str, str], content: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


class Server(ThreadingHTTPServer):
    """A thread for each connection, so that a slow one holds up no other."""

    request_queue_size = 64
    allow_reuse_address = os.name == "posix"  # elsewhere, it would let two servers share a port

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close a connection when its other end has read the answer, though not all that it sent was read."""
        assert isinstance(request, socket.socket)  # a pair comes with datagrams
        with suppress(OSError):
            request.shutdown(socket.SHUT_WR)
            request.settimeout(1)
            for _ in range(100):
                if not request.recv(1 << 16):
                    break
        self.close_request(request)

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):  # a browser that left is no error
            super().handle_error(request, client_address)


def server_of(site: Path, port: int) -> Server:
    """A server for the files in `site`, for this machine alone; port 0: a free one.

    Raises `UserError` for a port that cannot be had.
    """
    try:
        return Server(("127.0.0.1", port), partial(Handler, site=site))
    except OSError as error:
        why = {errno.EADDRINUSE: "is in use, perhaps by another server of a site",
               errno.EACCES: "is kept for the system"}.get(error.errno or 0, f"cannot be had ({error.strerror})")
        raise UserError(f"port {port} {why}: choose another one (--port; PORT= for make); "
                        "0 takes one that is free") from None


def _weight(parameters: list[str]) -> float:
    """The ``q`` of an entry of Accept-Encoding; what is no number wants nothing."""
    given = [value for name, _, value in (parameter.partition("=") for parameter in parameters) if name.strip() == "q"]
    try:
        return float(given[0]) if given else 1.0
    except ValueError:
        return 0.0


@lru_cache(maxsize=64)
def _compressed(path: Path, modified: int, size: int) -> bytes:
    """The file under gzip; `modified` (ns) and `size` tell a new version from the one that is kept."""
    return gzip.compress(path.read_bytes(), 6)


def _policy(site: Path) -> str:
    """The policy that the pages of the site have in their heads."""
    with suppress(UserError, OSError):
        found = listed(site)
        if found:
            return found.about.get("policy", NOTHING)
    return NOTHING
