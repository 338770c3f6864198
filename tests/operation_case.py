"""An example of an operation: operands, and what it must compute; and how it is computed."""

import math
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


# Other ways to the same numbers ----------------------------------------------------------------------

def normal(*shape: int) -> np.ndarray:
    return np.asarray(random.normal(size=shape))


def normal_cdf(x: float, panels: int = 4000) -> float:
    """½ + ∫₀ˣ of the standard normal density, by Simpson's rule."""
    points = np.linspace(0, x, 2 * panels + 1)
    density = np.exp(-points**2 / 2) / math.sqrt(2 * math.pi)
    weights = np.where(np.arange(len(points)) % 2, 4, 2)
    weights[[0, -1]] = 1
    return 0.5 + float(weights @ density) * (x / (2 * panels)) / 3


def kept_by_mcg31m1(word: int, count: int, p: float) -> list[float]:
    """The mask in whole numbers of any size, one after the other, as reference.md says it."""
    modulus = 2**31 - 1
    x = word % modulus or 1
    kept = []
    for _ in range(count):
        kept.append(float(x / modulus < 1 - p))
        x = 1132489760 * x % modulus
    return kept


def torch_adamw(before, gradient, moments, update, lr, beta1, beta2, eps, weight_decay) -> dict[str, np.ndarray]:
    """One step of torch's own AdamW, in float64, without its fused kernel; `moments` are those before it."""
    parameter = torch.nn.Parameter(tensor(before).clone())
    parameter.grad = tensor(gradient).clone()
    optimizer = torch.optim.AdamW([parameter], lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay,
                                  fused=False, foreach=False)
    state = optimizer.state[parameter]
    if update > 1:
        state |= {"step": torch.tensor(update - 1.0), "exp_avg": tensor(moments["m_before"]).clone(),
                  "exp_avg_sq": tensor(moments["v_before"]).clone()}
        optimizer.state[parameter] = state
    optimizer.step()
    state = optimizer.state[parameter]
    return {"m": state["exp_avg"].numpy(), "v": state["exp_avg_sq"].numpy(), "after": parameter.detach().numpy()}
