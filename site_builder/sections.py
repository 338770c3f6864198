"""Prose as it stands in files: sections of Markdown, in a language's folder or, in several languages, in a topic.

    # key                               # key
    ## Title                            ## en: Title
    Name: layer norm                    Paragraphs
    Source: where it comes from         > what is often misread
    Paragraphs, in which figures        ## zh: 标题
    are Jinja expressions               …
    > what is often misread

`site_builder/keys.py` says what keys there are.  Figures are never typed: they are rendered from the recording.
Directly under a title may stand what a module of the kind is called, and where its equations come from; the words
`Name` and `Source` are the same in every language.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tracer.errors import UserError


@dataclass(frozen=True)
class Section:
    """One step's prose in one language; Markdown, figures not yet put in."""

    title: str
    body: str
    misread: str
    name: str = ""
    source: str = ""


def read_sections(path: Path, languages: Collection[str] = ()) -> Iterator[tuple[str, str, Section]]:
    """(language, key, section) of a file: of a topic in `languages`, or, without them, of one language.

    Raises `UserError` for what is not written as described above.
    """
    for key, text in _split(path, path.read_text(encoding="utf-8"), r"^# (\S.*)$"):
        headings = _split(path, text, r"^## (.*)$", key)
        if not headings or (len(headings) > 1 and not languages):
            raise UserError(f"{path}: {key} has no title, or several: one follows as a line '## title'")
        for heading, body in headings:
            language, _, title = heading.partition(":") if languages else ("", "", heading)
            if not title.strip() or (languages and language not in languages):
                raise UserError(f"{path}: {key}: '## {heading}' is no title" + (
                    f", which begins with one of {', '.join(f'{one}:' for one in languages)}" if languages else ""))
            yield language, key, _section(title.strip(), body)


def _split(path: Path, text: str, heading: str, key: str = "") -> list[tuple[str, str]]:
    before, *parts = re.split(heading, text, flags=re.MULTILINE)
    if before.strip():
        raise UserError(f"{path}: {key or 'the file'} begins with text under no heading: {before.strip()[:40]!r}")
    return [(head.strip(), body.strip()) for head, body in zip(parts[::2], parts[1::2], strict=True)]


def _section(title: str, text: str) -> Section:
    lines = text.splitlines()
    fields = {}
    while lines and (field := re.fullmatch("(Name|Source): (.+)", lines[0])):
        fields[field[1].lower()] = field[2].strip()
        del lines[0]
    misread = "\n".join(re.sub(r"^> ?", "", line) for line in lines if line.startswith(">"))
    said = "\n".join(line for line in lines if not line.startswith(">"))
    return Section(title, said.strip(), misread.strip(), **fields)
