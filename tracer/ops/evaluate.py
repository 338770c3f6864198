"""Recompute the array that a kind of operation makes, in NumPy, from its operands alone.

Every letter of an equation is one axis of a common grid; an element read is a broadcast gather on
that grid; a reduction removes an axis.  So any equation of the language is a few NumPy calls.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.ops import cost as costs
from tracer.ops.functions import FUNCTIONS, SMALLEST, Numbers
from tracer.ops.language import Equation, Node, factors, walk
from tracer.ops.mcg31m1 import mcg31m1
from tracer.ops.rounded import EXACT, Rounded, finite, sum_error


@dataclass(frozen=True)
class Computation:
    """A target of a kind with everything it needs: equations without ``...``, arrays, settings.

    `operands`: name → array of any shape, or `Rounded` where an operand was itself recomputed.  `shape`: the
    shape of the array to compute.
    """

    equations: list[Equation]
    operands: dict[str, np.ndarray | Rounded]
    settings: Mapping[str, float]
    shape: tuple[int, ...]

    def sizes(self) -> dict[str, int]:
        shapes = {name: operand.value.shape if isinstance(operand, Rounded) else operand.shape
                  for name, operand in self.operands.items()}
        return letter_sizes(self.equations, self.shape, shapes)


def letter_sizes(equations: list[Equation], shape: tuple[int, ...],
                 operands: dict[str, tuple[int, ...]]) -> dict[str, int]:
    """The length of every letter's axis, from the shapes of the target, of its operands and of what comes between.

    Raises `ValueError` when two arrays disagree.
    """
    sizes: dict[str, int] = {}
    known = dict(operands)
    _note_sizes(sizes, equations[-1].name, equations[-1].index, shape)
    for equation in equations:
        for name, index in equation.reads:
            if name in known:
                _note_sizes(sizes, name, index, known[name])
        if all(item[1] in sizes for item in equation.index):
            known[equation.name] = tuple(sizes[item[1]] for item in equation.index)
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
            known[equation.name] = _in_parts(equation, sizes, known, computation.settings)
    return known[computation.equations[-1].name]


def _in_parts(equation: Equation, sizes: dict[str, int], known: dict[str, Rounded],
              settings: Mapping[str, float]) -> Rounded:
    """The equation's values; where its grid is large, part by part along one letter of the result."""
    cost = costs.GridCost(equation, sizes) if math.prod(sizes.values()) > costs.BLOCK else None
    if not cost or (count := cost.cuts()) == 1:
        return _Grid(equation, sizes, known, settings).run()
    letter = cost.cut()
    if letter is None:
        raise AssertionError("a grid without a letter is not cut")
    axis = cost.free.index(letter)
    shape = [sizes[name] for name in cost.free]
    values, errors = np.empty(shape), np.empty(shape)
    edges = [sizes[letter] * n // count for n in range(count + 1)]
    for start, stop in itertools.pairwise(edges):
        part = _Grid(equation, sizes, known, settings, {letter: (start, stop)}).run()
        place = (*[slice(None)] * axis, slice(start, stop))
        values[place], errors[place] = part.value, part.error
    return Rounded(values, errors)


class _Grid:
    """One equation on the grid of its letters: left-hand letters first, then the reduced ones.

    `part`: of the letter named there only the numbers from start to stop.
    """

    def __init__(self, equation: Equation, sizes: dict[str, int], known: dict[str, Rounded],
                 settings: Mapping[str, float], part: dict[str, tuple[int, int]] | None = None):
        self.equation, self.sizes, self.known, self.settings = equation, sizes, known, settings
        self.span = {letter: (0, size) for letter, size in sizes.items()} | (part or {})
        self.choosing = 0  # how many `where` stand around the node that is evaluated
        self.letters = [item[1] for item in equation.index]
        for node in walk(equation.body):
            if node[0] == "reduce":
                self.letters += [item[1] for item in node[2] if item[1] not in self.letters]

    def run(self) -> Rounded:
        result = self.eval(self.equation.body)
        free = [self.length(item[1]) for item in self.equation.index]
        shape = (*free, *[1] * (len(self.letters) - len(free)))
        value, error = (np.broadcast_to(part, shape).reshape(free) for part in (result.value, result.error))
        return Rounded(value, error)

    def length(self, letter: str) -> int:
        start, stop = self.span[letter]
        return stop - start

    def axis(self, letter: str) -> np.ndarray:
        position = self.letters.index(letter)
        shape = [1] * len(self.letters)
        shape[position] = self.length(letter)
        return np.arange(*self.span[letter], dtype=np.float64).reshape(shape)

    def eval(self, node: Node) -> Rounded:
        found: Rounded = getattr(self, f"_{node[0]}")(*node[1:])
        return found

    def _number(self, value: float) -> Rounded:
        return Rounded(np.float64(value))

    def _letter(self, name: str) -> Rounded:
        return Rounded(self.axis(name))

    def _name(self, name: str) -> Rounded:
        constants = {"inf": np.inf, "pi": np.pi}
        return self._number(constants[name] if name in constants else self.settings[name])

    def _size(self, letter: Node) -> Rounded:
        return self._number(self.sizes[letter[1]])

    def _read(self, name: str, index: list[Node]) -> Rounded:
        values, errors = np.asarray(self.known[name].value), np.asarray(self.known[name].error)
        whole = errors.shape == values.shape
        if self._is_plain(index, values.shape):
            return Rounded(self._whole(values, index), self._whole(errors, index) if whole else EXACT)
        places = [self.eval(item).value for item in index]
        outside = [(p != np.floor(p)) | (p < 0) | (p >= n) for p, n in zip(places, values.shape, strict=True)]
        if any(map(np.any, outside)) and not self.choosing:
            raise IndexError(f"{name} of shape {values.shape} is read outside of it")
        where = tuple(np.where(o, 0, p).astype(np.int64) for o, p in zip(outside, places, strict=True))
        error = errors[where] if whole else EXACT
        value = values[where]
        for part in outside:  # what a `where` does not choose may be anything: NaN shows when it is chosen
            value = np.where(part, np.nan, value) if part.any() else value
        return Rounded(value, error)

    def _is_plain(self, index: list[Node], shape: tuple[int, ...]) -> bool:
        """Whether an array is read whole, each axis along a letter of its own: then it only has to be turned."""
        letters = [item[1] for item in index if item[0] == "letter"]
        return bool(index) and len({*letters}) == len(index) and [self.sizes[x] for x in letters] == [*shape]

    def _whole(self, values: np.ndarray, index: list[Node]) -> np.ndarray:
        letters = [item[1] for item in index]
        order = sorted(range(len(letters)), key=lambda n: self.letters.index(letters[n]))
        part = values[tuple(slice(*self.span[letter]) for letter in letters)].transpose(order)
        return part.reshape([self.length(x) if x in letters else 1 for x in self.letters])

    def _negate(self, body: Node) -> Rounded:
        return -self.eval(body)

    def _binary(self, op: str, left: Node, right: Node) -> Rounded:
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
            case "**":
                return a.power(b)
        exact = {"//": np.floor_divide, "%": np.mod}[op]
        return Rounded(exact(a.value, b.value))

    def _stream(self, word: Node, n: Node) -> Rounded:
        return Rounded(mcg31m1(int(self.eval(word).value.item()), self.eval(n).value))

    def _compare(self, op: str, left: Node, right: Node) -> Rounded:
        a, b = self.eval(left).value, self.eval(right).value
        result = {"==": np.equal, "<=": np.less_equal, "<": np.less, ">=": np.greater_equal,
                  ">": np.greater}[op](a, b)
        return Rounded(result.astype(np.float64))

    def _where(self, condition: Node, yes: Node, no: Node) -> Rounded:
        chosen = self.eval(condition)
        self.choosing += 1
        one, other = self.eval(yes), self.eval(no)
        self.choosing -= 1
        return chosen.where(one, other)

    def _call(self, name: str, body: Node) -> Rounded:
        return self.eval(body).apply(FUNCTIONS[name])

    def _reduce(self, name: str, over: list[Node], body: Node, *rest: Node) -> Rounded:
        letters = [item[1] for item in over]
        if name == "sum" and len(parts := factors(body)) > 1:
            return self._sum_of_products(parts, letters)
        value = self.eval(body)
        axes = tuple(self.letters.index(letter) for letter in letters)
        shape = list(np.broadcast_shapes(value.value.shape, (1,) * len(self.letters)))
        for axis, letter in zip(axes, letters, strict=True):
            shape[axis] = self.sizes[letter]
        values = np.broadcast_to(value.value, shape)
        if name == "nth_largest":
            return self._nth_largest(values, axes[0], self.eval(rest[0]).value)
        value = Rounded(values, np.broadcast_to(value.error, shape))
        return value.sum(axes) if name == "sum" else value.max(axes)

    def _nth_largest(self, values: np.ndarray, axis: int, n: Numbers) -> Rounded:
        order = np.argsort(-values, axis=axis, kind="stable")
        n = np.broadcast_to(n, [1 if a == axis else size for a, size in enumerate(
            np.broadcast_shapes(np.shape(n), [1 if a == axis else s for a, s in enumerate(values.shape)]))])
        order = np.broadcast_to(order, [values.shape[axis] if a == axis else s for a, s in enumerate(n.shape)])
        return Rounded(np.take_along_axis(order, n.astype(np.int64), axis).astype(np.float64))

    def _plain_product(self, node: Node) -> list[Node] | None:
        """The factors, when `node` only multiplies whole arrays read at plain letters."""
        if node[0] == "binary" and node[1] == "*":
            left, right = self._plain_product(node[2]), self._plain_product(node[3])
            return left + right if left is not None and right is not None else None
        plain = node[0] == "read" and node[2] and all(item[0] == "letter" for item in node[2])
        return [node] if plain and not np.any(self.known[node[1]].error) else None

    def _sum_of_products(self, nodes: list[Node], over: list[str]) -> Rounded:
        """A sum of products as one matrix product: the grid of all terms is never built."""
        parts = [self.eval(node) for node in nodes]
        number = {letter: i for i, letter in enumerate(self.letters)}
        shapes = [np.broadcast_shapes(np.shape(p.value), np.shape(p.error), (1,) * len(number)) for p in parts]
        along = [[x for x, length in zip(self.letters, shape, strict=True) if length > 1] for shape in shapes]
        keep = [letter for letter in self.letters if letter not in over and any(letter in own for own in along)]

        def product(arrays: Sequence[Numbers]) -> np.ndarray:
            pairs: list[Any] = []  # an array, then the numbers of its axes, as `einsum` takes them
            for array, shape, letters in zip(arrays, shapes, along, strict=True):
                pairs += [np.broadcast_to(array, shape).reshape([self.length(x) for x in letters]),
                          [number[x] for x in letters]]
            return np.asarray(np.einsum(*pairs, [number[letter] for letter in keep], optimize=True) * repeat)

        used = {letter for own in along for letter in own}
        repeat = math.prod(self.sizes[letter] for letter in over if letter not in used)
        count = math.prod(self.sizes[letter] for letter in over)
        magnitudes = [np.abs(part.value) for part in parts]
        bound = sum_error(count) * product(magnitudes) + SMALLEST * count
        for n, part in enumerate(parts):
            if np.any(part.error):
                bound = bound + product([*magnitudes[:n], part.error, *magnitudes[n + 1:]])
        shape = [self.length(letter) if letter in keep else 1 for letter in self.letters]
        return Rounded(product([part.value for part in parts]).reshape(shape), finite(bound).reshape(shape))
