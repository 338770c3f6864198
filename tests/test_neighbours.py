"""The steps beside the current one: laid out unseen, out of reach, and right when their turn comes."""

import pytest
from driver import address, go, visit

SCORES, MASK, SOFTMAX = (f"blocks.0.attention.{name}" for name in ("scores", "mask", "softmax"))
READY = """() => [...document.querySelectorAll(".step.ready")].map((section) => (
    [section.dataset.step, section.inert, section.offsetHeight, section.querySelectorAll("td[data-r]").length > 0]))"""
FOCUS = """() => { const section = document.activeElement.closest("section.step");
    const { dataset } = document.querySelector(".step.current");
    return [document.activeElement.tagName, section?.dataset.step, dataset.step]; }"""


def at_rest(page, step: str) -> None:
    """Until the step can be used and both neighbours are ready."""
    page.wait_for_selector(f'.step.current[data-step="{step}"]:not([inert])')
    page.wait_for_selector(".step.ready[inert] ~ .step.current ~ .step.ready[inert] td[data-r]", state="attached")
    page.evaluate("tools.settled()")


@pytest.fixture
def scores(page, site):
    visit(page, address(site, "training", "en", f"#step={SCORES}"))
    at_rest(page, SCORES)
    return page


def test_neighbours_are_laid_out_but_neither_seen_nor_reached(scores):
    assert scores.evaluate(READY) == [["blocks.0.attention.split", True, 0, True], [MASK, True, 0, True]]
    assert scores.locator("section.step:visible").count() == 1
    for _ in range(40):
        scores.keyboard.press("Tab")
        assert scores.evaluate(FOCUS)[1] in (None, SCORES)


@pytest.mark.parametrize(("keys", "step"), [
    (["ArrowRight", "ArrowLeft"], SCORES), (["ArrowRight", "ArrowRight"], SOFTMAX),
    (["ArrowRight", "ArrowLeft", "ArrowRight"], MASK)])
def test_quick_keys_leave_the_focus_on_the_title_over_the_picture(scores, keys, step):
    for key in keys:
        scores.keyboard.press(key)
    at_rest(scores, step)
    scores.wait_for_timeout(1200)  # whatever comes late
    assert scores.evaluate(FOCUS) == ["H2", None, step]


def test_nothing_is_laid_out_that_can_be_reached_at_any_moment(scores):
    """After every change of a class on any step, while keys come faster than the page rests."""
    scores.evaluate("""() => {
        window.reached = [];
        const look = { subtree: true, attributes: true, attributeFilter: ["class", "inert"] };
        new MutationObserver(() => {
            for (const step of document.querySelectorAll(".step.ready:not([inert])")) reached.push(step.dataset.step);
        }).observe(document.querySelector("main"), look);
    }""")
    for pause in (0, 0, 30, 0, 400, 0, 900, 0, 0):
        scores.keyboard.press("ArrowRight" if pause != 30 else "ArrowLeft")
        scores.wait_for_timeout(pause)
    assert scores.evaluate("reached") == []


def test_a_focus_that_the_reader_sets_meanwhile_stays(scores):
    scores.evaluate("""() => {
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
        document.getElementById("progress").focus(); }""")
    at_rest(scores, MASK)
    scores.wait_for_timeout(600)
    assert scores.evaluate("document.activeElement.id") == "progress"


def test_a_focus_in_a_step_that_is_left_by_its_address_is_let_go(scores):
    scores.locator(".current .made td[data-r]").first.focus()
    assert scores.evaluate(FOCUS)[:2] == ["TD", SCORES]
    go(scores, f"#step={MASK}")
    assert scores.evaluate(FOCUS)[1] in (None, MASK)


def test_what_was_chosen_meanwhile_holds_in_a_step_that_was_ready(scores):
    scores.locator(".current .made .pick").get_by_role("button", name="1").click()
    scores.locator("[data-digits='6']").click()
    at_rest(scores, SCORES)
    scores.keyboard.press("ArrowRight")
    at_rest(scores, MASK)
    shown = scores.locator(".current .made .numbers").inner_text()
    scores.reload()
    scores.evaluate("tools.settled()")
    scores.locator(".current .made .pick").get_by_role("button", name="1").click()
    assert scores.locator(".current .made .numbers").inner_text() == shown
    assert len(shown.splitlines()) > 5


def test_what_was_begun_in_a_step_that_is_left_does_nothing_in_the_next(scores):
    scores.evaluate("""() => {
        document.querySelector(".current .exercise button").click();
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true })); }""")
    at_rest(scores, MASK)
    scores.wait_for_timeout(600)
    assert scores.locator(".lit, .secret").count() == 0
    assert scores.evaluate(FOCUS) == ["H2", None, MASK]
