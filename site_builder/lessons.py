"""Lessons as they stand in files: Markdown with what a reader puts a hand on, one file a lesson and language.

    # Title
    A paragraph or two: what the lesson is about.

    ## A heading
    Paragraphs, in which figures are Jinja expressions (`site_builder/lesson_figures.py`)
    > what is often misread

    ```step training blocks.0.attention.scores h=0&t=2
    What to look at.
    ```

    ```experiment induction
    What it shows.
    ```

    ```code tracer/model/gpt.py Block.forward
    What the lines do.
    ```

    ```tool softmax {"numbers": [2, 6, 4]}
    What to try.
    ```

    ```exercise
    ask = "…"                     # TOML; see `Exercise`
    ```

``lessons.toml`` has their order.  Both languages have the same lessons, with the same fences in the same order.
"""

import json
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from site_builder.language import Language, languages
from tracer.errors import UserError
from tracer.resources import LANGUAGES

ORDER = Path(__file__).with_name("lessons.toml")
FOLDER = "lessons"  # in that of a language
FENCES = ("step", "experiment", "code", "tool", "exercise")
_FENCE = re.compile(r"^```(\w+)(.*)$")
_WORDS_A_MINUTE, _SIGNS_A_MINUTE = 220, 350
_MINUTES_OF_A_FENCE = {"step": 0.5, "experiment": 1, "code": 0.7, "tool": 1, "exercise": 1}
_CJK = re.compile("[㐀-鿿]")


@dataclass(frozen=True)
class Piece:
    """A stretch of a lesson.  `kind`: prose, or one of `FENCES`; `words`: what stands behind it, `body`: within."""

    kind: str
    line: int
    words: tuple[str, ...] = ()
    body: str = ""


@dataclass(frozen=True)
class Choice:
    """One of the answers to choose from, and why it is right or not."""

    say: str
    right: bool
    why: str


@dataclass(frozen=True)
class Exercise:
    """A question.  Either `choices`, or a number: `answer` names it in the figures, `digits` of it are asked for.

    `slips`: names of numbers that one gets by a mistake, each with what the mistake is.
    """

    ask: str
    why: str = ""
    answer: str = ""
    digits: int = 3
    choices: tuple[Choice, ...] = ()
    slips: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Lesson:
    """One lesson in one language; Markdown, figures not yet put in."""

    name: str
    title: str
    lead: str
    pieces: tuple[Piece, ...]
    path: Path = field(compare=False)

    @property
    def minutes(self) -> int:
        """How long reading it takes, with a hand on everything."""
        text = " ".join([self.lead, *(piece.body for piece in self.pieces if piece.kind == "prose")])
        signs, words = len(_CJK.findall(text)), len(re.findall(r"[^\W\d_]+", _CJK.sub(" ", text)))
        fences = sum(_MINUTES_OF_A_FENCE.get(piece.kind, 0) for piece in self.pieces)
        return max(1, round(words / _WORDS_A_MINUTE + signs / _SIGNS_A_MINUTE + fences))


def lessons(language: Language) -> list[Lesson]:
    """All lessons of a language, in order.

    Raises `UserError`, which names file and line, for what is not written as described above.
    """
    return list(_read(LANGUAGES)[language.code])


@cache
def _read(folder: Path) -> dict[str, tuple[Lesson, ...]]:
    order = tomllib.loads(ORDER.read_text(encoding="utf-8"))["lessons"]
    found = {}
    for code in languages():
        there = {path.stem: path for path in sorted((folder / code / FOLDER).glob("*.md"))}
        if unknown := there.keys() ^ set(order):
            raise UserError(f"{folder / code / FOLDER}: {', '.join(sorted(unknown))} must be there and in {ORDER.name}")
        found[code] = tuple(_lesson(there[name]) for name in order)
    first, *others = found.values()
    for other in others:
        for one, same in zip(first, other, strict=True):
            _check_same(one, same)
    return found


def _check_same(one: Lesson, other: Lesson) -> None:
    fences = [[" ".join((piece.kind, *piece.words)) for piece in lesson.pieces if piece.kind != "prose"]
              for lesson in (one, other)]
    for n, (here, there) in enumerate(zip(*fences, strict=False), 1):
        if here != there:
            raise UserError(f"{other.path}: fence {n} is {there}, in {one.path.parts[-3]} it is {here}")
    if len(fences[0]) != len(fences[1]):
        raise UserError(f"{other.path} has {len(fences[1])} fences, {one.path} has {len(fences[0])}")


def _lesson(path: Path) -> Lesson:
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].startswith("# "):
        raise UserError(f"{path}:1: a lesson begins with '# Title'")
    pieces = _pieces(path, lines)
    lead, _, rest = pieces[0].body.partition("\n## ")
    if not lead.strip() or not rest:
        raise UserError(f"{path}:2: after the title a paragraph says what the lesson is about, then '## ' begins one")
    begin = Piece("prose", 2, body=f"## {rest}")
    return Lesson(path.stem, lines[0][2:].strip(), lead.strip(), (begin, *pieces[1:]), path)


def _pieces(path: Path, lines: list[str]) -> list[Piece]:
    """Prose and fences in turn; the title is left out."""
    pieces: list[Piece] = []
    fence: re.Match[str] | None = None
    held: list[str] = []
    start = 2
    for number, line in enumerate(lines[1:], 2):
        if fence and line.strip() == "```":
            pieces.append(_fenced(path, start, fence, "\n".join(held)))
            fence, held, start = None, [], number + 1
        elif not fence and (begun := _FENCE.match(line)):
            if "\n".join(held).strip():
                pieces.append(Piece("prose", start, body="\n".join(held).strip("\n")))
            fence, held, start = begun, [], number
        else:
            held.append(line)
    if fence:
        raise UserError(f"{path}:{start}: the fence ```{fence[1]} has no end")
    if "\n".join(held).strip():
        pieces.append(Piece("prose", start, body="\n".join(held).strip("\n")))
    if not pieces or pieces[0].kind != "prose":
        raise UserError(f"{path}:2: after the title a paragraph says what the lesson is about")
    return pieces


def _fenced(path: Path, line: int, fence: re.Match[str], body: str) -> Piece:
    kind, rest = fence[1], fence[2].strip()
    if kind not in FENCES:
        raise UserError(f"{path}:{line}: ```{kind} is none of {', '.join(FENCES)}")
    words = (rest.split(maxsplit=1) if kind == "tool" else rest.split())
    least, most = {"step": (2, 3), "experiment": (1, 1), "code": (1, 2), "tool": (1, 2), "exercise": (0, 0)}[kind]
    if not least <= len(words) <= most:
        raise UserError(f"{path}:{line}: ```{kind} has {len(words)} words behind it: see site_builder/lessons.py")
    if kind == "tool":
        _json(path, line, (words[1:] or ["{}"])[0])
    return Piece(kind, line, tuple(words), body)


def _json(path: Path, line: int, text: str) -> None:
    try:
        json.loads(text)
    except ValueError as error:
        raise UserError(f"{path}:{line}: what a tool starts with is JSON: {error}") from None


def exercise(lesson: Lesson, piece: Piece) -> Exercise:
    """The question that a fence holds.  Raises `UserError` for one that is not as `Exercise` says."""
    where = f"{lesson.path}:{piece.line}"
    try:
        said: dict[str, Any] = tomllib.loads(piece.body)
    except ValueError as error:
        raise UserError(f"{where}: the exercise is not TOML: {error}") from None
    try:
        choices = tuple(Choice(**one) for one in said.pop("choices", []))
        slips = tuple((one["answer"], one["why"]) for one in said.pop("slips", []))
        made = Exercise(**said, choices=choices, slips=slips)
    except (TypeError, KeyError) as error:
        raise UserError(f"{where}: the exercise has what none has, or lacks something: {error}") from None
    if bool(made.choices) == bool(made.answer):
        raise UserError(f"{where}: an exercise has either choices or an answer")
    if made.choices and sum(choice.right for choice in made.choices) != 1:
        raise UserError(f"{where}: one of the choices is right, not {sum(choice.right for choice in made.choices)}")
    return made
