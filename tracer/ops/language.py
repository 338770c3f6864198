"""The small language in which every kind of operation is written, once.

A kind of operation is a few equations over named arrays, one per line::

    m[...]      = max(k, x[..., k])
    e[..., k]   = exp(x[..., k] - m[...])
    out[..., k] = e[..., k] / sum(k, e[..., k])

From this text alone come: the recomputation in NumPy (`tracer.ops.evaluate`), the recomputation
and the written-out working of a single number in the browser (`static/js/evaluate.js`), the formula
on the page (`site_builder/formula.py`), what an operand is used for, and, but where a kind states it,
its gradient (`tracer.ops.derive`).  Nothing about an operation is said twice.

Grammar (a subset of Python's expressions, read with `ast`):

* ``x[t, d]``            an element; an index may be a letter, ``...``, or any integer expression;
                        ``x[()]`` is the one element of a scalar
* ``sum(d, …)``, ``max(d, …)``   reductions over a letter (or a tuple of letters, or ``...``)
* ``nth_largest(v, …, n)``       the index of the n-th largest value, ties to the lower index
* ``exp(x)``, ``tanh(x)`` …      functions of one value: the rows of `tracer.ops.functions`
* ``size(d)``                    the length of an axis
* ``where(c, a, b)``, ``a == b``, ``a <= b`` …   choices; a comparison is 1 or 0
* ``mcg31m1(s, n)``              the n-th number of the dropout stream that starts from the word s
* ``flat(...)``                  the row-major number of an element within its array
* ``+ - * / // % **``, numbers, ``inf``, ``pi``, and bare names: letters or the settings of an operation

Nodes are plain lists, so that they travel to the browser as JSON without a second format.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tracer.ops.functions import FUNCTIONS

Node = list[Any]  # its kind, then nodes, lists of nodes, names and numbers

REDUCTIONS = {"sum", "max", "nth_largest"}
_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
           ast.Pow: "**"}
_COMPARE = {ast.Eq: "==", ast.LtE: "<=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">"}
ELLIPSIS: Node = ["ellipsis"]
CONSTANTS = {"inf", "pi"}


@dataclass(frozen=True)
class Equation:
    """``name[index] = body``; the letters of `index` range over the array's whole shape."""

    name: str
    index: list[Node]
    body: Node

    @cached_property
    def reads(self) -> list[tuple[str, list[Node]]]:
        """Every array that the body reads, and at which index, in order of appearance."""
        return [(node[1], node[2]) for node in walk(self.body) if node[0] == "read"]

    @cached_property
    def settings(self) -> list[str]:
        """The settings that the body names."""
        return [node[1] for node in walk(self.body) if node[0] == "name" and node[1] not in CONSTANTS]

    def to_json(self) -> list[Any]:
        return [self.name, self.index, self.body]


@dataclass(frozen=True)
class Kind:
    """One kind of operation: what it computes (`forward`) and how gradients pass (`gradient`).

    `targets` maps the name of each array the kind can make to the equations that make it; the last
    equation defines the target, the ones before are intermediate values shown in the working.
    A gradient target is named ``d_<operand>``, and reads ``d_<output>``.

    `place`: where in a model a module of the kind may stand, "norm" or "activation"; "" where no setting chooses it.
    `torch`: the same in PyTorch, as a function of the operands and settings by name that calls methods of tensors
    alone; batch axes come before the axes of an operand.  `symbols`: LaTeX for the names in its equations.
    """

    name: str
    source: str
    targets: dict[str, list[Equation]]
    place: str = ""
    torch: Callable[..., Any] | None = None
    symbols: dict[str, str] = field(default_factory=dict)

    @property
    def in_torch(self) -> Callable[..., Any]:
        """The PyTorch form.  Raises `ValueError` for a kind that states none."""
        if self.torch is None:
            raise ValueError(f"kind {self.name} states no PyTorch form")
        return self.torch

    @property
    def parameters(self) -> dict[str, list[Node]]:
        """What a module of the kind holds itself → its index: what ``out`` reads that is the same at every place."""
        reads = [read for equation in self.targets["out"] for read in equation.reads]
        defined = {*self.targets, *(equation.name for equation in self.targets["out"])}
        return {name: index for name, index in reads if name not in defined and ELLIPSIS not in index}

    def operands(self, target: str) -> list[str]:
        """Names that `target` reads but does not define, in order of appearance."""
        defined = {eq.name for eq in self.targets[target]}
        return list(dict.fromkeys(name for equation in self.targets[target] for name, _ in equation.reads
                                  if name not in defined))

    def settings(self, target: str) -> list[str]:
        """The settings that an operation needs to make `target`, in order of appearance."""
        return list(dict.fromkeys(name for equation in self.targets[target] for name in equation.settings))


def walk(node: Node) -> Iterator[Node]:
    """Every node of an expression, outermost first."""
    yield node
    for part in node[1:]:
        if isinstance(part, list):
            if part and isinstance(part[0], list):
                for child in part:
                    yield from walk(child)
            elif part and isinstance(part[0], str):
                yield from walk(part)


def factors(node: Node) -> list[Node]:
    """What a node multiplies; itself when it is no product."""
    return factors(node[2]) + factors(node[3]) if node[:2] == ["binary", "*"] else [node]


def transform(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """A copy of `node` in which `change` has replaced what it returns a node for."""
    replaced = change(node)
    if replaced is not None:
        return replaced
    return [_transform_part(part, change) for part in node]


def _transform_part(part: Any, change: Callable[[Node], Node | None]) -> Any:
    if not isinstance(part, list) or not part:
        return part
    if isinstance(part[0], list):
        return [transform(child, change) for child in part]
    return transform(part, change) if part[0] in NODE_TYPES else part


NODE_TYPES = {"number", "letter", "name", "read", "binary", "negate", "compare", "call", "reduce",
              "where", "size", "ellipsis", "flat", "stream"}


def parse(text: str) -> list[Equation]:
    """Read equations, one per line.  Raises `SyntaxError` for what is outside the grammar."""
    try:
        statements = ast.parse("\n".join(line.strip() for line in text.strip().splitlines())).body
    except (SyntaxError, ValueError):
        raise _outside(text) from None
    if not statements:
        raise _outside(text)
    letters = _letters_of(statements)
    return [_equation(statement, letters) for statement in statements]


def _outside(what: ast.AST | str) -> SyntaxError:
    text = what.strip() if isinstance(what, str) else ast.unparse(what)
    return SyntaxError(f"not in the language of operations: {text!r}")


def _letters_of(statements: list[ast.stmt]) -> set[str]:
    """Index letters: bare names in an index on the left, or bound by a reduction."""
    found = set()
    for node in (node for statement in statements for node in ast.walk(statement)):
        match node:
            case ast.Assign(targets=[ast.Subscript() as target]):
                found |= _names(_index_items(target))
            case ast.Call(func=ast.Name(id=name), args=[binder, *_]) if name in REDUCTIONS:
                found |= _names(_tuple_items(binder))
    return found


def _names(items: list[ast.expr]) -> set[str]:
    return {item.id for item in items if isinstance(item, ast.Name)}


def _tuple_items(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def _index_items(node: ast.Subscript) -> list[ast.expr]:
    return _tuple_items(node.slice)


def _equation(statement: ast.stmt, letters: set[str]) -> Equation:
    match statement:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name)) as target], value=body):
            return Equation(name, _axes(_index_items(target), target), _expression(body, letters))
    raise _outside(statement)


def _axes(items: list[ast.expr], where: ast.AST) -> list[Node]:
    """Different letters, or ``...``: what an array ranges over, and what a reduction binds."""
    nodes: list[Node] = [["letter", i.id] if isinstance(i, ast.Name) else ELLIPSIS for i in items
                         if isinstance(i, ast.Name) or _is_ellipsis(i)]
    if len(nodes) < len(items) or any(nodes.count(node) > 1 for node in nodes):
        raise _outside(where)
    return nodes


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _expression(node: ast.expr, letters: set[str]) -> Node:
    def read(child: ast.expr) -> Node:
        return _expression(child, letters)

    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return ["number", value]
        case ast.Name(id=name):
            return ["letter", name] if name in letters else ["name", name]
        case ast.Subscript(value=ast.Name(id=name)):
            return ["read", name, [ELLIPSIS if _is_ellipsis(i) else read(i) for i in _index_items(node)]]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return ["binary", _BINARY[type(op)], read(left), read(right)]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ["negate", read(operand)]
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return ["compare", _COMPARE[type(op)], read(left), read(right)]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(node, name, args, read)
    raise _outside(node)


def _call(node: ast.Call, name: str, args: list[ast.expr], read: Callable[[ast.expr], Node]) -> Node:
    match name, args:
        case ("sum" | "max"), [binder, body]:
            return ["reduce", name, _binder(binder, node), read(body)]
        case "nth_largest", [ast.Name() as binder, body, n]:
            return ["reduce", name, _binder(binder, node), read(body), read(n)]
        case "where", [_, _, _]:
            return ["where", *map(read, args)]
        case "size", [ast.Name() as letter]:
            return ["size", ["letter", letter.id]]
        case "flat", [where] if _is_ellipsis(where):
            return ["flat"]
        case "mcg31m1", [word, n]:
            return ["stream", read(word), read(n)]
        case _, [body] if name in FUNCTIONS:
            return ["call", name, read(body)]
    raise _outside(node)


def _binder(node: ast.expr, where: ast.AST) -> list[Node]:
    if axes := _axes(_tuple_items(node), where):
        return axes
    raise _outside(where)


def expand_ellipsis(equations: list[Equation], letters: list[str]) -> list[Equation]:
    """Put concrete index letters in place of every ``...``."""
    fill = [["letter", letter] for letter in letters]

    def spread(items: list[Node]) -> list[Node]:
        return [new for item in items for new in (fill if item == ELLIPSIS else [transform(item, change)])]

    def change(node: Node) -> Node | None:
        if node[0] == "read":
            return ["read", node[1], spread(node[2])]
        if node[0] == "reduce":
            over = spread(node[2])
            inner = [transform(part, change) for part in node[3:]]
            return ["reduce", node[1], over, *inner] if over else inner[0]
        if node[0] == "flat":
            return _row_major(letters)
        return None

    return [Equation(eq.name, spread(eq.index), transform(eq.body, change)) for eq in equations]


def _row_major(letters: list[str]) -> Node:
    number: Node = ["letter", letters[0]] if letters else ["number", 0]
    for letter in letters[1:]:
        scaled = ["binary", "*", number, ["size", ["letter", letter]]]
        number = ["binary", "+", scaled, ["letter", letter]]
    return number
