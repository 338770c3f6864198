"""What a page says: chapters, steps, formulas and prose of one route in one language, as plain data."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from site_builder.beside import ByteRow, Choices, ShownLayers, byte_rows, choices, shown_layers
from site_builder.counting import numbered
from site_builder.formula import OTHERWISE
from site_builder.labels import isolated
from site_builder.language import Language
from site_builder.main_line import main_line
from site_builder.merges import Merges, merges
from site_builder.network_graph import main_array, place
from site_builder.notation import source
from site_builder.parts import Part, Parts, number_in_prose
from site_builder.prose import find_section, marked, name_of, render, render_title
from site_builder.rounds import bytes_of, careless, layers
from site_builder.strings import Strings, count
from site_builder.tour import stops
from tracer.format.sizes import parameter_parts, shape_of
from tracer.format.trace import Array, Chapter, Pass, Step

VARIANT_TABLE_LIMIT = 16  # numbers


@dataclass
class StepPart:
    """One array that a step makes: its shape, and a small array's numbers as a table, in the words of the page.

    `constants`: symbol as MathML, value.  `like`: the array of another step whose formulas, symbols and source are
    these, to the letter; "" where they are written out.
    """

    part: Part
    source: str
    formulas: list[str]
    constants: list[tuple[str, str]]
    shape: str
    table: dict[str, Any] | None
    like: str = ""

    @property
    def reads(self) -> bool:
        """Whether it was made from others, so that their tables stand beside it."""
        return len(self.part.legend) > 1

    @property
    def told(self) -> tuple[str, ...]:
        """All that is said of it but names and numbers."""
        return *self.formulas, *(symbol for symbol, _, _ in self.part.legend), self.source


@dataclass
class At:
    """Where a step is on the map: in which direction, in which pass, at which place, of which parameter."""

    mode: str
    run: str
    place: str
    of: str
    array: str


@dataclass
class ShownStep:
    """A step as it is shown.

    `number`: its place on the main line, from 1; `is_stop`: whether it stands on it.  `variants`: of a step on the
    line, the steps that do the same with other numbers, and their titles.  `words_of`: the step whose words are its
    own, to the letter; "" where they are written out.
    """

    id: str
    at: At
    number: int
    is_stop: bool
    title: str
    body: str
    misread: str
    given: list[StepPart]
    parts: list[StepPart]
    merges: Merges | None
    layers: ShownLayers | None
    bytes: list[ByteRow]
    careless: str
    choices: Choices | None
    variants: list[tuple[str, str]]
    words_of: str = ""

    @property
    def words(self) -> tuple[str, str]:
        """What is said of it."""
        return self.body, self.misread


@dataclass
class ShownChapter:
    """A chapter.  `short` is its title where there is little room, `of_all` that of all chapters that it stands for.

    `stops`: its steps that stand on the main line.
    """

    id: str
    short: str
    of_all: str
    title: str
    body: str
    misread: str
    steps: list[ShownStep]

    @property
    def stops(self) -> list[ShownStep]:
        return [step for step in self.steps if step.is_stop]


def told(parts: Parts, language: Language, keys: list[str]) -> dict[str, tuple[str, str]]:
    """Prose that belongs to no step: key → (title, HTML), with the figures of the recording."""
    writer = _Writer(parts, language)
    figures = writer.figures()
    sections = {key: language.prose[key] for key in keys}
    return {key: (render_title(s.title, figures), render(s.body, figures)) for key, s in sections.items()}


def tour(parts: Parts, language: Language) -> list[dict[str, Any]]:
    """The stops of the route's tour: the step, what is chosen there, and what is said."""
    writer, found = _Writer(parts, language), []
    for key, step, stop in stops(parts.trace):
        section, figures = language.prose[key], writer.figures(step)
        found.append(stop | {"title": render_title(section.title, figures), "say": render(section.body, figures)})
    return found


def pass_title(language: Language, name: str) -> str:
    """What a recorded pass is called; one that no prose knows by its file."""
    section = language.prose.get(f"pass: {name}")
    return section.title if section else Strings(language)("single_pass", name=name)


def chapters(parts: Parts, language: Language) -> list[ShownChapter]:
    """All chapters of a route, in order, every step with its prose and formulas."""
    return _Writer(parts, language).chapters()


class _Writer:
    def __init__(self, parts: Parts, language: Language):
        self.parts, self.trace, self.language, self.strings = parts, parts.trace, language, Strings(language)
        self.parameters = sum(self.trace.arrays[one.arrays["trained"]].size for one in self.trace.parameters)
        self.line = main_line(self.trace)

    def chapters(self) -> list[ShownChapter]:
        found = [self.chapter(chapter) for chapter in self.trace.chapters]
        shown = {step.id: step for chapter in found for step in chapter.steps}
        for family in self.line.families:
            _say_once([shown[member.step.id] for member in family.members])
        for stop in self.line.stops:
            shown[stop.step.id].variants = [(one.step.id, shown[one.step.id].title) for one in stop.variants]
        return found

    def chapter(self, chapter: Chapter) -> ShownChapter:
        section = self.language.prose[f"chapter: {chapter.kind}"]
        of = "round" if chapter.block is None else "block"
        number = chapter.round if chapter.block is None else chapter.block
        figures = self.figures(chapter.steps[0]) | {of: number}
        all_of_it = self.numbers(chapter)
        several = f"chapter.several_{chapter.kind}" if "–" in all_of_it else f"chapter.{chapter.kind}"
        short, of_all = self.strings(f"chapter.{chapter.kind}", n=number), self.strings(several, n=all_of_it)
        return ShownChapter(chapter.id, short, of_all, render_title(section.title, figures),
                           render(section.body, figures), render(section.misread, figures),
                           [self.step(step, chapter) for step in chapter.steps])

    def numbers(self, chapter: Chapter) -> str:
        """Of which blocks or rounds a chapter is that stands for all that repeat it: "1–2"."""
        found = [n for one in self.line.folded(chapter)
                 if (n := one.round if one.block is None else one.block) is not None]
        return "–".join(dict.fromkeys([str(found[0]), str(found[-1])])) if found else ""

    def step(self, step: Step, chapter: Chapter) -> ShownStep:
        member = self.line.members[step.id]
        section = find_section(self.language, step, self.trace.route)
        figures = self.figures(step)
        stop = member is self.line.stop(member)
        given = [] if step.kind == "change" else step.arrays  # the operation itself shows both moments
        return ShownStep(
            step.id, self.at(step), int(member.place) + 1, stop,
            self.title(step, chapter, render_title(section.title, figures)),
            marked(render(section.body, figures)), render(section.misread, figures),
            [self.part(name, stop) for name in given], [self.part(name, stop) for name in step.operations],
            merges(self.trace, step), shown_layers(layers(self.trace, chapter, step)),
            byte_rows(rows := bytes_of(self.trace, step), self.strings),
            careless(self.trace, step) if rows else "",
            choices(self.trace, step.round, self.strings) if step.kind == "greedy" and step.round else None, [])

    def at(self, step: Step) -> At:
        of = step.of if step.direction == "update" else ""
        mode = step.direction if step.direction == "backward" or of else "forward"
        run = self.trace.pass_of(step)
        return At(mode, run.name if run else "", place(self.trace, step), of,
                  main_array(self.trace, step))

    def title(self, step: Step, chapter: Chapter, title: str) -> str:
        """The prose's title, with the block or the parameter that it is about where the chapter does not say it."""
        separator = self.strings("colon")
        if step.of and step.direction != "backward":
            return f"{step.of}{separator}{title}"
        if step.block is not None and chapter.block is None:
            title = self.strings("block", n=step.block) + separator + title
        return self.strings("again") + separator + title if step.pass_ == "again" else title

    def part(self, name: str, is_stop: bool) -> StepPart:
        """Of a variant the page itself holds the smallest tables alone: it is read with scripts, or by its stop."""
        array, part = self.trace.arrays[name], self.parts[name]
        axes = " × ".join(f"{self.strings('axis.' + axis)} {length:,}"
                          for axis, length in zip(array.axes, array.shape, strict=True))
        table = {"columns": self.axis_labels(array, -1) if array.shape else [],
                 "rows": list(zip(self.row_labels(array), part.rows, strict=True))} if (
                     part.rows and (is_stop or array.size <= VARIANT_TABLE_LIMIT)) else None
        formulas = [formula.replace(OTHERWISE, self.strings("otherwise")) for formula in part.formulas]
        return StepPart(part, source(part.notation, self.language) if part.notation else "", formulas,
                         part.constants, axes, table)

    def axis_labels(self, array: Array, axis: int) -> list[str]:
        """What its places along an axis are called: by their labels, else numbered."""
        if array.axes[axis] in array.labels:
            return [isolated(label) for label in self.trace.label_list(array.labels[array.axes[axis]])]
        return [str(numbered(array.axes[axis], i)) for i in range(array.shape[axis])]

    def row_labels(self, array: Array) -> list[str]:
        """What its rows are called in a table; of more than two axes, each row with its place along the first."""
        if len(array.shape) < 2:
            return [self.strings("series.value")]
        rows = self.axis_labels(array, -2)
        if len(array.shape) == 2:
            return rows
        leading = math.prod(array.shape[:-2])
        return [f"{self.strings('axis.' + array.axes[0])} {numbered(array.axes[0], n)} · {row}"
                for n in range(leading) for row in rows]

    def figures(self, step: Step | None = None) -> dict[str, Any]:
        """What prose may name: sizes, settings and recorded numbers, never typed."""
        make, trace = self.trace.make, self.trace
        shape = shape_of(make["config"])
        part = {name: sum(part.count for part in parameter_parts(shape) if f"block: {name}" in part.name)
                for name in ("attention", "MLP")}
        return {
            "T": self.positions(step), "D": shape.width, "H": shape.heads, "K": shape.key_value_heads,
            "dh": shape.head_width, "L": shape.blocks, "F": shape.hidden_width, "V": shape.vocabulary,
            "C": shape.context, "of_attention": part["attention"], "of_mlp": part["MLP"],
            "p": shape.dropout, "settings": make["settings"], "summary": trace.summary,
            "text": make.get("text", make.get("trained_on")), "validation_text": make.get("validation_text"),
            "prompt": make.get("prompt"), "temperature": make.get("temperature"), "top_k": make.get("top_k"),
            "seed": make.get("seed"), "updates": make.get("updates", make["settings"]["updates"]),
            "early": make.get("early_updates"), "parameters": self.parameters, "num": number_in_prose,
            "count": partial(count, self.language), "ln": math.log, "has": self.parts.kinds.__contains__,
            "named": self.named, "again": step is not None and step.pass_ == "again",
            "value": partial(self.value, step), "outside": self.outside(step), "round": step and step.round,
            "block": step.block if step else None,
        }

    def named(self, role: str) -> str:
        """What the module is called that comes first in a part of the model: the norm before "attention", "mlp"."""
        kind = next((step.kind for step in self.trace.steps() if step.role == role and step.direction == "forward"), "")
        return name_of(self.language, kind)

    def value(self, step: Step | None, role: str, pass_: str = "") -> float | int:
        """The recorded number of a `role`: in the step's own pass or another one, else in the whole recording."""
        of = self.pass_of(step, pass_)
        number: float | int = self.trace.values(
            of.arrays[role] if of and role in of.arrays else self.trace.roles[role]).item()
        return number

    def pass_of(self, step: Step | None, kind: str = "") -> Pass | None:
        """The pass of a step, or that of another kind with the same round."""
        if not step or not (kind or step.pass_):
            return None
        kind = kind or step.pass_
        return self.trace.find_pass(kind, step.split if kind == step.pass_ else "", step.round)

    def outside(self, step: Step | None) -> int:
        """How many of the oldest ids a round left out."""
        of = self.pass_of(step, "round") if step and step.round else None
        return int(self.trace.operations[of.arrays["ids"]].settings["offset"]) if of else 0

    def positions(self, step: Step | None) -> int:
        """How many positions a step is about: those of its pass or round, of the first pass, of the prompt."""
        of = self.pass_of(step, "round" if step and step.round else "") or next(
            (one for one in self.trace.passes if one.kind in ("first", "single")), None)
        ids = of.arrays["ids"] if of else self.trace.texts["prompt"]["ids"]
        return self.trace.arrays[ids].size


def _say_once(steps: list[ShownStep]) -> None:
    """What is said of one step of a family, and holds for another to the letter, is written once on a page.

    A step on the main line says all of it itself.
    """
    words: dict[tuple[str, str], str] = {}
    parts: dict[tuple[str, ...], StepPart] = {}
    for step in steps:
        first = words.setdefault(step.words, step.id)
        step.words_of = "" if step.is_stop or first == step.id else first
        for part in step.parts:
            same = parts.get(part.told)
            if same and part.formulas and not step.is_stop:
                part.like = same.part.array
                part.constants = [] if part.constants == same.constants else part.constants
        for part in step.parts:
            if not part.like:
                parts.setdefault(part.told, part)
