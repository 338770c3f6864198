"""What stands around a picture: the tour that one meets first, the map, code, presentation, room for words."""

import numpy as np
import pytest
from driver import DESK, PHONE, WORDS, address, visit, wait_for_step

STOPS = "document.querySelector('figure.stage').stage.player.line.stops"
# The height of title and sentence of every step of the main line.
HEADS = f"""async () => {{
    const player = document.querySelector("figure.stage").stage.player;
    const found = {{}};
    for (const step of {STOPS}) {{
        player.navigate(step, {{ stay: true }});
        const [title, sentence] = ["step-title", "sentence"].map((id) => document.getElementById(id));
        found[step] = sentence.getBoundingClientRect().bottom - title.getBoundingClientRect().top;
    }}
    return found;
}}"""
WIDE = {"width": 1440, "height": 900}


@pytest.fixture
def stranger(browser, site):
    """A page in a browser that has never been here."""
    context = browser.new_context(viewport=DESK)
    yield context.new_page()
    context.close()


def test_who_comes_for_the_first_time_meets_the_tour(stranger, site):
    page = visit(stranger, address(site, "generation"))
    assert page.locator(".tour").get_attribute("data-stop") == "overview"
    assert "tour=overview" in page.url
    page.get_by_role("button", name=WORDS["en"]("tour.leave")).click()
    assert page.locator(".tour").is_hidden()
    page.goto("about:blank")
    visit(page, address(site, "generation"))  # again: the first step
    assert page.locator(".tour").is_hidden() and page.locator("#distances").inner_text().endswith("step 1 of 41")


def test_an_address_is_followed_before_any_tour(stranger, site):
    page = visit(stranger, address(site, "generation", "en", "#step=round1.ids"))
    wait_for_step(page, "round1.ids")
    assert page.locator(".tour").is_hidden()


def test_the_map_folds_and_stays_folded(stranger, site):
    page = visit(stranger, address(site, "training", "en", "#step=head"))
    picture = page.locator("figure.stage canvas")
    before = picture.bounding_box()["width"]
    page.locator(".side [data-show=none]").click()
    assert picture.bounding_box()["width"] > before + 150
    page.reload()
    page.wait_for_selector("html.scripted.folded", state="attached")
    assert page.locator(".side .map").is_hidden() and picture.bounding_box()["width"] > before + 150
    page.locator(".side [data-show=map]").click()
    assert page.locator(".side .map").is_visible()


def test_the_tab_of_the_code_writes_it_out(new_page, site):
    """Of the chosen number, and of the next step's when one goes on."""
    page = visit(new_page(viewport=DESK), address(site, "training", "en", "#step=blocks.0.attention.scores"))
    page.locator(".ledger [data-tab=code]").click()
    page.wait_for_function("() => document.querySelectorAll('#number .code pre').length === 2")
    torch, program = page.locator("#number .code pre").all_inner_texts()
    assert "query @ key.transpose(-2, -1)" in torch and 'array("blocks.0.attention.scores")' in program
    assert page.locator("#number .big").is_hidden()
    page.keyboard.press("n")
    wait_for_step(page, "blocks.0.attention.mask")
    page.wait_for_function("""() => [...document.querySelectorAll('#number .code pre')]
        .some((pre) => pre.textContent.includes('attention.mask'))""")


def test_a_presentation_that_is_left_is_left_in_the_address(new_page, site):
    page = visit(new_page(viewport=DESK), address(site, "training", "en", "#step=head&present"))
    assert page.locator("#distances").is_hidden() and page.locator("#step-title").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#distances").is_visible() and "present" not in page.url and "step=head" in page.url


@pytest.mark.parametrize(("viewport", "panel", "most"), [(DESK, "", 84), (WIDE, "words", 84), (PHONE, "", 130)])
@pytest.mark.parametrize(("route", "language"), [("training", "en"), ("training", "zh"), ("generation", "en")])
def test_title_and_sentence_leave_the_room_to_the_picture(new_page, site, route, language, viewport, panel, most):
    page = new_page(viewport=viewport)
    page.add_init_script(f"localStorage['two-routes.panel'] = '{panel}'")
    visit(page, address(site, route, language))
    assert {step: height for step, height in page.evaluate(HEADS).items() if height > most} == {}


def test_a_phone_shows_two_digits_until_one_chooses(new_page, site):
    page = visit(new_page(viewport=PHONE), address(site, "training", "en", "#step=blocks.0.attention.scores"))
    pressed = """[...document.querySelectorAll('[data-digits][aria-pressed=true]')]
        .map((one) => one.dataset.digits).join()"""
    assert page.evaluate(pressed) == "2" and "digits" not in page.url
    page.evaluate("document.querySelector('[data-digits=\"4\"]').click()")
    assert page.evaluate(pressed) == "4" and "digits=4" in page.url


def test_a_finger_reads_a_number_that_is_too_small_to_be_written(new_page, site, training_trace):
    page = visit(new_page(viewport=PHONE, has_touch=True, is_mobile=True), address(
        site, "training", "en", "#step=blocks.0.attention.qkv"))
    page.evaluate("document.querySelector('figure.stage').stage.player.panel.choose('')")
    x, y, index = page.evaluate("""() => { const { stage } = document.querySelector("figure.stage");
        const box = stage.canvas.getBoundingClientRect();
        const cell = stage.shapes.filter(({ kind, place, text }) => kind === "cell" && !text
            && place?.array === "blocks.0.attention.qkv").at(-3);
        return [box.left + cell.x + cell.w / 2, box.top + cell.y + cell.h / 2, cell.place.index]; }""")
    page.touchscreen.tap(x, y)
    page.wait_for_selector(".lens:not([hidden])")
    said = float(page.locator(".lens b").inner_text().replace("−", "-"))
    assert np.float32(said) == training_trace.values("blocks.0.attention.qkv")[tuple(index)]
    assert page.locator(".lens").bounding_box()["width"] < 240
