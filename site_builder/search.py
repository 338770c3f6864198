"""The search: what can be found, as a script that its page loads; no server, no network."""

import html
import re
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree

from site_builder.glossary import RecordedPage, Term
from site_builder.lesson_pages import Page
from site_builder.strings import Strings

Entry = tuple[str, str, str, str]  # title, what it is, address, text
LONGEST = 400  # signs of a text that are searched
_MATH = re.compile(r"<math.*?</math>", re.DOTALL)
_TAGS = re.compile(r"<[^>]*>")
_HEADING = re.compile(r'<h2 id="([^"]*)">(.*?)</h2>', re.DOTALL)


def entries(lessons: Iterable[Page], terms: Iterable[Term], pages: Iterable[RecordedPage],
            experiments: Iterable[tuple[str, str, str]], strings: Strings) -> list[Entry]:
    """Everything that can be found; of steps that are called alike on a page, the first.

    `experiments`: address, title, HTML.
    """
    found: list[Entry] = [entry for lesson in lessons for entry in _of_lesson(lesson, strings("lesson.one"))]
    for term in terms:
        said = " ".join([*term.names[1:], term.say])
        found.append((term.name, strings("lesson.glossary"), f"glossary.html#{term.key}", said))
    for address, title, text in experiments:
        found.append((plain(title), strings("experiments.name"), address, plain(text)[:LONGEST]))
    for page in pages:
        first: dict[str, str] = {}
        for step, title in page.titles.items():
            first.setdefault(plain(title), step)
        found += [(title, page.title, page.address(step), "") for title, step in first.items()]
    return found


def _of_lesson(lesson: Page, word: str) -> Iterator[Entry]:
    """The lesson, and each of its parts."""
    yield lesson.title, word, lesson.file, plain(lesson.lead)
    text = "".join(piece.html for piece in lesson.pieces if piece.kind == "prose")
    _, *parts = _HEADING.split(text)
    for name, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        yield plain(title), word, f"{lesson.file}#{name}", plain(body)[:LONGEST]


def plain(text: str) -> str:
    """The words of HTML, its formulas in one line."""
    written = _MATH.sub(lambda math: html.escape(_line(ElementTree.fromstring(math[0]))), text)
    return " ".join(html.unescape(_TAGS.sub("", written)).split())


def _line(math: ElementTree.Element) -> str:
    """A formula in one line: 1/√d, e^x."""
    parts = [_line(part) for part in math]
    match math.tag.rpartition("}")[2]:
        case "mfrac":
            return "/".join(parts)
        case "msqrt":
            return "√" + "".join(parts)
        case "msup":
            return "^".join(parts)
        case "annotation":
            return ""
    return (math.text or "") + "".join(parts)
