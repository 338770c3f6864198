"""The search: what can be found, as a script that its page loads; no server, no network."""

import html
import re
from collections.abc import Iterable, Iterator
from typing import Any

from site_builder.glossary import Term
from site_builder.lesson_pages import Page

Entry = tuple[str, str, str, str]  # title, what it is (a word's key), address, text
LONGEST = 400  # signs of a text that are searched
_TAGS = re.compile(r"<math.*?</math>|<[^>]*>", re.DOTALL)
_HEADING = re.compile(r'<h2 id="([^"]*)">(.*?)</h2>', re.DOTALL)


def entries(lessons: Iterable[Page], terms: Iterable[Term], steps: dict[str, dict[str, str]]) -> list[Entry]:
    """Everything that can be found.  `steps`: route → step → title; of equal titles on a page the first."""
    found: list[Entry] = [entry for lesson in lessons for entry in _of_lesson(lesson)]
    for term in terms:
        said = " ".join([*term.names[1:], term.say])
        found.append((term.name, "lesson.glossary", f"glossary.html#{term.key}", said))
    for route, titles in steps.items():
        first: dict[str, str] = {}
        for step, title in titles.items():
            first.setdefault(plain(title), step)
        found += [(title, route, f"{route}.html#step={step}", "") for title, step in first.items()]
    return found


def _of_lesson(lesson: Page) -> Iterator[Entry]:
    """The lesson, and each of its parts."""
    yield lesson.title, "lesson.one", lesson.file, plain(lesson.lead)
    text = "".join(piece.html for piece in lesson.pieces if piece.kind == "prose")
    _, *parts = _HEADING.split(text)
    for name, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        yield plain(title), "lesson.one", f"{lesson.file}#{name}", plain(body)[:LONGEST]


def plain(text: str) -> str:
    """The words of HTML."""
    return " ".join(html.unescape(_TAGS.sub("", text)).split())


def search_data(found: list[Entry], say: Any) -> list[list[str]]:
    """For the page: with the words for what an entry is."""
    return [[title, say(kind), address, text] for title, kind, address, text in found]
