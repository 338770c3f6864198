"""Bind a recorded operation to its kind, and compute again what it made."""

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Protocol

import numpy as np

from tracer.ops.evaluate import Computation, evaluate, letter_sizes
from tracer.ops.language import ELLIPSIS, Equation, Node, expand_ellipsis, transform, walk
from tracer.ops.registry import KINDS
from tracer.ops.rounded import Rounded


def bound_equations(kind: str, target: str, axis_letters: Callable[[str], list[str]]) -> list[Equation]:
    """The target's equations with the letters of the step's own axes in place of ``...``.

    `axis_letters`: the letters of the axes of an operand, or of the target itself, by its name.
    """
    equations = KINDS[kind].targets[target]
    return _use_axis_letters(expand_ellipsis(equations, _ellipsis_letters(equations, axis_letters)), axis_letters)


def _use_axis_letters(equations: list[Equation], axis_letters: Callable[[str], list[str]]) -> list[Equation]:
    """The target's index in the letters of its own axes, where no other letter of the kind is in the way."""
    target = equations[-1]
    used = {n[1] for eq in equations for node in [eq.body, *eq.index] for n in walk(node) if n[0] == "letter"}
    names: dict[str, str] = {}
    for item, letter in zip(target.index, axis_letters(target.name), strict=True):
        if letter not in used and letter not in names.values():
            names[item[1]] = letter

    def rename(node: Node) -> Node | None:
        return ["letter", names.get(node[1], node[1])] if node[0] == "letter" else None

    return [Equation(eq.name, [transform(i, rename) for i in eq.index], transform(eq.body, rename)) for eq in equations]


def _ellipsis_letters(equations: list[Equation], axis_letters: Callable[[str], list[str]]) -> list[str]:
    defined = {eq.name for eq in equations[:-1]}
    target = equations[-1]
    places = [(target.name, target.index)]
    places += [(name, index) for eq in equations for name, index in eq.reads if name not in defined]
    for name, index in places:
        if ELLIPSIS in index:
            letters = axis_letters(name)
            position = index.index(ELLIPSIS)
            return letters[position:position + len(letters) - len(index) + 1]
    return []


class Operation(Protocol):
    """What is asked of a recorded operation; `tracer.format.trace` says what each is."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def operands(self) -> Mapping[str, str]: ...
    @property
    def settings(self) -> Mapping[str, float]: ...


class Array(Protocol):
    """What is asked of a recorded array."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def axes(self) -> tuple[str, ...]: ...
    @property
    def derived(self) -> bool: ...


class Trace(Protocol):
    """What is asked of a recording."""

    @property
    def operations(self) -> Mapping[str, Operation]: ...
    @property
    def arrays(self) -> Mapping[str, Array]: ...
    def values(self, name: str) -> np.ndarray: ...


class Replay:
    """Recompute the arrays of one trace.  Derived arrays are computed once, and kept until `forget_after`."""

    def __init__(self, trace: Trace, axes: Mapping[str, str]):
        """`axes`: axis name → letter."""
        self.trace, self.axes = trace, axes
        self._derived: dict[str, Rounded] = {}
        self._equations: dict[Hashable, list[Equation]] = {}

    def equations(self, operation: Operation) -> list[Equation]:
        """The step's equations in the letters of its arrays' axes; the same list for the same axes."""
        axes = {operand: self.trace.arrays[name].axes for operand, name in operation.operands.items()}
        axes[operation.target] = self.trace.arrays[operation.id].axes
        key = (operation.kind, operation.target, *axes.items())
        if key not in self._equations:
            letters = {name: [self.axes[axis] for axis in own] for name, own in axes.items()}
            self._equations[key] = bound_equations(operation.kind, operation.target, letters.__getitem__)
        return self._equations[key]

    def sizes(self, operation: Operation) -> dict[str, int]:
        """The length of the axis of every letter in the step's equations."""
        arrays = self.trace.arrays
        shapes = {operand: arrays[name].shape for operand, name in operation.operands.items()}
        return letter_sizes(self.equations(operation), arrays[operation.id].shape, shapes)

    @cached_property
    def wanted(self) -> dict[str, str]:
        """The derived arrays from which something follows that is held → the last held array that does."""
        last: dict[str, str] = {}
        for operation in reversed(list(self.trace.operations.values())):
            user = last.get(operation.id) if self.trace.arrays[operation.id].derived else operation.id
            for name in operation.operands.values() if user else ():
                if user and self.trace.arrays[name].derived:
                    last.setdefault(name, user)
        return last

    @cached_property
    def done_after(self) -> dict[str, list[str]]:
        """Held array → the derived arrays that it is the last to follow from."""
        found: dict[str, list[str]] = {}
        for name, user in self.wanted.items():
            found.setdefault(user, []).append(name)
        return found

    def forget_after(self, operation_id: str) -> None:
        """Let go of the derived arrays that no later operation needs."""
        unwanted = [operation_id] if operation_id in self._derived and operation_id not in self.wanted else []
        for name in [*self.done_after.get(operation_id, ()), *unwanted]:
            self._derived.pop(name, None)

    def values(self, name: str) -> np.ndarray:
        """Recorded numbers, or for a derived array the computed ones, rounded to its dtype."""
        array = self.trace.arrays[name]
        return np.array(self.derive(name).value, array.dtype) if array.derived else self.trace.values(name)

    def derive(self, name: str) -> Rounded:
        """The computed numbers of a derived array."""
        if name not in self._derived:
            self._derived[name] = self.compute(self.trace.operations[name])
        return self._derived[name]

    def compute(self, operation: Operation) -> Rounded:
        """What `operation` makes, in float64 from its operands, with the bound of its float32 error."""
        arrays = self.trace.arrays
        operands = {operand: self.derive(name) if arrays[name].derived else self.trace.values(name)
                    for operand, name in operation.operands.items()}
        return evaluate(Computation(self.equations(operation), operands, operation.settings,
                                    arrays[operation.id].shape))
