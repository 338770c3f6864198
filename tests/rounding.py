"""How far rounding may move each array of a recording, worked out from its equations.

All equations are computed in float64 from what nothing recorded made, once exactly and then with every result moved
by the bound of its own float32 error (`tracer.ops.rounded`) up or down at random, so that the equations themselves
carry each step's error on: Monte Carlo arithmetic (Parker 1997) with the bounds of a running error analysis.
"""

import numpy as np

from tracer.format.trace import AXES, Trace
from tracer.ops.evaluate import Computation, evaluate
from tracer.ops.replay import Replay
from tracer.ops.rounded import UNIT

DRAWS = 2
STD, LARGEST = 0.02, 5.77  # of an initial weight: √(−2 ln u) ≤ √(2·24·ln 2) standard deviations, in float32


def spreads(trace: Trace, names: list[str]) -> dict[str, float]:
    """The largest distance of a number of each array in `names` from its exact value, as far as rounding moves it."""
    exact = Carried(trace, None)
    found = dict.fromkeys(names, 0.0)
    for seed in range(DRAWS):
        moved = Carried(trace, np.random.default_rng(seed))
        for name in names:
            finite = np.isfinite(exact.number(name))  # −∞ in masked scores
            distance = np.abs(moved.number(name)[finite] - exact.number(name)[finite]).max(initial=0)
            found[name] = max(found[name], float(distance))
    assert all(map(np.isfinite, found.values()))
    return found


class Carried:
    """Every array of `trace` from its initial parameters alone."""

    def __init__(self, trace: Trace, random: np.random.Generator | None):
        self.trace, self.random, self.known = trace, random, {}
        self.replay = Replay(trace, AXES)

    def number(self, name: str) -> np.ndarray:
        if name not in self.known:
            step = self.trace.operations.get(name)
            whole = np.dtype(self.trace.arrays[name].dtype).kind == "i"
            self.known[name] = self._source(name) if step is None or whole else self._made(step)
        return self.known[name]

    def _source(self, name: str) -> np.ndarray:
        values = self.trace.values(name).astype(np.float64)
        drawn = name.endswith("weight") and "norm" not in name
        # Box and Muller: the root times a cosine, whose argument, up to 2π, was rounded, and four operations.
        return self._moved(values, (2 * np.pi + 4) * UNIT * STD * LARGEST) if drawn else values

    def _made(self, step) -> np.ndarray:
        operands = {operand: self.number(name) for operand, name in step.operands.items()}
        shape = self.trace.arrays[step.id].shape
        computed = evaluate(Computation(self.replay.equations(step), operands, step.settings, shape))
        moved = self._moved(computed.value, computed.error)
        return np.maximum(moved, 0) if (step.kind, step.target) == ("adamw", "v") else moved  # a square stays one

    def _moved(self, values: np.ndarray, bound: np.ndarray | float) -> np.ndarray:
        if self.random is None:
            return values
        return values + bound * self.random.choice([-1.0, 1.0], size=values.shape)
