"""JavaScript modules that also load from ``file://``, and the policy under which the pages run them.

Browsers refuse external modules on ``file://``.  They accept an import map whose entries are ``data:`` URLs with bare
names; so the sources stay ordinary ES modules and nothing is bundled.  ``modules.js``, a classic script, holds every
module once and puts the map on the page.

The policy names no nonce and no ``data:``: it lists the SHA-256 of all that is not a file of the site, which is the
map, the line that starts the player, and each module, whose hash the map gives too (its ``integrity``).
"""

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from urllib.parse import quote

import rjsmin

from site_builder.functions import NAME, functions_module
from tracer.resources import STATIC

ENTRY = 'import "main";'  # the one script that stands in a page
LESSON_ENTRY = 'import "lessons/main";'  # in that of a lesson
TOOLS, TOOLBOX = "tools", "toolbox"  # the folder of the lessons' tools, and the module that knows them all
OF_LESSONS = ("lessons", TOOLS, TOOLBOX)  # modules and folders of modules that only lessons load
DRAWINGS = "drawings"  # of the module that knows them all, and of their folder
SOURCES = STATIC / "js"


def modules_script(folder: Path = SOURCES, lessons: bool = False) -> str:
    """A classic script that gives the page its import map, of a lesson with what lessons alone load.

    It holds each module once; the map needs its URL twice, and its hash, which the policy of the page says.
    """
    pairs = [[name, _data_url(text)] for name, text in modules(folder, lessons).items()]
    return f"twoRoutes.map({_json(pairs)});\n"


def import_map(folder: Path = SOURCES, lessons: bool = False) -> str:
    """The import map for every module: the text that ``twoRoutes.map`` makes, byte for byte."""
    texts = modules(folder, lessons)
    urls = {name: _data_url(text) for name, text in texts.items()}
    return _json({"imports": urls, "integrity": {urls[name]: sha256(text) for name, text in texts.items()}})


@cache
def policy() -> str:
    """The Content-Security-Policy of every page, in its head and in the header that `serve` sends.

    The hashes of the modules stand last, in the order of the import map, those of the lessons before those that every
    page loads: ``boot.js`` reads as many from the end as there are modules.  The scripts ask for nothing; what checks a
    site from within a page (its ``robots.txt``) may ask the site itself.
    """
    texts = [import_map(lessons=True), import_map(), ENTRY, LESSON_ENTRY, *modules(SOURCES, lessons=True).values()]
    hashes = " ".join(f"'{sha256(text)}'" for text in texts)
    return (f"default-src 'none'; script-src 'self' {hashes}; style-src 'self'; img-src 'self' data:; "
            "frame-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'")


def sha256(text: str) -> str:
    """The hash of a script as policies and import maps write it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def modules(folder: Path = SOURCES, lessons: bool = False) -> dict[str, str]:
    """Name → text: every ``*.js`` in `folder`, and the modules that are made from tables: of functions, of drawings.

    With `lessons` those that only lessons load come first.
    """
    files = {path.relative_to(folder).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
             for path in folder.rglob("*.js")}
    files |= {NAME: functions_module(), DRAWINGS: drawings_module(folder), TOOLBOX: toolbox_module(folder)}
    of_lessons = [name for name in sorted(files) if name.split("/")[0] in OF_LESSONS]
    names = [*(of_lessons if lessons else []), *sorted(files.keys() - set(of_lessons))]
    # What is said to people and to the type checker is left out; the last line names the file in stacks.
    return {name: f"{rjsmin.jsmin(files[name])}\n//# sourceURL={name}.js\n" for name in names}


def drawings_module(folder: Path = SOURCES) -> str:
    """The text of the module that gives every drawing of its own by its name: the files in ``drawings/``."""
    return _of_folder(folder, DRAWINGS)


def toolbox_module(folder: Path = SOURCES) -> str:
    """The same for the tools of lessons: the files in ``tools/``."""
    return _of_folder(folder, TOOLS)


def _of_folder(folder: Path, of: str) -> str:
    names = sorted(path.stem for path in (folder / of).glob("*.js"))
    imports = [f'import * as {name} from "{of}/{name}";\n' for name in names]
    return f"{''.join(imports)}export const {of.upper()} = {{ {', '.join(names)} }};\n"


def _data_url(text: str) -> str:
    return "data:text/javascript," + quote(text, safe="~()*!.'-_ /:;,?=&+$@|{}[]^`\"<>")


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))  # as JSON.stringify writes these texts
