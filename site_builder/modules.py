"""JavaScript modules that also load from ``file://``: an import map of data URLs, written into the page.

Browsers refuse external modules on ``file://``.  They accept an inline import map whose entries are
``data:`` URLs with bare names; so the sources stay ordinary ES modules and nothing is bundled.
"""

import base64
import hashlib
import json
from pathlib import Path
from urllib.parse import quote


def import_map(folder: Path) -> str:
    """The import map for every ``*.js`` in `folder`, as JSON that may stand inside a script element."""
    entries = {path.stem: _data_url(path) for path in sorted(folder.glob("*.js"))}
    return json.dumps({"imports": entries}).replace("<", "\\u003c")


def _data_url(path: Path) -> str:
    # The name keeps stacks and coverage readable.
    source = f"{path.read_text(encoding='utf-8')}\n//# sourceURL={path.name}\n"
    return "data:text/javascript," + quote(source, safe="~()*!.'-_ /:;,?=&+$@|{}[]^`")


def nonce(text: str) -> str:
    """A nonce that depends on the content alone: the site is built the same twice, and takes no input."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:18]).decode()
