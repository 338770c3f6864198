"""The table of functions: every row, and two more that are added to it for the length of a test."""

import math

import numpy as np
import pytest
import torch
from test_javascript import COMPUTE, SOURCES, call

from site_builder.formula import latex
from site_builder.modules import import_map
from tracer.format.verify import SAFETY
from tracer.ops import Computation, evaluate
from tracer.ops.derive import derive_gradients
from tracer.ops.functions import FUNCTIONS, Function, carried
from tracer.ops.language import parse

ADDED = [
    Function("softplus", lambda x: np.logaddexp(0, x), carried(lambda x, y: 1, 4), "sigmoid(x)",
             "(x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))", "np.logaddexp(0, %)",
             r"\mathrm{softplus}\left( % \right)", "softplus", cost=80),
    Function("atan", np.arctan, carried(lambda x, y: 1 / (1 + x * x), 2), "1 / (1 + x * x)", "Math.atan",
             "math.atan(%)", r"\arctan\left( % \right)", "arctan"),
]
ROWS = [*FUNCTIONS.values(), *ADDED]
TORCH = {"softplus": torch.nn.functional.softplus}  # where torch has it under another name than its own


@pytest.fixture(params=ROWS, ids=lambda row: row.name)
def row(request, monkeypatch) -> Function:
    """A row of the table; one that is added is in it for the length of the test."""
    monkeypatch.setitem(FUNCTIONS, request.param.name, request.param)
    return request.param


def arguments(row: Function, count: int = 400) -> np.ndarray:
    """float32 numbers of the function's domain, small and large ones."""
    draw = np.random.default_rng(3)
    x = (draw.normal(size=count) * 10.0 ** draw.uniform(-3, 1, count)).astype(np.float32)
    return np.abs(x) + np.float32(1e-3) if row.domain[0] == 0 else x


def test_it_is_evaluated_with_an_error_bound_that_holds(row):
    """Against torch in float32, of an argument that was rounded too."""
    x = arguments(row)
    y = np.abs(np.roll(x, 1))
    found = evaluate(Computation(parse(f"out[t] = {row.name}(x[t] * y[t])"), {"x": x, "y": y}, {}, x.shape))
    function = TORCH.get(row.name) or getattr(torch, row.name)
    first, second = torch.from_numpy(x), torch.from_numpy(y)
    error = np.abs(function(first * second).double().numpy() - found.value)
    assert (error <= SAFETY * found.error).all(), (error / found.error).max()
    np.testing.assert_allclose(found.value, function(first.double() * second.double()).numpy(), rtol=1e-12, atol=1e-15)
    large = np.abs(found.value) > 1e-3
    assert (found.error[large] > 0.9 * 2.0**-24 * np.abs(found.value[large])).all()


def test_it_is_derived_through_whatever_stands_around_it(row):
    """Against central differences of a product, a quotient and a sum of it."""
    text = (f"inner[t, d] = x[t, d] * x[t, d] / size(d) + y[d]\n"
            f"out[t] = sum(d, {row.name}(inner[t, d]) * y[d] / (1 + inner[t, d]))")
    draw = np.random.default_rng(4)
    x, y, incoming = draw.normal(size=(3, 4)), np.abs(draw.normal(size=4)) + 0.5, draw.normal(size=3)
    for name, values in (("x", x), ("y", y)):
        equations = derive_gradients(parse(text), (name,))[f"d_{name}"]
        found = evaluate(Computation(equations, {"x": x, "y": y, "d_out": incoming}, {}, values.shape)).value
        slope = np.empty(values.shape)
        for index in np.ndindex(values.shape):
            step = np.zeros(values.shape)
            step[index] = 1e-6
            up, down = (evaluate(Computation(parse(text), {"x": x, "y": y, name: values + sign * step}, {}, (3,))).value
                        for sign in (1, -1))
            slope[index] = ((up - down) / 2e-6 * incoming).sum()
        np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-8)


def test_it_is_written_in_latex(row):
    written = latex("add", parse(f"out[t] = {row.name}(a[t] + 1)")[0])
    assert written == "{x}_{t} = " + row.latex.replace("%", "{a}_{t} + 1")


def test_the_browser_computes_the_same(row, module_page, tmp_path):
    """The module of functions is made from the table, so a row that is added is in it."""
    path = tmp_path / "modules.html"
    path.write_text(f'<!doctype html><title>modules</title><script type="importmap">{import_map(SOURCES)}</script>')
    page = module_page()
    page.goto(path.as_uri())
    x = arguments(row).astype(float)
    np.testing.assert_allclose(call(page, row.name, x), row.numpy(x), rtol=2e-14, atol=1e-16)
    assert math.isnan(call(page, row.name, [math.nan])[0])
    equation = parse(f"out[t] = {row.name}(x[t]) * 2")
    step = {"equations": [e.to_json() for e in equation], "shape": [len(x)], "attributes": {},
            "operands": {"x": {"shape": [len(x)], "values": x.tolist()}}}
    np.testing.assert_allclose(page.evaluate(COMPUTE, [step])[0], 2 * row.numpy(x), rtol=2e-14, atol=1e-16)


def test_the_line_of_python_is_the_same_function(row):
    x = arguments(row, 50).astype(float)
    lines = [eval(row.python.replace("%", f"({value!r})"), {"math": math, "np": np}) for value in x.tolist()]
    np.testing.assert_allclose(lines, row.numpy(x), rtol=2e-15)


def test_what_is_not_in_the_table_is_no_function():
    with pytest.raises(SyntaxError):
        parse("out[t] = softplus(x[t])")
