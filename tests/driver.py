"""The site's pages in a browser, driven: where they are, what they show, which number is open."""

import random
import re
from pathlib import Path

import numpy as np

from site_builder.build import MORE_ROUTES, ROUTES
from site_builder.language import languages
from site_builder.parts import format_number
from site_builder.strings import Strings
from tracer.format.trace import AXES, Trace

ALL_ROUTES = (*ROUTES, *MORE_ROUTES)
# The early moment is a generation again, with other numbers: what hangs on no number is looked at without it.
UNLIKE_ROUTES = tuple(route for route in ALL_ROUTES if route != "early")
LANGUAGES = tuple(languages())
WORDS = {language: Strings(language) for language in LANGUAGES}
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 800}


def steps_of(trace: Trace) -> list[str]:
    return [step.id for chapter in trace.chapters for step in chapter.steps]


def does(step: str) -> str:
    """What a step does, read out of its name: steps of one name here do the same with other numbers."""
    step = re.sub(r"^(again|evaluation\.\w+)\.", "", step)
    step = re.sub(r"^validation(?=$|\.)", "text", step)
    step = re.sub(r"^(adamw|parameters)\..*", r"\1", step)
    step = re.sub(r"^(grad\.)?.*dropout$", r"\1dropout", step)
    return re.sub(r"(round|blocks\.)\d+", r"\1", step)


def stops_of(trace: Trace) -> list[str]:
    """The steps of the main line: the first that does a thing, and the losses that further passes are run for."""
    first: dict[str, str] = {}
    for step in steps_of(trace):
        ends = re.fullmatch(r"(again|evaluation)\..*\bloss", step)
        first.setdefault(ends[1] if ends else does(step), step)
    return list(first.values())


def one_of_each(names: list[str], draw: random.Random) -> list[str]:
    """Of names that differ in nothing but their numbers, as those of blocks and rounds do, one that is drawn."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(re.sub(r"\d+", "", name), []).append(name)
    return [draw.choice(group) for group in alike.values()]


def address(site: Path, route: str, language: str = "en", fragment: str = "") -> str:
    return (site / language / f"{route}.html").as_uri() + fragment


TOOLS = """
window.tools = {
    frame: () => new Promise((done) => requestAnimationFrame(() => setTimeout(done))),
    numbers: () => [...document.querySelectorAll(".step.current .numbers")],
    // Short tables have all their rows, long ones those in view.
    loaded: () => document.documentElement.dataset.panel !== "tables" || tools.numbers().every((box) => (
        box.querySelector("table") && !box.querySelector(".window:not(.long) .spacer"))),
    // The policy of the pages forbids what `page.wait_for_function` does.
    async until(test) {
        const start = performance.now();
        while (!test()) {
            await tools.frame();
            if (performance.now() - start > 60000) throw new Error(`${test} stays false on ${tools.place().step}`);
        }
    },
    async goTo(fragment) {
        if (location.hash === fragment) return;
        const changed = new Promise((done) => addEventListener("hashchange", done, { once: true }));
        location.hash = fragment;
        await changed;
    },
    // By how many pixels the page is wider than the window.
    overflow: () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    // The panel is about the number that the address names.
    opened() {
        const named = new URLSearchParams(location.hash.slice(1)).get("of");
        return document.querySelector("#number .name code")?.textContent === named
            && document.querySelector("#number .big");
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
            listed: document.querySelector(".contents [aria-current]").dataset.step,
            listedTitle: document.querySelector(".contents [aria-current]").textContent,
            notice: document.getElementById("notice").textContent, open: !document.getElementById("number").hidden };
    },
};
"""


def visit(page, url: str):
    """Open a page of a route and wait until its step is there, and its tables where the panel shows them."""
    page.add_init_script(TOOLS)  # on a page that comes again it runs again, to the same effect
    page.goto(url)
    page.wait_for_selector("html.scripted section.step.current", state="attached")
    page.evaluate("tools.settled()")
    return page


def place(page) -> dict:
    return page.evaluate("tools.settled()")


def go(page, fragment: str) -> dict:
    """Follow a link to a place on the same page."""
    return page.evaluate("async (fragment) => { await tools.goTo(fragment); return tools.settled(); }", fragment)


def wait_for_step(page, step: str) -> dict:
    page.wait_for_selector(f'section.step.current[data-step="{step}"]', state="attached")
    return place(page)


def opened(page) -> dict:
    """What the panel says, as soon as it is about the number that the address names."""
    return page.evaluate("""async () => {
        await tools.until(tools.opened);
        const text = (part) => document.querySelector(`#number ${part}`)?.textContent ?? null;
        const index = text(".name").match(/\\[(.*)\\]/);
        return { array: text(".name code"), index: index ? index[1].split(", ").map(Number) : [], big: text(".big"),
            verdict: document.querySelector("#number .verdict")?.className ?? null,
            links: [...document.querySelectorAll("#number .line a")].map((a) => a.getAttribute("href")) };
    }""")


def fragment_of(trace: Trace, array: str, index, step: str | None = None) -> str:
    """The link to one number."""
    home = {name: step.id for chapter in trace.chapters for step in chapter.steps
            for name in [*step.arrays, *step.operations]}
    letters = [AXES[axis] for axis in trace.arrays[array].axes]
    at = "".join(f"&{letter}={i}" for letter, i in zip(letters, index, strict=True))
    return f"#step={step or home.get(array, steps_of(trace)[0])}&of={array.replace('@', '%40')}{at}"


def shortest(value) -> str:
    """The number as an opened panel shows it: whole, with a true minus sign."""
    if not np.isfinite(value):
        return format_number(value)
    text = np.format_float_positional(value, trim="-") if value.dtype.kind == "f" else str(value)
    return text.replace("-", "−")


def same(shown: str, value) -> bool:
    """Whether a text of the page is this number, whole: it reads back as the same float32 or integer."""
    return np.array_equal(value.dtype.type(shown.replace("−", "-").replace("∞", "inf")), value, equal_nan=True)


def ulp(value: float) -> float:
    """The step to the next float32."""
    return float(np.spacing(np.float32(abs(value))))
