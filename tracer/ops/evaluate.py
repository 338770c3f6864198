"""Recompute the array that a kind of operation makes, in NumPy, from its operands alone.

Every letter of an equation is one axis of a common grid; an element read is a broadcast gather on
that grid; a reduction removes an axis.  So any equation of the language is a few NumPy calls.
"""

from dataclasses import dataclass

import numpy as np

from tracer.ops.language import Equation, Node, walk
from tracer.ops.mcg31m1 import mcg31m1
from tracer.ops.rounded import SMALLEST, Rounded, sum_error


@dataclass(frozen=True)
class Computation:
    """A target of a kind with everything it needs: equations without ``...``, arrays, attributes.

    `operands`: name → array of any shape, or `Rounded` where an operand was itself recomputed.  `shape`: the
    shape of the array to compute.
    """

    equations: list[Equation]
    operands: dict[str, np.ndarray | Rounded]
    attributes: dict[str, float]
    shape: tuple[int, ...]

    def sizes(self) -> dict[str, int]:
        shapes = {name: operand.value.shape if isinstance(operand, Rounded) else operand.shape
                  for name, operand in self.operands.items()}
        return letter_sizes(self.equations, self.shape, shapes)


def letter_sizes(equations: list[Equation], shape: tuple[int, ...],
                 operands: dict[str, tuple[int, ...]]) -> dict[str, int]:
    """The length of every letter's axis, from the shapes of the target and of its operands.

    Raises `ValueError` when two arrays disagree.
    """
    sizes: dict[str, int] = {}
    _note_sizes(sizes, equations[-1].name, equations[-1].index, shape)
    for equation in equations:
        for name, index in equation.reads:
            if name in operands:
                _note_sizes(sizes, name, index, operands[name])
    return sizes


def _note_sizes(sizes: dict[str, int], name: str, index: list[Node], shape: tuple[int, ...]) -> None:
    if len(index) != len(shape):
        raise ValueError(f"{name} has {len(shape)} axes, the operation reads {len(index)}")
    for item, length in zip(index, shape, strict=True):
        if item[0] == "letter" and sizes.setdefault(item[1], length) != length:
            raise ValueError(f"axis {item[1]} of {name} has length {length}, elsewhere {sizes[item[1]]}")


def evaluate(computation: Computation) -> Rounded:
    """The target's values (float64, shape `computation.shape`) and their float32 error bound."""
    sizes = computation.sizes()
    known = {name: array if isinstance(array, Rounded) else Rounded(np.asarray(array, dtype=np.float64), np.zeros(1))
             for name, array in computation.operands.items()}
    with np.errstate(all="ignore"):
        for equation in computation.equations:
            known[equation.name] = _Grid(equation, sizes, known, computation.attributes).run()
    return known[computation.equations[-1].name]


class _Grid:
    """One equation on the grid of its letters: left-hand letters first, then the reduced ones."""

    def __init__(self, equation: Equation, sizes, known, attributes):
        self.equation, self.sizes, self.known, self.attributes = equation, sizes, known, attributes
        self.choosing = 0  # how many `where` stand around the node that is evaluated
        self.letters = [item[1] for item in equation.index]
        for node in walk(equation.body):
            if node[0] == "reduce":
                self.letters += [item[1] for item in node[2] if item[1] not in self.letters]

    def run(self) -> Rounded:
        result = self.eval(self.equation.body)
        free = [self.sizes[item[1]] for item in self.equation.index]
        shape = (*free, *[1] * (len(self.letters) - len(free)))
        full = [np.broadcast_to(part, shape).reshape(free) for part in (result.value, result.error)]
        return Rounded(*full)

    def axis(self, letter: str) -> np.ndarray:
        position = self.letters.index(letter)
        shape = [1] * len(self.letters)
        shape[position] = self.sizes[letter]
        return np.arange(self.sizes[letter], dtype=np.float64).reshape(shape)

    def eval(self, node: Node) -> Rounded:
        return getattr(self, f"_{node[0]}")(*node[1:])

    def _number(self, value):
        return Rounded(np.float64(value), np.float64(0))

    def _letter(self, name):
        return Rounded(self.axis(name), np.float64(0))

    def _name(self, name):
        constants = {"inf": np.inf, "pi": np.pi}
        return self._number(constants[name] if name in constants else self.attributes[name])

    def _size(self, letter):
        return self._number(self.sizes[letter[1]])

    def _read(self, name, index):
        array = self.known[name]
        places = [self.eval(item).value for item in index]
        outside = [(p != np.floor(p)) | (p < 0) | (p >= n) for p, n in zip(places, array.value.shape, strict=True)]
        if any(map(np.any, outside)) and not self.choosing:
            raise IndexError(f"{name} of shape {array.value.shape} is read outside of it")
        where = tuple(np.where(o, 0, p).astype(np.int64) for o, p in zip(outside, places, strict=True))
        error = array.error[where] if array.error.shape == array.value.shape else np.float64(0)
        value = array.value[where]
        for part in outside:  # what a `where` does not choose may be anything: NaN shows when it is chosen
            value = np.where(part, np.nan, value) if part.any() else value
        return Rounded(value, error)

    def _negate(self, body):
        return -self.eval(body)

    def _binary(self, op, left, right):
        a, b = self.eval(left), self.eval(right)
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return a / b
        exact = {"//": np.floor_divide, "%": np.mod, "**": np.power}[op]
        return Rounded(exact(a.value, b.value), np.float64(0))

    def _stream(self, word, n):
        return Rounded(mcg31m1(int(self.eval(word).value.item()), self.eval(n).value), np.float64(0))

    def _compare(self, op, left, right):
        a, b = self.eval(left).value, self.eval(right).value
        result = {"==": np.equal, "<=": np.less_equal, "<": np.less, ">=": np.greater_equal,
                  ">": np.greater}[op](a, b)
        return Rounded(result.astype(np.float64), np.float64(0))

    def _where(self, condition, yes, no):
        chosen = self.eval(condition)
        self.choosing += 1
        yes, no = self.eval(yes), self.eval(no)
        self.choosing -= 1
        return chosen.where(yes, no)

    def _call(self, name, body):
        return getattr(self.eval(body), name)()

    def _reduce(self, name, over, body, *rest):
        letters = [item[1] for item in over]
        if name == "sum" and (product := self._plain_product(body)) is not None:
            return self._sum_of_products(product, letters)
        value = self.eval(body)
        axes = tuple(self.letters.index(letter) for letter in letters)
        shape = list(np.broadcast_shapes(value.value.shape, (1,) * len(self.letters)))
        for axis, letter in zip(axes, letters, strict=True):
            shape[axis] = self.sizes[letter]
        value = Rounded(np.broadcast_to(value.value, shape), np.broadcast_to(value.error, shape))
        if name == "nth_largest":
            return self._nth_largest(value.value, axes[0], self.eval(rest[0]).value)
        return getattr(value, name)(axes)

    def _nth_largest(self, values, axis, n):
        order = np.argsort(-values, axis=axis, kind="stable")
        n = np.broadcast_to(n, [1 if a == axis else size for a, size in enumerate(
            np.broadcast_shapes(np.shape(n), [1 if a == axis else s for a, s in enumerate(values.shape)]))])
        order = np.broadcast_to(order, [values.shape[axis] if a == axis else s for a, s in enumerate(n.shape)])
        return Rounded(np.take_along_axis(order, n.astype(np.int64), axis).astype(np.float64), np.float64(0))

    def _plain_product(self, node: Node) -> list[Node] | None:
        """The factors, when `node` only multiplies whole arrays read at plain letters."""
        if node[0] == "binary" and node[1] == "*":
            left, right = self._plain_product(node[2]), self._plain_product(node[3])
            return left + right if left is not None and right is not None else None
        plain = node[0] == "read" and node[2] and all(item[0] == "letter" for item in node[2])
        return [node] if plain and not np.any(self.known[node[1]].error) else None

    def _sum_of_products(self, factors: list[Node], over: list[str]) -> Rounded:
        """The common case as one matrix product; the grid of all terms is never built."""
        number = {letter: i for i, letter in enumerate(self.letters)}
        used = {item[1] for factor in factors for item in factor[2]}
        keep = [letter for letter in self.letters if letter in used and letter not in over]
        repeat = np.prod([self.sizes[letter] for letter in over if letter not in used])

        def product(change):
            pairs = [part for f in factors for part in
                     (change(self.known[f[1]].value), [number[i[1]] for i in f[2]])]
            return np.einsum(*pairs, [number[letter] for letter in keep], optimize=True) * repeat

        shape = [self.sizes[letter] if letter in keep else 1 for letter in self.letters]
        count = np.prod([self.sizes[letter] for letter in over])
        bound = sum_error(count) * product(np.abs) + SMALLEST * count
        return Rounded(product(np.asarray).reshape(shape), bound.reshape(shape))
