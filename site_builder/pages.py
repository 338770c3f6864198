"""What a page says: chapters, steps, formulas and prose of one route in one language, as plain data."""

import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np

from site_builder.formula import inline_mathml, mathml
from site_builder.merges import Merges, merges
from site_builder.prose import Section, find_section, load_prose, render, render_title
from site_builder.rounds import Byte, Layers, bytes_of, careless, layers
from site_builder.strings import Strings
from site_builder.symbols import symbol
from tracer.ops import KINDS
from tracer.ops.language import walk
from tracer.ops.replay import Replay
from tracer.schema import AXES, Trace, View

STATIC_TABLE_LIMIT = 50  # numbers; larger tables need scripts to be read with comfort


@dataclass
class StepPart:
    """One array that a view makes: its formula and what its symbols stand for."""

    array: str
    shape: str
    kind: str
    source: str
    formulas: list[str]
    legend: list[tuple[str, str, str]]  # symbol as MathML, array name, step that made it
    constants: list[tuple[str, str]]  # symbol as MathML, value: lengths of axes and settings
    derived: bool
    table: dict | None


@dataclass
class Page:
    """A view as it is shown."""

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
    """A main step.  `short` is its title where there is little room."""

    id: str
    short: str
    title: str
    body: str
    misread: str
    pages: list[Page]


def told(trace: Trace, language: str, strings: Strings, keys: list[str]) -> dict[str, tuple[str, str]]:
    """Prose that belongs to no step: key → (title, HTML), with the figures of `trace`."""
    writer = _Writer(trace, language, strings)
    figures = writer.figures("")
    sections = {key: writer.prose[key][language] for key in keys}
    return {key: (render_title(s.title, figures), render(s.body, figures)) for key, s in sections.items()}


def chapters(trace: Trace, language: str, strings: Strings) -> list[ChapterPage]:
    """All chapters of a route, in order, every view with its prose and formulas."""
    return _Writer(trace, language, strings).chapters()


class _Writer:
    def __init__(self, trace: Trace, language: str, strings: Strings):
        self.trace, self.language, self.strings = trace, language, strings
        self.prose = load_prose()
        self.replay = Replay(trace, AXES)
        self.home = {name: view.id for chapter in trace.chapters for view in chapter.views
                     for name in [*view.arrays, *view.steps]}
        self.parameters = sum(trace.arrays[name].size for name in trace.make["parameters"])
        self.number = 0
        self.named: dict[int, tuple[dict, dict]] = {}  # equations → letters whose length, and names, they read

    def chapters(self) -> list[ChapterPage]:
        return [self.chapter(chapter) for chapter in self.trace.chapters]

    def chapter(self, chapter) -> ChapterPage:
        kind = re.sub(r"[.]?[0-9]+$", "", chapter.id)
        section = self.prose[f"chapter:{kind}"][self.language]
        number = self.chapter_number(chapter.id)
        figures = self.figures(chapter.views[0].id) | number
        short = self.strings(f"chapter.{kind}", n=next(iter(number.values()), ""))
        return ChapterPage(chapter.id, short, render_title(section.title, figures), render(section.body, figures),
                           render(section.misread, figures), [self.page(view, chapter.id) for view in chapter.views])

    @staticmethod
    def chapter_number(chapter_id: str) -> dict:
        found = re.fullmatch(r"(?:blocks\.|round|cached)(\d+)", chapter_id)
        if not found:
            return {}
        return {"block": int(found[1]) + 1} if chapter_id.startswith("blocks") else {"round": int(found[1])}

    def page(self, view: View, chapter: str) -> Page:
        self.number += 1
        rank = self.rank(view)
        sections = find_section(self.prose, view.id, self.trace.route, rank) or {}
        section = sections.get(self.language, Section(view.id, "", ""))
        figures = self.figures(view.id)
        return Page(
            view.id, self.number, chapter, self.title(view.id, render_title(section.title, figures)),
            render(section.body, figures), render(section.misread, figures),
            [self.part(name) for name in self.given(view)], [self.part(name) for name in view.steps], view.id,
            merges(self.trace, view.id), layers(self.trace, chapter, view.id), rows := bytes_of(self.trace, view.id),
            careless(self.trace, view.id) if rows else "", _round_of_choices(view.id))

    def given(self, view: View) -> list[str]:
        """Arrays that a view starts from; of two moments of a parameter the step itself shows both."""
        return [] if view.id.startswith("parameters.") else view.arrays

    def title(self, view_id: str, title: str) -> str:
        """The prose's title, with the block or the parameter that it is about where the chapter does not say it."""
        separator = ": " if self.language == "en" else "："
        of, _, parameter = view_id.partition(".")
        if of in ("adamw", "parameters"):
            return f"{parameter}{separator}{title}"
        block = re.search(r"\bblocks\.(\d+)", view_id)
        if block and not view_id.startswith("blocks"):
            title = self.strings("block", n=int(block[1]) + 1) + separator + title
        return self.strings("again") + separator + title if view_id.startswith("again.") else title

    def rank(self, view: View) -> int:
        return len(self.trace.arrays[view.steps[0]].shape) if view.steps else 0

    def part(self, name: str) -> StepPart:
        array = self.trace.arrays[name]
        step = self.trace.steps.get(name)
        axes = " × ".join(f"{self.strings('axis.' + axis)} {length:,}"
                          for axis, length in zip(array.axes, array.shape, strict=True))
        equations = self.replay.equations(step) if step else []
        return StepPart(
            name, axes, f"{step.kind}.{step.target}" if step else "", KINDS[step.kind].source if step else "",
            [mathml(step.kind, equation) for equation in equations],
            self.legend(step) if step else [], self.constants(step, equations), array.derived, self.table(name))

    def legend(self, step) -> list[tuple[str, str, str]]:
        entries = [(step.target, step.id), *step.operands.items()]
        return [(_symbol_mathml(step.kind, name), array, self.home.get(array, "")) for name, array in entries]

    def constants(self, step, equations) -> list[tuple[str, str]]:
        """Values of the lengths and settings that the equations name."""
        if not step:
            return []
        key = id(equations)  # the replay keeps one list for all steps of a kind with the same axes
        if key not in self.named:
            nodes = [node for equation in equations for node in walk(equation.body)]
            self.named[key] = (dict.fromkeys(node[1][1] for node in nodes if node[0] == "size"),
                               dict.fromkeys(node[1] for node in nodes if node[0] == "name"))
        letters, all_names = self.named[key]
        names = [name for name in all_names if name in step.attributes]
        sizes = self.replay.sizes(step) if letters else {}
        lengths = [(f"n_{{{letter}}}", sizes[letter]) for letter in letters]
        settings = [(symbol(step.kind, name), step.attributes[name]) for name in names]
        return [(inline_mathml(latex), number_in_prose(value, 6)) for latex, value in [*lengths, *settings]]

    def table(self, name: str) -> dict | None:
        """A small array as rows of text, for readers without scripts."""
        array = self.trace.arrays[name]
        if array.derived or array.size > STATIC_TABLE_LIMIT or array.size == 0:
            return None
        values = np.asarray(self.trace.values(name))
        flat = values.reshape(1, -1) if values.ndim < 2 else values.reshape(-1, values.shape[-1])
        return {"columns": self.axis_labels(array, -1) if values.ndim else [],
                "rows": [(label, [format_number(v) for v in row])
                         for label, row in zip(self.row_labels(array), flat, strict=True)]}

    def axis_labels(self, array, axis: int) -> list[str]:
        if array.axes[axis] in array.labels:
            return self.trace.label_list(array.labels[array.axes[axis]])
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

    def figures(self, view_id: str) -> dict:
        """What prose may name: sizes, settings and recorded numbers, never typed."""
        make, trace = self.trace.make, self.trace
        config = make["config"]
        prefix = re.match(r"(round\d+\.|evaluation\.(?:training|validation)\.|again\.)?(blocks\.\d+\.)?", view_id)
        tokens = self.positions(prefix[1] or "")
        return {
            "T": tokens, "D": config["width"], "H": config["heads"], "dh": config["width"] // config["heads"],
            "L": config["blocks"], "F": 4 * config["width"], "V": config["vocabulary"], "C": config["context"],
            "p": config["dropout"], "settings": make["settings"], "summary": trace.summary,
            "text": make.get("text", make.get("trained_on")), "validation_text": make.get("validation_text"),
            "prompt": make.get("prompt"), "temperature": make.get("temperature"), "top_k": make.get("top_k"),
            "seed": make.get("seed"), "parameters": self.parameters,
            "ids": trace.values("text.ids").tolist(), "num": number_in_prose, "ln": math.log,
            "value": lambda name, *index: trace.values(name)[index].item(),
            "outside": self.outside(prefix[1] or ""),
            "here": lambda name: f"{prefix[0]}{name}",
            "block": int(prefix[2].split(".")[1]) + 1 if prefix[2] else None,
            "round": int(re.sub(r"\D", "", prefix[1])) if (prefix[1] or "").startswith("round") else None,
        }

    def outside(self, prefix: str) -> int:
        """How many of the oldest ids a round left out."""
        step = self.trace.steps.get(f"{prefix}ids")
        return int(step.attributes["offset"]) if step else 0

    def positions(self, prefix: str) -> int:
        for name in (f"{prefix}ids", f"{prefix}x", "validation.x" if "validation" in prefix else "x", "text.ids"):
            if name in self.trace.arrays:
                return self.trace.arrays[name].size
        return 0


def _round_of_choices(view_id: str) -> int:
    found = re.fullmatch(r"round(\d+)\.choices", view_id)
    return int(found[1]) if found else 0


def _symbol_mathml(kind: str, name: str) -> str:
    if name.startswith("d_"):
        return inline_mathml(rf"\frac{{\partial L}}{{\partial {symbol(kind, name[2:])}}}")
    return inline_mathml(symbol(kind, name))


def number_in_prose(value, digits: int = 4) -> str:
    """Whole numbers with thousands separators, others to `digits` significant digits; a true minus sign."""
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return format_number(value, digits)


def format_number(value, digits: int = 4) -> str:
    """As in the tables of the page (`static/js/format.js`): significant digits, true minus, ∞."""
    if isinstance(value, (int, np.integer)):
        return str(value).replace("-", "−")
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    whole = Decimal(float(value))
    with localcontext(rounding=ROUND_HALF_UP):  # as JavaScript rounds
        mantissa, _, exponent = f"{whole:.{digits - 1}e}".partition("e")
        places = digits - 1 - int(exponent)
        text = f"{whole:.{max(places, 0)}f}" if -5 <= int(exponent) < 7 else f"{mantissa}e{int(exponent)}"
    return text.replace("-", "−")
