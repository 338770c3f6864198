"""The pages for everybody: small screens, print, without motion, without scripts, from a server."""

import random
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from driver import (
    ALL_ROUTES,
    DESK,
    LANGUAGES,
    PHONE,
    TOOLS,
    WORDS,
    address,
    go,
    one_of_each,
    opened,
    place,
    shortest,
    steps_of,
    visit,
)
from playwright.sync_api import expect

# Screens, print, motion, no scripts ------------------------------------------------------------------

def overflow(page) -> int:
    """By how many pixels the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


WIDEST = """async (steps) => {
    const wide = [];
    for (const step of steps) {
        await tools.goTo(`#step=${step}`);
        await tools.settled();
        if (tools.overflow() > 0) wide.push([step, tools.overflow()]);
    }
    return wide;
}"""


@pytest.mark.parametrize(("route", "language"), [("training", "zh"), ("generation", "en"), ("long", "zh")])
def test_a_phone_scrolls_tables_and_never_the_page(new_page, site, recordings, route, language):
    """At every third step (in generation at every one, of one round each), and with a number open at some."""
    trace, draw = recordings[route], random.Random(3)
    page = visit(new_page(viewport=PHONE), address(site, route, language))
    for step in [*random.Random(2).sample(steps_of(trace), 4), next(s for s in steps_of(trace) if s.endswith("head"))]:
        go(page, f"#step={step}")
        shown = page.locator(".step.current td[data-r]")
        if shown.count():
            # The last row of a long table may leave its window while it is scrolled into view.
            (shown.first if step.endswith("head") else shown.last).click()
            opened(page)
            assert overflow(page) <= 0, (step, "with a number")
            panel = page.locator("#number").bounding_box()
            assert panel["x"] >= 0
            assert panel["x"] + panel["width"] <= PHONE["width"]
            page.locator("#number .close").click()
    assert page.evaluate(WIDEST, one_of_each(steps_of(trace), draw)[::1 if route == "generation" else 3]) == []


def test_home_pages_fit_a_phone(new_page, site):
    page = new_page(viewport=PHONE)
    for name in ("index.html", *(f"{language}/index.html" for language in LANGUAGES)):
        page.goto((site / name).as_uri())
        assert overflow(page) <= 0, name


CUT = """() => [...document.querySelectorAll(".top *, .go *")].filter((one) => (
    getComputedStyle(one).display !== "inline" && one.scrollWidth > one.clientWidth + 1))
    .map((one) => one.textContent)"""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("route", ALL_ROUTES)
def test_on_a_phone_no_word_of_the_header_and_the_buttons_is_cut(new_page, site, route, language):
    page = visit(new_page(viewport=PHONE), address(site, route, language))
    assert page.evaluate(CUT) == []
    assert page.locator(".top").bounding_box()["height"] < 120
    assert page.locator('[data-go="1"]').inner_text().split() == [WORDS[language]("next"), "→"]


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


def test_print_with_the_panel_closed(page, site):
    page.add_init_script("localStorage['two-routes.panel'] = ''")
    visit(page, address(site, "training", "en", "#step=blocks.0.norm_1"))
    assert page.locator("#ledger").is_hidden()
    page.emulate_media(media="print")
    for part in (".say", ".formula", ".legend", ".made table"):
        assert page.locator(f".step.current {part}").first.is_visible(), part


@pytest.mark.parametrize("width", [360, 701, 820, 1000, 1280])
def test_the_moves_can_be_reached_at_every_width(new_page, site, width):
    page = visit(new_page(viewport={"width": width, "height": 740}), address(site, "training"))
    moves, go = (page.locator(one).bounding_box() for one in (".moves-bar input", ".go [data-go='1']"))
    assert moves["width"] > 40
    assert moves["x"] + moves["width"] <= go["x"] or moves["y"] + moves["height"] <= go["y"]
    assert page.locator(".go").bounding_box()["height"] < 60


@pytest.mark.parametrize(("route", "language"), [("training", "zh"), ("generation", "en"), ("long", "zh")])
def test_without_scripts_all_is_there_to_read(new_page, site, recordings, route, language):
    steps = steps_of(recordings[route])
    page = new_page(java_script_enabled=False, viewport=DESK)
    page.goto(address(site, route, language))
    assert page.locator(".no-script").inner_text() == WORDS[language]("no_script")
    for part in (".go", ".bar", "#number"):
        assert page.locator(part).first.is_hidden(), part
    told = page.locator("section.step").evaluate_all("""(sections) => sections.map((section) => {
        const said = ["h2", ".say, .elsewhere a"].map((part) => section.querySelector(part))
            .map((part) => part.checkVisibility() && part.textContent.trim().length > 0);
        const hidden = [...section.querySelectorAll(".formula math")].filter((one) => !one.checkVisibility()).length;
        return [section.id, section.checkVisibility(), ...said, hidden];
    })""")
    assert [name for name, *_ in told] == [f"step={step}" for step in steps]
    assert [step for step, visible, title, said, hidden in told if hidden or not (visible and title and said)] == []
    links = page.locator(".contents a, .variants a").evaluate_all("all => all.map((a) => a.getAttribute('href'))")
    assert sorted(links) == sorted(f"#step={step}" for step in steps)
    link = page.locator(f'.variants a[href="#step={steps[len(steps) // 2]}"]')
    page.goto(f"{address(site, route, language)}{link.get_attribute('href')}")
    at = page.locator(f'section[data-step="{steps[len(steps) // 2]}"]')
    expect(at).to_be_in_viewport()
    assert at.bounding_box()["y"] >= -5


def test_from_a_server(new_page, site, training_trace):
    """The same from http://, and no request goes anywhere else."""
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        page = new_page(allowed=(base, "data:", "blob:"))
        page.goto(base)
        page.wait_for_url("**/en/index.html")
        page.locator('main a[href^="training.html"]').first.click()
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
