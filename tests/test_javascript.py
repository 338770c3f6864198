"""The JavaScript that computes and shows numbers, against NumPy, Python and the operations themselves."""

import base64
import json
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from operation_case import Case, compute, forward
from operation_cases import CASES

from site_builder.modules import import_map
from site_builder.page_data import route_data
from site_builder.parts import format_number
from tracer.model.sampling import Sampler, Sampling, choose
from tracer.ops import KINDS
from tracer.ops.mcg31m1 import MODULUS, mcg31m1
from tracer.ops.replay import bound_equations

SOURCES = Path(__file__).parent.parent / "static" / "js"
TARGETS = [(kind, target) for kind in KINDS for target in KINDS[kind].targets]
DRAWS = 4  # of random operands, beside the ones that a case has
random = np.random.default_rng(5)


@pytest.fixture(scope="module")
def modules(module_page, tmp_path_factory):
    """An empty page on which every module of the site can be imported."""
    path = tmp_path_factory.mktemp("modules") / "modules.html"
    path.write_text(f'<!doctype html><title>modules</title><script type="importmap">{import_map(SOURCES)}</script>')
    page = module_page()
    page.goto(path.as_uri())
    return page


def bytes_of(values) -> str:
    """Numbers for the page, bit for bit, as doubles."""
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return base64.b64encode(np.asarray(values, dtype="<f8").tobytes()).decode()


def map_numbers(page, module: str, function: str, *columns, rest=()) -> list:
    """``function(a, b, …, ...rest)`` of a module, over the numbers of the columns side by side."""
    return page.evaluate("""async ([module, name, columns, rest]) => {
        const run = (await import(module))[name];
        const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        const numbers = columns.map((text) => new Float64Array(bytes(text).buffer));
        return Array.from(numbers[0], (_, i) => run(...numbers.map((column) => column[i]), ...rest));
    }""", [module, function, [bytes_of(column) for column in columns], list(rest)])


# Operations ------------------------------------------------------------------------------------------

def draws(case: Case) -> list[dict[str, np.ndarray]]:
    """The operands of a case, and others of the same shapes; whole numbers are indices, and stay."""
    def drawn(values):
        values = np.asarray(values)
        return random.normal(0, 2, values.shape) if values.dtype.kind == "f" else values

    return [case.operands, *({n: drawn(v) for n, v in case.operands.items()} for _ in range(DRAWS))]


def computations(case: Case, target: str):
    """For each draw: what the browser gets, and what NumPy makes of it."""
    for operands in draws(case):
        known = forward(case, operands)
        for name in KINDS[case.kind].operands(target):
            if name.startswith("d_"):
                known[name] = random.normal(size=np.shape(known[name[2:]]))
        shape = np.shape(known[target.removeprefix("d_")])
        needed = {name: np.asarray(known[name]) for name in KINDS[case.kind].operands(target)}
        axes = {**needed, target: np.empty(shape)}
        # Letters as on the page: the target's own axes name its letters, and stand for `...`.
        equations = bound_equations(case.kind, target, lambda name, axes=axes: [
            f"{name} axis {axis}" for axis in range(axes[name].ndim)])
        yield ({"equations": [equation.to_json() for equation in equations], "shape": list(shape),
                "settings": case.settings,
                "operands": {n: {"shape": list(v.shape), "values": v.ravel().tolist()} for n, v in needed.items()}},
               compute(case, target, known, shape).ravel())


COMPUTE = """async (steps) => {
    const { Computation } = await import("evaluate");
    const { flatten, unflatten } = await import("indices");
    return steps.map(({ equations, operands, settings, shape }) => {
        const source = { shape: (name) => operands[name].shape,
            value: (name, index) => operands[name].values[flatten(index, operands[name].shape)] };
        const names = Object.fromEntries(Object.keys(operands).map((name) => [name, name]));
        const computation = new Computation({ equations, operands: names, settings, shape }, source);
        const count = shape.reduce((a, b) => a * b, 1);
        return Array.from({ length: count }, (_, flat) => computation.value(unflatten(flat, shape)));
    });
}"""


@pytest.mark.parametrize(("kind", "target"), TARGETS, ids=lambda part: part)
def test_operation(modules, kind, target):
    cases = [case for case in CASES if case.kind == kind]
    assert cases, f"tests/operation_cases.py has no case of {kind}"
    steps, expected = zip(*(pair for case in cases for pair in computations(case, target)), strict=True)
    for step, ours, theirs in zip(steps, modules.evaluate(COMPUTE, list(steps)), expected, strict=True):
        np.testing.assert_allclose(np.array(ours, dtype=float), theirs, rtol=1e-12, atol=1e-15, err_msg=str(step))


CALL = """async ([name, values]) => {
    const { FUNCTIONS } = await import("functions");
    const numbers = new Float64Array(Uint8Array.from(atob(values), (c) => c.charCodeAt(0)).buffer);
    return Array.from(numbers, FUNCTIONS[name].value);
}"""


def call(page, function: str, values) -> list:
    """A row of the table of functions in the browser, over many numbers."""
    return page.evaluate(CALL, [function, bytes_of(values)])


def test_erf(modules):
    tiny = [2.0**-n for n in range(0, 1000, 5)]
    grid = np.concatenate([np.linspace(-7, 7, 40001), np.linspace(0.99, 1.01, 2001), tiny, [0, 30, math.inf]])
    ours = np.array(call(modules, "erf", grid))
    exact = np.array([math.erf(x) for x in grid])
    assert np.abs(ours - exact).max() <= 4e-16
    small = np.array(tiny)
    np.testing.assert_allclose(call(modules, "erf", small), [math.erf(x) for x in small], rtol=1e-15)
    np.testing.assert_array_equal(call(modules, "erf", -small), -np.array(
        call(modules, "erf", small)))
    assert math.isnan(call(modules, "erf", [math.nan])[0])


def test_dropout_stream(modules):
    numbers = np.array([0, 1, 2, 3, 79, 80, 1023, 5000])
    for word in (0, 1, 7, 99847103, MODULUS - 1, MODULUS, MODULUS + 1, 2**32 - 1, *random.integers(0, 2**32, 20)):
        ours = map_numbers(modules, "special", "mcg31m1", np.full(len(numbers), word), numbers)
        assert ours == mcg31m1(int(word), numbers).tolist()


# Sampling --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", [0, 7, 2**32 + 5, 2**53 - 1])
def test_uniform_numbers_are_those_of_torch(modules, seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.rand((), generator=generator).item() for _ in range(700)]  # past the first 624 words
    numbers = [*range(1, 12), *range(620, 630), 699, 700]
    ours = map_numbers(modules, "special", "uniformNumber", np.full(len(numbers), seed), numbers)
    assert ours == [drawn[n - 1] for n in numbers]


SAMPLE = """async ([kinds, logits, settings]) => {
    const { Sampling } = await import("sampling");
    const sampling = new Sampling(kinds, { length: logits.length, at: (i) => logits[i] });
    return settings.map((one) => sampling.run(one));
}"""


@pytest.fixture(scope="module")
def sample(modules, generation_trace):
    """`sample(logits, settings)`: what the playground makes of logits (V,), by the equations that the page has."""
    text = route_data(generation_trace).scripts["generation.js"].decode()
    kinds = json.loads(text[text.index(",") + 1:text.rindex(")")])["sampling"]
    return lambda logits, settings: modules.evaluate(SAMPLE, [kinds, logits.tolist(), settings])


def between(probabilities: list[float]) -> list[float]:
    """Numbers in the middle of each candidate's interval: rounding does not decide which one is hit."""
    ends = np.cumsum(probabilities)
    return [float(end - p / 2) for end, p in zip(ends, probabilities, strict=True) if p > 1e-4]


def test_other_settings_choose_as_the_library_does(sample):
    logits = torch.from_numpy(random.normal(0, 2, 300)).float().round(decimals=1)  # with ties
    settings = [{"temperature": t, "k": k, "p": p, "uniform": u} for t in (0.1, 0.8, 3) for k in (1, 5, 50)
                for p in (0.01, 0.35, 0.9, 1) for u in (0, random.uniform(), 0.999999)]
    checked = set()
    for one, result in zip(settings, sample(logits, settings), strict=True):
        how = Sampling(one["temperature"], one["k"], one["p"])
        for uniform in [one["uniform"], *between(result["probabilities"])]:
            at = result["token"] if uniform == one["uniform"] else result["ids"][
                int((uniform >= np.cumsum(result["probabilities"])).sum())]
            assert choose(logits[None], torch.tensor([uniform]), how).item() == at, (one, uniform)
            checked.add(at)
        exact = (logits[result["ids"]].double() / one["temperature"]).softmax(0)
        np.testing.assert_allclose(result["softmax"], exact, rtol=1e-12)
        assert sum(result["probabilities"]) == pytest.approx(1, rel=1e-12)
        assert result["cumulative"] == pytest.approx(np.cumsum(result["probabilities"]), rel=1e-12)
    assert len(checked) > 40


def test_recorded_settings_choose_the_recorded_id(sample, generation_trace):
    made = generation_trace.make
    for number, told in list(enumerate(generation_trace.summary["rounds"], start=1))[1::2]:
        logits = torch.from_numpy(generation_trace.values(f"round{number}.head")[0])
        recorded = {"temperature": made["temperature"], "k": made["top_k"], "p": 1,
                    "uniform": float(generation_trace.values(f"round{number}.uniform"))}
        result, hot = sample(logits, [recorded, recorded | {"temperature": 3, "k": 40}])
        assert result["token"] == told["id"]
        assert result["ids"] == generation_trace.values(f"round{number}.sampler.top_k.ids").tolist()
        for ours, name in ((result["probabilities"], "softmax"), (result["cumulative"], "cumulative")):
            np.testing.assert_allclose(ours, generation_trace.values(f"round{number}.sampler.{name}"), rtol=1e-5)
        sampler = Sampler(3, 40, len(logits))
        for uniform in between(hot["probabilities"]):
            choice = int((uniform >= np.array(hot["cumulative"])).sum())
            assert sampler(logits[None], torch.tensor(uniform)).item() == hot["ids"][choice]


# Numbers as text -------------------------------------------------------------------------------------

def floats(count: int = 6000) -> np.ndarray:
    """float32 of every size: any bits at all, whole numbers, few bits (where rounding meets a tie), edges."""
    bits = random.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    few = (random.integers(-4096, 4096, count) * 2.0 ** random.integers(-20, 12, count)).astype(np.float32)
    powers = np.array([sign * base**n for base in (2, 10) for n in range(-50, 40) for sign in (1, -1)])
    with np.errstate(over="ignore"):
        powers = powers.astype(np.float32)
    near = np.concatenate([np.nextafter(powers, np.float32(0)), np.nextafter(powers, np.float32(np.inf))])
    nines = np.array([9.9995, 99.995, 999.95, 0.99995, 9.99949, 0.099995, 9999999, 0.00001], dtype=np.float32)
    edges = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38], dtype=np.float32)
    usual = random.normal(0, 1, count).astype(np.float32)
    return np.concatenate([bits, few, powers, near, nines, edges, usual])


def test_exact_is_the_shortest_form_that_reads_back(modules):
    values = floats()
    values = values[np.isfinite(values)]
    shown = map_numbers(modules, "format", "exact", values, rest=["float32"])
    for text, value in zip(shown, values, strict=True):
        shortest = Decimal(np.format_float_scientific(value, unique=True))
        assert np.float32(text) == value
        assert len(Decimal(text).normalize().as_tuple().digits) == len(shortest.normalize().as_tuple().digits), value
        # As near as can be: of two that are equally near, either will do.
        assert abs(Decimal(text) - Decimal(float(value))) == abs(shortest - Decimal(float(value)))


def test_exact_doubles(modules):
    values = np.concatenate([random.normal(size=500), 10.0 ** random.uniform(-300, 300, 500)])
    shown = map_numbers(modules, "format", "exact", values, rest=["float64"])
    assert [float(text) for text in shown] == values.tolist()


@pytest.mark.parametrize("digits", [2, 4, 6])
def test_rounded_numbers_are_those_of_the_static_tables(modules, digits):
    values = floats()
    shown = map_numbers(modules, "format", "format", values, rest=[digits])
    wrong = [(value, ours, theirs) for value, ours in zip(values, shown, strict=True)
             if ours != (theirs := format_number(value, digits))]
    assert not wrong, wrong[:10]


def test_whole_numbers_keep_all_digits(modules):
    values = [0, 7, -7, 50256, -123456789, 2**53]
    for digits in (2, "all"):
        shown = map_numbers(modules, "format", "format", values, rest=[digits, "int64"])
        assert shown == [str(value).replace("-", "−") for value in values]
        assert shown == [format_number(np.int64(value)) for value in values]


def test_what_is_not_finite_is_named(modules):
    for digits in (2, "all"):
        assert map_numbers(modules, "format", "format", [np.inf, -np.inf, np.nan, 0, -0.0],
                           rest=[digits]) == ["∞", "−∞", "NaN", "0", "0"]


def test_a_minus_sign_is_one(modules):
    for dtype in ("float32", "float64"):
        values = np.array([-1.5, -1.5e-9, 1.5e-9, -2e30], dtype=dtype)
        shown = map_numbers(modules, "format", "format", values, rest=["all", dtype])
        assert shown == ["−1.5", "−1.5e−9", "1.5e−9", "−2e30"]


def ordered(values: np.ndarray) -> np.ndarray:
    """float32 → whole numbers such that neighbours differ by one."""
    bits = values.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def test_ulps_apart(modules):
    values = floats()
    values = values[np.isfinite(values)]
    others = random.permutation(values)
    near = np.nextafter(values, others)
    for b in (others, near, values):
        assert map_numbers(modules, "format", "ulpsApart", values, b) == np.abs(ordered(values) - ordered(b)).tolist()
    odd = [(np.nan, np.nan, 0), (np.inf, np.inf, 0), (np.inf, -np.inf, np.inf), (1, np.nan, np.inf),
           (np.inf, 3e38, np.inf)]
    a, b, apart = zip(*odd, strict=True)
    assert map_numbers(modules, "format", "ulpsApart", a, b) == list(apart)


def test_ulp_at_a_number(modules):
    values = floats()
    values = values[np.abs(values) < 3e38]
    shown = np.array(map_numbers(modules, "format", "ulpAt", values), dtype=float)
    np.testing.assert_array_equal(shown, np.spacing(np.abs(values)).astype(float))


# Addresses -------------------------------------------------------------------------------------------

names = st.text(min_size=1, max_size=20)
ROUND_TRIP = """async ([state, letters]) => {
    const { parse, write } = await import("state");
    const address = write(state, letters);
    const inBrowser = new URL(address, "file:///page.html").hash;
    return [parse(address), parse(inBrowser), write(parse(address), letters) === address];
}"""


def check_address(modules, state: dict) -> None:
    """Four digits are what a page shows when nothing is said of them."""
    *parsed, same = modules.evaluate(ROUND_TRIP, [state, list(state["at"])])
    expected = state | {"digits": None if state["digits"] == 4 else state["digits"]}
    assert parsed == [expected, expected]
    assert same


@pytest.mark.parametrize("name", ["loss", "grad.head@x", "a&b=c", "x#y", "50% + 1", "a b", "你 ü", "'\"<>", "?/\\"])
@pytest.mark.parametrize("digits", [2, 4, 6, "all"])
def test_an_address_says_it_all(modules, name, digits):
    says = {"digits": digits, "tour": None, "view": None}
    check_address(modules, {"step": name, "of": name, "at": {"h": 0, "i": 12, "j": 50256}} | says)
    check_address(modules, {"step": name, "of": None, "at": {}} | says)
    check_address(modules, {"step": name, "of": None, "at": {}} | says | {"tour": name})
    check_address(modules, {"step": name, "of": None, "at": {}} | says | {"view": "chapter"})


@settings(max_examples=100, deadline=None, database=None)
@given(names, names, st.dictionaries(st.sampled_from("abchijtdvor"), st.integers(0, 10**6), max_size=4))
def test_any_name_can_stand_in_an_address(modules, step, of, at):
    check_address(modules, {"step": step, "of": of, "at": at, "digits": 4, "tour": None, "view": None})


@pytest.mark.parametrize("text", [
    "", "#", "#step=", "#of=x", "#&&&=", "#step", "#=", "#%", "#%zz", "#step=%E4%BD", "#h=-1", "#h=1.5", "#h=x",
    "#digits=3", "#digits=", "#digits=all", "#digits=Infinity", "#step=a&step=b", "#__proto__=1", "#of=a&constructor=3",
    "#h=99999999999999999999999999", "nonsense", "#step=<script>"])
def test_nonsense_is_read_without_an_error(modules, text):
    state = modules.evaluate("async (text) => (await import('state')).parse(text)", text)
    assert set(state) == {"step", "of", "at", "digits", "tour", "view"}
    assert state["digits"] == ("all" if text == "#digits=all" else None)
    assert all(isinstance(number, int | float) and number >= 0 for number in state["at"].values())
