"""Derived gradients against central differences and torch, and the stated ones against the derived."""

import numpy as np
import pytest
import torch
from operation_case import Case, differences, forward, gradient_targets
from operation_cases import CASES
from torch.nn import functional as F

from tracer.format.verify import SAFETY
from tracer.ops import KINDS, Computation, evaluate, expand_ellipsis
from tracer.ops.derive import derive_gradients
from tracer.ops.language import Equation, parse, transform

SETTINGS = {"p": 0.25, "g": 2, "start": 1, "n": 3, "eps": 1e-5}


def value(equations: list[Equation], operands: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return evaluate(Computation(equations, operands, SETTINGS, shape)).value


@pytest.mark.parametrize(("text", "why"), [
    ("out[t] = y[t]", "does not read it"), ("out[t] = sum(d, x[t]) + y[t]", "no axis of what is left"),
    ("out[t] = sum(d, x[t + d])", "no axis of what is left"), ("out[()] = max(t, x[t])", "max stands around it"),
    ("out[t] = where(x[t] < 1, x[t], 0)", "a condition"), ("out[t] = x[t] * (x[t] < 1)", "a comparison"),
    ("out[t] = x[t] // 2", "// stands around it"), ("out[t] = x[t] % 2", "% stands around it"),
    ("out[t] = 2 ** x[t]", r"\*\* stands around it"), ("out[t] = y[x[t]]", "an index"),
    ("out[t] = x[x[t]]", "an index"), ("out[c] = nth_largest(v, x[v], c)", "nth_largest stands around it"),
    ("out[t] = mcg31m1(x[()], t)", "a random number"), ("out[..., d] = x[..., d] + x[d]", "different axes"),
    ("a[t] = y[t]\nout[t] = a[t]", "does not read it"), ("a[t] = x[t]\nout[t] = y[t]", "does not read it"),
])
def test_what_cannot_be_derived_is_refused(text, why):
    with pytest.raises(ValueError, match=f"cannot derive the gradient of x: .*{why}"):
        derive_gradients(parse(text), ("x",))


def test_two_outputs_that_call_two_things_by_one_name_are_refused():
    with pytest.raises(ValueError, match="a is two things"):
        derive_gradients(parse("a[t] = x[t]\nout[t] = a[t] + b[t]"), ("x",),
                         {"b": parse("a[t] = 2 * x[t]\nb[t] = a[t]")})


def test_a_second_axis_of_an_ellipsis_is_refused():
    with pytest.raises(ValueError, match="stands for two things"):
        derive_gradients(parse("out[...] = x[...] - sum(..., x[...])"), ("x",))


T, D = (3,), (3, 2)


@pytest.mark.parametrize(("text", "shapes"), [
    # products and sums
    ("out[t] = x[t] + y[t]", {"x": T, "y": T}), ("out[t] = x[t] - y[t]", {"x": T, "y": T}),
    ("out[t] = -x[t]", {"x": T}), ("out[t] = x[t] + x[t]", {"x": T}), ("out[t] = x[t] * x[t]", {"x": T}),
    ("out[t] = x[t] * y[t] * x[t]", {"x": T, "y": T}), ("out[t, d] = x[t, d] * (y[t, d] / (1 - p))", {"x": D, "y": D}),
    ("out[t, o] = sum(d, x[t, d] * y[o, d]) + z[o]", {"x": D, "y": (4, 2), "z": (4,)}),
    ("out[h, i, j] = sum(d, x[h, i, d] * y[h, j, d]) / sqrt(size(d))", {"x": (2, 3, 4), "y": (2, 3, 4)}),
    ("out[i, j] = sum(d, x[i, d] * x[j, d])", {"x": D}), ("out[()] = sum(t, x[t]) / size(t)", {"x": T}),
    ("out[()] = sum((t, d), x[t, d] * y[d])", {"x": D, "y": (2,)}), ("out[t, d] = x[d] * y[t]", {"x": (2,), "y": T}),
    ("out[t] = sum(d, x[t] * z[d]) + 2 * sum(d, y[d])", {"x": T, "y": (4,), "z": (4,)}),
    ("out[t] = x[t] * sum(d, y[d] * exp(z[d]))", {"x": T, "y": (4,), "z": (4,)}),
    ("out[()] = sum(d, x[d]) * sum(d, y[d])", {"x": (4,), "y": (4,)}),
    ("out[t] = sum(t, x[t] * x[t]) * x[t]", {"x": T}),
    # quotients, powers, functions
    ("out[t] = y[t] / x[t]", {"x": T, "y": T}), ("out[t, d] = x[d] / y[t]", {"x": (2,), "y": T}),
    ("out[t] = x[t] / size(t) / (t + 1)", {"x": T}), ("out[t] = (x[t] / y[t]) / (x[t] * x[t] + 1)", {"x": T, "y": T}),
    ("out[t] = x[t] ** 2", {"x": T}), ("out[t] = 2 * x[t] ** 3", {"x": T}), ("out[t] = (x[t] * x[t]) ** n", {"x": T}),
    ("out[t] = x[t] * exp(-x[t] * y[t])", {"x": T, "y": T}), ("out[t] = exp(x[t]) / sum(t, exp(x[t]))", {"x": T}),
    ("out[t] = tanh(sin(x[t]) + cos(y[t] * sigmoid(x[t])))", {"x": T, "y": T}),
    ("out[t] = log(sqrt(x[t] * x[t] + 1)) * erf(x[t])", {"x": T}),
    ("out[t] = -y[t] / (2 + x[t] * x[t])", {"x": T, "y": T}), ("out[t] = -x[t] / (2 + x[t] * x[t])", {"x": T}),
    # choices that do not hang on it
    ("out[t] = where(t < 1, x[t], y[t])", {"x": T, "y": T}),
    ("out[t] = where(z[t] < 0, x[t] * x[t], 0)", {"x": T, "z": T}),
    ("out[t] = 2 * where(t < 1, x[t] * y[t], where(t < 2, -x[t], y[t])) + x[t]", {"x": T, "y": T}),
    ("out[t] = where(t < size(t) - 1, x[t + 1] * y[t], x[t])", {"x": T, "y": T}),
    ("out[t] = where(t >= 1, x[t - 1] * y[t - 1], 0)", {"x": T, "y": T}),
    # equations in between
    ("a[t] = x[t] * y[t]\nb[t] = a[t] * a[t] + x[t]\nout[t] = exp(b[t]) / (1 + a[t] * a[t])", {"x": T, "y": T}),
    ("m[t] = sum(d, x[t, d]) / size(d)\nc[t, d] = x[t, d] - m[t]\n"
     "out[t, d] = c[t, d] / sqrt(sum(d, c[t, d] * c[t, d]) + eps) * y[d]", {"x": D, "y": (2,)}),
    ("e[t] = exp(x[t])\nunused[t] = x[t] * 7\nout[t] = e[t] * e[t]", {"x": T}),
    # other indices
    ("out[t, d] = x[ids[t], d]", {"x": (4, 2)}), ("out[t, d] = x[ids[t], d] * x[ids[t], d]", {"x": (4, 2)}),
    ("out[h, i, j] = sum(d, y[h, i, d] * x[h // g, j, d]) / sqrt(size(d))", {"y": (4, 3, 2), "x": (2, 3, 2)}),
    ("out[t] = x[t + 0]", {"x": (4,)}), ("out[t] = x[t + start] * y[t]", {"x": (5,), "y": T}),
    ("out[t] = x[0] * y[t]", {"x": T, "y": T}), ("out[t] = x[t, t] * y[t]", {"x": (3, 3), "y": T}),
    ("out[o] = x[o // g, o % g] * x[0, 1] * y[o]", {"x": (3, 2), "y": (6,)}),
    ("out[h, j, d] = where(j < n, x[h, j + 0, d], y[h, j - n, d])", {"x": (2, 3, 2), "y": (2, 1, 2)}),
])
def test_a_derived_gradient_is_the_slope(text, shapes):
    draw = np.random.default_rng(8)
    operands = {name: draw.normal(size=shape) for name, shape in shapes.items()} | {"ids": np.array([2, 0, 2])}
    forward_equations = parse(text)
    if "ids" not in text:
        del operands["ids"]
    shape = (2, 4, 2) if "out[h, j, d]" in text else shape_of(forward_equations, operands)
    incoming = draw.normal(size=shape)
    for name in shapes:
        if name == "z" and "exp" not in text and "+ z[o]" not in text:
            continue  # only along for its axis
        gradient = derive_gradients(forward_equations, (name,))[f"d_{name}"]
        known = {"out": value(forward_equations, operands, shape), "d_out": incoming, **operands}
        needed = {read: known[read] for eq in gradient for read, _ in eq.reads if read in known}
        found = value(gradient, needed, shapes[name])
        np.testing.assert_allclose(found, slopes(forward_equations, operands, name, incoming), rtol=2e-6, atol=1e-8)


def shape_of(equations: list[Equation], operands: dict[str, np.ndarray]) -> tuple[int, ...]:
    sizes = {item[1]: n for equation in equations for name, index in equation.reads if name in operands
             for item, n in zip(index, operands[name].shape, strict=True) if item[0] == "letter"}
    return tuple(sizes.get(item[1], 3) for item in equations[-1].index)


def slopes(equations, operands, name: str, incoming: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """∂(Σ incoming·out)/∂operand by central differences."""
    result = np.empty(operands[name].shape)
    for index in np.ndindex(result.shape):
        step = np.zeros(result.shape)
        step[index] = h
        up, down = (value(equations, operands | {name: operands[name] + change}, incoming.shape)
                    for change in (step, -step))
        result[index] = ((up - down) / (2 * h) * incoming).sum()
    return result


def test_two_equal_terms_are_counted():
    assert derive_gradients(parse("out[t] = x[t] * x[t]"), ("x",))["d_x"] == parse("d_x[t] = 2 * (d_out[t] * x[t])")


def test_what_was_recorded_is_read_and_not_computed_again():
    """A function's own value, where it is the output; and other outputs of the kind."""
    assert derive_gradients(parse("out[t] = exp(x[t] * y[t])"), ("x",))["d_x"] == parse(
        "d_x[t] = d_out[t] * out[t] * y[t]")
    found = derive_gradients(parse("out[t] = x[t] * s[t]"), ("x",), {"s": parse("a[t] = 2 * x[t]\ns[t] = sqrt(a[t])")})
    assert found["d_x"] == parse("""
        d_s[t] = d_out[t] * x[t]
        d_a[t] = d_s[t] / (2 * s[t])
        d_x[t] = d_out[t] * s[t] + d_a[t] * 2
        """)


# Stated and derived ----------------------------------------------------------------------------------

STATED = {"cross_entropy": ["logits"], "embedding": ["table"], "gelu": ["x"], "split_heads": ["qkv"],
          "concatenate_heads": ["x"], "softmax": ["x"], "layer_norm": ["x"], "split_grouped_heads": ["qkv"],
          "rotary": ["x"]}


def test_the_list_of_stated_gradients_is_whole():
    derived = {(kind, target) for kind in KINDS for target in gradient_targets(kind)
               if kind not in STATED or target[2:] not in STATED[kind]}
    for kind, target in derived:
        outputs = {name: equations for name, equations in KINDS[kind].targets.items() if not name.startswith("d_")}
        assert KINDS[kind].targets[target] == derive_gradients(outputs.pop("out"), (target[2:],), outputs)[target]


def without_maximum(equations: list[Equation]) -> list[Equation]:
    """The same function without what keeps it from overflowing: nothing is taken off first."""
    def change(node):
        return ["number", 0] if node[:2] == ["reduce", "max"] else None
    return [Equation(eq.name, eq.index, transform(eq.body, change)) for eq in equations]


def derived(kind: str, operand: str) -> dict[str, list[Equation]]:
    """Output that a gradient comes from → the derived gradient."""
    forwards = {name: without_maximum(equations) for name, equations in KINDS[kind].targets.items()
                if not name.startswith("d_")}
    ends = ["out"] if "out" in forwards else list(forwards)
    return {end: derive_gradients(forwards[end], (operand,), {n: e for n, e in forwards.items() if n not in ends})[
        f"d_{operand}"] for end in ends}


@pytest.mark.parametrize(("case", "operand"), [(c, o) for c in CASES for o in STATED.get(c.kind, ())], ids=str)
def test_a_stated_gradient_is_the_derived_one(case: Case, operand: str):
    """Within the error bounds of both, on random numbers; and both as differences say."""
    if np.abs(case.operands[operand]).max() > 100 or not np.isfinite(case.operands[operand]).all():
        return  # the derived one overflows there: that is why the other one is stated
    known = {name: np.asarray(part, float) for name, part in forward(case, case.operands).items()}
    draws = np.random.default_rng(1)
    known |= {f"d_{name}": draws.normal(size=part.shape) for name, part in known.items()}
    shape = known[operand].shape

    def run(equations):
        equations = expand_ellipsis(equations, list(case.leading))
        needed = {name: known[name] for eq in equations for name, _ in eq.reads if name in known}
        local = {eq.name for eq in equations}
        return evaluate(Computation(equations, {n: v for n, v in needed.items() if n not in local}, case.settings,
                                    shape))

    stated = run(KINDS[case.kind].targets[f"d_{operand}"])
    parts = [run(equations) for equations in derived(case.kind, operand).values()]
    difference = np.abs(stated.value - sum(part.value for part in parts))
    assert (difference <= SAFETY * (stated.error + sum(part.error for part in parts)) + 1e-12).all()
    np.testing.assert_allclose(stated.value, sum(part.value for part in parts), rtol=1e-9, atol=1e-11)
    incoming = {name: known[name] for name in KINDS[case.kind].operands(f"d_{operand}") if name.startswith("d_")}
    np.testing.assert_allclose(stated.value, differences(case, operand, incoming), rtol=1e-7, atol=1e-8)


def test_the_stated_gradients_are_more_stable():
    """Layer norm of numbers that are nearly equal: the derived gradient's error bound is the larger one."""
    case = next(case for case in CASES if case.kind == "layer_norm" and case.leading == ("a",))
    near = {**case.operands, "x": 5 + case.operands["x"] * 1e-3}
    known = forward(case, near) | {"d_out": np.random.default_rng(1).normal(size=near["x"].shape)}
    errors = []
    for equations in (KINDS["layer_norm"].targets["d_x"], derived("layer_norm", "x")["out"]):
        equations = expand_ellipsis(equations, ["a"])
        made = {eq.name for eq in equations}
        needed = {name: known[name] for eq in equations for name, _ in eq.reads if name not in made}
        errors.append(evaluate(Computation(equations, needed, case.settings, near["x"].shape)).error.max())
    assert errors[1] > 1.5 * errors[0]


@pytest.mark.parametrize("kind", ["softmax", "gelu", "layer_norm", "cross_entropy"])
def test_autograd_says_the_same(kind):
    """torch's own gradient of torch's own function, in float64."""
    draw = np.random.default_rng(2)
    x, d_out = draw.normal(size=(3, 5)), draw.normal(size=(3, 5))
    weight, bias = draw.normal(size=5), draw.normal(size=5)
    targets = np.array([4, 0, 2])
    leaf = torch.tensor(x, requires_grad=True)
    operands = {"x": x, "d_out": d_out}
    match kind:
        case "softmax":
            made = leaf.softmax(-1)
        case "gelu":
            made = F.gelu(leaf)
        case "layer_norm":
            made = F.layer_norm(leaf, (5,), torch.tensor(weight), torch.tensor(bias))
            operands |= {"weight": weight, "mean": x.mean(-1), "rstd": (x.var(-1) + 1e-5) ** -0.5}
        case "cross_entropy":
            made = F.cross_entropy(leaf, torch.tensor(targets), reduction="none")
            operands = {"logits": x, "targets": targets, "d_out": d_out[:, 0],
                        "log_sum_exp": torch.logsumexp(leaf, -1).detach().numpy()}
    operands["out"] = made.detach().numpy()
    made.backward(torch.tensor(d_out[:, 0] if kind == "cross_entropy" else d_out))
    name = "logits" if kind == "cross_entropy" else "x"
    for equations in (KINDS[kind].targets[f"d_{name}"], derived(kind, name)["out"]):
        equations = expand_ellipsis(equations, ["a", "b"] if kind == "gelu" else ["a"])
        made_here = {eq.name for eq in equations}
        needed = {read: operands[read] for eq in equations for read, _ in eq.reads if read not in made_here}
        np.testing.assert_allclose(value(equations, needed, (3, 5)), leaf.grad.numpy(), rtol=1e-9, atol=1e-12)
