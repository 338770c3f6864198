"""The pictures of the series: one slider moves them and the tables, and what they show is what was recorded."""

import base64
import itertools
import math
import re
import shutil

import numpy as np
import pytest
from driver import address, place, visit
from playwright.sync_api import expect

from site_builder.build import build
from tracer.format.files import save
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.training import TrainingJob, record_training

LOSS, PROBABILITY, ROWS = "series.loss", "series.target_probability", "series.rows"
ATTENTION = "series.attention.blocks.0"
SLIDER = ".current .updates input"
expect.set_options(timeout=40_000)  # milliseconds, as in conftest.py
WAIT_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def other(tokenizer, tmp_path_factory):
    """A recording of another shape, and its site: 3 updates, 1 block, 4 heads."""
    folder = tmp_path_factory.mktemp("other")
    job = TrainingJob(text="one two", config=Config(context=8, width=8, heads=4, blocks=1),
                      settings=TrainingSettings(updates=3))
    trace, checkpoint = record_training(job, tokenizer)
    save(trace, folder / "traces" / "training.json")
    generation = record_generation(GenerationJob(max_new_tokens=1), checkpoint, tokenizer)
    save(generation, folder / "traces" / "generation.json")
    return trace, build(folder / "traces", folder / "site").parent


@pytest.fixture(scope="module")
def page(module_page):
    """One page for all tests of this file; each shows its step afresh."""
    return module_page()


def show(page, site, step, language="en", extra="", fresh=True):
    """Show a step; `fresh`: on a page that has shown nothing yet."""
    if fresh:
        page.goto("about:blank")
    visit(page, address(site, "training", language, f"#step={step}{extra}"))
    page.wait_for_selector("section.current .picture")
    expect(page.locator("section.current .picture:not(:has(svg text))")).to_have_count(0)
    place(page)
    return page


def move(page, update):
    """Choose an update, counted from 1, with the slider."""
    page.locator(SLIDER).fill(str(update))
    page.evaluate(WAIT_FRAMES)


def part(page, name):
    return page.locator(f'section.current [data-array="{name}"]')


def number(text):
    text = text.strip().replace("−", "-").replace("∞", "inf")
    return float(text)


def attributes(locator, name):
    return locator.evaluate_all("(list, name) => list.map((element) => element.getAttribute(name))", name)


def texts(locator):
    return [number(text) for text in locator.all_inner_texts()]


def scale(page, name, log=False):
    """The function that the ticks of a chart draw: a height in the picture → a value."""
    ticks = part(page, name).locator(".curves .tick.y")
    values = np.array([number(text) for text in ticks.all_text_contents()])
    heights = np.array([float(y) - 4 for y in attributes(ticks, "y")])  # text stands a little below its line
    assert len(set(heights)) >= 2
    slope, start = np.polyfit(heights, np.log10(values) if log else values, 1)
    return (lambda y: 10 ** (start + slope * y)) if log else (lambda y: start + slope * y)


def points(page, name):
    found = attributes(part(page, name).locator(".curves .point"), "transform")
    return [tuple(map(float, re.findall(r"-?[\d.]+(?:e-?\d+)?", text))) for text in found]


def numbers(page, name):
    """What the table of an array says."""
    return texts(part(page, name).locator(".numbers td"))


def same32(shown, recorded):
    return np.array_equal(np.float32(shown), np.float32(recorded))


# Numbers ---------------------------------------------------------------------------------------------


def test_the_numbers_beside_the_curves_are_the_recorded_ones(page, site, training_trace):
    show(page, site, LOSS)
    for update in (1, 2, 60, 120):
        move(page, update)
        for name in (LOSS, PROBABILITY):
            recorded = training_trace.values(name)
            assert same32(texts(part(page, name).locator(".values td.now")), np.atleast_1d(recorded[update - 1]))
        assert page.locator(".current .updates output").inner_text() == f"update {update} of 120"
        assert page.locator(".current .values th.now").all_inner_texts() == [f"update {update}"] * 2


def test_the_evaluation_losses_and_the_yardstick_stand_by_the_loss_alone(page, site, training_trace):
    show(page, site, LOSS)
    ends = [training_trace.values(f"evaluation.{text}.loss")[()] for text in ("training", "validation")]
    told = part(page, LOSS).locator(".picture > p").inner_text()
    assert all(str(end) in told for end in ends)
    assert f"{math.log(50257):.4f}" in told and "50,257" in told
    names = part(page, LOSS).locator(".curves .name").all_text_contents()
    assert sorted(names) == sorted([f"training text {ends[0]:.6f}", f"validation text {ends[1]:.3f}", "ln V 10.82"])
    value = scale(page, LOSS)
    places = attributes(part(page, LOSS).locator(".mark"), "transform")
    heights = [float(re.search(r",(.*)\)", place)[1]) for place in places]
    assert [value(y) for y in heights] == pytest.approx(ends, abs=1e-3)
    line = part(page, LOSS).locator(".guide").get_attribute("d")
    assert value(float(re.search(r",([\d.]+)H", line)[1])) == pytest.approx(math.log(50257), abs=1e-3)
    assert part(page, PROBABILITY).locator(".name, .mark, .guide").count() == 0


@pytest.mark.parametrize("log", [False, True], ids=["linear", "logarithmic"])
def test_points_and_lines_lie_where_their_values_are(page, site, training_trace, log):
    show(page, site, LOSS)
    for name in (LOSS, PROBABILITY):
        recorded = training_trace.values(name).reshape(120, -1)
        if log:
            part(page, name).get_by_role("button", name="logarithmic").click()
        value = scale(page, name, log)
        places = []
        for update in (1, 15, 83, 120):
            move(page, update)
            here = points(page, name)
            places.append(here[0][0])
            drawn = [value(y) for _, y in here]
            assert drawn == pytest.approx(recorded[update - 1], **({"rel": 1e-3} if log else {"abs": 1e-3}))
        steps = np.diff(places) / np.diff([1, 15, 83, 120])
        assert steps == pytest.approx(steps[0], abs=1e-6)
        lines = attributes(part(page, name).locator(".curves .line"), "d")
        drawn = np.array([[value(float(y)) for y in re.findall(r",([\d.]+)", line)] for line in lines]).T
        assert drawn.shape == recorded.shape
        if log:
            drawn, recorded = np.log10(drawn), np.log10(recorded)
        assert np.allclose(drawn, recorded, atol=0.001)


@pytest.mark.parametrize("name", [ATTENTION, ROWS])
def test_maps_colour_every_cell_by_its_value_or_its_change(page, site, training_trace, name):
    show(page, site, "series.attention" if name == ATTENTION else ROWS)
    recorded = training_trace.values(name).astype(np.float64).reshape(120, -1)

    def cells():
        return part(page, name).locator("rect[data-cell]").evaluate_all(
            "(list) => list.map((r) => [r.getAttribute('class'), Number(r.getAttribute('fill-opacity'))])")

    for change in (False, True):
        part(page, name).get_by_role("button", name="change since" if change else "value").click()
        shown = recorded - recorded[0] if change else recorded
        for update in (2, 61, 120):
            move(page, update)
            signs = [{"pos": 1, "neg": -1, "zero": 0}[sign] for sign, _ in cells()]
            assert np.array_equal(signs, np.sign(shown[update - 1]))
            opacity = [share if sign else 0 for sign, (_, share) in zip(signs, cells(), strict=True)]
            assert np.allclose(opacity, np.abs(shown[update - 1]) / np.abs(shown).max(), atol=1 / 32)


def test_a_cell_tells_its_value_and_its_curve(page, site, training_trace):
    show(page, site, "series.attention")
    recorded = training_trace.values(ATTENTION)
    head, i, j = 1, 3, 2
    rect = part(page, ATTENTION).locator(f'rect[data-cell="{(head * 5 + i) * 5 + j}"]')
    for update in (1, 40, 120):
        move(page, update)
        rect.hover()
        caption = part(page, ATTENTION).locator(".caption")
        assert caption.inner_text().startswith("head 2, query position 3 (A0), key position 2 (E4·BD)")
        assert same32(number(caption.locator("strong").inner_text()), recorded[update - 1, head, i, j])
        change = float(recorded[update - 1, head, i, j]) - float(recorded[0, head, i, j])
        assert number(caption.inner_text().split(": ")[-1]) == pytest.approx(change, rel=1e-3)
        value = scale(page, ATTENTION)
        assert value(points(page, ATTENTION)[0][1]) == pytest.approx(recorded[update - 1, head, i, j], abs=1e-3)
        page.mouse.move(2, 2)


def test_at_first_the_cell_that_moved_most_is_told(page, site, training_trace):
    show(page, site, ROWS)
    recorded = training_trace.values(ROWS).astype(np.float64)
    row, feature = np.unravel_index(np.abs(recorded[-1] - recorded[0]).argmax(), recorded.shape[1:])
    assert part(page, ROWS).locator(".caption").inner_text().startswith(f"row in use {row} ")
    assert f"feature {feature}\n" in part(page, ROWS).locator(".caption").inner_text()


# One slider ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", [2, 77])
def test_tables_follow_the_slider_and_have_none_of_their_own(page, site, training_trace, update):
    show(page, site, "series.attention", extra="&digits=all")
    move(page, update)
    assert page.locator("section.current input[type=range]").count() == 1
    for name in (ATTENTION, "series.attention.blocks.1"):
        assert same32(numbers(page, name), training_trace.values(name)[update - 1, 0].ravel())
    part(page, ATTENTION).get_by_role("group", name="head").get_by_role("button", name="2").click()
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


def test_keys_on_a_map_walk_its_cells_and_open_one(page, site, training_trace):
    show(page, site, "series.attention", extra="&s=9")
    maps = part(page, ATTENTION).locator(".maps svg")
    maps.nth(0).focus()
    caption = part(page, ATTENTION).locator(".caption")
    for key in ("ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert caption.inner_text().startswith("head 1, query position 2 (E4·BD), key position 1 (␣)")
    page.keyboard.press("Enter")
    page.wait_for_selector("#number .big")
    assert page.url.endswith(f"of={ATTENTION}&s=9&h=0&i=2&j=1")
    assert same32(number(page.locator("#number .big").inner_text()), training_trace.values(ATTENTION)[9, 0, 2, 1])
    maps.nth(1).focus()
    assert caption.inner_text().startswith("head 2, query position 0 (Hi), key position 0 (Hi)")


def test_the_pointer_shows_an_update_and_a_press_keeps_it(page, site):
    show(page, site, LOSS, extra="&s=9")
    chart = part(page, LOSS).locator(".curves svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()

    def at(update):
        ticks = dict(chart.locator(".tick.x").evaluate_all(
            "(list) => list.map((t) => [Number(t.textContent), Number(t.getAttribute('x'))])"))
        return box["x"] + ticks[20] + (update - 20) * (ticks[100] - ticks[20]) / 80, box["y"] + 60

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


def test_a_cell_opens_by_click_and_a_value_by_its_button(page, site, training_trace):
    show(page, site, ROWS, extra="&s=3")
    part(page, ROWS).locator('rect[data-cell="37"]').click()
    page.wait_for_selector("#number .big")
    assert page.url.endswith("of=series.rows&s=3&r=2&d=5")
    show(page, site, LOSS, extra="&s=3")
    part(page, PROBABILITY).locator(".values button").nth(2).click()
    expect(page.locator("#number .name")).to_contain_text("[3, 2]")
    assert same32(number(page.locator("#number .big").inner_text()), training_trace.values(PROBABILITY)[3, 2])


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_play_steps_through_the_updates_and_stops_at_the_end(new_page, other, motion):
    page = show(new_page(reduced_motion=motion), other[1], LOSS)
    page.evaluate("""() => { window.seen = [];
        const input = document.querySelector('.current .updates input');
        const note = () => seen.push(input.getAttribute('aria-valuetext'));
        new MutationObserver(note).observe(input, { attributes: true }); }""")
    page.locator(".current").get_by_role("button", name="Play the updates").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.locator(".current").get_by_role("button", name="Play the updates").wait_for()
    assert [text for text, _ in itertools.groupby(page.evaluate("seen"))] == ["update 2 of 3", "update 3 of 3"]


def test_settings_outlive_the_number_of_digits(page, site):
    show(page, site, ROWS)
    part(page, ROWS).get_by_role("button", name="change since").click()
    page.locator('[data-digits="2"]').click()
    page.wait_for_selector('section.current .picture .chip[aria-pressed="true"]:has-text("change")')
    assert page.locator("section.current .updates").count() == page.locator("section.current .picture").count() == 1


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
    assert "第 60 次：" in part(page, ATTENTION).locator(".maps svg").first.get_attribute("aria-label")


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


# Other recordings ------------------------------------------------------------------------------------


def test_another_recording_draws_with_its_own_sizes(page, other):
    trace, site = other
    show(page, site, "series.attention")
    assert page.locator(SLIDER).get_attribute("max") == "3"
    recorded = trace.values(ATTENTION)
    titles = part(page, ATTENTION).locator(".maps figcaption").all_inner_texts()
    assert titles == ["head 1", "head 2", "head 3", "head 4"]
    assert part(page, ATTENTION).locator("rect[data-cell]").count() == recorded[0].size
    show(page, site, LOSS)
    move(page, 3)
    assert same32(texts(part(page, LOSS).locator(".values td.now")), [trace.values(LOSS)[2]])
    assert part(page, LOSS).locator(".tick.x").all_text_contents() == ["1", "2", "3"]
    value = scale(page, PROBABILITY)
    assert [value(y) for _, y in points(page, PROBABILITY)] == pytest.approx(trace.values(PROBABILITY)[2], rel=1e-2)


def test_numbers_that_cannot_be_drawn_leave_gaps(page, site, training_trace, tmp_path):
    """NaN, infinity, and on the logarithmic scale zero and below: the numbers are told, the line has a gap."""
    shutil.copytree(site, tmp_path / "odd")
    file = tmp_path / "odd" / "data" / "training-updates.js"
    values = training_trace.values(LOSS).copy()
    before = base64.b64encode(values.tobytes()).decode()
    values[[10, 20, 30]] = np.nan, np.inf, -1
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, base64.b64encode(values.tobytes()).decode()))
    show(page, tmp_path / "odd", LOSS)
    line = part(page, LOSS).locator(".curves .line")
    assert line.get_attribute("d").count("M") == 3
    move(page, 11)
    assert part(page, LOSS).locator(".values td.now").inner_text() == "NaN"
    assert part(page, LOSS).locator(".point").get_attribute("visibility") == "hidden"
    part(page, LOSS).get_by_role("button", name="logarithmic").click()
    assert line.get_attribute("d").count("M") == 4


def test_dragging_draws_once_a_frame(page, site):
    """However many events the slider sends in one."""
    show(page, site, LOSS)
    draws = page.evaluate("""async () => {
        const input = document.querySelector('.current .updates input');
        let draws = 0;
        new MutationObserver(() => draws++).observe(input, { attributes: true });
        for (let frame = 0; frame < 20; frame++) {
          for (let i = 0; i < 5; i++) {
            input.value = 1 + ((frame * 5 + i) * 7) % input.max;
            input.dispatchEvent(new Event('input'));
          }
          await new Promise((done) => requestAnimationFrame(done));
        }
        return draws; }""")
    assert 1 < draws <= 21
