"""The glossary: each term with what it is and its picture, and its links at first use in a lesson.

``glossary.toml`` here has the terms in order and the keys of what shows them, a step or an experiment;
``glossary.toml`` in the folder of each language has their names and what is said of them.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import quote

from site_builder.keys import keys_of, wrong
from site_builder.language import Language, languages
from tracer.errors import UserError
from tracer.format.trace import Trace
from tracer.resources import LANGUAGES

Pictures = Mapping[str, tuple[str, str]]  # key of what shows a term → address, title
ORDER = Path(__file__).with_name("glossary.toml")
_APART = {"a", "code", "math", "pre", "h1", "h2", "h3", "button"}  # where no term is linked
_TAG = re.compile(r"(<[^>]*>)")
_LATIN = re.compile(r"[A-Za-z]")


@dataclass(frozen=True)
class RecordedPage:
    """A page of a recording.  `titles`: of every step; `shown`: key of the glossary → the first step that it is of."""

    file: str
    title: str
    titles: dict[str, str]
    shown: dict[str, str]

    def address(self, step: str) -> str:
        return f"{self.file}#step={quote(step, safe='')}"


@dataclass(frozen=True)
class Term:
    """One entry.  `names`: how it may stand in a text, first as it is called; `address`, `title`: of its picture.

    `others`: words that hold one of its names and mean something else.
    """

    key: str
    names: tuple[str, ...]
    say: str
    address: str = ""
    title: str = ""
    others: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.names[0]


def terms(language: Language, pictures: Pictures) -> list[Term]:
    """Every term in a language.  One that nothing in `pictures` shows has none."""
    found = []
    for term, said in _said(LANGUAGES)[language.code].items():
        picture = next((pictures[key] for key in _shown_by()[term] if key in pictures), ("", ""))
        found.append(Term(term, (said["name"], *_words(said, "also")), said["say"], *picture, _words(said, "not")))
    return found


def pictures(pages: Iterable[RecordedPage], experiments: Mapping[str, tuple[str, str]]) -> Pictures:
    """What is shown where, the first page before the others.  `experiments`: name → address, title."""
    found = {f"experiment: {name}": there for name, there in experiments.items()}
    for page in pages:
        for key, step in page.shown.items():
            found.setdefault(key, (page.address(step), page.titles[step]))
    return found


def steps_shown(trace: Trace) -> dict[str, str]:
    """The first step of a recording for each key that the glossary names."""
    wanted = {key for keys in _shown_by().values() for key in keys}
    found: dict[str, str] = {}
    for chapter in trace.chapters:
        for step in chapter.steps:
            for key in wanted.intersection(keys_of(step, trace.route)):
                found.setdefault(key, step.id)
    return found


@cache
def _shown_by() -> dict[str, list[str]]:
    """Term → keys, the one that is preferred first."""
    written = tomllib.loads(ORDER.read_text(encoding="utf-8"))
    found = {term: [key for key in keys.split(" | ") if key] for term, keys in written.items()}
    for key in (key for keys in found.values() for key in keys):
        if why := wrong(key):
            raise UserError(f"{ORDER}: {key} is no key: {why}")
    return found


@cache
def _said(folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    found = {}
    for code in languages():
        path = folder / code / "glossary.toml"
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{path} could not be read: {error}") from None
        if unlike := said.keys() ^ _shown_by().keys():
            raise UserError(f"{path}: {', '.join(sorted(unlike))} must be there and in {ORDER.name}")
        found[code] = {key: said[key] for key in _shown_by()}
    return found


def _words(said: dict[str, str], field: str) -> tuple[str, ...]:
    return tuple(filter(None, (word.strip() for word in said.get(field, "").split("|"))))


class Linker:
    """Links each term where it is first used; one for every lesson."""

    def __init__(self, every: Iterable[Term]):
        every = list(every)
        self.left = {name.lower(): term for term in every for name in term.names}
        words = {word for term in every for word in (*term.names, *term.others)}
        self.pattern = _pattern(tuple(sorted(words, key=lambda word: (-len(word), word))))

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
        made, start = [], 0
        for match in self.pattern.finditer(text):  # of a name within a longer word, the longer one is found
            term = self.left.get(match[0].lower())
            if term:
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
