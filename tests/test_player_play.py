"""Playing by itself, digits that were chosen, and hostile hands."""

import random
import re

import pytest
from driver import (
    TOOLS,
    WORDS,
    address,
    go,
    opened,
    place,
    shortest,
    stops_of,
    visit,
    wait_for_step,
)

from site_builder.parts import format_number

# Step by step ----------------------------------------------------------------------------------------

# Timers of a second and more wait until they are let go: none is left when nothing is to come.
SLOW_TIMERS = """
const wait = window.setTimeout, stop = window.clearTimeout;
let last = -1;
window.slow = new Map();
window.setTimeout = (run, ms, ...rest) => {
    if (!(ms >= 1000)) return wait(run, ms, ...rest);
    slow.set(--last, run);
    return last;
};
window.clearTimeout = (id) => { if (!slow.delete(id)) stop(id); };
window.nextTimer = () => { const [[id, run]] = slow; slow.delete(id); run(); };
"""


def test_play_goes_on_by_itself_and_stops(page, site, training_trace):
    steps = stops_of(training_trace)
    page.add_init_script(SLOW_TIMERS)
    visit(page, address(site, "training"))
    page.select_option("#speed", "fast")
    page.click("#play")
    for step in steps[1:4]:
        page.evaluate("nextTimer()")
        wait_for_step(page, step)
    assert page.get_attribute("#play", "aria-pressed") == "true"
    page.click("#play")
    assert page.get_attribute("#play", "aria-pressed") == "false"
    assert page.evaluate("slow.size") == 0
    assert place(page)["step"] == steps[3]
    page.keyboard.press("End")
    page.keyboard.press("b")
    page.evaluate("tools.frame()")
    page.click("#play")
    page.evaluate("nextTimer()")
    wait_for_step(page, steps[-1])
    assert page.evaluate("slow.size") == 0  # the end
    assert page.get_attribute("#play", "aria-pressed") == "false"


TOUCHES = {
    "a slider": lambda page: page.locator("#progress").press("ArrowRight"),
    "a slider of updates": lambda page: page.locator(".step.current .updates input").press("ArrowRight"),
    "Watch": lambda page: page.locator(".watch-moves").click(),
    "a number": lambda page: page.locator(".step.current .made td[data-r]").first.click(),
    "a number, by keys": lambda page: page.locator(".step.current .made td[tabindex='0']").first.press("Enter"),
    "a number, by space": lambda page: page.locator(".step.current .made td[tabindex='0']").first.press(" "),
    "the map": lambda page: page.locator(".map .node.step-node").nth(4).click(),
    "a list": lambda page: page.locator(".step.current summary").first.click(),
    "digits": lambda page: page.click('[data-digits="6"]'),
    "a place without a button": lambda page: page.locator("#sentence").click(),
    "the wheel": lambda page: (page.mouse.move(700, 500), page.mouse.wheel(0, 200), page.wait_for_timeout(200)),
    "a script's click": lambda page: page.evaluate("document.querySelector('[data-show=steps]').click()"),
    "help": lambda page: page.click("#help-open"),
    "an address": lambda page: page.evaluate("location.hash = '#step=loss'"),
    "a key": lambda page: page.keyboard.press("n"),
}


@pytest.mark.parametrize("touch", TOUCHES)
def test_whatever_the_reader_touches_stops_playing(page, site, touch):
    page.add_init_script(SLOW_TIMERS)
    start = "series.attention" if "updates" in touch else "blocks.0.attention.scores"
    visit(page, address(site, "training", "en", f"#step={start}"))
    page.mouse.move(700, 500)
    page.click("#play")
    assert page.get_attribute("#play", "aria-pressed") == "true"
    TOUCHES[touch](page)
    page.evaluate("tools.frame()")
    assert page.get_attribute("#play", "aria-pressed") == "false"


def test_its_own_controls_and_moving_about_let_it_play(page, site):
    page.add_init_script(SLOW_TIMERS)
    visit(page, address(site, "training", "en", "#step=blocks.0.attention.scores"))
    page.keyboard.press(" ")
    page.select_option("#speed", "fast")
    page.keyboard.press("Tab")
    page.keyboard.press("Shift")
    page.mouse.move(500, 400)
    assert page.get_attribute("#play", "aria-pressed") == "true"
    page.evaluate("nextTimer()")
    wait_for_step(page, "blocks.0.attention.mask")
    assert page.get_attribute("#play", "aria-pressed") == "true"


def test_digits(page, site, training_trace):
    visit(page, address(site, "training", "en", "#step=blocks.0.norm_1"))
    values = training_trace.values("blocks.0.norm_1")
    for digits in ("2", "6", "all", "4"):
        page.click(f'[data-digits="{digits}"]')
        place(page)
        assert page.locator('[data-digits][aria-pressed="true"]').all_text_contents() == [
            WORDS["en"]("all_digits") if digits == "all" else digits]
        cells = page.locator('[data-array="blocks.0.norm_1"] .made td[data-r]').all_text_contents()
        assert cells == [shortest(value) if digits == "all" else format_number(value, int(digits))
                         for value in values.ravel()]
    page.click('[data-digits="2"]')
    page.keyboard.press("n")
    assert place(page)["hash"].endswith("&digits=2")
    assert page.get_attribute('[data-digits="2"]', "aria-pressed") == "true"


@pytest.mark.parametrize("go_on", [
    lambda page: page.click('.chapters a[data-chapter="backward"]'),
    lambda page: page.locator(".map .node.step-node").nth(3).click(),
    lambda page: page.evaluate("location.hash = '#step=loss'"),
    lambda page: page.locator(".step.current .legend a").first.click(),
    lambda page: page.locator(".step.current .made td[data-r]").first.click(),
    lambda page: (page.keyboard.press("n"), page.keyboard.press("]")),
], ids=["chapter", "map", "address", "legend", "number", "keys"])
def test_chosen_digits_hold_wherever_one_goes(page, site, go_on):
    visit(page, address(site, "training", "en", "#step=blocks.0.norm_1"))
    page.click('[data-digits="2"]')
    go_on(page)
    page.evaluate("tools.frame()")
    at = place(page)
    assert at["hash"].endswith("&digits=2")
    assert page.locator('[data-digits][aria-pressed="true"]').all_text_contents() == ["2"]
    assert page.get_attribute('a[data-language="zh"]', "href").endswith("&digits=2")
    shown = page.locator(".step.current .made td[data-r]").first.text_content()
    assert len(re.sub(r"[^0-9]", "", shown).lstrip("0")) <= 2
    page.click('[data-digits="4"]')
    assert "digits" not in place(page)["hash"]
    go(page, "#step=blocks.0.norm_2&digits=6")  # what an address says counts
    assert page.get_attribute('[data-digits="6"]', "aria-pressed") == "true"


# Hostile hands ---------------------------------------------------------------------------------------

ARRIVED = """async () => {
    await tools.until(() => [...twoRoutes.waiting.keys()].every((name) => twoRoutes.received.has(name)));
    await tools.frame();
}"""


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
    page.evaluate(ARRIVED)
    assert opened(page)["array"] == "loss"
    assert place(page)["step"] == "loss"
    page.evaluate("""async (large) => {
        location.hash = large;
        await new Promise((done) => addEventListener("hashchange", done, { once: true }));
        document.querySelector('[data-go="1"]').click();
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    }""", large.replace("d=3", "d=4"))
    page.evaluate(ARRIVED)
    place(page)


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
    page.get_by_role("button", name=WORDS["en"]("predict.skip")).click()
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
