"""Gradients of the kinds that only multiply and add, derived from their forward equation.

For ``out[I] = Σ_s a[A]·b[B]·c`` the chain rule (reverse mode) gives
``d_a[A] = Σ_{letters not in A} d_out[I]·b[B]·c``: the output and an operand change places.
Kinds with another form (softmax, layer norm, …) state their gradients themselves.
"""

from tracer.ops.language import Equation, Node, transform, walk


def derive_gradients(forward: Equation, inputs: tuple[str, ...]) -> dict[str, list[Equation]]:
    """``{"d_x": [equation]}`` for each of `inputs`; each must occur once, with plain letters."""
    terms = list(_terms(forward.body, []))
    return {f"d_{name}": [_gradient(forward, terms, name)] for name in inputs}


def _terms(node: Node, summed: list[Node]):
    """The additive terms as (factors, divisors, summed letters)."""
    match node:
        case ["binary", "+", left, right]:
            yield from _terms(left, summed)
            yield from _terms(right, summed)
        case _:
            yield _factors(node, summed)


def _factors(node: Node, summed: list[Node]):
    match node:
        case ["binary", "*", left, right]:
            f1, d1, s1 = _factors(left, summed)
            f2, d2, s2 = _factors(right, summed)
            return f1 + f2, d1 + d2, s1 + s2
        case ["binary", "/", left, right]:
            f, d, s = _factors(left, summed)
            return f, [*d, right], s
        case ["reduce", "sum", over, body]:
            f, d, s = _factors(body, summed)
            return f, d, s + over
    return [node], [], list(summed)


def _gradient(forward: Equation, terms: list, name: str) -> Equation:
    holding = [term for term in terms if any(f[0] == "read" and f[1] == name for f in term[0])]
    occurrences = sum(node[:2] == ["read", name] for node in walk(forward.body))
    if len(holding) != 1 or occurrences != 1:
        raise ValueError(f"cannot derive the gradient of {name}: it must occur exactly once, as a factor")
    factors, divisors, summed = holding[0]
    own = next(f for f in factors if f[0] == "read" and f[1] == name)
    if any(item[0] not in ("letter", "ellipsis") or own[2].count(item) > 1 for item in own[2]):
        raise ValueError(f"cannot derive the gradient of {name}: its index is not different plain letters")
    bound = [*forward.index, *summed]
    if any(bound.count(letter) > 1 for letter in bound):
        raise ValueError(f"cannot derive the gradient of {name}: a letter stands for two axes")
    known = [*forward.index, *[node for factor in factors for node in walk(factor)]]
    if any(letter not in known for letter in summed):
        raise ValueError(f"cannot derive the gradient of {name}: a sum runs along no axis of what is left")
    if not all(map(_constant, divisors)):
        raise ValueError(f"cannot derive the gradient of {name}: it is divided by what differs along an axis")
    incoming: Node = ["read", f"d_{forward.name}", forward.index]
    body = _product([incoming, *[f for f in factors if f is not own]])
    over = [letter for letter in bound if letter not in own[2]]
    body = ["reduce", "sum", over, body] if over else body
    for divisor in divisors:
        body = ["binary", "/", body, divisor]
    return Equation(f"d_{name}", own[2], body)


def _constant(node: Node) -> bool:
    """Whether `node` has the same value everywhere: sizes, settings and numbers."""
    without_sizes = transform(node, lambda n: ["number", 1] if n[0] == "size" else None)
    return all(n[0] not in ("read", "letter") for n in walk(without_sizes))


def _product(factors: list[Node]) -> Node:
    body = factors[0]
    for factor in factors[1:]:
        body = ["binary", "*", body, factor]
    return body

