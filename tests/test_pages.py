"""The pages in a browser, opened as files: every step, every kind of number, keyboard, links, small screens, no scripts.

Numbers are recomputed by the page's own modules and compared with the recording.  They must agree within
`ULPS` float32 steps (units in the last place) of the recorded number or, where terms cancel, of the largest
operand, term or intermediate result of its working.
"""

import contextlib
import io
import json
import random
import re
import threading
import time
from collections import Counter
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

TRACES = Path(__file__).resolve().parent.parent / "traces"
ULPS = 4
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
    loaded: () => tools.numbers().every((box) => box.querySelector("table")),
    async settled() {
        const start = performance.now();
        while (!tools.loaded()) {
            await tools.frame();
            if (performance.now() - start > 60000) throw new Error(`a table of ${tools.place().step} never loads`);
        }
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
    page.wait_for_function("(step) => tools.place().step === step", arg=step)
    return place(page)


def opened(page) -> dict:
    """What the panel says, as soon as it is about the number that the address names."""
    page.wait_for_function("""() => {
        const named = new URLSearchParams(location.hash.slice(1));
        return document.querySelector("#number .name code")?.textContent === named.get("of")
            && document.querySelector("#number .big");
    }""")
    return page.evaluate("""() => {
        const text = (part) => document.querySelector(`#number ${part}`)?.textContent ?? null;
        const index = text(".name").match(/\\\\[(.*)\\\\]/);
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
        seen.push(await tools.settled());
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
    "#step=nowhere", "#step=", "#step=toString", "#step=__proto__", "#of=x", "#of=constructor", "#of=__proto__",
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
    assert opened(page) == number
    assert page.get_attribute('[data-digits="6"]', "aria-pressed") == "true"
    assert at["where"].startswith(WORDS["zh"]("chapter.blocks", n=2))
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.click('a[data-language="en"]')
    page.wait_for_url("**/en/training.html#**")
    page.wait_for_selector("html.scripted section.step.current")
    assert place(page)["step"] == "blocks.1.attention.mask"


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
        indices = some_indices(array.shape, draw)
        results = labs[route].evaluate("([array, indices]) => lab.recompute(array, indices)", [step, indices])
        for index, result in zip(indices, results, strict=True):
            recorded, value = known[tuple(index)].item(), float(result["working"])
            same = recorded == value or (np.isnan(recorded) and np.isnan(value))
            difference = 0 if same else abs(value - recorded)
            count += 1
            if difference > ULPS * max(ulp(recorded), ulp(result["largest"])):
                scales = [difference / ulp(size) for size in (recorded, result["largest"])]
                wrong.append((step, index, recorded, value, *scales))
            if not np.array_equal([result["direct"]], [value], equal_nan=True):
                wrong.append((step, index, "the working and the plain computation differ", result))
            if not array.derived and np.float32(result["shown"]) != np.float32(recorded):
                wrong.append((step, index, "not the recorded number", result["shown"], recorded))
    assert count > 400
    assert wrong == []
