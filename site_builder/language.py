"""The languages of the pages: each is a folder in ``site_builder/languages/``, and is nowhere else named.

Such a folder holds

- ``language.toml``: `name`, `tag` (BCP 47), `direction` ("ltr", "rtl"), `gap` between two sentences; where they apply,
  `plural` and `kind_sources` (see `Language`);
- ``strings.toml``: the words of the interface;
- ``pictures.toml``: those of the pictures, a table for each drawing; ``tools.toml``: those of the lessons' tools;
- ``sources.toml``: where equations come from, by the key of what they compute;
- ``*.md``: the prose (`site_builder/sections.py`), by keys (`site_builder/keys.py`);
- ``style.css``, where its script wants faces or spacing of its own.

Beside the folders may lie topics, ``<topic>.md``: what is new, said in all languages in one file.
"""

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from site_builder.keys import needed, wrong
from site_builder.sections import Section, read_sections
from tracer.errors import UserError
from tracer.ops import KINDS
from tracer.resources import LANGUAGES

_NEEDED = {"name": str, "tag": str, "direction": str, "gap": str}
_OPTIONAL = {"plural": str, "kind_sources": bool}
_BLANK = re.compile(r"\{(\w+)")
_FIGURE = re.compile(r"\{\{\s*(.*?)\s*\}\}")
# A figure however it is written: as a number, or counted with its noun.
_WRITTEN = re.compile(r"^(?:num|count)\((.*?)(?:, \d+|(?:, \"[^\"]+\")+)?\)$")


@dataclass(frozen=True)
class Language:
    """All that is said in one language.

    `plural`: what makes many of a noun where prose gives one form alone; `kind_sources`: whether the sources that the
    kinds of operation name themselves (`tracer/ops`) are in this language, so that it need not say them again.
    """

    code: str
    name: str
    tag: str
    direction: str
    gap: str
    plural: str = ""
    kind_sources: bool = False
    strings: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    prose: dict[str, Section] = field(default_factory=dict)
    style: str = ""


def languages() -> dict[str, Language]:
    """Every language by the name of its folder.

    Raises `UserError` for one that is not as described above, or lacks what another one has.
    """
    return _read(LANGUAGES)


@cache
def _read(folder: Path) -> dict[str, Language]:
    folders = [path for path in sorted(folder.iterdir()) if path.is_dir() and path.name[0] not in "._"]
    found = {path.name: _language(path) for path in folders}
    for path in sorted(folder.glob("*.md")):
        for code, key, section in read_sections(path, found.keys()):
            _add(found[code], key, section, path)
    _check(found)
    return found


def _language(folder: Path) -> Language:
    if not re.fullmatch("[a-z]{2,3}(-[A-Za-z0-9]+)*", folder.name):
        raise UserError(f"{folder}: the folder of a language is called by its code, such as en or pt-BR")
    about = _toml(folder / "language.toml")
    known = _NEEDED | _OPTIONAL
    for name, value in about.items():
        if not isinstance(value, known.get(name, type(None))):
            raise UserError(f"{folder / 'language.toml'}: {name} is not known there, or not of its type")
    if missing := _NEEDED.keys() - about.keys():
        raise UserError(f"{folder / 'language.toml'} lacks {', '.join(sorted(missing))}")
    style = folder / "style.css"
    of_parts = {f"{part}.{name}": word for part in ("picture", "tool")
                for name, word in _flat(_toml(folder / f"{part}s.toml")).items()}
    language = Language(folder.name, **about, strings=_flat(_toml(folder / "strings.toml")) | of_parts,
                        sources=_toml(folder / "sources.toml"),
                        style=style.read_text(encoding="utf-8") if style.exists() else "")
    for path in sorted(folder.glob("*.md")):
        for _, key, section in read_sections(path):
            _add(language, key, section, path)
    return language


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} could not be read: {error}") from None


def _flat(body: dict[str, Any]) -> dict[str, str]:
    """Words in groups as ``group.word``."""
    groups = {f"{group}.{name}": word for group, words in body.items() if isinstance(words, dict)
              for name, word in words.items()}
    return {name: word for name, word in body.items() if not isinstance(word, dict)} | groups


def _add(language: Language, key: str, section: Section, path: Path) -> None:
    if why := wrong(key):
        raise UserError(f"{path}: {key} is no key: {why}")
    if key in language.prose or (section.source and key in language.sources):
        raise UserError(f"{path}: {key} stands twice in {language.name}")
    language.prose[key] = section
    if section.source:
        language.sources[key] = section.source


def _check(found: dict[str, Language]) -> None:
    """Each language has words for every kind, has what the others have, and puts in the same figures."""
    for language in found.values():
        for key in needed():
            if key not in language.prose:
                raise UserError(f"site_builder/languages: {language.code} lacks the section {key}: every kind of "
                                "operation has words")
        for other in found.values():
            lacks = f"{language.code} lacks"
            for key in other.strings:
                _same(f"{lacks} the string {key}", key in language.strings)
                for blank in _BLANK.findall(other.strings[key]):
                    _same(f"{lacks} {{{blank}}} in the string {key}", blank in _BLANK.findall(language.strings[key]))
            for key in other.prose:
                _same(f"{lacks} the section {key}", key in language.prose)
                for figure in figures(other.prose[key]):
                    _same(f"{lacks} {{{{ {figure} }}}} in the section {key}", figure in figures(language.prose[key]))
            for key in KINDS.keys() | other.sources.keys():
                said = key in language.sources or (language.kind_sources and key in KINDS)
                _same(f"{lacks} the source of {key}", said)


def _same(lacks: str, right: bool) -> None:
    if not right:
        raise UserError(f"site_builder/languages: {lacks}, which another language has")


@cache
def figures(section: Section) -> frozenset[str]:
    """The figures that are put into a section, as Jinja names them."""
    found = _FIGURE.findall(" ".join((section.title, section.body, section.misread)))
    return frozenset(_WRITTEN.sub(r"\1", figure) for figure in found)
