"""One slider for every picture of a step."""

import itertools

import numpy as np
import pytest
from charts import ATTENTION, LOSS, PROBABILITY, ROWS, SLIDER, WAIT_FRAMES, move, number, numbers, part, same32, show
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def page(module_page):
    """One page for all tests of this file; each shows its step afresh."""
    return module_page()


# One slider ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("update", [2, 77])
def test_tables_follow_the_slider_and_have_none_of_their_own(page, site, training_trace, update):
    show(page, site, "series.attention", extra="&digits=all")
    move(page, update)
    assert page.locator("section.current input[type=range]").count() == 1
    for name in (ATTENTION, "series.attention.blocks.1"):
        assert same32(numbers(page, name), training_trace.values(name)[update - 1, 0].ravel())
    part(page, ATTENTION).get_by_role("group", name="head").get_by_role("button", name="1").click()
    assert same32(numbers(page, ATTENTION), training_trace.values(ATTENTION)[update - 1, 1].ravel())
    show(page, site, ROWS, extra="&digits=all", fresh=False)
    assert page.locator(SLIDER).input_value() == str(update), "the choice holds from step to step"
    assert same32(numbers(page, ROWS), training_trace.values(ROWS)[update - 1].ravel())


def test_where_updates_run_down_the_table_the_row_is_lit_and_in_view(page, site):
    show(page, site, LOSS, extra="&s=99")
    for update in (100, 3, 120):
        move(page, update)
        rows = page.locator("section.current .numbers tr.now")
        assert [text.split()[0] for text in rows.all_inner_texts()] == [str(update)] * 2
        for row in rows.all():
            assert row.evaluate("""(row) => {
                const [a, b] = [row, row.closest('.window')].map((e) => e.getBoundingClientRect());
                return a.top >= b.top && a.bottom <= b.bottom; }""")


def test_keys_on_a_chart_move_the_slider_and_not_the_step(page, site):
    show(page, site, LOSS)
    chart = part(page, PROBABILITY).locator(".curves svg")
    chart.focus()
    chosen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "PageUp", "End", "PageDown", "Home"):
        page.keyboard.press(key)
        page.evaluate(WAIT_FRAMES)
        chosen.append(int(page.locator(SLIDER).input_value()))
    assert chosen == [2, 3, 2, 12, 120, 110, 1]
    assert "step=series.loss" in page.url
    expect(page.locator(".current .updates [role=status]")).to_contain_text("0 Hi: update 1:")


def test_the_pointer_shows_an_update_and_a_press_keeps_it(page, site):
    show(page, site, LOSS, extra="&s=9")
    chart = part(page, LOSS).locator(".curves svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()

    def at(update):
        ticks = dict(chart.locator(".tick.x").evaluate_all(
            "(list) => list.map((t) => [Number(t.textContent), Number(t.getAttribute('x'))])"))
        low, high = min(ticks), max(ticks)
        return box["x"] + ticks[low] + (update - low) * (ticks[high] - ticks[low]) / (high - low), box["y"] + 60

    def shown():
        page.evaluate(WAIT_FRAMES)
        return int(page.locator(SLIDER).input_value())

    page.mouse.move(*at(50))
    assert shown() == 50
    page.mouse.move(2, 2)
    assert shown() == 10, "the glance is over"
    page.mouse.move(*at(70))
    page.mouse.down()
    page.mouse.move(*at(75))
    page.mouse.up()
    page.mouse.move(2, 2)
    assert shown() == 75
    page.wait_for_url("**#step=series.loss&s=74")


def test_the_chosen_update_is_in_the_address(page, site):
    show(page, site, LOSS, extra="&s=41")
    assert page.locator(SLIDER).input_value() == "42"
    move(page, 7)
    page.wait_for_url("**#step=series.loss&s=6")
    page.reload()
    page.wait_for_selector(".picture .values")
    assert page.locator(SLIDER).input_value() == "7"
    show(page, site, ROWS, extra="&s=4000")
    assert page.locator(SLIDER).input_value() == "120"


def test_an_opened_number_moves_the_slider_and_goes_along_with_it(page, site, training_trace):
    show(page, site, LOSS)
    part(page, LOSS).locator(".numbers td").nth(29).click()
    page.wait_for_selector("#number .big")
    assert page.locator(SLIDER).input_value() == "30"
    move(page, 31)
    page.wait_for_url("**of=series.loss&s=30")
    expect(page.locator("#number .name")).to_contain_text("[30]")
    assert same32(number(page.locator("#number .big").inner_text()), training_trace.values(LOSS)[30])


def test_a_cell_of_the_picture_is_chosen_and_opened_by_clicks(page, site):
    show(page, site, ROWS, extra="&s=3")
    [x, y] = page.evaluate("""() => { const { stage } = document.querySelector("figure.stage");
        const cell = stage.shapes.find(({ kind, place }) => kind === "cell" && String(place?.index) === "3,2,5");
        const box = stage.canvas.getBoundingClientRect();
        return [box.left + cell.x + cell.w / 2, box.top + cell.y + cell.h / 2]; }""")
    page.mouse.click(x, y)
    page.mouse.click(x, y)
    page.wait_for_selector("#number .big")
    assert page.url.endswith("of=series.rows&s=3&r=2&d=5")


def test_a_value_opens_by_its_button(page, site, training_trace):
    show(page, site, LOSS, extra="&s=3")
    part(page, PROBABILITY).locator(".values button").nth(2).click()
    expect(page.locator("#number .name")).to_contain_text("[3, 2]")
    assert same32(number(page.locator("#number .big").inner_text()), training_trace.values(PROBABILITY)[3, 2])


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_play_steps_through_the_updates_and_stops_at_the_end(new_page, other_charts, motion):
    page = show(new_page(reduced_motion=motion), other_charts[1], LOSS)
    page.evaluate("""() => { window.seen = [];
        const input = document.querySelector('.current .updates input');
        const note = () => seen.push(input.getAttribute('aria-valuetext'));
        new MutationObserver(note).observe(input, { attributes: true }); }""")
    page.locator(".current").get_by_role("button", name="Play the updates").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.locator(".current").get_by_role("button", name="Play the updates").wait_for()
    assert [text for text, _ in itertools.groupby(page.evaluate("seen"))] == ["update 2 of 3", "update 3 of 3"]


def test_settings_outlive_the_number_of_digits(page, site):
    show(page, site, LOSS)
    part(page, LOSS).get_by_role("button", name="logarithmic").click()
    page.locator('[data-digits="2"]').click()
    page.wait_for_selector('section.current .picture .chip[aria-pressed="true"]:has-text("logarithm")')
    assert page.locator("section.current .updates").count() == 1
    assert page.locator("section.current .picture").count() == 2


def test_steps_without_updates_have_no_slider(page, site):
    page.goto("about:blank")
    page.goto(f"{(site / 'en' / 'training.html').as_uri()}#step=logits")
    page.wait_for_selector("section.current")
    assert page.locator(".current .updates, .current .picture").count() == 0


# Everybody -------------------------------------------------------------------------------------------

def test_pictures_say_first_chosen_and_last(page, site, training_trace):
    show(page, site, LOSS)
    move(page, 60)
    for name in (LOSS, PROBABILITY):
        said = part(page, name).get_by_role("img").first.get_attribute("aria-label")
        for row in (0, 59, 119):
            recorded = np.atleast_1d(training_trace.values(name)[row])
            assert all(np.format_float_positional(value, trim="-") in said for value in recorded)
    assert page.locator(SLIDER).get_attribute("aria-valuetext") == "update 60 of 120"
    show(page, site, "series.attention", "zh", "&s=59")
    assert page.locator(SLIDER).get_attribute("aria-valuetext") == "第 60 次更新，共 120 次"


def test_lines_are_told_apart_by_more_than_colour(page, site):
    show(page, site, LOSS)
    looks = part(page, PROBABILITY).locator(".curves").evaluate(
        """(box) => [...box.querySelectorAll('.line')].map((line, i) => [getComputedStyle(line).stroke,
            line.getAttribute('stroke-dasharray'), box.querySelectorAll('.point')[i].getAttribute('d')])""")
    legend = part(page, PROBABILITY).locator(".sample").evaluate_all(
        "(list) => list.map((s) => [getComputedStyle(s.querySelector('.line')).stroke, "
        "s.querySelector('.line').getAttribute('stroke-dasharray'), s.querySelector('.point').getAttribute('d')])")
    assert looks == legend
    assert all(len(set(column)) == 5 for column in zip(*looks, strict=True))
