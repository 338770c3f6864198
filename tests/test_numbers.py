"""Numbers opened in the pages: recomputed, followed back to the ids and on to where they are used.

Numbers are recomputed by the page's own modules and compared with the recording.  They must agree within
`ULPS` float32 steps (units in the last place) of the recorded number or, where terms cancel, of the largest
operand, term or intermediate result of its working; where an operand is itself not stored, within `ULPS_TWICE`.
"""

import contextlib
import io
import random
import re
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from driver import ALL_ROUTES, UNLIKE_ROUTES, WORDS, address, fragment_of, go, one_of_each, opened, same, ulp, visit

from site_builder.build import ROUTES
from tracer.format.trace import AXES, Trace
from tracer.ops import KINDS, Computation, evaluate
from tracer.ops.replay import Replay

TRACES = Path(__file__).resolve().parent.parent / "traces"
ULPS, ULPS_TWICE = 4, 16
CLICKED = 12  # kinds of numbers on each page that are opened by hand


# Numbers ---------------------------------------------------------------------------------------------

LAB = """async (route) => {
    const { Store } = await import("store");
    const { Working } = await import("working");
    const { numpyCode } = await import("code");
    const { usesOf } = await import("uses");
    const store = await Store.open(route, "../");
    const operands = (array) => Object.values(store.operation(array)?.operands ?? {});
    window.lab = {
        store,
        async recomputeAll(wanted) {
            const found = [];
            for (const [array, indices] of wanted) found.push(await lab.recompute(array, indices));
            return found;
        },
        async recompute(array, indices) {
            await store.load([array, ...operands(array)]);
            return indices.map((index) => {
                const computation = store.computation(array);
                const symbols = store.outline.symbols[store.operation(array).notation];
                const working = new Working(computation, store, symbols).explain(index);
                const floats = working.reads.filter((read) => store.array(read.array).dtype !== "int64");
                const terms = working.lines.flatMap((line) => line.terms?.list ?? []);
                const sizes = [...working.lines, ...terms, ...floats].map(({ value }) => Math.abs(value));
                return { shown: store.value(array, index), working: working.value, direct: computation.value(index),
                    measure: working.largest,
                    largest: sizes.filter(Number.isFinite).reduce((a, b) => Math.max(a, b), 0) };
            });
        },
        async uses(array, index) {
            for (const { id } of store.readers.get(array) ?? []) await store.load(operands(id));
            return usesOf(store, array, index);
        },
        async code(array, index) {
            await store.load([array, ...operands(array)]);
            return numpyCode(store, array, index);
        },
    };
}"""


@pytest.fixture(scope="module")
def labs(module_page, site):
    """For each route a page on which the page's own modules can be called."""
    found = {}
    for route in ALL_ROUTES:
        found[route] = visit(module_page(), address(site, route))
        found[route].evaluate(LAB, route)
    return found


def some_indices(shape: tuple[int, ...], draw: random.Random) -> list[list[int]]:
    """The first, the last and one more."""
    corners = [[0] * len(shape), [length - 1 for length in shape], [draw.randrange(length) for length in shape]]
    return [list(index) for index in dict.fromkeys(map(tuple, corners))]


@pytest.mark.parametrize("route", ALL_ROUTES)
def test_every_step_can_be_recomputed(labs, recordings, route):
    trace, draw = recordings[route], random.Random(12)
    replay = Replay(trace, AXES)
    wanted = [(name, some_indices(trace.arrays[name].shape, draw)) for name in trace.operations
              if trace.arrays[name].size]
    wrong = []
    for (step, indices), results in zip(wanted, labs[route].evaluate("lab.recomputeAll", wanted), strict=True):
        array, known = trace.arrays[step], replay.values(step)
        twice = any(trace.arrays[name].derived for name in trace.operations[step].operands.values())
        allowed = ULPS_TWICE if twice else ULPS
        for index, result in zip(indices, results, strict=True):
            recorded, value = known[tuple(index)].item(), float(result["working"])
            same = recorded == value or (np.isnan(recorded) and np.isnan(value))
            difference = 0 if same else abs(value - recorded)
            if difference > allowed * max(ulp(recorded), ulp(result["largest"])):
                scales = [difference / ulp(size) for size in (recorded, result["largest"])]
                wrong.append((step, index, recorded, value, *scales))
            if not np.array_equal([result["direct"]], [value], equal_nan=True):
                wrong.append((step, index, "the working and the plain computation differ", result))
            if not array.derived and np.float32(result["shown"]) != np.float32(recorded):
                wrong.append((step, index, "not the recorded number", result["shown"], recorded))
    assert len(wanted) > 200
    assert wrong == []


OPEN = """async (links) => {
    const found = [];
    for (const link of links) {
        await tools.goTo(link);
        while (!tools.opened()) await new Promise((done) => setTimeout(done)); // sooner than the next frame
        const verdict = document.querySelector("#number .verdict");
        found.push([document.querySelector("#number .big").textContent, verdict?.classList.contains("ok") ?? null,
            Number(verdict?.dataset.ulps), Number(verdict?.dataset.scaled)]);
    }
    return found;
}"""


@pytest.mark.parametrize("route", UNLIKE_ROUTES)
def test_a_number_of_every_step_opens_and_agrees(page, site, recordings, route):
    """By its link: the number whole, beside it the same recomputed; of what repeats in blocks or rounds, in one."""
    trace, draw = recordings[route], random.Random(1)
    stored = [name for name in trace.operations if trace.arrays[name].size and not trace.arrays[name].derived]
    wanted = [(name, [draw.randrange(length) for length in trace.arrays[name].shape])
              for name in one_of_each(stored, draw)]
    visit(page, address(site, route))
    found = page.evaluate(OPEN, [fragment_of(trace, step, index) for step, index in wanted])
    wrong = []
    for (step, index), (shown, agrees, apart, scaled) in zip(wanted, found, strict=True):
        twice = any(trace.arrays[name].derived for name in trace.operations[step].operands.values())
        if not same(shown, trace.values(step)[tuple(index)]) or not agrees or min(apart, scaled) > (
                ULPS_TWICE if twice else ULPS):
            wrong.append((step, index, shown, agrees, apart, scaled))
    assert len(wanted) > (200 if route == "training" else 70)
    assert wrong == []


def test_a_number_looked_up_is_measured_by_the_terms_that_made_it(labs, page, site, training_trace):
    """Rows looked up in a table that is not stored: where a sum cancelled, its rounding is that of its terms."""
    values, array = training_trace.values, "adamw.token_embedding.weight.after.used"
    recorded, rows = values(array), values("used_ids")
    before, gradient = (np.abs(values(name)) for name in ("token_embedding.weight", "grad.token_embedding.weight"))
    places = list(np.ndindex(recorded.shape))
    for (row, d), found in zip(places, labs["training"].evaluate("(of) => lab.recompute(...of)", [array, places]),
                               strict=True):
        terms = max(before[rows[row], d], gradient[rows[row], d], abs(recorded[row, d]), 0.02)  # the last: the rate
        assert found["measure"] == pytest.approx(terms, rel=0.1), (row, d)
        assert abs(found["working"] - recorded[row, d]) <= ULPS * ulp(terms), (row, d)
    visit(page, address(site, "training"))
    place = np.unravel_index(np.abs(recorded).argmin(), recorded.shape)
    (shown, agrees, apart, scaled), = page.evaluate(OPEN, [fragment_of(training_trace, array, place)])
    assert same(shown, recorded[place]) and agrees and scaled <= ULPS < 64 < apart


@pytest.mark.parametrize("route", ROUTES)
def test_numbers_opened_by_a_click(page, site, recordings, route):
    """A click on a cell opens the number, the verdict is good, its operands lead on."""
    trace, draw = recordings[route], random.Random(21)
    made = {}  # for each kind of number a step that shows one
    for step in draw.sample(list(trace.operations), len(trace.operations)):
        if trace.arrays[step].size and not trace.arrays[step].derived:
            made.setdefault((trace.operations[step].kind, trace.operations[step].target), step)
    assert len(made) > CLICKED
    step_of = {name: step.id for chapter in trace.chapters for step in chapter.steps for name in step.operations}
    visit(page, address(site, route))
    followed = 0
    for step in draw.sample(list(made.values()), CLICKED):
        go(page, f"#step={step_of[step]}")
        cells = page.locator(f'.step.current [data-array="{step}"] .made td[data-r]')
        cells.nth(draw.randrange(min(cells.count(), 100))).click()
        number = opened(page)
        assert number["array"] == step
        assert page.locator(f'.step.current [data-array="{step}"] .made td.sel').count() == 1
        assert same(number["big"], trace.values(step)[tuple(number["index"])])
        assert number["verdict"] == "verdict ok", number
        if number["links"]:
            link = draw.choice(number["links"])
            page.locator(f'#number .line a[href="{link}"]').first.click()
            operand = opened(page)
            assert page.evaluate("location.hash") == link
            assert operand["array"] in trace.operations[step].operands.values()
            assert operand["verdict"] in (None, "verdict ok"), operand
            followed += 1
    assert followed > CLICKED / 2
    page.locator("#number .close").click()
    assert page.locator("#number").is_hidden()


def way(trace: Trace, start: str, end: str) -> list[str]:
    """The shortest way of arrays from `start` to `end`, each an operand of the one before."""
    before, waiting = {start: None}, deque([start])
    while end not in before:
        here = waiting.popleft()
        for operand in trace.operations[here].operands.values() if here in trace.operations else ():
            if operand not in before:
                before[operand] = here
                waiting.append(operand)
    found = [end]
    while before[found[-1]]:
        found.append(before[found[-1]])
    return found[::-1]


def follow(page, arrays: list[str], part: str) -> list[dict]:
    """From the opened number along `arrays`, each time by a link of the panel."""
    seen = [opened(page)]
    for array in arrays[1:]:
        if part == ".uses" and page.locator("#number .uses:not([open])").count():
            page.locator("#number .uses summary").click()
        name = array.replace("@", "%40")
        page.locator(f'#number {part} a[href*="of={name}&"], #number {part} a[href$="of={name}"]').first.click()
        seen.append(opened(page))
    assert [number["array"] for number in seen] == arrays
    return seen


@pytest.mark.parametrize("end", ["x", "text.bytes"])
def test_the_way_back_from_the_loss_reaches_the_ids_and_the_bytes(page, site, training_trace, end):
    visit(page, address(site, "training", "en", "#step=loss&of=loss"))
    seen = follow(page, way(training_trace, "loss", end), ".line")
    assert len(seen) > 6
    assert {number["verdict"] for number in seen[:-1]} == {"verdict ok"}
    last = seen[-1]
    assert same(last["big"], training_trace.values(end)[tuple(last["index"])])
    if end not in training_trace.operations:
        assert page.locator("#number").inner_text().count(WORDS["en"]("no_operands")) == 1


def test_the_new_value_of_a_parameter_leads_to_both_losses(page, site, training_trace):
    """E[220, 0] after the update: back to the loss whose gradient it follows, on to the next forward's loss."""
    after = "adamw.token_embedding.weight.after"
    start = fragment_of(training_trace, after, [220, 0])
    visit(page, address(site, "training", "en", start))
    back = follow(page, way(training_trace, after, "grad.loss"), ".line")
    assert back[-1]["big"] == "1"
    go(page, start)
    on = way(training_trace, "again.loss", after)[::-1]
    seen = follow(page, on, ".uses")
    assert seen[0]["index"] == [220, 0]
    assert same(seen[-1]["big"], training_trace.values("again.loss"))


USED = ("linear", "scaled_scores", "softmax", "layer_norm", "embedding", "split_heads", "concatenate_heads",
        "causal_mask", "cross_entropy", "weighted_sum", "append", "window", "last_position", "mean", "tied_head", "add")
USES = "(all) => Promise.all(all.map(([array, index]) => lab.uses(array, index)))"


@pytest.mark.parametrize("kind", USED)
def test_where_a_number_is_used(labs, recordings, kind):
    """Against brute force: the outputs that change when the number does are those that the page names."""
    draw, numbers = random.Random(kind), np.random.default_rng(8)
    trace = recordings["generation" if kind == "last_position" else "training"]
    replay = Replay(trace, AXES)
    cases = []  # all asked of the page at once
    for target in KINDS[kind].targets:
        if (kind, target) == ("embedding", "d_table"):
            continue  # the next test
        steps = [step for step in trace.operations.values() if (step.kind, step.target) == (kind, target)]
        for step in draw.sample(steps, min(2, len(steps))):
            # Any numbers will do: what depends on what must not hang on zeros that were recorded.
            operands = {name: values if values.dtype.kind == "i" else numbers.normal(size=values.shape)
                        for name, values in ((name, replay.values(array)) for name, array in step.operands.items())}
            before = result_of(replay, step, operands)
            for operand, array in step.operands.items():
                # A whole number that is compared or looked up changes nothing when the result happens to be the same.
                if operands[operand].dtype.kind == "i" and kind not in ("append", "window"):
                    continue
                for index in some_indices(operands[operand].shape, draw):
                    cases.append((step, array, index, changed_by(replay, step, operands, before, array, index)))
    found = labs[trace.route].evaluate(USES, [(array, index) for _, array, index, _ in cases])
    for (step, array, index, changed), uses in zip(cases, found, strict=True):
        assert named_by(uses, step, changed.shape) == changed.tolist(), (step.id, array, index)
    assert len(cases) >= 3


def test_a_gradient_goes_to_every_row_of_the_table(labs):
    """To one row with a factor of 1, to all others with 0: the formula reads it for all."""
    step = "grad.token_embedding.weight@token_embedding"
    uses = labs["training"].evaluate("([array, index]) => lab.uses(array, index)", ["grad.token_embedding", [2, 5]])
    assert [use["pattern"] for use in uses if use["id"] == step] == [[None, 5]]


def result_of(replay, step, given) -> np.ndarray:
    return evaluate(Computation(replay.equations(step), given, step.settings, replay.trace.arrays[step.id].shape)).value


def changed_by(replay, step, operands, before, array, index) -> np.ndarray:
    """Which numbers of the step's array, `before` so far, change when this number of an operand does."""
    other = {name: values.copy() if step.operands[name] == array else values for name, values in operands.items()}
    for name in step.operands:
        if step.operands[name] == array:
            other[name][tuple(index)] += 1
    after = result_of(replay, step, other)
    same = before == after  # infinities included
    with np.errstate(invalid="ignore"):
        return ~same & ~(np.abs(before - after) < 1e-11)


def named_by(uses, step, shape) -> list:
    named = np.zeros(shape, dtype=bool)
    for use in uses:
        if use["id"] == step.id:
            named[tuple(slice(None) if at is None else at for at in use["pattern"])] = True
    return named.tolist()


def test_uses_lead_on(page, site, training_trace):
    """From a token's id to its row, from there to what reads it, and on."""
    visit(page, address(site, "training", "en", fragment_of(training_trace, "x", [2])))
    for _ in range(8):
        number = opened(page)
        uses = page.locator("#number .uses a")
        assert uses.count() > 0, number
        if page.locator("#number .uses:not([open])").count():
            page.locator("#number .uses summary").click()
        link = uses.last.get_attribute("href")
        uses.last.click()
        page.evaluate("(link) => tools.until(() => location.hash === link)", link)
        assert opened(page)["array"] != number["array"]


@pytest.mark.parametrize("route", ROUTES)
def test_the_numpy_code_of_a_number_runs(labs, recordings, route, monkeypatch):
    """The program that the page writes prints the number, recomputed and as recorded."""
    trace, draw = recordings[route], random.Random(5)
    monkeypatch.chdir(TRACES)
    found = {}
    for step in draw.sample(list(trace.operations), len(trace.operations)):
        if trace.arrays[step].size:
            found.setdefault((trace.operations[step].kind, trace.operations[step].target), step)
    replay = Replay(trace, AXES)
    for step in found.values():
        if step.startswith("receipt.predicted.token"):
            continue
        index = some_indices(trace.arrays[step].shape, draw)[-1]
        code = labs[route].evaluate("([array, index]) => lab.code(array, index)", [step, index])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, step, "exec"), {})
        computed, *recorded = map(float, re.findall(r"(?:np\.float\d+\()?(-?[\w.+-]+)\)?", printed.getvalue()))
        known = replay.values(step)[tuple(index)]
        np.testing.assert_allclose(computed, known, rtol=2e-5, atol=2e-5, err_msg=step)
        assert [known.dtype.type(value) for value in recorded] == ([] if trace.arrays[step].derived else [known]), step
