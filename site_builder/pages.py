"""What a page says: chapters, steps, formulas and prose of one route in one language, as plain data."""

import math
import re
from dataclasses import dataclass
from functools import partial

from site_builder.formula import OTHERWISE
from site_builder.labels import isolated
from site_builder.language import Language
from site_builder.merges import Merges, merges
from site_builder.notation import source
from site_builder.parts import Part, Parts, number_in_prose
from site_builder.prose import find_section, kind_of, render, render_title
from site_builder.rounds import Byte, Layers, bytes_of, careless, layers
from site_builder.sections import Section
from site_builder.strings import Strings, count
from tracer.format.trace import Step


@dataclass
class StepPart:
    """One array that a step makes: its shape, and a small array's numbers as a table, in the words of the page."""

    part: Part
    source: str
    formulas: list[str]
    shape: str
    table: dict | None


@dataclass
class Page:
    """A step as it is shown."""

    id: str
    number: int
    chapter: str
    title: str
    body: str
    misread: str
    given: list[StepPart]
    parts: list[StepPart]
    module: str
    merges: Merges | None
    layers: Layers | None
    bytes: list[Byte]
    careless: str
    choices: int  # the round whose choices are shown; 0: none


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
    figures = writer.figures("")
    sections = {key: language.prose[key] for key in keys}
    return {key: (render_title(s.title, figures), render(s.body, figures)) for key, s in sections.items()}


def chapters(parts: Parts, language: Language) -> list[ChapterPage]:
    """All chapters of a route, in order, every step with its prose and formulas."""
    return _Writer(parts, language).chapters()


class _Writer:
    def __init__(self, parts: Parts, language: Language):
        self.parts, self.trace, self.language, self.strings = parts, parts.trace, language, Strings(language)
        self.parameters = sum(self.trace.arrays[name].size for name in self.trace.make["parameters"])
        self.number = 0

    def chapters(self) -> list[ChapterPage]:
        return [self.chapter(chapter) for chapter in self.trace.chapters]

    def chapter(self, chapter) -> ChapterPage:
        kind = re.sub(r"[.]?[0-9]+$", "", chapter.id)
        section = self.language.prose[f"chapter:{kind}"]
        number = self.chapter_number(chapter.id)
        figures = self.figures(chapter.steps[0].id) | number
        short = self.strings(f"chapter.{kind}", n=next(iter(number.values()), ""))
        return ChapterPage(chapter.id, short, render_title(section.title, figures), render(section.body, figures),
                           render(section.misread, figures), [self.page(step, chapter.id) for step in chapter.steps])

    @staticmethod
    def chapter_number(chapter_id: str) -> dict:
        found = re.fullmatch(r"(?:blocks\.|round|cached)(\d+)", chapter_id)
        if not found:
            return {}
        return {"block": int(found[1]) + 1} if chapter_id.startswith("blocks") else {"round": int(found[1])}

    def page(self, step: Step, chapter: str) -> Page:
        self.number += 1
        kind = kind_of(self.trace, step)
        section = (find_section(self.language.prose, step.id, self.trace.route, kind, self.rank(step))
                   or Section(self.neutral_title(step.id), "", ""))
        figures = self.figures(step.id)
        return Page(
            step.id, self.number, chapter, self.title(step.id, render_title(section.title, figures)),
            render(section.body, figures), render(section.misread, figures),
            [self.part(name) for name in self.given(step)], [self.part(name) for name in step.operations], step.id,
            merges(self.trace, step.id), layers(self.trace, chapter, step.id), rows := bytes_of(self.trace, step.id),
            careless(self.trace, step.id) if rows else "", _round_of_choices(step.id))

    def given(self, step: Step) -> list[str]:
        """Arrays that a step starts from; of two moments of a parameter the step itself shows both."""
        return [] if step.id.startswith("parameters.") else step.arrays

    @staticmethod
    def neutral_title(step_id: str) -> str:
        """For a step of a kind that nothing is written about: what the model itself calls the module."""
        return step_id.rpartition(".")[2].replace("_", " ")

    def title(self, step_id: str, title: str) -> str:
        """The prose's title, with the block or the parameter that it is about where the chapter does not say it."""
        separator = self.strings("colon")
        of, _, parameter = step_id.partition(".")
        if of in ("adamw", "parameters"):
            return f"{parameter}{separator}{title}"
        block = re.search(r"\bblocks\.(\d+)", step_id)
        if block and not step_id.startswith("blocks"):
            title = self.strings("block", n=int(block[1]) + 1) + separator + title
        return self.strings("again") + separator + title if step_id.startswith("again.") else title

    def rank(self, step: Step) -> int:
        return len(self.trace.arrays[step.operations[0]].shape) if step.operations else 0

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

    def figures(self, step_id: str) -> dict:
        """What prose may name: sizes, settings and recorded numbers, never typed."""
        make, trace = self.trace.make, self.trace
        config = make["config"]
        prefix = re.match(r"(round\d+\.|evaluation\.(?:training|validation)\.|again\.)?(blocks\.\d+\.)?", step_id)
        tokens = self.positions(prefix[1] or "")
        return {
            "T": tokens, "D": config["width"], "H": config["heads"], "dh": config["width"] // config["heads"],
            "L": config["blocks"], "F": 4 * config["width"], "V": config["vocabulary"], "C": config["context"],
            "p": config["dropout"], "settings": make["settings"], "summary": trace.summary,
            "text": make.get("text", make.get("trained_on")), "validation_text": make.get("validation_text"),
            "prompt": make.get("prompt"), "temperature": make.get("temperature"), "top_k": make.get("top_k"),
            "seed": make.get("seed"), "parameters": self.parameters,
            "ids": trace.values("text.ids").tolist(), "num": number_in_prose, "count": partial(count, self.language),
            "ln": math.log,
            "has": self.parts.kinds.__contains__, "named": self.named, "again": step_id.startswith("again."),
            "value": lambda name, *index: trace.values(name)[index].item(),
            "outside": self.outside(prefix[1] or ""),
            "here": lambda name: f"{prefix[0]}{name}",
            "block": int(prefix[2].split(".")[1]) + 1 if prefix[2] else None,
            "round": int(re.sub(r"\D", "", prefix[1])) if (prefix[1] or "").startswith("round") else None,
        }

    def named(self, key: str) -> str:
        """What the module is called that stands in the place `key` ("block.norm_1"), by its kind."""
        kind = self.parts.kind_at.get(key, "")
        return self.strings.get(f"kind.{kind}") or (kind or key.rpartition(".")[2]).replace("_", " ")

    def outside(self, prefix: str) -> int:
        """How many of the oldest ids a round left out."""
        operation = self.trace.operations.get(f"{prefix}ids")
        return int(operation.settings["offset"]) if operation else 0

    def positions(self, prefix: str) -> int:
        for name in (f"{prefix}ids", f"{prefix}x", "validation.x" if "validation" in prefix else "x", "text.ids"):
            if name in self.trace.arrays:
                return self.trace.arrays[name].size
        return 0


def _round_of_choices(step_id: str) -> int:
    found = re.fullmatch(r"round(\d+)\.choices", step_id)
    return int(found[1]) if found else 0
