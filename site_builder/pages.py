"""What a page says: chapters, steps, formulas and prose of one route in one language, as plain data."""

import math
from dataclasses import dataclass
from functools import partial

from site_builder.beside import ByteRow, Choices, ShownLayers, byte_rows, choices, shown_layers
from site_builder.formula import OTHERWISE
from site_builder.labels import isolated
from site_builder.language import Language
from site_builder.merges import Merges, merges
from site_builder.network_graph import main_array, place
from site_builder.notation import source
from site_builder.parts import Part, Parts, number_in_prose
from site_builder.prose import find_section, render, render_title
from site_builder.rounds import bytes_of, careless, layers
from site_builder.sections import Section
from site_builder.strings import Strings, count
from tracer.format.trace import Chapter, Pass, Step

# What prose calls an array of a round → the kind of its pass, and its role there.
HERE = {"cached.difference": ("cached", "difference"), "cached.sampler.draw.token": ("cached", "token"),
        "sampler.draw.token": ("round", "token"), "greedy": ("round", "greedy"), "is_end": ("round", "is_end")}
# What prose calls a norm → its role.
NORMS = {"block.norm_1": "attention", "block.norm_2": "mlp", "final_norm": "final"}


@dataclass
class StepPart:
    """One array that a step makes: its shape, and a small array's numbers as a table, in the words of the page."""

    part: Part
    source: str
    formulas: list[str]
    shape: str
    table: dict | None

    @property
    def reads(self) -> bool:
        """Whether it was made from others, so that their tables stand beside it."""
        return len(self.part.legend) > 1


@dataclass
class At:
    """Where a step is on the map: in which direction, in which pass, at which place, of which parameter."""

    mode: str
    run: str
    place: str
    of: str
    array: str


@dataclass
class Page:
    """A step as it is shown."""

    id: str
    at: At
    number: int
    chapter: str
    title: str
    body: str
    misread: str
    given: list[StepPart]
    parts: list[StepPart]
    module: str
    merges: Merges | None
    layers: ShownLayers | None
    bytes: list[ByteRow]
    careless: str
    choices: Choices | None


@dataclass
class ChapterPage:
    """A chapter.  `short` is its title where there is little room."""

    id: str
    short: str
    title: str
    body: str
    misread: str
    pages: list[Page]


def told(parts: Parts, language: Language, keys: list[str]) -> dict[str, tuple[str, str]]:
    """Prose that belongs to no step: key → (title, HTML), with the figures of the recording."""
    writer = _Writer(parts, language)
    figures = writer.figures(Step(""))
    sections = {key: language.prose[key] for key in keys}
    return {key: (render_title(s.title, figures), render(s.body, figures)) for key, s in sections.items()}


def chapters(parts: Parts, language: Language) -> list[ChapterPage]:
    """All chapters of a route, in order, every step with its prose and formulas."""
    return _Writer(parts, language).chapters()


class _Writer:
    def __init__(self, parts: Parts, language: Language):
        self.parts, self.trace, self.language, self.strings = parts, parts.trace, language, Strings(language)
        self.parameters = sum(self.trace.arrays[one.arrays["trained"]].size for one in self.trace.parameters)
        self.number = 0

    def chapters(self) -> list[ChapterPage]:
        return [self.chapter(chapter) for chapter in self.trace.chapters]

    def chapter(self, chapter: Chapter) -> ChapterPage:
        kind = "blocks" if chapter.kind == "block" else chapter.kind
        section = self.language.prose[f"chapter:{kind}"]
        number = self.chapter_number(chapter)
        figures = self.figures(chapter.steps[0]) | number
        short = self.strings(f"chapter.{kind}", n=next(iter(number.values()), ""))
        return ChapterPage(chapter.id, short, render_title(section.title, figures), render(section.body, figures),
                           render(section.misread, figures), [self.page(step, chapter) for step in chapter.steps])

    @staticmethod
    def chapter_number(chapter: Chapter) -> dict:
        if chapter.block is not None:
            return {"block": chapter.block + 1}
        return {"round": chapter.round} if chapter.round else {}

    def page(self, step: Step, chapter: Chapter) -> Page:
        self.number += 1
        section = (find_section(self.language.prose, step, self.trace.route)
                   or Section(self.neutral_title(step), "", ""))
        figures = self.figures(step)
        return Page(
            step.id, self.at(step), self.number, chapter.id,
            self.title(step, chapter, render_title(section.title, figures)),
            render(section.body, figures), render(section.misread, figures),
            [self.part(name) for name in self.given(step)], [self.part(name) for name in step.operations], step.id,
            merges(self.trace, step), shown_layers(layers(self.trace, chapter, step)),
            byte_rows(rows := bytes_of(self.trace, step), self.strings),
            careless(self.trace, step) if rows else "",
            choices(self.trace, step.round, self.strings) if step.kind == "greedy" else None)

    def at(self, step: Step) -> At:
        of = step.of if step.direction == "update" else ""
        mode = step.direction if step.direction == "backward" or of else "forward"
        run = self.trace.pass_of(step)
        return At(mode, run.name if run else "", place(self.trace, step) if run else "", of,
                  main_array(self.trace, step))

    def given(self, step: Step) -> list[str]:
        """Arrays that a step starts from; of two moments of a parameter the step itself shows both."""
        return [] if step.kind == "change" else step.arrays

    @staticmethod
    def neutral_title(step: Step) -> str:
        """For a step of a kind that nothing is written about: the kind itself, and its role."""
        return " ".join(filter(None, (step.kind, step.role))).replace("_", " ")

    def title(self, step: Step, chapter: Chapter, title: str) -> str:
        """The prose's title, with the block or the parameter that it is about where the chapter does not say it."""
        separator = self.strings("colon")
        if step.of and step.direction != "backward":
            return f"{step.of}{separator}{title}"
        if step.block is not None and chapter.block is None:
            title = self.strings("block", n=step.block + 1) + separator + title
        return self.strings("again") + separator + title if step.pass_ == "again" else title

    def part(self, name: str) -> StepPart:
        array, part = self.trace.arrays[name], self.parts[name]
        axes = " × ".join(f"{self.strings('axis.' + axis)} {length:,}"
                          for axis, length in zip(array.axes, array.shape, strict=True))
        table = {"columns": self.axis_labels(array, -1) if array.shape else [],
                 "rows": list(zip(self.row_labels(array), part.rows, strict=True))} if part.rows else None
        formulas = [formula.replace(OTHERWISE, self.strings("otherwise")) for formula in part.formulas]
        return StepPart(part, source(part.notation, self.language) if part.notation else "", formulas, axes, table)

    def axis_labels(self, array, axis: int) -> list[str]:
        if array.axes[axis] in array.labels:
            return [isolated(label) for label in self.trace.label_list(array.labels[array.axes[axis]])]
        first = 1 if array.axes[axis] in ("head", "update") else 0
        return [str(first + i) for i in range(array.shape[axis])]

    def row_labels(self, array) -> list[str]:
        if len(array.shape) < 2:
            return [self.strings("series.value")]
        rows = self.axis_labels(array, -2)
        if len(array.shape) == 2:
            return rows
        leading = math.prod(array.shape[:-2])
        return [f"{self.strings('axis.' + array.axes[0])} {n + 1} · {row}" for n in range(leading) for row in rows]

    def figures(self, step: Step) -> dict:
        """What prose may name: sizes, settings and recorded numbers, never typed."""
        make, trace = self.trace.make, self.trace
        config = make["config"]
        run = self.run_of(step)
        ids = run.arrays["ids"]
        own = step.direction == "forward" and step.pass_ != "cached" and step.block is not None
        return {
            "T": trace.arrays[ids].size, "D": config["width"], "H": config["heads"],
            "dh": config["width"] // config["heads"],
            "L": config["blocks"], "F": 4 * config["width"], "V": config["vocabulary"], "C": config["context"],
            "p": config["dropout"], "settings": make["settings"], "summary": trace.summary,
            "text": make.get("text", make.get("trained_on")), "validation_text": make.get("validation_text"),
            "prompt": make.get("prompt"), "temperature": make.get("temperature"), "top_k": make.get("top_k"),
            "seed": make.get("seed"), "parameters": self.parameters,
            "ids": trace.values(self.text()["ids"]).tolist(), "num": number_in_prose,
            "count": partial(count, self.language), "ln": math.log,
            "has": self.parts.kinds.__contains__, "named": self.named, "again": step.pass_ == "again",
            "value": lambda name, *index: trace.values(name)[index].item(),
            "outside": self.outside(run),
            "here": lambda name: trace.find_pass(HERE[name][0], round=step.round).arrays[HERE[name][1]],
            "block": step.block + 1 if own else None, "round": step.round,
        }

    def named(self, key: str) -> str:
        """What the module is called that stands in the place `key` ("block.norm_1"), by its kind."""
        kind = next((step.kind for step in self.trace.steps() if step.role == NORMS[key] and step.pass_), NORMS[key])
        return self.strings.get(f"kind.{kind}") or kind.replace("_", " ")

    def text(self) -> dict[str, str]:
        """The arrays of the text that the recording begins with."""
        return next(iter(self.trace.texts.values()))

    def run_of(self, step: Step) -> Pass:
        """The pass whose ids a step is about: of a round with a cache the whole one; else the first, or the prompt."""
        if step.round:
            return self.trace.find_pass("round", round=step.round)
        first = self.trace.passes[0]
        return self.trace.pass_of(step) or (first if first.kind == "first" else Pass("", arrays=self.text()))

    def outside(self, run: Pass) -> int:
        """How many of the oldest ids a round left out."""
        return int(self.trace.operations[run.arrays["ids"]].settings["offset"]) if run.kind == "round" else 0
