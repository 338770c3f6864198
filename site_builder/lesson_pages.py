"""Lessons as the pages show them: prose with figures put in, and what stands in their fences."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

from site_builder.lesson_figures import Figures, computed
from site_builder.lessons import Exercise, Lesson, Piece, exercise
from site_builder.listings import highlighted, listing
from site_builder.parts import number_in_prose
from site_builder.prose import render, render_title
from tracer.errors import UserError
from tracer.format.shapes import SHAPES
from tracer.format.sizes import shape_of
from tracer.resources import STATIC

TOOLS = STATIC / "js" / "tools"
Titles = dict[str, dict[str, str]]  # route → step → its title


@dataclass(frozen=True)
class Told:
    """An answer and what is said to it.  `value`: of a number, as it may be typed; `near`: how far off still is it."""

    say: str
    why: str
    right: bool
    value: float = 0.0
    near: float = 0.0


@dataclass(frozen=True)
class Shown:
    """A piece of a lesson for its template.  `kind` as of `Piece`; the other fields as that needs them."""

    kind: str
    html: str = ""
    title: str = ""
    address: str = ""
    name: str = ""
    start: str = "{}"
    answers: tuple[Told, ...] = ()
    has_choices: bool = False


@dataclass(frozen=True)
class Page:
    """A lesson with all figures put in."""

    name: str
    number: int
    title: str
    lead: str
    minutes: int
    pieces: list[Shown] = field(default_factory=list)

    @property
    def file(self) -> str:
        return f"lesson-{self.name}.html"

    @property
    def exercises(self) -> int:
        return sum(piece.kind == "exercise" for piece in self.pieces)

    @property
    def tools(self) -> list[str]:
        """Those that the page mounts."""
        return sorted({piece.name for piece in self.pieces if piece.kind == "tool"})


def pages(lessons: list[Lesson], figures: Figures, titles: Titles) -> list[Page]:
    """All of them.  Raises `UserError`, with file and line, for what leads nowhere."""
    return [_page(number, lesson, figures, titles) for number, lesson in enumerate(lessons, 1)]


def _page(number: int, lesson: Lesson, figures: Figures, titles: Titles) -> Page:
    shown: list[Shown] = []
    for piece in lesson.pieces:
        try:
            shown.append(_shown(lesson, piece, figures, titles, len(shown)))
        except UserError as error:
            where = f"{lesson.path}:{piece.line}"
            raise error if str(error).startswith(where) else UserError(f"{where}: {error}") from None
    title, lead = render_title(lesson.title, figures), render(lesson.lead, figures)
    return Page(lesson.name, number, title, lead, lesson.minutes, shown)


def _shown(lesson: Lesson, piece: Piece, figures: Figures, titles: Titles, number: int) -> Shown:
    match piece.kind:
        case "prose":
            return Shown("prose", html=render(piece.body, figures))
        case "step":
            return _step(piece, figures, titles)
        case "code":
            return Shown("code", html=highlighted(listing(*piece.words)), title=render(piece.body, figures),
                         address=" · ".join(piece.words))
        case "tool":
            return Shown("tool", html=render(piece.body, figures), name=piece.words[0], start=_start(*piece.words))
    return _exercise(exercise(lesson, piece), figures, f"{lesson.path}:{piece.line}", f"{lesson.name}-{number}")


def _step(piece: Piece, figures: Figures, titles: Titles) -> Shown:
    route, step, *rest = piece.words
    if step not in titles.get(route, {}):
        raise UserError(f"the page {route} has no step {step}")
    chosen = rest[0] if rest else ""
    of = f"&of={step}" if chosen and "of=" not in chosen else ""  # most steps are called as what they make
    address = f"{route}.html#step={quote(step, safe='')}{of}" + (f"&{chosen}" if chosen else "")
    return Shown("step", html=render(piece.body, figures), title=titles[route][step], address=address)


def _start(tool: str, said: str = "{}") -> str:
    """What a tool starts with: as the lesson says, and the shapes that have a name for the one that draws sizes."""
    if not (TOOLS / f"{tool}.js").exists():
        raise UserError(f"there is no tool {tool}: {', '.join(sorted(path.stem for path in TOOLS.glob('*.js')))}")
    start = json.loads(said)
    if tool == "sizes":
        start["shapes"] = {name: asdict(shape_of(shape)) for name, shape in SHAPES.items()}
    return json.dumps(start, ensure_ascii=False)


def _exercise(asked: Exercise, figures: Figures, where: str, name: str) -> Shown:
    say: dict[str, Any] = {"html": render(asked.ask, figures), "name": name}
    if asked.choices:
        told = tuple(Told(render(one.say, figures), render(one.why, figures), one.right) for one in asked.choices)
        return Shown("exercise", **say, answers=told, has_choices=True)
    numbers = [(asked.answer, asked.why, True), *((answer, why, False) for answer, why in asked.slips)]
    told = tuple(_number(computed(answer, figures, where), render(why, figures), right, asked.digits)
                 for answer, why, right in numbers)
    return Shown("exercise", **say, answers=told)


def _number(value: float, why: str, right: bool, digits: int) -> Told:
    """A number is right when it is so to the digits that are asked for."""
    whole = value == int(value)
    written = number_in_prose(int(value) if whole else value, digits)
    near = 0.0 if whole else abs(value) * 0.6 * 10.0 ** (1 - digits)
    return Told(written, why, right, value, near)
