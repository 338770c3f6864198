"""JSON from anywhere, within bounds that are known before anything is taken apart.

A file may be damaged or made to do harm.  Its size is looked at before it is read, and what its parts will take
in memory before they are made; a key that stands twice, of which programs keep different ones, is refused.
"""

import re
import stat
from pathlib import Path
from typing import Any

import orjson

from tracer.errors import UserError
from tracer.storage.together import places

MOST_BYTES = 2**25  # of one file of JSON
MOST_MEMORY = 2**29  # bytes of the objects that it becomes
MOST_DEPTH = 16  # a recording has eight levels
# Bytes that Python and the parser need at most for a text, a list, an object, and for what a comma or a colon adds.
_TEXTS, _LIST, _OBJECT, _ITEM, _KEY = 112, 88, 88, 88, 320
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content that counts as that of `path`.  Raises `UserError` when there is none, or more than `most` bytes."""
    for place in places(path):
        try:
            return _read(place, most)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise UserError(f"the file cannot be read ({error.strerror})") from None
    raise UserError("the file is missing")


def _read(path: Path, most: int) -> bytes:
    known = path.stat()
    if not stat.S_ISREG(known.st_mode):
        raise UserError("the file cannot be read (it is no regular file)")
    if known.st_size > most:
        raise UserError(f"the file is too large: {known.st_size:,} bytes, of which {most:,} are read at most")
    with path.open("rb") as file:
        return file.read(known.st_size + 1)  # it may grow meanwhile: no more than was looked at


def parse(content: bytes) -> Any:
    """The JSON in `content`.  Raises `UserError` for what is none, is too much, or says a thing twice."""
    bare, texts = _TEXT.subn(b"", content)  # no sign of the structure stands in a text any longer
    lists, objects, items, keys = (bare.count(sign) for sign in (b"[", b"{", b",", b":"))
    memory = _TEXTS * texts + _LIST * lists + _OBJECT * objects + _ITEM * items + _KEY * keys
    memory += 4 * (len(content) - len(bare))  # one character beyond the first plane widens a whole text
    if memory > MOST_MEMORY:
        raise UserError(f"the file holds too much: some {memory // 2**20:,} MiB of objects")
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise UserError(f"the file is cut off or damaged (JSON ends or breaks at character {error.pos} "
                        f"of {len(content)})") from None
    if _count_keys(body) != keys:
        raise UserError("a key stands twice in one object")
    return body


def _count_keys(body: object) -> int:
    """How many keys all objects have together.  Raises `UserError` for what is nested too deep."""
    level, count = [body] if isinstance(body, dict | list) else [], 0
    for _ in range(MOST_DEPTH):
        below = [list(node.values()) if isinstance(node, dict) else node for node in level]
        count += sum(len(node) for node in level if isinstance(node, dict))
        level = [child for nodes in below for child in nodes if isinstance(child, dict | list)]
        if not level:
            return count
    raise UserError(f"the file is nested deeper than {MOST_DEPTH} levels")
