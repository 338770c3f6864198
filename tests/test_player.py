"""The player in a browser: step by step, by keys, by links, through the history; and hostile hands."""

import random
import re

import pytest
from driver import (
    UNLIKE_ROUTES,
    WORDS,
    address,
    go,
    opened,
    place,
    steps_of,
    stops_of,
    visit,
    wait_for_step,
)

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
    steps = stops_of(recordings["long"])
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
    steps = stops_of(trace)
    visit(page, address(site, route, language))
    number = 0
    for chapter in trace.chapters:
        number += sum(step.id in steps for step in chapter.steps)
        first = max(number - 1, 1)
        seen = [go(page, f"#step={steps[first - 1]}"), *page.evaluate(WALK, [1, 3])]
        assert len(seen) == min(4, len(steps) - first + 1)
        said_of_their_place(seen, steps, first, language)
    assert page.evaluate("document.querySelector('[data-go=\"1\"]').disabled")


@pytest.mark.parametrize("route", UNLIKE_ROUTES)
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
    stops = stops_of(recordings[route])
    assert [at["listed"] for at in shown if at["step"] in stops] == [step for step in order if step in stops]
    assert all(at["listed"] in stops for at in shown)
    assert {at["notice"] for at in shown} == {""}
    page.goto("about:blank")
    visit(page, address(site, route, "en", f"#step={steps[-1]}"))
    assert place(page)["step"] == steps[-1]


def test_clicks_on_buttons_lists_and_legends(page, site, training_trace):
    steps = stops_of(training_trace)
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
    steps = stops_of(training_trace)
    chapters = [step.id for chapter in training_trace.chapters for step in chapter.steps[:1] if step.id in steps]
    visit(page, address(site, "training"))
    for key, step in (("ArrowRight", steps[1]), ("n", steps[2]), ("ArrowLeft", steps[1]), ("b", steps[0]),
                      ("b", steps[0]), ("End", steps[-1]), ("n", steps[-1]), ("Home", steps[0]), ("]", chapters[1]),
                      ("]", chapters[2]), ("n", steps[10]), ("[", chapters[1]),
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
    steps = stops_of(training_trace)
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
    steps = stops_of(training_trace)
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
    page.wait_for_selector("html.scripted section.step.current", state="attached")
    wait_for_step(page, steps[0])


def test_keys_that_are_held_do_not_queue_up(page, site, training_trace):
    steps = stops_of(training_trace)
    visit(page, address(site, "training"))
    page.evaluate("""async () => {
        for (let i = 0; i < 80; i++) {
            const key = i % 4 !== 2 ? "n" : "b";
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, repeat: true }));
            if (i % 8 === 0) await tools.frame();
        }
        await tools.frame();
    }""")
    assert place(page)["step"] == steps[40]


def test_the_bar_can_be_dragged(page, site, training_trace):
    steps = stops_of(training_trace)
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
    assert abs(at["bar"] / len(steps) - 0.75) < 0.04
    assert at["step"] == steps[at["bar"] - 1]
    page.locator("#progress").focus()
    page.keyboard.press("ArrowRight")
    page.evaluate("tools.frame()")
    assert place(page)["step"] == steps[at["bar"]]
    assert page.evaluate("history.length") == entries  # dragging leaves no trail
    page.locator("#progress").fill(str(len(steps)))
    wait_for_step(page, steps[-1])


NOTHING = ("#step=nowhere", "#step=", "#step=toString", "#step=__proto__", "#of=y2", "#of=constructor", "#of=__proto__",
           "#step=loss&of=nothing", "#step=loss&of=loss&h=999", "#step=head&of=head&t=0&v=50257", "#of=head&t=-1",
           "#%", "#&&", "#step=%F0%28", "#<script>", "#step=loss&of=toString&d=1")


def test_links_that_name_nothing(page, site, training_trace):
    steps = stops_of(training_trace)
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
    page.click('#ledger [data-tab="tables"]')
    page.click('[data-digits="6"]')
    page.click('a[data-language="zh"]')
    page.wait_for_url("**/zh/training.html#**")
    page.wait_for_selector("html.scripted section.step.current", state="attached")
    at = place(page)
    assert at["step"] == "blocks.1.attention.scores"
    assert opened(page)["index"] == number["index"] == [0, 3, 2]
    assert opened(page)["big"] == number["big"]
    assert page.get_attribute('[data-digits="6"]', "aria-pressed") == "true"
    assert at["where"].startswith(WORDS["zh"]("chapter.block", n=1))
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.click('a[data-language="en"]')
    page.wait_for_url("**/en/training.html#**")
    page.wait_for_selector("html.scripted section.step.current", state="attached")
    assert place(page)["step"] == "blocks.1.attention.mask"


def test_a_step_that_is_shown_again(page, site):
    """Its tables are new ones: digits, marks and choices hold for them too."""
    name = "blocks.0.attention.scores"
    visit(page, address(site, "training", "en", f"#step={name}"))
    page.keyboard.press("n")
    wait_for_step(page, "blocks.0.attention.mask")
    page.keyboard.press("b")
    wait_for_step(page, name)
    page.locator(f'.step.current [data-array="{name}"] .made .chip').nth(1).click()
    page.locator(f'.step.current [data-array="{name}"] .made td[data-r="2"][data-c="1"]').click()
    assert opened(page)["index"] == [1, 2, 1]
    selected = page.locator(".step.current td.sel")
    assert selected.count() == 1
    assert selected.inner_text() == page.locator(f'.step.current [data-array="{name}"] .made td.sel').inner_text()
    assert page.locator(".step.current .operands td.lit").count() > 1


def test_scripts_move_the_focus_with_the_step(page, site):
    visit(page, address(site, "training"))
    page.keyboard.press("n")
    page.evaluate("tools.frame()")
    assert page.evaluate("document.activeElement.textContent") == place(page)["title"]
