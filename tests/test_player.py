"""The player in a browser: step by step, by keys, by links, through the history; and hostile hands."""

import random
import re

import pytest
from driver import (
    ALL_ROUTES,
    TOOLS,
    WORDS,
    address,
    go,
    opened,
    place,
    shortest,
    steps_of,
    visit,
    wait_for_step,
)

from site_builder.parts import format_number

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


def said_of_their_place(seen: list[dict], steps: list[str], first: int, language: str) -> None:
    """Each of the places in a row that were `seen`, from step number `first` on, says which it is."""
    words = WORDS[language]
    assert [at["step"] for at in seen] == steps[first - 1:first - 1 + len(seen)]
    for number, at in enumerate(seen, start=first):
        assert at["others"] == 0
        assert at["where"].endswith(words("step_of", n=number, total=len(steps)))
        assert at["bar"] == number
        assert at["said"] == f"{words('step_of', n=number, total=len(steps))}{words('colon')}{at['title']}"
        assert at["page"] == f"{at['title']} · {words('site')}"
        assert at["listed"] == at["step"]
        assert at["listedTitle"] == at["title"]
        assert at["hash"] in ("", f"#step={at['step']}")
        assert at["notice"] == ""
        assert not at["open"]


def test_walk_to_the_end_by_the_button_and_some_way_back(page, site, recordings):
    """Of the shortest route; the next test is about the others."""
    steps = steps_of(recordings["long"])
    visit(page, address(site, "long"))
    seen = [place(page), *page.evaluate(WALK, [1, 9999])]
    assert len(seen) == len(steps)
    said_of_their_place(seen, steps, 1, "en")
    assert page.evaluate("document.querySelector('[data-go=\"1\"]').disabled")
    back = page.evaluate(WALK, [-1, 30])
    assert back == seen[-2:-32:-1]


@pytest.mark.parametrize(("route", "language"), [("training", "en"), ("generation", "zh")])
def test_walk_from_each_chapter_into_the_next(page, site, recordings, route, language):
    """By the button from the last step but one, and at last to the end."""
    trace = recordings[route]
    steps = steps_of(trace)
    visit(page, address(site, route, language))
    number = 0
    for chapter in trace.chapters:
        number += len(chapter.steps)
        first = max(number - 1, 1)
        seen = [go(page, f"#step={steps[first - 1]}"), *page.evaluate(WALK, [1, 3])]
        assert len(seen) == min(4, len(steps) - first + 1)
        said_of_their_place(seen, steps, first, language)
    assert page.evaluate("document.querySelector('[data-go=\"1\"]').disabled")


@pytest.mark.parametrize("route", ALL_ROUTES)
def test_steps_have_links(page, site, recordings, route):
    """In any order, and one on a page of its own; test_numbers.py follows a link to a number of every step."""
    steps = steps_of(recordings[route])
    order = random.Random(3).sample(steps, 40)
    visit(page, address(site, route))
    shown = page.evaluate("""async (steps) => {
        const shown = [];
        for (const step of steps) {
            await tools.goTo(`#step=${step}`);
            shown.push(tools.place());
        }
        return shown;
    }""", order)
    assert [at["step"] for at in shown] == order
    assert [at["listed"] for at in shown] == order
    assert {at["notice"] for at in shown} == {""}
    page.goto("about:blank")
    visit(page, address(site, route, "en", f"#step={steps[-1]}"))
    assert place(page)["step"] == steps[-1]


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
    wait_for_step(page, backward.steps[0].id)
    link = page.locator(".step.current .legend a").nth(1)
    step = link.get_attribute("href").removeprefix("#step=")
    link.click()
    wait_for_step(page, step)
    page.locator('[data-show="steps"]').click()
    page.locator(".contents details[open] a").last.click()
    wait_for_step(page, page.locator(".contents details[open] a").last.get_attribute("data-step"))


def test_keys(page, site, training_trace):
    steps = steps_of(training_trace)
    chapters = [chapter.steps[0].id for chapter in training_trace.chapters]
    visit(page, address(site, "training"))
    for key, step in (("ArrowRight", steps[1]), ("n", steps[2]), ("ArrowLeft", steps[1]), ("p", steps[0]),
                      ("p", steps[0]), ("End", steps[-1]), ("n", steps[-1]), ("Home", steps[0]), ("]", chapters[1]),
                      ("]", chapters[2]), ("n", training_trace.chapters[2].steps[1].id), ("[", chapters[1]),
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
    steps = steps_of(training_trace)
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
    page.keyboard.press("p")
    page.evaluate("tools.frame()")
    page.click("#play")
    page.evaluate("nextTimer()")
    wait_for_step(page, steps[-1])
    assert page.evaluate("slow.size") == 0  # the end
    assert page.get_attribute("#play", "aria-pressed") == "false"


TOUCHES = {
    "a slider": lambda page: page.locator("#progress").press("ArrowRight"),
    "a slider of updates": lambda page: page.locator(".step.current .updates input").press("ArrowRight"),
    "Watch": lambda page: page.locator(".step.current .watch button").first.click(),
    "a number": lambda page: page.locator(".step.current .made td[data-r]").first.click(),
    "a number, by keys": lambda page: page.locator(".step.current .made td[tabindex='0']").first.press("Enter"),
    "a number, by space": lambda page: page.locator(".step.current .made td[tabindex='0']").first.press(" "),
    "the map": lambda page: page.locator(".map .node.step-node").nth(4).click(),
    "a list": lambda page: page.locator(".step.current summary").first.click(),
    "digits": lambda page: page.click('[data-digits="6"]'),
    "a place without a button": lambda page: page.locator(".step.current .say").click(),
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


NOTHING = ("#step=nowhere", "#step=", "#step=toString", "#step=__proto__", "#of=y2", "#of=constructor", "#of=__proto__",
           "#step=loss&of=nothing", "#step=loss&of=loss&h=999", "#step=head&of=head&t=0&v=50257", "#of=head&t=-1",
           "#%", "#&&", "#step=%F0%28", "#<script>", "#step=loss&of=toString&d=1")


def test_links_that_name_nothing(page, site, training_trace):
    steps = steps_of(training_trace)
    visit(page, address(site, "training", "en", f"#step={steps[5]}"))
    for fragment in NOTHING:
        at = go(page, fragment)
        named = re.search(r"step=(loss|head)\b", fragment)
        assert at["step"] == (named[1] if named else steps[0]), fragment
        lost = "of=" in fragment or ("step=" in fragment and not named)
        right = re.search(r"of=(loss&h=999|head&t=-1)", fragment)  # what is no axis or no number is not heeded
        assert bool(at["notice"]) == bool(lost and not right), fragment
        assert at["open"] == bool(right), fragment
        at = go(page, f"#step={steps[-1]}")
        assert (at["step"], at["notice"]) == (steps[-1], ""), fragment


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
    shown = page.locator(".step.current .made td[data-r]").first.inner_text()
    assert len(re.sub(r"[^0-9]", "", shown).lstrip("0")) <= 2
    page.click('[data-digits="4"]')
    assert "digits" not in place(page)["hash"]
    go(page, "#step=blocks.0.norm_2&digits=6")  # what an address says counts
    assert page.get_attribute('[data-digits="6"]', "aria-pressed") == "true"


def test_scripts_move_the_focus_with_the_step(page, site):
    visit(page, address(site, "training"))
    page.keyboard.press("n")
    page.evaluate("tools.frame()")
    assert page.evaluate("document.activeElement.textContent") == place(page)["title"]


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
