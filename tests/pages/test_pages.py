"""The pages in a browser, opened as files: every step, every kind of number, keyboard, small screens, no scripts.

Numbers are recomputed by the page's own modules and compared with the recording.  They must agree within
`ULPS` float32 steps (units in the last place) of the recorded number or, where terms cancel, of the largest
operand, term or intermediate result of its working; where an operand is itself not stored, within `ULPS_TWICE`.
"""

import contextlib
import io
import random
import re
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from site_builder.build import ROUTES
from site_builder.pages import format_number
from site_builder.prose import LANGUAGES
from site_builder.strings import Strings
from tracer.ops import KINDS, Computation, evaluate
from tracer.ops.replay import Replay
from tracer.schema import AXES, Trace

TRACES = Path(__file__).resolve().parents[2] / "traces"
ULPS, ULPS_TWICE = 4, 16
CLICKED = 28  # kinds of numbers on each page that are opened by hand
WORDS = {language: Strings(language) for language in LANGUAGES}
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def recordings(training_trace, generation_trace) -> dict[str, Trace]:
    return {"training": training_trace, "generation": generation_trace}


def steps_of(trace: Trace) -> list[str]:
    return [view.id for chapter in trace.chapters for view in chapter.views]


def address(site: Path, route: str, language: str = "en", fragment: str = "") -> str:
    return (site / language / f"{route}.html").as_uri() + fragment


TOOLS = """
window.tools = {
    frame: () => new Promise((done) => requestAnimationFrame(() => setTimeout(done))),
    numbers: () => [...document.querySelectorAll(".step.current .numbers")],
    // Short tables have all their rows, long ones those in view.
    loaded: () => tools.numbers().every((box) => (
        box.querySelector("table") && !box.querySelector(".window:not(.long) .spacer"))),
    // The policy of the pages forbids what `page.wait_for_function` does.
    async until(test) {
        const start = performance.now();
        while (!test()) {
            await tools.frame();
            if (performance.now() - start > 60000) throw new Error(`${test} stays false on ${tools.place().step}`);
        }
    },
    async settled() {
        await tools.until(tools.loaded);
        return tools.place();
    },
    place() {
        const [section, ...others] = [...document.querySelectorAll("section.step.current")];
        const bar = document.getElementById("progress");
        return { step: section.dataset.step, others: others.length, title: section.querySelector("h2").textContent,
            where: section.querySelector(".where").textContent, bar: Number(bar.value),
            said: bar.getAttribute("aria-valuetext"), page: document.title, hash: location.hash,
            listed: document.querySelector('.contents [aria-current="step"]').dataset.step,
            notice: document.getElementById("notice").textContent, open: !document.getElementById("number").hidden };
    },
};
"""


def visit(page, url: str):
    """Open a page of a route and wait until its step shows its tables."""
    page.add_init_script(TOOLS)
    page.goto(url)
    page.wait_for_selector("html.scripted section.step.current")
    page.evaluate("tools.settled()")
    return page


def place(page) -> dict:
    return page.evaluate("tools.settled()")


def go(page, fragment: str) -> dict:
    """Follow a link to a place on the same page."""
    page.evaluate("""async (fragment) => {
        const changed = new Promise((done) => addEventListener("hashchange", done, { once: true }));
        const before = location.hash;
        location.hash = fragment;
        if (location.hash !== before) await changed;
    }""", fragment)
    return place(page)


def wait_for_step(page, step: str) -> dict:
    page.wait_for_selector(f'section.step.current[data-step="{step}"]')
    return place(page)


def opened(page) -> dict:
    """What the panel says, as soon as it is about the number that the address names."""
    page.evaluate("""() => tools.until(() => {
        const named = new URLSearchParams(location.hash.slice(1));
        return document.querySelector("#number .name code")?.textContent === named.get("of")
            && document.querySelector("#number .big");
    })""")
    return page.evaluate("""() => {
        const text = (part) => document.querySelector(`#number ${part}`)?.textContent ?? null;
        const index = text(".name").match(/\\[(.*)\\]/);
        return { array: text(".name code"), index: index ? index[1].split(", ").map(Number) : [], big: text(".big"),
            verdict: document.querySelector("#number .verdict")?.className ?? null,
            links: [...document.querySelectorAll("#number .line a")].map((a) => a.getAttribute("href")) };
    }""")


def fragment_of(trace: Trace, array: str, index, step: str | None = None) -> str:
    """The link to one number."""
    home = {name: view.id for chapter in trace.chapters for view in chapter.views
            for name in [*view.arrays, *view.steps]}
    letters = [AXES[axis] for axis in trace.arrays[array].axes]
    at = "".join(f"&{letter}={i}" for letter, i in zip(letters, index, strict=True))
    return f"#step={step or home.get(array, steps_of(trace)[0])}&of={array.replace('@', '%40')}{at}"


def shortest(value) -> str:
    """The number as an opened panel shows it: whole, with a true minus sign."""
    if not np.isfinite(value):
        return format_number(value)
    text = np.format_float_positional(value, trim="-") if value.dtype.kind == "f" else str(value)
    return text.replace("-", "−")


# Step by step ----------------------------------------------------------------------------------------

WALK = """async ([by, most]) => {
    const button = document.querySelector(`[data-go="${by}"]`);
    const seen = [];
    while (!button.disabled && seen.length < most) {
        button.click();
        await new Promise((done) => setTimeout(done));
        seen.push(tools.place());
    }
    return seen;
}"""


@pytest.mark.parametrize("route", ROUTES)
def test_walk_to_the_end_by_the_button_and_some_way_back(page, site, recordings, route):
    steps = steps_of(recordings[route])
    visit(page, address(site, route))
    seen = [place(page), *page.evaluate(WALK, [1, 9999])]
    assert [at["step"] for at in seen] == steps
    for number, at in enumerate(seen, start=1):
        assert at["others"] == 0
        assert at["where"].endswith(WORDS["en"]("step_of", n=number, total=len(steps)))
        assert at["bar"] == number
        assert at["said"] == f"{WORDS['en']('step_of', n=number, total=len(steps))}: {at['title']}"
        assert at["page"] == f"{at['title']} · {WORDS['en']('site')}"
        assert at["listed"] == at["step"]
        assert at["hash"] in ("", f"#step={at['step']}")
        assert at["notice"] == ""
        assert not at["open"]
    assert page.evaluate("document.querySelector('[data-go=\"1\"]').disabled")
    back = page.evaluate(WALK, [-1, 30])
    assert back == seen[-2:-32:-1]


@pytest.mark.parametrize("route", ROUTES)
def test_titles_are_those_of_the_page_without_scripts(new_page, site, recordings, route):
    plain = new_page(java_script_enabled=False)
    plain.goto(address(site, route, "zh"))
    titles = plain.locator("section.step h2").all_text_contents()
    page = visit(new_page(), address(site, route, "zh"))
    steps = steps_of(recordings[route])
    for number in range(0, len(steps), 9):
        at = go(page, f"#step={steps[number]}")
        assert at["title"] == titles[number]
        assert at["where"].endswith(WORDS["zh"]("step_of", n=number + 1, total=len(steps)))
        assert at["page"] == f"{titles[number]} · {WORDS['zh']('site')}"


@pytest.mark.parametrize("route", ROUTES)
def test_every_step_has_a_link(page, site, recordings, route):
    """In any order, and each on a page of its own for a few."""
    steps = steps_of(recordings[route])
    order = random.Random(3).sample(steps, len(steps))
    visit(page, address(site, route))
    shown = page.evaluate("""async (steps) => {
        const shown = [];
        for (const step of steps) {
            const changed = new Promise((done) => addEventListener("hashchange", done, { once: true }));
            location.hash = `#step=${step}`;
            await changed;
            shown.push(tools.place());
        }
        return shown;
    }""", order)
    assert [at["step"] for at in shown] == order
    assert [at["listed"] for at in shown] == order
    assert {at["notice"] for at in shown} == {""}
    for step in [steps[-1], *order[:3]]:
        page.goto("about:blank")
        visit(page, address(site, route, "en", f"#step={step}"))
        assert place(page)["step"] == step


def test_clicks_on_buttons_lists_and_legends(page, site, training_trace):
    steps = steps_of(training_trace)
    visit(page, address(site, "training"))
    for number in range(1, 8):
        page.click('[data-go="1"]')
        assert place(page)["step"] == steps[number]
    page.click('[data-go="-1"]')
    assert place(page)["step"] == steps[6]
    page.click('.chapters a[data-chapter="backward"]')
    backward = next(chapter for chapter in training_trace.chapters if chapter.id == "backward")
    wait_for_step(page, backward.views[0].id)
    link = page.locator(".step.current .legend a").nth(1)
    step = link.get_attribute("href").removeprefix("#step=")
    link.click()
    wait_for_step(page, step)
    page.locator('[data-show="steps"]').click()
    page.locator(".contents details[open] a").last.click()
    wait_for_step(page, page.locator(".contents details[open] a").last.get_attribute("data-step"))


def test_keys(page, site, training_trace):
    steps = steps_of(training_trace)
    chapters = [chapter.views[0].id for chapter in training_trace.chapters]
    visit(page, address(site, "training"))
    for key, step in (("ArrowRight", steps[1]), ("n", steps[2]), ("ArrowLeft", steps[1]), ("p", steps[0]),
                      ("p", steps[0]), ("End", steps[-1]), ("n", steps[-1]), ("Home", steps[0]), ("]", chapters[1]),
                      ("]", chapters[2]), ("n", training_trace.chapters[2].views[1].id), ("[", chapters[1]),
                      ("[", chapters[0]), ("[", chapters[0]), ("Shift+?", chapters[0])):
        page.keyboard.press(key)
        wait_for_step(page, step)
    assert page.locator("#help").is_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()
    assert place(page)["step"] == steps[0]
    page.keyboard.press("Control+ArrowRight")
    page.keyboard.press("x")
    assert place(page)["step"] == steps[0]
    page.locator(".step.current td[data-r]").first.click()
    opened(page)
    page.keyboard.press("Escape")
    assert page.locator("#number").is_hidden()
    page.keyboard.press("Escape")
    assert place(page)["step"] == steps[0]


def test_back_and_forward(page, site, training_trace):
    steps = steps_of(training_trace)
    visit(page, address(site, "training"))
    for _ in range(3):
        page.keyboard.press("n")
        page.evaluate("tools.frame()")
    go(page, f"#step={steps[40]}")
    page.locator(".step.current .made td[data-r]").first.click()
    number = opened(page)
    for step in (steps[40], steps[3], steps[2]):
        page.go_back()
        wait_for_step(page, step)
        assert page.locator("#number").is_hidden()
    for step in (steps[3], steps[40], steps[40]):
        page.go_forward()
        wait_for_step(page, step)
    assert opened(page) == number


def test_thirty_times_back(page, site, training_trace):
    """Back past every step that was shown, to the page before; then the page comes again as it was."""
    steps = steps_of(training_trace)
    page.goto((site / "en" / "index.html").as_uri())
    visit(page, address(site, "training"))
    for _ in range(30):
        page.keyboard.press("n")
        page.evaluate("tools.frame()")
    assert place(page)["step"] == steps[30]
    page.evaluate("async () => { for (let i = 0; i < 30; i++) { history.back(); await tools.frame(); } }")
    wait_for_step(page, steps[0])
    page.go_back()
    page.wait_for_url("**/en/index.html")
    page.go_forward()
    page.wait_for_selector("html.scripted section.step.current")
    wait_for_step(page, steps[0])


def test_keys_that_are_held_do_not_queue_up(page, site, training_trace):
    steps = steps_of(training_trace)
    visit(page, address(site, "training"))
    page.evaluate("""async () => {
        for (let i = 0; i < 400; i++) {
            const key = i % 4 !== 2 ? "n" : "p";
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, repeat: true }));
            if (i % 40 === 0) await tools.frame();
        }
        await tools.frame();
    }""")
    assert place(page)["step"] == steps[200]


def test_the_bar_can_be_dragged(page, site, training_trace):
    steps = steps_of(training_trace)
    visit(page, address(site, "training"))
    entries = page.evaluate("history.length")
    box = page.locator("#progress").bounding_box()
    page.mouse.move(box["x"] + 9, box["y"] + box["height"] / 2)
    page.mouse.down()
    for share in (0.2, 0.5, 0.4, 0.75):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        page.evaluate("tools.frame()")
    page.mouse.up()
    page.evaluate("tools.frame()")
    at = place(page)
    assert abs(at["bar"] / len(steps) - 0.75) < 0.02
    assert at["step"] == steps[at["bar"] - 1]
    page.locator("#progress").focus()
    page.keyboard.press("ArrowRight")
    page.evaluate("tools.frame()")
    assert place(page)["step"] == steps[at["bar"]]
    assert page.evaluate("history.length") == entries  # dragging leaves no trail
    page.locator("#progress").fill(str(len(steps)))
    wait_for_step(page, steps[-1])


def test_play_goes_on_by_itself_and_stops(page, site, training_trace):
    steps = steps_of(training_trace)
    visit(page, address(site, "training"))
    page.select_option("#speed", "fast")
    page.click("#play")
    wait_for_step(page, steps[2])
    page.keyboard.press("n")
    page.click("#play")
    stopped = place(page)["step"]
    time.sleep(2.5)
    assert place(page)["step"] == stopped
    assert page.get_attribute("#play", "aria-pressed") == "false"


@pytest.mark.parametrize("fragment", [
    "#step=nowhere", "#step=", "#step=toString", "#step=__proto__", "#of=y2", "#of=constructor", "#of=__proto__",
    "#step=loss&of=nothing", "#step=loss&of=loss&h=999", "#step=head&of=head&t=0&v=50257", "#of=head&t=-1",
    "#%", "#&&", "#step=%F0%28", "#<script>", "#step=loss&of=toString&d=1"])
def test_links_that_name_nothing(page, site, training_trace, fragment):
    steps = steps_of(training_trace)
    visit(page, address(site, "training", "en", f"#step={steps[5]}"))
    at = go(page, fragment)
    named = re.search(r"step=(loss|head)\b", fragment)
    assert at["step"] == (named[1] if named else steps[0])
    lost = "of=" in fragment or ("step=" in fragment and not named)
    right = re.search(r"of=(loss&h=999|head&t=-1)", fragment)  # what is no axis or no number is not heeded
    assert bool(at["notice"]) == bool(lost and not right)
    assert at["open"] == bool(right)
    page.keyboard.press("End")
    wait_for_step(page, steps[-1])
    assert place(page)["notice"] == ""


def test_the_language_switch_keeps_the_place(page, site, training_trace):
    visit(page, address(site, "training"))
    go(page, "#step=blocks.1.attention.scores")
    page.locator('.step.current .made td[data-r="3"][data-c="2"]').click()
    number = opened(page)
    page.click('[data-digits="6"]')
    page.click('a[data-language="zh"]')
    page.wait_for_url("**/zh/training.html#**")
    page.wait_for_selector("html.scripted section.step.current")
    at = place(page)
    assert at["step"] == "blocks.1.attention.scores"
    assert opened(page)["index"] == number["index"] == [0, 3, 2]
    assert opened(page)["big"] == number["big"]
    assert page.get_attribute('[data-digits="6"]', "aria-pressed") == "true"
    assert at["where"].startswith(WORDS["zh"]("chapter.blocks", n=2))
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.click('a[data-language="en"]')
    page.wait_for_url("**/en/training.html#**")
    page.wait_for_selector("html.scripted section.step.current")
    assert place(page)["step"] == "blocks.1.attention.mask"


def test_a_step_that_is_shown_again(page, site):
    """Its tables are new ones: digits, marks and choices hold for them too."""
    name = "blocks.0.attention.scores"
    visit(page, address(site, "training", "en", f"#step={name}"))
    page.keyboard.press("n")
    wait_for_step(page, "blocks.0.attention.mask")
    page.keyboard.press("p")
    wait_for_step(page, name)
    page.locator(f'.step.current [data-array="{name}"] .made .chip').nth(1).click()
    page.locator(f'.step.current [data-array="{name}"] .made td[data-r="2"][data-c="1"]').click()
    assert opened(page)["index"] == [1, 2, 1]
    selected = page.locator(".step.current td.sel")
    assert selected.count() == 1
    assert selected.inner_text() == page.locator(f'.step.current [data-array="{name}"] .made td.sel').inner_text()
    assert page.locator(".step.current .operands td.lit").count() > 1


def test_digits(page, site, training_trace):
    visit(page, address(site, "training", "en", "#step=blocks.0.norm_1"))
    values = training_trace.values("blocks.0.norm_1")
    for digits in ("2", "6", "all", "4"):
        page.click(f'[data-digits="{digits}"]')
        place(page)
        assert page.locator('[data-digits][aria-pressed="true"]').all_text_contents() == [
            WORDS["en"]("all_digits") if digits == "all" else digits]
        cells = page.locator('[data-array="blocks.0.norm_1"] .made td[data-r]').all_text_contents()
        show = shortest if digits == "all" else partial(format_number, digits=int(digits))
        assert cells == [show(value) for value in values.ravel()]
    page.click('[data-digits="2"]')
    page.keyboard.press("n")
    assert place(page)["hash"].endswith("&digits=2")
    assert page.get_attribute('[data-digits="2"]', "aria-pressed") == "true"


# Numbers ---------------------------------------------------------------------------------------------

LAB = """async (route) => {
    const { Store } = await import("store");
    const { Working } = await import("working");
    const { numpyCode } = await import("code");
    const store = await Store.open(route, "../");
    const operands = (array) => Object.values(store.step(array)?.operands ?? {});
    window.lab = {
        store,
        async recompute(array, indices) {
            await store.load([array, ...operands(array)]);
            return indices.map((index) => {
                const computation = store.computation(array);
                const symbols = store.outline.symbols[store.step(array).kind];
                const working = new Working(computation, store, symbols).explain(index);
                const floats = working.reads.filter((read) => store.array(read.array).dtype !== "int64");
                const terms = working.lines.flatMap((line) => line.terms?.list ?? []);
                const sizes = [...working.lines, ...terms, ...floats].map(({ value }) => Math.abs(value));
                return { shown: store.value(array, index), working: working.value, direct: computation.value(index),
                    largest: sizes.filter(Number.isFinite).reduce((a, b) => Math.max(a, b), 0) };
            });
        },
        async uses(array, index) {
            for (const { id } of store.usesOf.get(array) ?? []) await store.load(operands(id));
            return store.uses(array, index);
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
    for route in ROUTES:
        found[route] = visit(module_page(), address(site, route))
        found[route].evaluate(LAB, route)
    return found


def some_indices(shape: tuple[int, ...], draw: random.Random) -> list[list[int]]:
    """The first, the last and one more."""
    corners = [[0] * len(shape), [length - 1 for length in shape], [draw.randrange(length) for length in shape]]
    return [list(index) for index in dict.fromkeys(map(tuple, corners))]


def ulp(value: float) -> float:
    return float(np.spacing(np.float32(abs(value))))


@pytest.mark.parametrize("route", ROUTES)
def test_every_step_can_be_recomputed(labs, recordings, route):
    trace, draw = recordings[route], random.Random(12)
    replay = Replay(trace, AXES)
    count, wrong = 0, []
    for step in trace.steps:
        array = trace.arrays[step]
        if not array.size:
            continue
        known = replay.values(step)
        twice = any(trace.arrays[name].derived for name in trace.steps[step].operands.values())
        allowed = ULPS_TWICE if twice else ULPS
        indices = some_indices(array.shape, draw)
        results = labs[route].evaluate("([array, indices]) => lab.recompute(array, indices)", [step, indices])
        for index, result in zip(indices, results, strict=True):
            recorded, value = known[tuple(index)].item(), float(result["working"])
            same = recorded == value or (np.isnan(recorded) and np.isnan(value))
            difference = 0 if same else abs(value - recorded)
            count += 1
            if difference > allowed * max(ulp(recorded), ulp(result["largest"])):
                scales = [difference / ulp(size) for size in (recorded, result["largest"])]
                wrong.append((step, index, recorded, value, *scales))
            if not np.array_equal([result["direct"]], [value], equal_nan=True):
                wrong.append((step, index, "the working and the plain computation differ", result))
            if not array.derived and np.float32(result["shown"]) != np.float32(recorded):
                wrong.append((step, index, "not the recorded number", result["shown"], recorded))
    assert count > 400
    assert wrong == []


@pytest.mark.parametrize("route", ROUTES)
def test_numbers_opened_by_a_click(page, site, recordings, route):
    """A click on a cell opens the number, the verdict is good, its operands lead on."""
    trace, draw = recordings[route], random.Random(21)
    made = {}  # for each kind of number a step that shows one
    for step in draw.sample(list(trace.steps), len(trace.steps)):
        if trace.arrays[step].size and not trace.arrays[step].derived:
            made.setdefault((trace.steps[step].kind, trace.steps[step].target), step)
    assert len(made) > CLICKED
    view_of = {step: view.id for chapter in trace.chapters for view in chapter.views for step in view.steps}
    visit(page, address(site, route))
    followed = 0
    for step in draw.sample(list(made.values()), CLICKED):
        go(page, f"#step={view_of[step]}")
        cells = page.locator(f'.step.current [data-array="{step}"] .made td[data-r]')
        cells.nth(draw.randrange(min(cells.count(), 100))).click()
        number = opened(page)
        assert number["array"] == step
        assert page.locator(f'.step.current [data-array="{step}"] .made td.sel').count() == 1
        assert number["big"] == shortest(trace.values(step)[tuple(number["index"])])
        assert number["verdict"] == "verdict ok", number
        if number["links"]:
            link = draw.choice(number["links"])
            page.locator(f'#number .line a[href="{link}"]').first.click()
            operand = opened(page)
            assert page.evaluate("location.hash") == link
            assert operand["array"] in trace.steps[step].operands.values()
            assert operand["verdict"] in (None, "verdict ok"), operand
            followed += 1
    assert followed > CLICKED / 2
    page.locator("#number .close").click()
    assert page.locator("#number").is_hidden()


def test_the_way_back_from_the_loss(page, site, training_trace):
    """Always the first operand: from the loss to something that starts the computation."""
    visit(page, address(site, "training", "en", "#step=loss&of=loss"))
    way = [opened(page)]
    while way[-1]["links"]:
        page.locator("#number .line a").first.click()
        way.append(opened(page))
        assert way[-1]["verdict"] == "verdict ok" or not way[-1]["links"], way[-1]
        assert len(way) < 200
    assert len(way) > 8
    assert way[-1]["array"] not in training_trace.steps
    assert page.locator("#number").inner_text().count(WORDS["en"]("no_operands")) == 1


USED = ("linear", "scaled_scores", "softmax", "layer_norm", "embedding", "split_heads", "concatenate_heads",
        "causal_mask", "cross_entropy", "weighted_sum", "append", "window", "last_position", "mean", "tied_head", "add")


@pytest.mark.parametrize("kind", USED)
def test_where_a_number_is_used(labs, recordings, kind):
    """Against brute force: the outputs that change when the number does are those that the page names."""
    draw, numbers = random.Random(kind), np.random.default_rng(8)
    trace = recordings["generation" if kind == "last_position" else "training"]
    replay = Replay(trace, AXES)
    cases = 0
    for target in KINDS[kind].targets:
        if (kind, target) == ("embedding", "d_table"):
            continue  # the next test
        steps = [step for step in trace.steps.values() if (step.kind, step.target) == (kind, target)]
        for step in draw.sample(steps, min(2, len(steps))):
            # Any numbers will do: what depends on what must not hang on zeros that were recorded.
            operands = {name: values if values.dtype.kind == "i" else numbers.normal(size=values.shape)
                        for name, values in ((name, replay.values(array)) for name, array in step.operands.items())}
            for operand, array in step.operands.items():
                # A whole number that is compared or looked up changes nothing when the result happens to be the same.
                if operands[operand].dtype.kind == "i" and kind not in ("append", "window"):
                    continue
                for index in some_indices(operands[operand].shape, draw):
                    changed = changed_by(replay, step, operands, array, index)
                    assert named_by(labs[trace.route], step, array, index, changed.shape) == changed.tolist(), (
                        step.id, array, index)
                    cases += 1
    assert cases >= 3


def test_a_gradient_goes_to_every_row_of_the_table(labs):
    """To one row with a factor of 1, to all others with 0: the formula reads it for all."""
    step = "grad.token_embedding.weight@token_embedding"
    uses = labs["training"].evaluate("([array, index]) => lab.uses(array, index)", ["grad.token_embedding", [2, 5]])
    assert [use["pattern"] for use in uses if use["id"] == step] == [[None, 5]]


def changed_by(replay, step, operands, array, index) -> np.ndarray:
    """Which numbers of the step's array change when this number of an operand does."""
    def compute(given):
        shape = replay.trace.arrays[step.id].shape
        return evaluate(Computation(replay.equations(step), given, step.attributes, shape)).value

    other = {name: values.copy() if step.operands[name] == array else values for name, values in operands.items()}
    for name in step.operands:
        if step.operands[name] == array:
            other[name][tuple(index)] += 1
    before, after = compute(operands), compute(other)
    same = before == after  # infinities included
    with np.errstate(invalid="ignore"):
        return ~same & ~(np.abs(before - after) < 1e-11)


def named_by(page, step, array, index, shape) -> list:
    named = np.zeros(shape, dtype=bool)
    for use in page.evaluate("([array, index]) => lab.uses(array, index)", [array, index]):
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
    for step in draw.sample(list(trace.steps), len(trace.steps)):
        if trace.arrays[step].size:
            found.setdefault((trace.steps[step].kind, trace.steps[step].target), step)
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


# Tables ----------------------------------------------------------------------------------------------

def test_minus_infinity_shows_as_such(page, site, training_trace):
    visit(page, address(site, "training", "en", "#step=blocks.0.attention.mask"))
    cells = page.locator('[data-array="blocks.0.attention.mask"] .made td[data-r]').all_text_contents()
    masked = training_trace.values("blocks.0.attention.mask")[0]
    assert cells == [format_number(value) for value in masked.ravel()]
    assert cells.count("−∞") == np.isinf(masked).sum() > 0
    page.locator('.step.current .made td[data-r="0"][data-c="1"]').click()
    number = opened(page)
    assert number["big"] == "−∞"
    assert number["verdict"] == "verdict ok"


def test_what_is_not_stored_says_so(page, site, training_trace):
    array = training_trace.arrays["adamw.token_embedding.weight.after"]
    assert array.derived
    visit(page, address(site, "training", "en", fragment_of(training_trace, array.name, [220, 0])))
    number = opened(page)
    expected = Replay(training_trace, AXES).values(array.name)[220, 0]
    shown = float(number["big"].replace("−", "-"))
    assert abs(shown - expected) <= ULPS * ulp(expected)
    assert WORDS["en"]("computed_here") in page.locator("#number").inner_text()
    assert WORDS["en"]("computed_here") in page.locator(f'[data-array="{array.name}"]').inner_text()
    assert page.locator("#number .verdict").count() == 0


@pytest.mark.parametrize("fragment", ["", "#step=blocks.1.attention.softmax", "#step=adamw.token_embedding.weight",
                                      "#step=cross_entropy", "#step=loss"])
def test_tables_are_tables(page, site, fragment):
    """Row and column headers for all that has rows and columns; a step opened first loads all its tables."""
    visit(page, address(site, "training", "en", fragment))
    tables = page.evaluate("""() => [...document.querySelectorAll(".step.current .numbers table")].map((table) => ({
        name: table.getAttribute("aria-label"), role: table.getAttribute("role"),
        columns: table.querySelectorAll('thead th[scope="col"]').length,
        widths: [...new Set([...table.querySelectorAll("tbody tr:not(.spacer)")].map((row) => row.children.length))],
        rows: table.querySelectorAll('tbody th[scope="row"]').length,
        cells: table.querySelectorAll("tbody tr:not(.spacer)").length,
        reachable: table.querySelectorAll('[tabindex="0"]').length,
    }))""")
    assert tables
    for table in tables:
        assert table["role"] == "grid"
        assert table["name"]
        assert table["widths"] == [table["columns"]]
        assert table["rows"] == table["cells"]
        assert table["reachable"] == 1


def test_labels_beside_numbers(page, site, training_trace):
    visit(page, address(site, "training", "en", "#step=token_embedding"))
    rows = page.locator('[data-array="token_embedding"] .made th[scope="row"]').all_text_contents()
    labels = training_trace.label_list(training_trace.arrays["token_embedding"].labels["position"])
    assert rows == [f"{n} {label}" for n, label in enumerate(labels)]


TABLE = '.step.current [data-array="{}"] .made'


@pytest.mark.parametrize(("view", "name"), [("grad.token_embedding", "grad.token_embedding.weight"), ("head", "head")])
def test_long_tables(page, site, training_trace, view, name):
    """50,257 rows: scrolling, searching by id and by text, and the whole array as a file."""
    visit(page, address(site, "training", "en", f"#step={view}"))
    box = TABLE.format(name)
    values = training_trace.values(name)
    values = values.T if name == "head" else values
    labels = training_trace.label_list("vocabulary")
    rows = page.locator(f"{box} tbody tr:not(.spacer)")
    assert int(page.get_attribute(f"{box} table", "aria-rowcount")) == len(values) + 1

    def row(number: int) -> None:
        text = page.locator(f'{box} tr[aria-rowindex="{number + 2}"]').locator("th, td").all_text_contents()
        assert text == [f"{number} {labels[number]}", *(format_number(value) for value in values[number])]

    row(0)
    assert rows.count() < 60
    for share in (0.5, 1, 0.123):
        page.evaluate("""async ([box, share]) => {
            const view = document.querySelector(`${box} .window`);
            view.scrollTop = share * view.scrollHeight;
            await tools.frame(); await tools.frame();
        }""", [box, share])
        visible = page.evaluate("""(box) => {
            const { top, bottom } = document.querySelector(`${box} .window`).getBoundingClientRect();
            return [...document.querySelectorAll(`${box} tbody tr:not(.spacer)`)].filter((row) => {
                const at = row.getBoundingClientRect();
                return at.top >= top + 28 && at.bottom <= bottom;
            }).map((row) => row.getAttribute("aria-rowindex") - 2);
        }""", box)
        assert len(visible) > 3
        assert abs(visible[0] / len(values) - share) < 0.01 or (share == 1 and visible[-1] == len(values) - 1)
        row(visible[0])
        row(visible[-1])
    assert rows.count() < 60
    search, found = page.locator(f"{box} input[type=search]"), page.locator(f"{box} form [role=status]")
    for asked, number in (("50256", 50256), (labels[17250], 17250), ("0", 0), (labels[220], 220), (" Paris", None)):
        number = labels.index("␣Paris") if number is None else number
        search.fill(asked)
        search.press("Enter")
        assert found.inner_text() == f"{number} {labels[number]}"
        row(number)
        assert page.locator(f"{box} tr.found").get_attribute("aria-rowindex") == str(number + 2)
    search.fill("no such token anywhere")
    page.locator(f"{box} form button").click()
    assert found.inner_text() == WORDS["en"]("not_found")
    with page.expect_download() as saving:
        page.locator(f"{box} .tools button").click()
    lines = Path(saving.value.path()).read_text("utf-8").splitlines()
    assert saving.value.suggested_filename == f"{name}.csv"
    assert lines[0].startswith(f"# {name} ")
    saved = np.array([line.split(",") for line in lines[1:]], dtype=np.float32)
    recorded = training_trace.values(name)
    assert saved.dtype == recorded.dtype
    assert np.array_equal(saved, recorded)


@pytest.mark.parametrize("name", ["blocks.0.attention.mask", "x", "loss", "adamw.final_norm.bias.v"])
def test_small_tables_as_files(page, site, training_trace, name):
    visit(page, address(site, "training", "en", fragment_of(training_trace, name, [0] * len(
        training_trace.arrays[name].shape))))
    with page.expect_download() as saving:
        page.locator(f"{TABLE.format(name)} .tools button").click()
    lines = Path(saving.value.path()).read_text("utf-8").splitlines()
    recorded = training_trace.values(name)
    saved = np.array([line.split(",") for line in lines[1:]], dtype=recorded.dtype).reshape(recorded.shape)
    assert np.array_equal(saved, recorded)


def test_heads_are_chosen_above_the_table(page, site, training_trace):
    visit(page, address(site, "training", "en", "#step=blocks.0.attention.scores"))
    box = TABLE.format("blocks.0.attention.scores")
    scores = training_trace.values("blocks.0.attention.scores")
    chips = page.locator(f"{box} [role=group] .chip")
    assert chips.all_text_contents() == [str(1 + head) for head in range(len(scores))]
    for head in (1, 0):
        chips.nth(head).click()
        assert page.locator(f"{box} td[data-r]").all_text_contents() == [format_number(v) for v in scores[head].ravel()]
        assert page.evaluate("document.activeElement.textContent") == str(1 + head)
    chips.nth(1).click()
    page.keyboard.press("n")  # the choice holds
    place(page)
    box = TABLE.format("blocks.0.attention.mask")
    assert page.locator(f"{box} .chip[aria-pressed=true]").all_text_contents() == ["2"]
    page.locator(f'{box} td[data-r="4"][data-c="1"]').click()
    assert opened(page)["index"] == [1, 4, 1]


# Keyboard and focus ----------------------------------------------------------------------------------

def cell(page) -> list:
    """Array, row and column of the cell that has the focus."""
    return page.evaluate("""() => {
        const { activeElement: at } = document;
        const name = at.closest("table")?.getAttribute("aria-label") ?? at.tagName;
        return [name, Number(at.dataset.r), Number(at.dataset.c)];
    }""")


@pytest.mark.parametrize("name", ["embedding_sum", "blocks.0.attention.scores"])
def test_keys_in_a_table(page, site, name):
    """Arrow keys move, Enter opens and keeps the focus, Escape closes and gives it back."""
    visit(page, address(site, "training", "en", f"#step={name}"))
    last = page.locator(f"{TABLE.format(name)} tbody tr").first.locator("td").count() - 1
    page.locator(f'{TABLE.format(name)} td[tabindex="0"]').focus()
    for key, at in (("ArrowRight", [0, 1]), ("ArrowDown", [1, 1]), ("End", [1, last]), ("ArrowRight", [1, last]),
                    ("Home", [1, 0]), ("PageDown", [4, 0]), ("ArrowUp", [3, 0]), ("ArrowLeft", [3, 0]),
                    ("ArrowRight", [3, 1])):
        page.keyboard.press(key)
        assert cell(page) == [name, *at]
    assert place(page)["step"] == name
    page.keyboard.press("Enter")
    assert opened(page)["index"][-2:] == [3, 1]
    page.evaluate("tools.frame()")
    assert cell(page) == [name, 3, 1]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("ArrowUp")
    page.keyboard.press(" ")
    page.evaluate("() => tools.until(() => document.querySelector('#number .name').textContent.includes('2, 1]'))")
    page.evaluate("tools.frame()")
    assert cell(page) == [name, 2, 1]
    page.keyboard.press("Escape")
    assert page.locator("#number").is_hidden()
    assert cell(page) == [name, 2, 1]


def test_focus_returns_to_the_number_after_closing(page, site, training_trace):
    name = "blocks.1.norm_2"
    visit(page, address(site, "training", "en", fragment_of(training_trace, name, [3, 5])))
    opened(page)
    page.locator("#number .close").focus()
    page.keyboard.press("Enter")
    assert page.locator("#number").is_hidden()
    assert cell(page) == [name, 3, 5]
    assert place(page)["hash"] == f"#step={name}"


def test_long_table_by_keys(page, site):
    visit(page, address(site, "training", "en", "#step=grad.token_embedding"))
    name = "grad.token_embedding.weight"
    page.locator(f'{TABLE.format(name)} td[tabindex="0"]').focus()
    for _ in range(12):
        page.keyboard.press("PageDown")
    page.keyboard.press("ArrowRight")
    assert cell(page) == [name, 120, 1]
    page.keyboard.press("Enter")
    assert opened(page)["index"] == [120, 1]
    assert cell(page) == [name, 120, 1]


def test_tab_reaches_everything_and_is_seen(page, site):
    """Every stop of the Tab key on a step is visible and marked; the first leads past the navigation."""
    visit(page, address(site, "training", "en", "#step=loss"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    seen = []
    for _ in range(400):
        page.keyboard.press("Tab")
        at = page.evaluate("""() => {
            const at = document.activeElement;
            if (at === document.body) return null;
            const box = at.getBoundingClientRect(), style = getComputedStyle(at);
            const frame = at.querySelector(":scope > rect"); // a node of the map
            const framed = Boolean(frame) && parseFloat(getComputedStyle(frame).strokeWidth) > 2;
            return [at.tagName, at.id || at.className.baseVal || at.className || at.textContent.slice(0, 30),
                box.width > 0 && box.height > 0, framed || style.outlineStyle !== "none"];
        }""")
        if at is None:
            break
        seen.append(at)
    assert [stop for stop in seen if not stop[2]] == []
    assert [stop for stop in seen if not stop[3]] == []
    assert {"progress", "play", "speed", "help-open"} <= {stop[1] for stop in seen}
    assert any(tag == "TD" for tag, *_ in seen)


def test_scripts_move_the_focus_with_the_step(page, site):
    visit(page, address(site, "training"))
    page.keyboard.press("n")
    page.evaluate("tools.frame()")
    assert page.evaluate("document.activeElement.textContent") == place(page)["title"]


# Screens, print, motion, no scripts ------------------------------------------------------------------

def overflow(page) -> int:
    """By how many pixels the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_phone_scrolls_tables_and_never_the_page(new_page, site, recordings, language):
    draw = random.Random(2)
    for route in ROUTES:
        trace = recordings[route]
        page = visit(new_page(viewport=PHONE), address(site, route, language))
        chosen = {"training": ["head", "grad.token_embedding", "cross_entropy"], "generation": ["round1.sampler.top_k"]}
        for step in [*draw.sample(steps_of(trace), 7), *chosen[route]]:
            go(page, f"#step={step}")
            assert overflow(page) <= 0, (route, step)
            shown = page.locator(".step.current td[data-r]")
            if shown.count():
                shown.last.click()
                opened(page)
                assert overflow(page) <= 0, (route, step, "with a number")
                panel = page.locator("#number").bounding_box()
                assert panel["x"] >= 0
                assert panel["x"] + panel["width"] <= PHONE["width"]
                page.locator("#number .close").click()
    for name in (f"{language}/index.html", "index.html"):
        page.goto((site / name).as_uri())
        assert overflow(page) <= 0, name


def test_a_window_that_changes_its_size(page, site):
    visit(page, address(site, "training", "en", "#step=blocks.0.norm_1"))
    page.locator(".step.current .made td[data-r]").nth(5).click()
    number = opened(page)
    for width in (360, 700, 1000, 1920, 360):
        page.set_viewport_size({"width": width, "height": 700})
        page.evaluate("tools.frame()")
        assert overflow(page) <= 0, width
        assert opened(page) == number
    page.keyboard.press("n")
    page.evaluate("tools.frame()")
    assert overflow(page) <= 0


def test_reduced_motion(new_page, site):
    page = visit(new_page(reduced_motion="reduce"), address(site, "training", "en", "#step=blocks.0.attention.scores"))
    assert page.evaluate("getComputedStyle(document.querySelector('td[data-r]')).transitionDuration") in ("0s", "")
    page.locator(".step.current .made td[data-r]").nth(6).click()
    opened(page)
    page.locator("#number .pick .chip").first.click()
    page.evaluate("tools.frame()")
    assert page.locator(".flying").count() == 0
    assert page.evaluate("document.getAnimations().filter((a) => a.playState === 'running').length") == 0


def test_print(page, site):
    visit(page, address(site, "training", "en", "#step=blocks.0.norm_1"))
    page.locator(".step.current .made td[data-r]").first.click()
    opened(page)
    page.emulate_media(media="print")
    for part in (".top nav", ".chapters", ".bar", ".contents", ".go", "#number", ".skip"):
        assert page.locator(part).first.is_hidden(), part
    for part in ("h2", ".say", ".formula", ".legend", ".made table"):
        assert page.locator(f".step.current {part}").first.is_visible(), part
    page.emulate_media(media="print", color_scheme="dark")
    colours = page.evaluate("""() => { const style = getComputedStyle(document.body);
        return [style.color, style.backgroundColor]; }""")
    ink, paper = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
    assert ink < paper  # dark ink on light paper


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_without_scripts_all_is_there_to_read(new_page, site, recordings, route, language):
    steps = steps_of(recordings[route])
    page = new_page(java_script_enabled=False, viewport=DESK)
    page.goto(address(site, route, language))
    assert page.locator(".no-script").inner_text() == WORDS[language]("no_script")
    for part in (".go", ".bar", "#number"):
        assert page.locator(part).first.is_hidden(), part
    told = page.locator("section.step").evaluate_all("""(sections) => sections.map((section) => {
        const said = ["h2", ".say"].map((part) => section.querySelector(part))
            .map((part) => part.checkVisibility() && part.textContent.trim().length > 0);
        const hidden = [...section.querySelectorAll(".formula math")].filter((one) => !one.checkVisibility()).length;
        return [section.id, section.checkVisibility(), ...said, hidden];
    })""")
    assert [name for name, *_ in told] == [f"step={step}" for step in steps]
    assert [step for step, visible, title, said, hidden in told if hidden or not (visible and title and said)] == []
    for number in (1, len(steps) // 2, len(steps) - 1):
        link = page.locator(f'.contents a[data-step="{steps[number]}"]')
        page.goto(f"{address(site, route, language)}{link.get_attribute('href')}")
        page.wait_for_timeout(300)
        top = page.locator(f'section[data-step="{steps[number]}"]').bounding_box()["y"]
        assert -5 <= top < DESK["height"] - 100, steps[number]


def test_from_a_server(new_page, site, training_trace):
    """The same from http://, and no request goes anywhere else."""
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        page = new_page(allowed=(base, "data:", "blob:"))
        page.goto(base)
        page.locator('a[href="en/index.html"]').click()
        page.wait_for_url("**/en/index.html")
        page.locator('main a[href="training.html"]').first.click()
        page.add_init_script(TOOLS)
        visit(page, f"{base}en/training.html")
        page.keyboard.press("n")
        go(page, "#step=head&of=head&t=4&v=220")
        number = opened(page)
        assert number["big"] == shortest(training_trace.values("head")[4, 220])
        assert number["verdict"] == "verdict ok"
        visit(page, f"{base}zh/generation.html#step=round2.sampler.draw")
        assert place(page)["step"] == "round2.sampler.draw"
        server.shutdown()


# Accessibility ---------------------------------------------------------------------------------------

def violations(page) -> list:
    found = Axe().run(page, options={"preload": False}).response["violations"]  # the policy lets nothing be fetched
    return [(one["id"], one["help"], [node["html"][:160] for node in one["nodes"][:4]]) for one in found]


@pytest.mark.parametrize(("language", "scheme", "viewport"), [
    ("en", "light", DESK), ("zh", "dark", DESK), ("zh", "light", PHONE), ("en", "dark", PHONE)])
def test_accessibility(new_page, site, training_trace, language, scheme, viewport):
    page = new_page(color_scheme=scheme, viewport=viewport, reduced_motion="reduce")
    for name in ("index.html", f"{language}/index.html"):
        page.goto((site / name).as_uri())
        assert violations(page) == [], name
    number = fragment_of(training_trace, "blocks.0.attention.scores", [0, 2, 1])
    row = "#step=adamw.token_embedding.weight&of=token_embedding.weight&r=220&d=0"
    candidate = "#step=round1.sampler.top_k&of=round1.sampler.top_k.ids&c=1"
    places = {"training": ["", "#step=text.merges", number, "#step=head", "#step=series.loss", row],
              "generation": ["", "#step=round2.sampler.draw", candidate, "#step=round5.bytes"]}
    for route, fragments in places.items():
        visit(page, address(site, route, language))
        for fragment in fragments:
            if fragment:
                go(page, fragment)
            if "&of=" in fragment:
                opened(page)
            assert violations(page) == [], (route, fragment)
    page.click("#help-open")
    assert violations(page) == []


# Hostile hands ---------------------------------------------------------------------------------------

def test_a_number_that_loads_while_the_learner_goes_on(page, site, training_trace):
    """The last one opened is the one that is shown, whichever arrives last."""
    visit(page, address(site, "training", "en", "#step=loss"))
    small = "#step=loss&of=loss"
    large = "#step=adamw.token_embedding.weight&of=adamw.token_embedding.weight.after&r=7&d=3"
    page.evaluate("""async ([large, small]) => {
        const changed = (hash) => new Promise((done) => {
            addEventListener("hashchange", done, { once: true });
            location.hash = hash;
        });
        await changed(large);
        await changed(small);
    }""", [large, small])
    assert opened(page)["array"] == "loss"
    page.wait_for_timeout(1500)
    assert opened(page)["array"] == "loss"
    assert place(page)["step"] == "loss"
    page.evaluate("""async (large) => {
        location.hash = large;
        await new Promise((done) => addEventListener("hashchange", done, { once: true }));
        document.querySelector('[data-go="1"]').click();
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    }""", large.replace("d=3", "d=4"))
    page.wait_for_timeout(1000)


def test_a_file_that_is_missing_is_named(new_page, site, tmp_path, training_trace):
    """Without its data a table says which file it needs; the rest of the page works."""
    copy = tmp_path / "site"
    (copy / "data").mkdir(parents=True)
    for path in site.iterdir():
        if path.name != "data":
            (copy / path.name).symlink_to(path, target_is_directory=path.is_dir())
    for path in (site / "data").iterdir():
        if path.name != "training-backward.js":
            (copy / "data" / path.name).symlink_to(path)
    page = new_page(quiet=("training-backward.js",))
    page.add_init_script(TOOLS)
    page.goto((copy / "en" / "training.html").absolute().as_uri())
    page.wait_for_selector("html.scripted section.step.current td[data-r]")
    page.evaluate("location.hash = '#step=grad.loss'")
    alert = page.locator(".step.current .numbers [role=alert]").first
    assert "training-backward.js" in alert.inner_text()
    page.evaluate("location.hash = '#step=loss&of=loss'")
    assert opened(page)["verdict"] == "verdict ok"


def test_clicks_all_over(page, site):
    """Whatever can be pressed on a few steps, in any order, raises no error."""
    draw = random.Random(9)
    visit(page, address(site, "training", "en", "#step=blocks.0.attention.softmax"))
    page.evaluate("""async (draws) => {
        const pressable = "main button, aside button, footer button, main td[data-r], main summary, aside summary";
        for (const n of draws) {
            const all = [...document.querySelectorAll(pressable)].filter((one) => one.checkVisibility());
            all[n % all.length].click();
            document.getElementById("help").close();
            if (n % 3) await tools.frame();
        }
    }""", [draw.randrange(10**6) for _ in range(80)])
    page.evaluate("tools.frame()")
    place(page)


def test_an_exercise(page, site, training_trace):
    """A number is hidden wherever it is shown; a right answer and a wrong one are told apart."""
    name = "blocks.0.residual_1"
    visit(page, address(site, "training", "en", f"#step={name}"))
    box = f'.step.current [data-array="{name}"]'
    page.locator(f"{box} .exercise button").click()
    asked = page.locator(f"{box} .exercise form span").inner_text()
    index = [int(part) for part in re.search(r"\[([\d, ]+)\]", asked)[1].split(",")]
    hidden = page.locator(f"{box} .made td.secret")
    assert hidden.all_text_contents() == ["?"]
    value = training_trace.values(name)[tuple(index)]
    status = page.locator(f"{box} .exercise [role=status]")
    for text, look in (("x", "soft"), (str(value * 1.3 + 0.1), "wrong"), (format_number(value, 3), "right")):
        page.locator(f"{box} .exercise input").fill(text)
        page.locator(f"{box} .exercise input").press("Enter")
        assert status.get_attribute("class") == look
    page.locator(f"{box} .exercise form button").nth(1).click()
    assert opened(page)["index"] == index
    assert hidden.count() == 0
