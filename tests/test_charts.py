"""The pictures of the series: one slider moves them and the tables, and what they show is what was recorded."""

import base64
import math
import re
import shutil

import numpy as np
import pytest
from charts import ATTENTION, LOSS, PROBABILITY, SLIDER, move, number, part, same32, show, texts
from playwright.sync_api import expect

expect.set_options(timeout=40_000)  # milliseconds, as in conftest.py


def attributes(locator, name):
    return locator.evaluate_all("(list, name) => list.map((element) => element.getAttribute(name))", name)


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


@pytest.fixture(scope="module")
def page(module_page):
    """One page for all tests of this file; each shows its step afresh."""
    return module_page()


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


# Other recordings ------------------------------------------------------------------------------------

def test_another_recording_draws_with_its_own_sizes(page, other_charts):
    trace, site = other_charts
    show(page, site, "series.attention")
    assert page.locator(SLIDER).get_attribute("max") == "3"
    heads = page.locator("figure.stage .which button.chip").all_inner_texts()
    assert heads == ["head 0", "head 1", "head 2", "head 3"]
    cells = page.evaluate("""(array) => document.querySelector("figure.stage").shapes
        .filter(({ kind, place }) => kind === "cell" && place?.array === array).length""", ATTENTION)
    assert cells == trace.values(ATTENTION)[0, 0].size
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
