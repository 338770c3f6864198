"""An example of an operation: operands, and what it must compute; and how it is computed."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from tracer.ops import KINDS, Computation, evaluate, expand_ellipsis
from tracer.ops.language import ELLIPSIS, walk

random = np.random.default_rng(20261012)


@dataclass(frozen=True)
class Case:
    """`operands` of a kind, and the `expected` value of each of its outputs."""

    kind: str
    operands: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    settings: dict[str, float] = field(default_factory=dict)
    leading: tuple[str, ...] = ()  # the letters that ... stands for

    def __str__(self) -> str:
        return f"{self.kind}[{','.join(self.leading)}]" if uses_ellipsis(self.kind) else self.kind


def compute(case: Case, target: str, operands: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    equations = expand_ellipsis(KINDS[case.kind].targets[target], list(case.leading))
    needed = {name: np.asarray(operands[name]) for name in KINDS[case.kind].operands(target)}
    return evaluate(Computation(equations, needed, case.settings, shape)).value


def forward(case: Case, operands: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """`operands` and all outputs, each computed from the operands and the outputs before it."""
    known = dict(operands)
    for target in forward_targets(case.kind):
        known[target] = compute(case, target, known, np.shape(case.expected[target]))
    return known


def forward_targets(kind: str) -> list[str]:
    return [target for target in KINDS[kind].targets if not target.startswith("d_")]


def gradient_targets(kind: str) -> list[str]:
    return [target for target in KINDS[kind].targets if target.startswith("d_")]


def uses_ellipsis(kind: str) -> bool:
    equations = [equation for equations in KINDS[kind].targets.values() for equation in equations]
    nodes = [n for eq in equations for part in (eq.body, *eq.index) for n in walk(part)]
    return ELLIPSIS in nodes or any(item == ELLIPSIS for n in nodes if n[0] == "read" for item in n[2])


def tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values))


CASES: list[Case] = []
# Shapes of what ... stands for, with its letters: nothing, one axis, two axes.
LEADING = [((), ()), (("a",), (3,)), (("a", "b"), (2, 3))]


def example(kind: str) -> Callable:
    """Add the cases that the decorated function yields: operands, expected outputs, attributes."""
    def add(cases: Callable) -> Callable:
        variants = LEADING if uses_ellipsis(kind) else [((), ())]
        for letters, shape in variants:
            arguments = (shape,) if uses_ellipsis(kind) else ()
            CASES.extend(Case(kind, *parts, leading=letters) for parts in cases(*arguments))
        return cases

    return add


def differences(case: Case, operand: str, incoming: dict[str, np.ndarray], h: float = 1e-5) -> np.ndarray:
    """∂(Σ d_output·output)/∂operand, number by number: (f(x+h) − f(x−h)) / 2h."""
    values = case.operands[operand]
    result = np.empty_like(values)
    for index in np.ndindex(values.shape):
        change = np.zeros_like(values)
        change[index] = h
        above, below = (contracted(case, operand, values + sign * change, incoming) for sign in (1, -1))
        result[index] = (above - below) / (2 * h)
    return result


def contracted(case: Case, operand: str, values: np.ndarray, incoming: dict[str, np.ndarray]) -> float:
    known = forward(case, case.operands | {operand: values})  # the outputs that are read follow x
    total = 0.0
    for name, gradient in incoming.items():
        output = known[name[2:]]
        total += float(np.sum(gradient * np.where(np.isfinite(output), output, 0)))  # −∞ is a constant
    return total


def complete(whole: bytes) -> int:
    case = Case("complete_bytes", {"bytes": np.array(list(whole))}, {"out": np.array(0)})
    return int(forward(case, case.operands)["out"])
