"""Serving the built site as web hosts do: text is compressed on its way."""

import gzip
import io
from functools import lru_cache, partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

COMPRESSED = {".html", ".css", ".js", ".json", ".svg"}


@lru_cache(maxsize=64)
def _compressed(path: Path, modified: int) -> bytes:
    """The file under gzip; `modified` (ns) tells a new version from the one that is kept."""
    return gzip.compress(path.read_bytes(), 6)


class CompressingHandler(SimpleHTTPRequestHandler):
    """A handler for files that sends text with ``Content-Encoding: gzip`` to browsers that accept it."""

    def send_head(self) -> BinaryIO | None:
        path = self._compressible()
        if path is None:
            return super().send_head()
        content = _compressed(path, path.stat().st_mtime_ns)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        self.send_header("Vary", "Accept-Encoding")
        self.end_headers()
        return io.BytesIO(content)

    def _compressible(self) -> Path | None:
        """The file to compress; None where the plain handler answers: redirects, unchanged and missing files."""
        if "gzip" not in self.headers.get("Accept-Encoding", "") or "If-Modified-Since" in self.headers:
            return None
        path = Path(self.translate_path(self.path))
        if path.is_dir() and self.path.endswith("/"):
            path /= "index.html"
        return path if path.is_file() and path.suffix in COMPRESSED else None


def server_of(site: Path, port: int) -> ThreadingHTTPServer:
    """A server for the files in `site`, for this machine alone."""
    return ThreadingHTTPServer(("127.0.0.1", port), partial(CompressingHandler, directory=str(site)))
