"""What an evaluation will take, from equations and shapes alone, before anything is computed.

The same walk over an equation that `tracer.ops.evaluate` makes, with letters in place of numbers.  Work is
counted in nanoseconds of one slow core; where the real time is below, the bound holds still.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tracer.ops.functions import FUNCTIONS
from tracer.ops.language import Equation, Node, factors

BLOCK = 2**20  # cells of the largest grid that is built at once, where an equation can be cut
OVERHEAD = 8_000  # ns of a node on an empty grid
PAIR = 16  # bytes of a value and its error
TEMPORARIES = 8  # grids of float64 that are alive at once while one node is computed
# ns a cell
WEIGHTS = {"read": 10, "negate": 5, "binary": 40, "compare": 10, "where": 20, "stream": 200, "sum": 10, "max": 10,
           "nth_largest": 20}
PRODUCT = 0.5  # ns for one multiplication and addition of a matrix product


@dataclass(frozen=True)
class Cost:
    """`work`: nanoseconds.  `memory`: bytes at once, without the operands as they are held."""

    work: float = 0.0
    memory: int = 0


def evaluation_cost(equations: list[Equation], sizes: dict[str, int], operands: int) -> Cost:
    """What `evaluate` takes.  `sizes`: letter → length; `operands`: numbers that are read as float64."""
    work, made, largest = 0.0, 0, 0
    for equation in equations:
        grid = GridCost(equation, sizes)
        made += math.prod(sizes[item[1]] for item in equation.index)
        work += grid.work
        largest = max(largest, math.ceil(grid.largest / grid.cuts()))
    return Cost(work, 8 * operands + PAIR * made + 8 * TEMPORARIES * largest)


class GridCost:
    """The walk over one equation: `largest` is the number of cells of the largest grid that is built."""

    def __init__(self, equation: Equation, sizes: dict[str, int]):
        self.sizes, self.work, self.largest = sizes, 0.0, 0
        self.free = [item[1] for item in equation.index]
        self.visit(equation.body)
        self.count({*self.free}, "read")

    def cut(self) -> str | None:
        """The letter along which the grid is cut: the longest that no sum or maximum runs along."""
        return max(self.free, key=self.sizes.__getitem__, default=None)

    def cuts(self) -> int:
        """Into how many parts it is cut."""
        letter = self.cut()
        return min(math.ceil(self.largest / BLOCK), self.sizes[letter]) or 1 if letter else 1

    def cells(self, letters: set[str]) -> int:
        return math.prod(self.sizes[letter] for letter in letters)

    def count(self, letters: set[str], what: str | float, times: float = 1) -> set[str]:
        """A node on the grid of `letters`: `what` it is, or what it takes a cell."""
        cells = self.cells(letters)
        self.largest = max(self.largest, cells)
        self.work += OVERHEAD + (WEIGHTS[what] if isinstance(what, str) else what) * cells * times
        return letters

    def visit(self, node: Node) -> set[str]:
        """The letters along which the node's values differ."""
        match node:
            case ["letter", name]:
                return {name}
            case ["read", _, index]:
                return self.count(self.union(index), "read")
            case ["reduce", name, over, body, *rest]:
                return self.reduce(name, {item[1] for item in over}, body, rest)
            case ["call", name, body]:
                return self.count(self.visit(body), FUNCTIONS[name].cost)
            case ["binary" | "compare" | "where" | "negate" | "stream" as what, *parts]:
                return self.count(self.union(part for part in parts if isinstance(part, list)), what)
        return set()  # a number, a name, a size

    def union(self, nodes: Iterable[Node]) -> set[str]:
        return {letter for node in nodes for letter in self.visit(node)}

    def reduce(self, name: str, over: set[str], body: Node, rest: list[Node]) -> set[str]:
        """As `visit`, of a reduction over the letters `over`."""
        parts = factors(body)
        used = self.union(parts if name == "sum" else [body])
        if name == "sum" and len(parts) > 1:
            self.work += PRODUCT * self.cells(used) * (2 + len(parts))  # values, magnitudes, an error each
            return self.count(used - over, "sum")
        self.count(used | over, name, math.log2(self.cells(over) + 2) if name == "nth_largest" else 1)
        return self.count((used - over) | self.union(rest), "read")
