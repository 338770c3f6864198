"""Lessons as the pages show them: prose with figures put in, and what stands in their fences."""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import quote

import jinja2

from site_builder.experiments import experiment_title
from site_builder.glossary import Linker, terms
from site_builder.language import Language
from site_builder.lesson_figures import Figures, computed
from site_builder.lessons import Exercise, Lesson, Piece, exercise
from site_builder.listings import highlighted, listing
from site_builder.modules import sha256
from site_builder.parts import number_in_prose
from site_builder.prose import name_of, render, render_title
from site_builder.strings import Strings
from tracer.errors import UserError
from tracer.format.memory import KEPT
from tracer.format.shapes import SHAPES
from tracer.format.sizes import POSITIONS, shape_of
from tracer.ops import KINDS
from tracer.ops.registry import kinds_for
from tracer.resources import STATIC

TOOLS = STATIC / "js" / "tools"
Titles = dict[str, dict[str, str]]  # route → step → its title


@dataclass(frozen=True)
class Told:
    """An answer and what is said to it.  `value`: of a number, as it may be typed; `near`: how far off still is it."""

    say: str
    why: str
    is_right: bool
    value: float = 0.0
    near: float = 0.0

    @property
    def right(self) -> str:
        """As an attribute of HTML says it."""
        return str(self.is_right).lower()


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

    @property
    def template(self) -> str:
        """The file of templates that shows it."""
        return f"piece-{self.kind}.html"

    @property
    def right(self) -> list[Told]:
        """The right answer."""
        return [told for told in self.answers if told.is_right]


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


@dataclass(frozen=True)
class Course:
    """All lessons, and how much they are together."""

    lessons: list[Page]

    @property
    def minutes(self) -> int:
        return sum(lesson.minutes for lesson in self.lessons)

    @property
    def exercises(self) -> int:
        return sum(lesson.exercises for lesson in self.lessons)

    @property
    def count(self) -> int:
        return len(self.lessons)


def pages(language: Language, lessons: list[Lesson], figures: Figures, titles: Titles) -> list[Page]:
    """All of them, with a link to the glossary at the first use of each term.

    Raises `UserError`, with file and line, for what leads nowhere.
    """
    return [_page(language, number, lesson, figures, titles) for number, lesson in enumerate(lessons, 1)]


def _page(language: Language, number: int, lesson: Lesson, figures: Figures, titles: Titles) -> Page:
    shown: list[Shown] = []
    link = Linker(terms(language, {}))
    title, lead = render_title(lesson.title, figures), link(render(lesson.lead, figures))
    for piece in lesson.pieces:
        try:
            made = _shown(language, lesson, piece, figures, titles, len(shown))
            if made.kind == "prose":
                made = replace(made, html=link(_numbered(made.html, f"{lesson.name}-{len(shown)}")))
            shown.append(made)
        except (UserError, jinja2.TemplateError) as error:
            where = f"{lesson.path}:{piece.line}"
            raise error if str(error).startswith(where) else UserError(f"{where}: {error}") from None
    return Page(lesson.name, number, title, lead, lesson.minutes, shown)


def _numbered(html: str, piece: str) -> str:
    """Headings with ids, so that they can be found."""
    parts = html.split("<h2>")
    return parts[0] + "".join(f'<h2 id="part-{piece}-{n}">{part}' for n, part in enumerate(parts[1:]))


def _shown(language: Language, lesson: Lesson, piece: Piece, figures: Figures, titles: Titles, number: int) -> Shown:
    match piece.kind:
        case "prose":
            return Shown("prose", html=render(piece.body, figures))
        case "step":
            return _step(piece, figures, titles)
        case "experiment":
            return _experiment(language, piece, figures)
        case "code":
            return Shown("code", html=highlighted(listing(*piece.words)), title=render(piece.body, figures),
                         address=" · ".join(piece.words))
        case "tool":
            start = _start(language, figures, *piece.words)
            return Shown("tool", html=render(piece.body, figures), name=piece.words[0], start=start)
    return _exercise(exercise(lesson, piece), figures, f"{lesson.path}:{piece.line}", f"{lesson.name}-{number}")


def _step(piece: Piece, figures: Figures, titles: Titles) -> Shown:
    route, step, *rest = piece.words
    if route not in titles:
        raise UserError(f"there is no page {route} of a route")
    if step not in titles[route]:  # of other recordings than those that the lessons speak of
        return Shown("step", html=render(piece.body, figures))
    chosen = rest[0] if rest else ""
    of = f"&of={step}" if chosen and "of=" not in chosen else ""  # most steps are called as what they make
    address = f"{route}.html#step={quote(step, safe='')}{of}" + (f"&{chosen}" if chosen else "")
    return Shown("step", html=render(piece.body, figures), title=titles[route][step], address=address)


def _experiment(language: Language, piece: Piece, figures: Figures) -> Shown:
    """One experiment within the lesson, as the page of experiments has it."""
    name = piece.words[0]
    found = figures["experiments"].get(name)
    if not found:
        raise UserError(f"there is no experiment {name}: {', '.join(figures['experiments'])}")
    title = experiment_title(found, language)
    return Shown("step", html=render(piece.body, figures), title=title, address=f"experiments.html#experiment={name}")


def _start(language: Language, figures: Figures, tool: str, said: str = "{}") -> str:
    """What a tool starts with: as the lesson says, and what some need: named shapes, the script of all tokens."""
    if not (TOOLS / f"{tool}.js").exists():
        raise UserError(f"there is no tool {tool}: {', '.join(sorted(path.stem for path in TOOLS.glob('*.js')))}")
    start = json.loads(said)
    if tool == "tokenizer":
        start["labels"] = figures["training"]["labels"]
    if tool == "sizes":
        shapes = {name: asdict(shape_of(shape)) for name, shape in SHAPES.items()}
        start |= {"shapes": shapes, "choices": _choices(language)}
    return json.dumps(start, ensure_ascii=False)


def _choices(language: Language) -> dict[str, list[dict[str, Any]]]:
    """What a shape may choose, and what it changes of the number of parameters."""
    say = Strings(language)
    kinds = {place: [{"value": kind, "word": name_of(language, kind), "count": len(KINDS[kind].parameters),
                      "gated": "gate" in KINDS[kind].operands("out"), "kept": KEPT.get(kind)}
                     for kind in kinds_for(place)]
             for place in ("norm", "activation")}
    others = {"position": POSITIONS, "bias": (True, False), "tied": (True, False)}
    return kinds | {name: [{"value": value, "word": say(f"tool.sizes.{name}_{str(value).lower()}")} for value in values]
                    for name, values in others.items()}


def _exercise(asked: Exercise, figures: Figures, where: str, name: str) -> Shown:
    say: dict[str, Any] = {"html": render(asked.ask, figures), "name": name}
    if asked.choices:
        shuffled = [one for _, one in sorted(enumerate(asked.choices), key=lambda pair: sha256(f"{name} {pair[0]}"))]
        told = tuple(Told(render(one.say, figures), render(one.why, figures), one.right) for one in shuffled)
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
