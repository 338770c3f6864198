"""The two other families on the page of experiments: what is drawn is what was recorded."""

import base64
import copy
import json
import re
import struct
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from driver import DESK, PHONE

from site_builder.experiments import read_experiments, tell
from site_builder.language import languages
from tracer.format.experiment_figures import finish

BODY = json.loads((Path(__file__).resolve().parent.parent / "traces" / "experiments" / "families.json").read_text())
SHOWN, RUN = BODY["shown"], BODY["reversing"][0]
UPDATES = RUN["curve"]["update"]
PART = "[data-experiment=families]"


def opened(new_page, site, language: str = "en", **options):
    page = new_page(**options)
    page.goto((site / language / "experiments.html").as_uri())
    return page


def move_to(page, moment: int) -> None:
    page.locator(f"{PART} [data-moment]").focus()
    page.keyboard.press("Home")
    for _ in range(moment):
        page.keyboard.press("ArrowRight")


def recorded(moment: int, word: int) -> list[float]:
    """The weights of one word, read from the file without NumPy."""
    counts = [(len(each) + 1) ** 2 for each in SHOWN["words"]]
    together = base64.b64decode(SHOWN["weights"][moment])
    return [weight / 1000 for weight in struct.unpack_from(f"<{counts[word]}H", together, 2 * sum(counts[:word]))]


@pytest.mark.parametrize("word", [0, 1, 2])
def test_the_slider_shows_the_weights_and_the_letters_of_its_moment(site, new_page, word):
    page = opened(new_page, site)
    page.locator(f"{PART} .pick button").nth(word).click()
    matrix = page.locator(f"{PART} .matrix:visible")
    assert matrix.count() == 1
    for moment in (0, 9, len(UPDATES) - 1):
        move_to(page, moment)
        assert matrix.locator(".cells rect").evaluate_all(
            "all => all.map((rect) => Number(rect.getAttribute('fill-opacity')))") == recorded(moment, word)
        rows = matrix.locator("[data-due]")
        written, due = SHOWN["written"][word][moment], SHOWN["words"][word][::-1] + "."
        assert "".join(rows.all_text_contents()) == written
        assert rows.evaluate_all("all => all.map((row) => row.classList.contains('wrong'))") == [
            one != other for one, other in zip(written, due, strict=True)]
        told = [float(text) for text in page.locator(f"{PART} [data-reading]").all_inner_texts()]
        assert told == [RUN["curve"]["words"][moment], RUN["curve"]["right"][moment]]
        assert page.locator(f"{PART} [data-update]").inner_text() == f"{UPDATES[moment]:,}"


def test_ringed_is_the_letter_that_is_due_and_the_model_looks_there(site, new_page):
    page = opened(new_page, site)
    matrix = page.locator(f"{PART} .matrix").first
    places = "all => all.map((rect) => [Number(rect.getAttribute('x')), Number(rect.getAttribute('y'))])"
    cells, rings = (matrix.locator(f"{part} rect").evaluate_all(places) for part in (".cells", ".rings"))
    labels = [(text, float(x)) for text, x, due in matrix.locator("text").evaluate_all(
        "all => all.map((text) => [text.textContent, text.getAttribute('x'), text.dataset.due])") if not due]
    assert "".join(text for text, _ in labels) == SHOWN["words"][0] + "."
    above = ["".join(text for text, middle in labels if x < middle < x + 12) for x, _ in rings]
    assert "".join(above) == SHOWN["words"][0][::-1]  # ring by ring, row by row: the word from its end
    weights = recorded(-1, 0)
    assert all(weights[cells.index(ring)] > 0.5 for ring in rings)


def test_bars_are_as_long_as_the_probabilities(site, new_page):
    page = opened(new_page, site)
    both, left = (next(run for run in BODY["masked"] if run["sides"] == sides) for sides in ("both", "left"))
    figures = page.locator(f"{PART} .fillings figure")
    assert figures.count() == len(BODY["sentences"]) == 3
    for number, sentence in enumerate(BODY["sentences"]):
        figure = figures.nth(number)
        assert figure.locator("figcaption").inner_text().split() == sentence["words"]
        assert figure.locator("strong").inner_text() == "[mask]"
        assert figure.locator(".word").all_text_contents() == sentence["candidates"]
        assert figure.locator(".meant").all_text_contents() == sentence["right"]
        lengths = [float(re.search(r"h([\d.]+)v", path)[1]) for path in figure.locator("path.area").evaluate_all(
            "all => all.map((bar) => bar.getAttribute('d'))")]
        wanted = [share for pair in zip(both["read"][number], left["read"][number], strict=True) for share in pair]
        assert lengths == pytest.approx([165 * share for share in wanted], abs=0.051)
        assert [float(text) for text in figure.locator(".weight").all_text_contents()] == wanted


def test_no_name_of_a_word_is_cut_off(site, new_page):
    page = opened(new_page, site)
    outside = """all => all.filter((text) => {
        const [box, whole] = [text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()];
        return box.left < whole.left || box.right > whole.right + 0.5;
    }).map((text) => text.textContent)"""
    assert page.locator(f"{PART} .filling text").evaluate_all(outside) == []


def test_without_scripts_every_word_is_shown(site, new_page):
    page = opened(new_page, site, java_script_enabled=False)
    assert page.locator(f"{PART} .matrix:visible").count() == 3
    assert page.locator(f"{PART} [data-moment]:visible, {PART} button:visible").count() == 0


@pytest.mark.parametrize(("language", "scheme", "viewport"), [("en", "dark", PHONE), ("zh", "light", DESK)])
def test_axe_finds_nothing_while_it_is_used(site, new_page, language, scheme, viewport):
    page = opened(new_page, site, language, viewport=viewport, color_scheme=scheme)
    page.locator(f"{PART} .pick button").nth(1).click()
    move_to(page, 5)
    assert page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"]
    result = Axe().run(page, context=PART, options={"preload": False})
    assert result.violations_count == 0, result.generate_report()


def reading(body: dict, folder: Path) -> str:
    (folder / "experiments").mkdir(exist_ok=True)
    (folder / "experiments" / "x.json").write_text(json.dumps(finish(body)), "utf-8")
    found = read_experiments(folder)
    tell(found, languages()["zh"])
    return tell(found, languages()["en"])[1][0]["reading"][1]


def test_the_reading_follows_the_figures(tmp_path):
    said = reading(copy.deepcopy(BODY), tmp_path)
    lowest = min(run["curve"]["right"][-1] for run in BODY["reversing"])
    assert f"at least {lowest:.3f} of the weight" in said and "with 3 seeds, all of the 400 words" in said
    left = [run["curve"] for run in BODY["masked"] if run["sides"] == "left"]
    assert f"the noun in {100 * sum(one['noun'][-1] for one in left) / 3:.1f}% on trained pairs" in said
    assert "as a coin would" in said and "less than a guess would" in said

    other = copy.deepcopy(BODY)
    other["reversing"][1]["curve"]["words"][-1] = 0.5
    for run in other["masked"]:
        run["curve"]["verb_held_out"][-1] = run["curve"]["noun_held_out"][-1] = 0.9
    said = reading(other, tmp_path)
    assert "at least 50.0% of the 400 words" in said
    assert "as a coin would" not in said and "less than a guess would" not in said


def test_what_was_learnt_is_what_the_page_is_for():
    """The model that is shown looks where it should, and both sides see what the left cannot."""
    summary = BODY["summary"]
    assert summary[0]["words"] > 0.99 and summary[0]["right"] > 0.95
    for one in summary[3:]:
        assert (one["noun_held_out"] > 0.95, one["verb_held_out"] > 0.9) == ((one["sides"] == "both",) * 2)
