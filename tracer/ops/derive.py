"""Gradients derived from forward equations by the chain rule, in reverse (Griewank and Walther 2008, section 3.2).

Of every equation that hangs on an operand x, from the last to the first, the incoming gradient ``d_name[…]`` goes
down to each place that is read.  On its way it is multiplied by what the place is multiplied by, divided by what
it is divided by, or multiplied by the derivative of a function (`tracer.ops.functions`); there it is summed along
the letters that the place does not have.  For ``out[I] = Σ_s a[A]·b[B]`` this is the output and an operand that
change places: ``d_a[A] = Σ_{letters not in A} d_out[I]·b[B]``.

A place that is not read by plain letters (``table[ids[t], d]``, ``key[h // g, j, d]``) gets an axis of its own, and
of the sum only what belongs there: ``d_table[a, d] = Σ_t where(ids[t] == a, d_out[t, d], 0)``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from string import ascii_lowercase

from tracer.ops.functions import FUNCTIONS
from tracer.ops.language import ELLIPSIS, Equation, Node, factors, parse, transform, walk

ZERO, ONE = ["number", 0], ["number", 1]


def derive_gradients(forward: list[Equation], inputs: tuple[str, ...],
                     outputs: dict[str, list[Equation]] | None = None) -> dict[str, list[Equation]]:
    """``{"d_x": equations}`` for each of `inputs`, from the equations of one output.

    `outputs`: the kind's other outputs by name, through which it is derived too, and which the gradient may read.
    Raises `ValueError` for what is not derived: through a maximum, an order, a rounding, a condition or an index.
    """
    return {f"d_{name}": _Derivation(forward, outputs or {}, name).equations() for name in inputs}


@dataclass(frozen=True)
class _Part:
    """`grad`, by `sign` and divided by `divisors` that are the same everywhere, comes to ``name[index]``.

    It is to be summed along those of `letters` that the index does not have.
    """

    name: str
    index: list[Node]
    grad: Node
    sign: int
    divisors: list[Node]
    letters: list[Node]


class _Derivation:
    def __init__(self, forward: list[Equation], outputs: dict[str, list[Equation]], name: str):
        self.name, self.target = name, forward[-1]
        self.recorded = {self.target.name, *outputs}  # a gradient may read them; all else it computes again
        self.names = {n[1] for equation in forward for n in _nodes(equation) if n[0] in ("letter", "name", "read")}
        self.stated: dict[str, Equation] = {}
        self.chain: list[Equation] = []
        self._extend(forward, outputs)
        self.moved = {name}  # whatever hangs on the operand
        for equation in self.chain:
            if any(read in self.moved for read, _ in equation.reads):
                self.moved.add(equation.name)

    def _extend(self, equations: list[Equation], outputs: dict[str, list[Equation]]) -> None:
        """The equations in order, before each those of the outputs that it reads."""
        for equation in equations:
            for name in dict(equation.reads):
                if name in outputs and name not in {known.name for known in self.chain}:
                    self._extend(outputs[name], outputs)
            if self.stated.setdefault(equation.name, equation) != equation:
                raise self._refused(f"{equation.name} is two things")
            if equation.name not in {known.name for known in self.chain}:
                self.chain.append(self._own_letters(equation))

    def _refused(self, why: str) -> ValueError:
        return ValueError(f"cannot derive the gradient of {self.name}: {why}")

    # Letters -----------------------------------------------------------------------------------------

    def _fresh(self) -> Node:
        letter = next((letter for letter in ascii_lowercase if letter not in self.names), None)
        if letter is None:
            raise self._refused("no letter is left for another axis")
        self.names.add(letter)
        return ["letter", letter]

    def _own_letters(self, equation: Equation) -> Equation:
        """The equation with another letter for every sum along one that is taken."""
        taken = list(equation.index)

        def change(node: Node) -> Node | None:
            if node[0] != "reduce" or not any(item in taken for item in node[2]):
                if node[0] == "reduce":
                    taken.extend(node[2])
                return None
            if ELLIPSIS in node[2] and ELLIPSIS in taken:
                raise self._refused("... stands for two things")
            names = {item[1]: self._fresh()[1] for item in node[2] if item in taken}
            return transform(_renamed(node, names), change)

        return replace(equation, body=transform(equation.body, change))

    # The way down ------------------------------------------------------------------------------------

    def equations(self) -> list[Equation]:
        """What the gradient needs of the forward pass, then the gradients of what comes between, then its own."""
        parts: dict[str, list[_Part]] = {}
        made: list[Equation] = []
        for equation in reversed(self.chain):
            if equation.name not in self.moved:
                continue
            if equation is not self.chain[-1]:
                if equation.name not in parts:
                    continue  # nothing reads it on the way to the target
                made.append(self._gathered(equation.name, equation.index, parts[equation.name]))
            incoming = ["read", f"d_{equation.name}", equation.index]
            start = _Part("", [], incoming, 1, [], list(equation.index))
            for part in self._down(equation, equation.body, start):
                parts.setdefault(part.name, []).append(part)
        if self.name not in parts:
            raise self._refused("the output does not read it")
        made.append(self._gathered(self.name, self._axes(parts[self.name]), parts[self.name]))
        found = [*self._needed(made), *made]
        self._check_lengths(found)
        return found

    def _hangs(self, node: Node) -> bool:
        return any(one[0] == "read" and one[1] in self.moved for one in walk(node))

    def _down(self, equation: Equation, node: Node, part: _Part) -> Iterator[_Part]:
        """What comes to each place in `node` that hangs on the operand, when `part` comes to all of it."""
        if not self._hangs(node):
            return
        match node:
            case ["read", name, index] if not any(map(self._hangs, index)):
                yield replace(part, name=name, index=index)
            case ["negate", body]:
                yield from self._down(equation, body, replace(part, sign=-part.sign))
            case ["binary", "+" | "-" as op, left, right]:
                yield from self._down(equation, left, part)
                yield from self._down(equation, right, replace(part, sign=-part.sign if op == "-" else part.sign))
            case ["binary", "*", _, _]:
                parts = factors(node)
                for n, one in enumerate(parts):
                    others = _times(part, *parts[:n], *parts[n + 1:])
                    yield from self._down(equation, one, others)
            case ["binary", "/", above, below]:
                yield from self._down(equation, above, _over(part, below))
                squared = _over(_times(part, above), ["binary", "**", below, ["number", 2]])
                yield from self._down(equation, below, replace(squared, sign=-squared.sign))
            case ["binary", "**", base, exponent] if not self._hangs(exponent):
                yield from self._down(equation, base, _times(part, *_slope_of_power(base, exponent)))
            case ["where", condition, yes, no] if not self._hangs(condition):
                # All of the way below stands inside the choice: what is not chosen may be read outside of its array.
                for found in self._down(equation, yes, part):
                    yield replace(found, grad=["where", condition, found.grad, ZERO])
                for found in self._down(equation, no, part):
                    yield replace(found, grad=["where", condition, ZERO, found.grad])
            case ["call", name, body]:
                known = node is equation.body  # then its value has a name already
                value = ["read", equation.name, equation.index] if known else node
                yield from self._down(equation, body, _times(part, _slope(name, body, value)))
            case ["reduce", "sum", over, body]:
                yield from self._down(equation, body, replace(part, letters=part.letters + over))
            case _:
                raise self._refused(f"{_TOLD.get(node[0], node[1])} stands around it")

    # What comes together -----------------------------------------------------------------------------

    def _axes(self, parts: list[_Part]) -> list[Node]:
        """The axes of the operand: the letters by which it is read, or new ones."""
        plain = [part.index for part in parts if _plain(part.index)]
        if plain:
            return plain[0]
        first = parts[0].index
        return [item if item == ELLIPSIS or (item[0] == "letter" and first.count(item) == 1) else self._fresh()
                for item in first]

    def _gathered(self, name: str, axes: list[Node], parts: list[_Part]) -> Equation:
        """``d_name[axes]``: the sum of what comes to each place."""
        terms = [(part.sign, self._term(part, axes)) for part in parts]
        body: Node = []
        for n, (sign, term) in enumerate(terms):
            if (sign, term) in terms[:n]:
                continue  # it was counted the first time
            if (count := terms.count((sign, term))) > 1:
                term = ["binary", "*", ["number", count], term]
            if not body:
                body = term if sign > 0 else ["negate", term]
            else:
                body = ["binary", "+" if sign > 0 else "-", body, term]
        assert body is not None  # what nothing comes to is refused before
        return Equation(f"d_{name}", axes, body)

    def _term(self, part: _Part, axes: list[Node]) -> Node:
        if len(part.index) != len(axes) or [i for i, item in enumerate(part.index) if item == ELLIPSIS] != [
                i for i, item in enumerate(axes) if item == ELLIPSIS]:
            raise self._refused("it is read with different axes")
        names: dict[str, str] = {}  # letter of the place → letter of the axis
        apart: list[tuple[int, Node]] = []
        for n, (item, axis) in enumerate(zip(part.index, axes, strict=True)):
            if item[0] == "letter" and item in part.letters and item[1] not in names:
                names[item[1]] = axis[1]
            elif item != ELLIPSIS:
                apart.append((n, axis))
        kept = {*names}
        for letter in part.letters:
            if letter != ELLIPSIS and letter[1] not in kept and letter in axes:
                names[letter[1]] = self._fresh()[1]
        over = [_renamed(letter, names) for letter in part.letters
                if (letter not in part.index if letter == ELLIPSIS else letter[1] not in kept)]
        grad = _renamed(part.grad, names)
        if apart:
            tests = [["compare", "==", _renamed(part.index[n], names), axis] for n, axis in apart]
            grad = ["where", _product(tests), grad, ZERO]
        term = ["reduce", "sum", over, grad] if over else grad
        for divisor in part.divisors:
            term = ["binary", "/", term, divisor]
        return term

    def _needed(self, made: list[Equation]) -> list[Equation]:
        """The equations of the forward pass whose values the gradient reads, and that are not recorded."""
        wanted: set[str] = set()
        for equation in [*reversed(made), *reversed(self.chain)]:
            if equation in made or equation.name in wanted:
                wanted |= {name for name, _ in equation.reads} - self.recorded
        return [equation for equation in self.chain if equation.name in wanted]

    def _check_lengths(self, found: list[Equation]) -> None:
        """Every letter must run along an axis of the result or of an operand: that says how far."""
        known, made = list(found[-1].index), {equation.name: equation.index for equation in found}
        for equation in found:
            for name, index in equation.reads:
                axes = made.get(name)
                known += [item for n, item in enumerate(index) if axes is None or axes[n] in known]
            if any(node[0] == "letter" and node not in known for node in _nodes(equation)):
                raise self._refused("a sum runs along no axis of what is left")


_TOLD = {"compare": "a comparison", "where": "a condition", "read": "an index", "stream": "a random number"}


def _nodes(equation: Equation) -> Iterator[Node]:
    for part in (*equation.index, equation.body):
        for node in walk(part):
            yield node
            if node[0] == "reduce":
                yield from node[2]
            elif node[0] == "size":
                yield node[1]


def _plain(index: list[Node]) -> bool:
    return all(item[0] in ("letter", "ellipsis") and index.count(item) == 1 for item in index)


def _renamed(node: Node, names: dict[str, str]) -> Node:
    return transform(node, lambda n: ["letter", names.get(n[1], n[1])] if n[0] == "letter" else None)


def _constant(node: Node) -> bool:
    """Whether `node` has the same value everywhere: sizes, settings and numbers."""
    without_sizes = transform(node, lambda n: ONE if n[0] == "size" else None)
    return all(n[0] not in ("read", "letter", "flat") for n in walk(without_sizes))


def _product(nodes: list[Node]) -> Node:
    body = nodes[0]
    for node in nodes[1:]:
        body = ["binary", "*", body, node]
    return body


def _times(part: _Part, *nodes: Node) -> _Part:
    for node in nodes:
        for factor in factors(node):
            match factor:
                case ["negate", body]:
                    part = _times(replace(part, sign=-part.sign), body)
                case ["binary", "/", above, below] if above == ONE or _constant(below):
                    part = _over(_times(part, above), below)
                case ["number", 1]:
                    pass
                case _:
                    part = replace(part, grad=["binary", "*", part.grad, factor])
    return part


def _over(part: _Part, below: Node) -> _Part:
    if _constant(below):  # it stays outside of a sum
        return replace(part, divisors=[below, *part.divisors])
    return replace(part, grad=["binary", "/", part.grad, below])


def _slope_of_power(base: Node, exponent: Node) -> list[Node]:
    if exponent[0] != "number":
        return [exponent, ["binary", "**", base, ["binary", "-", exponent, ONE]]]
    less = exponent[1] - 1
    return [exponent, base if less == 1 else ["binary", "**", base, ["number", less]]]


def _slope(function: str, argument: Node, value: Node) -> Node:
    """The function's derivative, with the argument and the value in the place of x and y."""
    body = parse(f"d[()] = {FUNCTIONS[function].derivative}")[0].body
    given = {"x": argument, "y": value}
    return transform(body, lambda node: given.get(node[1]) if node[0] == "name" else None)
