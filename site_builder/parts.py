"""What a page says of the arrays of a recording that is the same in every language: formulas, symbols, numbers."""

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cache

import numpy as np

from site_builder.formula import inline_mathml, mathml
from site_builder.notation import Notation
from site_builder.symbols import in_latex
from tracer.format.trace import AXES, Operation, Trace
from tracer.ops.language import Equation, walk
from tracer.ops.replay import Replay

STATIC_TABLE_LIMIT = 50  # numbers; larger tables need scripts to be read with comfort


@dataclass
class Part:
    """One array: its formula, what the symbols in it stand for, and its numbers when they are few."""

    array: str
    notation: str  # of the step that makes it; "" for what starts the computation
    formulas: list[str]
    legend: list[tuple[str, str, str]]  # symbol as MathML, array name, step that made it
    constants: list[tuple[str, str]]  # symbol as MathML, value: lengths of axes and settings
    derived: bool
    rows: list[list[str]]


class Parts:
    """The parts of a recording; each is put together once, however many languages ask for it."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.replay = Replay(trace, AXES)
        self.notation = Notation(trace)
        self.kinds = {operation.kind for operation in trace.operations.values()}
        self.home = {name: step.id for step in trace.steps() for name in [*step.arrays, *step.operations]}
        # equations → letters whose length, and names, they read
        self.named: dict[int, tuple[dict[str, None], dict[str, None]]] = {}
        self.found: dict[str, Part] = {}

    def __getitem__(self, name: str) -> Part:
        if name not in self.found:
            self.found[name] = self._part(name)
        return self.found[name]

    def _part(self, name: str) -> Part:
        array, operation = self.trace.arrays[name], self.trace.operations.get(name)
        rows = self._rows(name)
        if not operation:
            return Part(name, "", [], [], [], array.derived, rows)
        equations, notation = self.replay.equations(operation), self.notation(operation)
        return Part(name, notation, [mathml(notation, equation) for equation in equations],
                    self._legend(operation, notation), self._constants(operation, equations, notation), array.derived,
                    rows)

    def _legend(self, operation: Operation, notation: str) -> list[tuple[str, str, str]]:
        entries = [(operation.target, operation.id), *operation.operands.items()]
        return [(_symbol_mathml(notation, name), array, self.home.get(array, "")) for name, array in entries]

    def _constants(self, operation: Operation, equations: list[Equation], notation: str) -> list[tuple[str, str]]:
        """Values of the lengths and settings that the equations name."""
        key = id(equations)  # the replay keeps one list for all steps of a kind with the same axes
        if key not in self.named:
            nodes = [node for equation in equations for node in walk(equation.body)]
            self.named[key] = (dict.fromkeys(node[1][1] for node in nodes if node[0] == "size"),
                               dict.fromkeys(node[1] for node in nodes if node[0] == "name"))
        letters, all_names = self.named[key]
        names = [name for name in all_names if name in operation.settings]
        sizes = self.replay.sizes(operation) if letters else {}
        lengths = [(f"n_{{{letter}}}", sizes[letter]) for letter in letters]
        settings = [(in_latex(notation, name), operation.settings[name]) for name in names]
        return [(inline_mathml(latex), number_in_prose(value, 6)) for latex, value in [*lengths, *settings]]

    def _rows(self, name: str) -> list[list[str]]:
        """A small array as rows of text, for readers without scripts; none for a larger one."""
        array = self.trace.arrays[name]
        if array.derived or array.size > STATIC_TABLE_LIMIT or array.size == 0:
            return []
        values = np.asarray(self.trace.values(name))
        flat = values.reshape(1, -1) if values.ndim < 2 else values.reshape(-1, values.shape[-1])
        return [[format_number(v) for v in row] for row in flat]


@cache
def _symbol_mathml(notation: str, name: str) -> str:
    return inline_mathml(in_latex(notation, name))


def number_in_prose(value: float, digits: int = 4) -> str:
    """Whole numbers with thousands separators, others to `digits` significant digits; a true minus sign."""
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return format_number(value, digits)


def format_number(value: float | np.number, digits: int = 4) -> str:
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
