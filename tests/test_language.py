"""The language of operations: what the parser takes, what `derive` derives, what evaluation computes."""

import ast
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.format.verify import SAFETY
from tracer.ops import KINDS, Computation, evaluate, expand_ellipsis
from tracer.ops.evaluate import _Grid
from tracer.ops.language import Equation, parse, walk
from tracer.ops.rounded import Rounded


def run(text: str, shape: tuple[int, ...], settings=None, **operands) -> np.ndarray:
    operands = {name: np.asarray(data) for name, data in operands.items()}
    return evaluate(Computation(parse(text), operands, settings or {}, shape)).value


# The grammar -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("expression", [
    "x[t] and y[t]", "not x[t]", "x[t] if t else y[t]", "lambda: 1", "[x[t]]", "(x[t], y[t])", "{1: 2}", "x.y",
    "x.y[t]", "x[t][t]", "x[t](1)", "f'{t}'", "'text'", "b'1'", "1j", "None", "True", "...", "x[t] + ...", "+x[t]",
    "~x[t]", "x[t] @ y[t]", "x[t] << 1", "x[t] | 1", "x[t] & 1", "x[t] ^ 1", "x[t] != y[t]", "x[t] is y[t]",
    "x[t] in y[t]", "0 < x[t] < 1", "x[1:2]", "x[t:]", "*x[t]", "(y := x[t])", "await x[t]", "print(x[t])",
    "__import__('os')", "x.sum()", "open(t)", "eval(t)", "arcsin(x[t])", "exp()", "exp(x[t], y[t])", "exp(x=t)",
    "exp(*x[t])", "where(t, 1)", "where(t, 1, 2, 3)", "sum(x[t])", "sum(d)", "sum(d, x[d], 1)", "sum((), x[t])",
    "sum(1, x[t])", "sum(d + 1, x[d])", "sum((d, d), x[d])", "sum((d, 1), x[d])", "sum(d, x[d], start=1)",
    "max(x[t], y[t])", "nth_largest(v, x[v])", "nth_largest((v, w), x[v, w], 1)", "size()", "size(1)", "size(x[t])",
    "size(t, d)", "flat()", "flat(t)", "flat(..., t)", "mcg31m1(s)", "mcg31m1(s, 1, 2)", "lambda x: x[t]",
])
def test_an_expression_outside_the_grammar_is_refused(expression):
    with pytest.raises(SyntaxError) as caught:
        parse(f"out[t] = {expression}")
    start, _, shown = str(caught.value).partition(": ")
    assert start == "not in the language of operations"
    shown = "".join(ast.literal_eval(shown).split())  # the part that is outside, or all when it does not parse
    assert shown and (shown in "".join(expression.split()) or f"out[t]={''.join(expression.split())}" == shown)


@pytest.mark.parametrize("text", [
    "", "  \n ", "x[t]", "out = x[t]", "out[t] += x[t]", "out[t]: x[t]", "a[t] = b[t] = x[t]", "a.b[t] = x[t]",
    "a[t], b[t] = x[t]", "out[t + 1] = x[t]", "out[1] = x[0]", "out[t, t] = x[t]", "out[..., ...] = x[...]",
    "out[t:] = x[t]", "del x[t]", "import os", "def f(): pass", "for t in x: pass", "pass", "return 1", "out[t] = ",
    "out[t] = x[t", "out[t] = x[t]]", "out[t] = 1 +", "out[t] = x[t]; import os", "\0", "out[t] == x[t]",
    "a[t] = x[t]\nb[t]", "你[t", "out[t] = x[t] y[t]",
])
def test_a_statement_outside_the_grammar_is_refused(text):
    with pytest.raises(SyntaxError, match="not in the language of operations: '"):
        parse(text)


def test_the_refused_text_is_shown():
    with pytest.raises(SyntaxError, match=r"not in the language of operations: 'x\[t\] @ y\[t\]'"):
        parse("a[t] = x[t]\nout[t] = 1 + exp(x[t] @ y[t])")
    with pytest.raises(SyntaxError, match=r"'out\[t\] \+= 1'"):
        parse("out[t]  +=  1")


def test_what_the_grammar_takes_becomes_plain_nodes():
    t, d = ["letter", "t"], ["letter", "d"]
    assert parse("out[t] = sum(d, x[t, d] * 2) / size(d)") == [Equation("out", [t], [
        "binary", "/", ["reduce", "sum", [d], ["binary", "*", ["read", "x", [t, d]], ["number", 2]]], ["size", d]])]
    assert parse("out[()] = x[()] - lr") == [Equation("out", [], ["binary", "-", ["read", "x", []], ["name", "lr"]])]
    two = parse("""
        m[...] = max(d, x[..., d])
        out[..., d] = where(x[..., d] <= m[...], -inf, 0.5)
        """)
    dots = ["ellipsis"]
    x, m = ["read", "x", [dots, d]], ["read", "m", [dots]]
    assert two == [Equation("m", [dots], ["reduce", "max", [d], x]), Equation(
        "out", [dots, d], ["where", ["compare", "<=", x, m], ["negate", ["name", "inf"]], ["number", 0.5]])]


def test_a_name_is_a_letter_only_where_it_is_an_axis():
    equation = parse("out[t] = x[position + t]")[0]
    assert [node for node in walk(equation.body) if node[0] in ("letter", "name")] == [
        ["name", "position"], ["letter", "t"]]


def test_an_expression_may_go_over_several_lines():
    assert parse("out[t] = where(t < 1,\n   x[t],\n y[t])") == parse("out[t] = where(t < 1, x[t], y[t])")


@pytest.mark.parametrize(("expression", "value"), [
    ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("2 - 3 - 4", -5), ("8 / 4 / 2", 1), ("2 ** 3 ** 2", 512), ("-2 ** 2", -4),
    ("7 // 2", 3), ("-7 // 2", -4), ("-7 % 3", 2), ("5 == 5", 1), ("5 < 5", 0), ("5 <= 5", 1), ("5 > 5", 0),
    ("5 >= 5", 1), ("where(0, 1, 2)", 2), ("where(3, 1, 2)", 1), ("exp(1)", math.e), ("log(8)", math.log(8)),
    ("sqrt(9)", 3), ("erf(0.5)", math.erf(0.5)), ("2 * pi", 2 * math.pi), ("a * b", 21),
])
def test_arithmetic_is_that_of_python(expression, value):
    assert run(f"out[()] = {expression}", (), {"a": 3, "b": 7}) == pytest.approx(value, rel=1e-15)


# The ellipsis ----------------------------------------------------------------------------------------

def test_the_ellipsis_stands_for_any_number_of_letters():
    equations = parse("m[...] = max(k, x[..., k])\nout[..., k] = x[..., k] - m[...]")
    for letters in ([], ["t"], ["h", "i"]):
        dots = "".join(f"{letter}, " for letter in letters)
        alone = dots.rstrip(", ") or "()"
        assert expand_ellipsis(equations, letters) == parse(
            f"m[{alone}] = max(k, x[{dots}k])\nout[{dots}k] = x[{dots}k] - m[{alone}]")


def test_a_sum_over_the_ellipsis():
    equations = parse("out[d] = sum(..., x[..., d])")
    assert expand_ellipsis(equations, ["t", "h"]) == parse("out[d] = sum((t, h), x[t, h, d])")
    assert expand_ellipsis(equations, []) == parse("out[d] = x[d]")  # over no axis there is nothing to add


def test_flat_is_the_row_major_number():
    equations = expand_ellipsis(parse("out[...] = flat(...)"), ["t", "h", "d"])
    assert evaluate(Computation(equations, {}, {}, (2, 3, 4))).value.tolist() == np.arange(24).reshape(2, 3, 4).tolist()
    assert evaluate(Computation(expand_ellipsis(parse("out[...] = flat(...)"), []), {}, {}, ())).value == 0


# Evaluation ------------------------------------------------------------------------------------------

def test_an_index_outside_is_allowed_only_where_another_branch_is_chosen():
    x = np.array([10.0, 20.0, 30.0])
    chosen = "out[t] = where(t + 1 < size(t), x[t + 1], -1)"
    assert run(chosen, (3,), x=x).tolist() == [20, 30, -1]
    assert run("out[t] = where(t == 0, -1, x[t - 1])", (3,), x=x).tolist() == [-1, 10, 20]
    for text in ("out[t] = x[t + 1]", "out[t] = x[t - 1]", "out[t] = x[3 + 0]", "out[t] = x[t + 1] * (t < 2)",
                 "out[t] = where(x[t + 1] > 0, 1, 2)", "out[t] = where(t < 2, 1, 2) + x[t + 1]", "out[t] = x[t / 2]"):
        with pytest.raises(IndexError, match="x of shape"):
            run(text, (3,), x=x)


def test_an_index_outside_that_is_chosen_shows():
    """Never the number of another place: the result is NaN there, and no recorded number agrees with it."""
    out = run("out[t] = where(t < 5, x[t + 1], -1)", (3,), x=np.array([10.0, 20.0, 30.0]))
    assert out[:2].tolist() == [20, 30] and np.isnan(out[2])


def test_reading_by_recorded_ids_checks_them():
    table, text = np.arange(6.0).reshape(3, 2), "out[t, d] = table[ids[t], d]"
    assert run(text, (2, 2), table=table, ids=np.array([2, 0])).tolist() == [[4, 5], [0, 1]]
    for ids in ([2, 3], [2, -1], [2, 10**12]):
        with pytest.raises(IndexError, match=r"table of shape \(3, 2\)"):
            run(text, (2, 2), table=table, ids=np.array(ids))


def test_arrays_of_different_length_along_a_letter_are_refused():
    with pytest.raises(ValueError, match="axis d of y has length 3, elsewhere 2"):
        run("out[d] = x[d] + y[d]", (2,), x=np.zeros(2), y=np.zeros(3))
    with pytest.raises(ValueError, match="x has 2 axes, the operation reads 1"):
        run("out[d] = x[d]", (2,), x=np.zeros((2, 2)))


def test_the_largest_and_ties():
    x = np.array([1.0, 5.0, 3.0, 5.0])
    assert run("out[c] = nth_largest(v, x[v], c)", (4,), x=x).tolist() == [1, 3, 2, 0]
    assert run("out[()] = max(v, x[v])", (), x=x) == 5
    with pytest.raises(IndexError):
        run("out[c] = nth_largest(v, x[v], c + 1)", (4,), x=x)


LETTERS = "abcd"


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(st.data())
def test_a_sum_of_products_is_the_same_on_the_grid(data):
    """The matrix product that is taken as a short way, against the grid of all terms."""
    sizes = {letter: data.draw(st.integers(1, 4)) for letter in LETTERS}
    indices = data.draw(st.lists(st.lists(st.sampled_from(LETTERS), min_size=1, max_size=3), min_size=1, max_size=3))
    used = sorted({letter for index in indices for letter in index})
    over = data.draw(st.lists(st.sampled_from(used), min_size=1, max_size=3, unique=True))
    free = [letter for letter in used if letter not in over]
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    operands = {f"x{n}": draw.normal(size=[sizes[i] for i in index]) for n, index in enumerate(indices)}
    for name in data.draw(st.lists(st.sampled_from(sorted(operands)), unique=True)):  # these were recomputed themselves
        operands[name] = Rounded(operands[name], draw.random(operands[name].shape) * 1e-6)
    product = " * ".join(f"{name}[{', '.join(index)}]" for name, index in zip(operands, indices, strict=True))
    left = ", ".join(free) or "()"
    text = f"out[{left}] = 3 * sum(({', '.join(over)},), {product}) + 1"
    computation = Computation(parse(text), operands, {}, tuple(sizes[letter] for letter in free))
    short = evaluate(computation)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_Grid._reduce.__globals__, "factors", lambda node: [node])
        patch.setattr(_Grid, "_sum_of_products", lambda *a: pytest.fail("the short way was taken"))
        grid = evaluate(computation)
    np.testing.assert_allclose(short.value, grid.value, rtol=1e-12, atol=1e-12)
    assert (short.error > 0).all() and (grid.error / short.error < 6).all() and (short.error / grid.error < 1.01).all()


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from([
    "out[a, b] = sum(c, x[a, c] * (y[c] == b)) + a",
    "out[a, b] = x[a, b] - max(c, x[a, c]) + size(a) * y[b]",
    "out[b] = nth_largest(c, x[b, c], 1) + sum((a, c), x[a, c] * x[b, c] * y[b])",
    "out[a, b] = where(a >= 1, x[a - 1, b], y[b]) + (a * size(b) + b)",
    "m[a] = sum(c, x[a, c])\nout[b, a] = exp(x[a, b] - m[a]) * m[a]"]))
def test_a_large_grid_is_computed_in_parts(seed, text):
    """A grid cut along a letter gives what the whole gives, wherever it is cut."""
    x, y = np.random.default_rng(seed).normal(size=(5, 5)), np.arange(5.0)
    operands = {"x": Rounded(x, np.abs(x) * 1e-7), "y": y}
    equations = parse(text)
    shape = (5,) * len(equations[-1].index)
    whole = evaluate(Computation(equations, operands, {}, shape))
    for block in (1, 7, 20, 60):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tracer.ops.cost.BLOCK", block)
            parts = evaluate(Computation(equations, operands, {}, shape))
        np.testing.assert_allclose(parts.value, whole.value, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(parts.error, whole.error, rtol=1e-12)


def test_the_short_way_is_taken(monkeypatch):
    """Else the test above compares the grid with itself."""
    taken = []
    real = _Grid._sum_of_products
    monkeypatch.setattr(_Grid, "_sum_of_products", lambda *a: taken.append(1) or real(*a))
    run("out[t] = sum(d, x[t, d] * y[d])", (2,), x=np.ones((2, 3)), y=np.ones(3))
    assert taken == [1]


def test_a_sum_along_an_axis_that_no_factor_has_repeats():
    x, y = np.array([2.0, 5.0]), np.array([1.0, 10.0, 100.0])
    assert run("out[t] = sum(d, x[t]) + sum(d, y[d])", (2,), x=x, y=y).tolist() == [3 * 2 + 111, 3 * 5 + 111]


# How far float32 may be off --------------------------------------------------------------------------

OPERATIONS = ("+", "-", "*", "/", "exp", "log", "sqrt", "erf", "negate", "where", "sum", "max", "centre")


class Random32:
    """A random expression as text, and its value as float32 arithmetic computes it, operation by operation."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        numbers = np.random.default_rng(seed)
        self.operands = {"x": numbers.normal(size=(5, 7)).astype(np.float32),
                         "y": numbers.normal(size=(5, 7)).astype(np.float32),
                         "z": (numbers.normal(size=7) * 10.0 ** numbers.integers(-3, 4)).astype(np.float32)}

    def expression(self, depth: int) -> tuple[str, np.ndarray]:
        if depth == 0:
            name = self.draw.choice("xyz")
            return f"{name}[{'d' if name == 'z' else 't, d'}]", np.broadcast_to(self.operands[name], (5, 7))
        text, value = self.expression(depth - 1)
        one, half = np.float32(1), np.float32(0.5)
        match self.draw.choice(OPERATIONS):
            case "+" | "-" | "*" as op:
                other, second = self.expression(self.draw.randrange(depth))
                apply = {"+": np.add, "-": np.subtract, "*": np.multiply}[op]
                return f"({text} {op} {other})", apply(value, second)
            case "/":
                other, second = self.expression(self.draw.randrange(depth))
                return f"({text} / ({other} * {other} + 1))", value / (second * second + one)
            case "exp":
                return f"exp(-({text} * {text}) * 0.5)", np.exp(-(value * value) * half)
            case "log":
                return f"log({text} * {text} + 1)", np.log(value * value + one)
            case "sqrt":
                return f"sqrt({text} * {text} + 1)", np.sqrt(value * value + one)
            case "erf":
                return f"erf({text})", np.vectorize(math.erf)(value).astype(np.float32)
            case "negate":
                return f"(-{text})", -value
            case "where":
                other, second = self.expression(self.draw.randrange(depth))
                return f"where(t < d, {text}, {other})", np.where(np.arange(5)[:, None] < np.arange(7), value, second)
            case "sum":
                return f"sum(e, {text.replace('d]', 'e]').replace('< d', '< e')})", self.added(value)
            case "max":
                largest = value.max(axis=1, keepdims=True)
                return f"max(e, {text.replace('d]', 'e]').replace('< d', '< e')})", np.broadcast_to(largest, (5, 7))
            case "centre":
                mean = self.added(value) / np.float32(7)
                inner = text.replace("d]", "e]").replace("< d", "< e")
                return f"({text} - sum(e, {inner}) / size(d))", value - mean

    def added(self, value: np.ndarray) -> np.ndarray:
        """One after the other, as a simple loop adds."""
        total = np.zeros((5, 1), np.float32)
        for column in range(7):
            total = total + value[:, column:column + 1]
        return np.broadcast_to(total, (5, 7))


def test_float32_stays_within_the_bound():
    """Random expressions, with cancellation; the bound holds for each number, and is not far from the error."""
    ratios, seen = [], 0
    for seed in range(400):
        source = Random32(seed)
        depth = 1 + seed % 5
        text, float32 = source.expression(depth)
        if "sum(e, sum(e" in text or text.count("(e,") > 1:
            continue  # one letter for two sums, one inside the other, is not the same sum
        operands = {name: data for name, data in source.operands.items() if f"{name}[" in text}
        found = evaluate(Computation(parse(f"out[t, d] = {text}"), operands, {}, (5, 7)))
        assert float32.dtype == np.float32 and np.isfinite(found.value).all()
        error = np.abs(float32 - found.value)
        assert (error <= SAFETY * found.error).all(), (text, (error / found.error).max())
        if error.max() > 0:
            ratios.append((error[error > 0] / found.error[error > 0]).max())
        seen += 1
    assert seen > 250
    assert 0.1 < np.median(ratios) < 2


def test_the_bound_is_of_the_size_of_a_rounding():
    """Of one operation: half a unit in the last place; of a difference also half a unit of each term."""
    x, y = np.float32([1, 3, 1e-3]), np.float32([2, -7, 5])
    for text in ("x[t] + y[t]", "x[t] * y[t]", "x[t] / y[t]", "exp(x[t])", "x[t] - y[t]"):
        found = evaluate(Computation(parse(f"out[t] = {text}"), {"x": x, "y": y}, {}, (3,)))
        terms = np.abs(x) + np.abs(y) if "-" in text else 0
        assert (found.error > 0.999 * 2.0**-24 * np.abs(found.value)).all()
        assert (found.error < 1.001 * 2.0**-24 * (np.abs(found.value) + terms)).all(), text
    copied = evaluate(Computation(parse("out[t] = x[2 - t]"), {"x": x}, {}, (3,)))
    assert (copied.error == 0).all()  # another index rounds nothing


def test_the_bound_grows_where_terms_cancel():
    """(1 + e) − 1 keeps the rounding of the sum: the bound stays while the value shrinks."""
    e = np.float32([1e-3, 1e-6])
    found = evaluate(Computation(parse("out[t] = (1 + e[t]) - 1"), {"e": e}, {}, (2,)))
    assert (found.error >= 2.0**-24).all()
    assert (np.abs((np.float32(1) + e) - np.float32(1) - found.value) <= found.error).all()


def test_every_kind_reads_only_names_it_is_given():
    """Operands, settings, letters: nothing else, and every letter is an axis of something."""
    for name, kind in KINDS.items():
        for target, equations in kind.targets.items():
            assert equations[-1].name == target, name
            for equation in equations:
                bound = {item[1] for item in equation.index if item[0] == "letter"}
                bound |= {letter[1] for node in walk(equation.body) if node[0] == "reduce" for letter in node[2]
                          if letter[0] == "letter"}
                used = {node[1] for node in walk(equation.body) if node[0] == "letter"}
                sizes = {node[1][1] for node in walk(equation.body) if node[0] == "size"}
                assert used - sizes <= bound, (name, target)
