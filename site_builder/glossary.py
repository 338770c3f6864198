"""The glossary: each term with what it is and its picture, and its links at first use in a lesson.

``glossary.toml`` here has the terms in order and the steps whose pictures show them; ``glossary.toml`` in the folder of
each language has their names and what is said of them.
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import quote

from site_builder.language import Language, languages
from tracer.errors import UserError
from tracer.resources import LANGUAGES

ORDER = Path(__file__).with_name("glossary.toml")
_APART = {"a", "code", "math", "pre", "h1", "h2", "h3", "button"}  # where no term is linked
_TAG = re.compile(r"(<[^>]*>)")
_LATIN = re.compile(r"[A-Za-z]")


@dataclass(frozen=True)
class Term:
    """One entry.  `names`: how it may stand in a text, first as it is called; `address`, `title`: of its picture."""

    key: str
    names: tuple[str, ...]
    say: str
    address: str = ""
    title: str = ""

    @property
    def name(self) -> str:
        return self.names[0]


def terms(language: Language, titles: dict[str, dict[str, str]]) -> list[Term]:
    """Every term in a language.  `titles`: route → step → its title; a picture that is not there is left out."""
    found = []
    for key, (names, say) in _said(LANGUAGES)[language.code].items():
        route, _, step = _steps()[key].partition(" ")
        title = titles.get(route, {}).get(step, "")
        address = f"{route}.html#step={quote(step, safe='')}" if title else ""
        found.append(Term(key, names, say, address, title))
    return found


@cache
def _steps() -> dict[str, str]:
    return dict(tomllib.loads(ORDER.read_text(encoding="utf-8")))


@cache
def _said(folder: Path) -> dict[str, dict[str, tuple[tuple[str, ...], str]]]:
    found = {}
    for code in languages():
        path = folder / code / "glossary.toml"
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{path} could not be read: {error}") from None
        if unlike := said.keys() ^ _steps().keys():
            raise UserError(f"{path}: {', '.join(sorted(unlike))} must be there and in {ORDER.name}")
        found[code] = {key: (_names(said[key]), str(said[key]["say"])) for key in _steps()}
    return found


def _names(said: dict[str, str]) -> tuple[str, ...]:
    return (said["name"], *filter(None, (name.strip() for name in said.get("also", "").split("|"))))


class Linker:
    """Links each term where it is first used; one for every lesson."""

    def __init__(self, every: Iterable[Term]):
        self.left = {name.lower(): term for term in every for name in term.names}

    def __call__(self, html: str) -> str:
        """Prose as HTML with links; headings, code, formulas and links stay as they are."""
        made, apart = [], 0
        for part in _TAG.split(html):
            if part.startswith("<"):
                name = part.strip("</> ").split()[0] if part.strip("</> ") else ""
                apart += ((-1 if part.startswith("</") else 1) if name in _APART else 0)
                made.append(part)
            else:
                made.append(part if apart else self._linked(part))
        return "".join(made)

    def _linked(self, text: str) -> str:
        if not self.left or not text.strip():
            return text
        made, start = [], 0
        for match in _pattern(tuple(sorted(self.left, key=len, reverse=True))).finditer(text):
            term = self.left.get(match[0].lower())
            if term and match.start() >= start:
                self.left = {name: one for name, one in self.left.items() if one is not term}
                made += [text[start:match.start()],
                         f'<a class="term" href="glossary.html#{escape(term.key)}">{match[0]}</a>']
                start = match.end()
        return "".join([*made, text[start:]])


@cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Whole words of Latin letters; others wherever they stand."""
    whole = (rf"(?<![A-Za-z-]){re.escape(name)}(?![A-Za-z-])" if _LATIN.search(name) else re.escape(name)
             for name in names)
    return re.compile("|".join(whole), re.IGNORECASE)
