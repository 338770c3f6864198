"""Bind a recorded step to its kind, and compute again what it made."""

from collections.abc import Callable

import numpy as np

from tracer.ops.evaluate import Computation, evaluate
from tracer.ops.language import ELLIPSIS, Equation, expand_ellipsis, walk
from tracer.ops.registry import KINDS
from tracer.ops.rounded import Rounded


def bound_equations(kind: str, target: str, axis_letters: Callable[[str], list[str]]) -> list[Equation]:
    """The target's equations with the letters of the step's own axes in place of ``...``.

    `axis_letters`: the letters of the axes of an operand, or of the target itself, by its name.
    """
    equations = KINDS[kind].targets[target]
    return expand_ellipsis(equations, _ellipsis_letters(equations, axis_letters))


def _ellipsis_letters(equations: list[Equation], axis_letters: Callable[[str], list[str]]) -> list[str]:
    defined = {eq.name for eq in equations[:-1]}
    target = equations[-1]
    places = [(target.name, target.index)]
    places += [(n[1], n[2]) for eq in equations for n in walk(eq.body) if n[0] == "read" and n[1] not in defined]
    for name, index in places:
        if ELLIPSIS in index:
            letters = axis_letters(name)
            position = index.index(ELLIPSIS)
            return letters[position:position + len(letters) - len(index) + 1]
    return []


class Replay:
    """Recompute the arrays of one trace.  Derived arrays are computed once and kept."""

    def __init__(self, trace, axes: dict[str, str]):
        """`trace`: anything with `steps`, `arrays` and `values(name)`; `axes`: axis name → letter."""
        self.trace, self.axes = trace, axes
        self._derived: dict[str, Rounded] = {}

    def equations(self, step) -> list[Equation]:
        def letters(name: str) -> list[str]:
            array = self.trace.arrays[step.operands.get(name, step.id)]
            return [self.axes[axis] for axis in array.axes]

        return bound_equations(step.kind, step.target, letters)

    def values(self, name: str) -> np.ndarray:
        """Recorded numbers, or for a derived array the computed ones, rounded to its dtype."""
        array = self.trace.arrays[name]
        return self._derive(name).value.astype(array.dtype) if array.derived else self.trace.values(name)

    def _derive(self, name: str) -> Rounded:
        if name not in self._derived:
            self._derived[name] = self.compute(self.trace.steps[name])
        return self._derived[name]

    def compute(self, step) -> Rounded:
        """What `step` makes, in float64 from its operands, with the bound of its float32 error."""
        arrays = self.trace.arrays
        operands = {operand: self._derive(name) if arrays[name].derived else self.trace.values(name)
                    for operand, name in step.operands.items()}
        return evaluate(Computation(self.equations(step), operands, step.attributes, arrays[step.id].shape))
