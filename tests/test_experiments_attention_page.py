"""The experiments in which attention learns where to look, on their page: what is drawn is what was recorded."""

import base64
import copy
import json
import re
import struct
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from driver import DESK, PHONE

from site_builder.attention_pictures import sentence_picture, sign
from site_builder.experiments import read_experiments, tell
from site_builder.language import languages
from tracer.format.experiment_figures import finish

FOLDER = Path(__file__).resolve().parent.parent / "traces" / "experiments"
INDUCTION, NOUN = (json.loads((FOLDER / f"{stem}.json").read_text("utf-8")) for stem in ("induction", "noun"))
UPDATES = INDUCTION["runs"][0]["curve"]["update"]
T = len(INDUCTION["shown"]["ids"])
BORN, READ = "[data-experiment=induction]", "[data-experiment=noun]"


def opened(new_page, site, language: str = "en", **options):
    page = new_page(**options)
    page.goto((site / language / "experiments.html").as_uri())
    return page


def move_to(page, moment: int) -> None:
    """Move the slider with the keys, as a hand would."""
    slider = page.locator(f"{BORN} [data-moment]")
    slider.focus()
    page.keyboard.press("Home")
    for _ in range(moment):
        page.keyboard.press("ArrowRight")


def drawn(page, head: int) -> list[float]:
    return page.locator(f"{BORN} .cells").nth(head).locator("rect").evaluate_all(
        "all => all.map((rect) => Number(rect.getAttribute('fill-opacity')))")


def recorded(moment: int, head: int) -> list[float]:
    """The weights of one head, read from the file without NumPy."""
    count = T * (T + 1) // 2
    all_heads = base64.b64decode(INDUCTION["shown"]["weights"][moment])
    return [weight / 1000 for weight in struct.unpack_from(f"<{count}H", all_heads, 2 * count * head)]


def test_the_slider_shows_the_weights_of_its_moment(site, new_page):
    page = opened(new_page, site)
    assert [drawn(page, head) for head in (0, 1)] == [recorded(-1, head) for head in (0, 1)]
    for moment in (0, 7, 38):
        move_to(page, moment)
        assert [drawn(page, head) for head in (0, 1)] == [recorded(moment, head) for head in (0, 1)]
        run = INDUCTION["runs"][0]
        assert page.locator(f"{BORN} [data-update]").inner_text() == f"{UPDATES[moment]:,}"
        told = [float(text) for text in page.locator(f"{BORN} [data-reading]").all_inner_texts()]
        assert told == pytest.approx([run["curve"]["known"][moment], run["scores"]["previous"][0][moment],
                                      run["scores"]["induction"][1][moment]], abs=0.0051)


def test_the_mark_of_the_moment_stands_where_the_axis_says(site, new_page):
    page = opened(new_page, site)
    move_to(page, 25)  # half of the updates: its mark is halfway between the ticks of the first and the last
    for svg in page.locator(f"{BORN} .plot .wide svg").all():
        ticks = svg.locator(".tick.x").evaluate_all("all => all.map((tick) => Number(tick.getAttribute('x')))")
        mark = float(re.search(r"translate\(([\d.]+)", svg.locator(".moment").get_attribute("transform"))[1])
        assert UPDATES[25] == 500 and mark == pytest.approx((ticks[0] + ticks[-1]) / 2, abs=0.01)


def test_ringed_is_what_the_pattern_of_the_head_means(site, new_page):
    page = opened(new_page, site)
    ids = INDUCTION["shown"]["ids"]
    corners = "all => all.map((rect) => [rect.getAttribute('x'), rect.getAttribute('y')].join())"
    cells, *ringed = (page.locator(f"{BORN} {part}").nth(head).locator("rect").evaluate_all(corners)
                      for part, head in ((".cells", 0), (".rings", 0), (".rings", 1)))
    places = dict(zip(((i, j) for i in range(T) for j in range(i + 1)), cells, strict=True))
    assert ringed[0] == [corner for (i, j), corner in places.items() if j == i - 1]
    assert ringed[1] == [corner for (i, j), corner in places.items() if j > 0 and ids[j - 1] == ids[i]]
    labels = page.locator(f"{BORN} .matrix").first.locator("text").all_text_contents()
    assert labels[::2] == labels[1::2] == [sign(token) for token in ids] and len(set(labels)) == len(set(ids))


def test_it_plays_from_the_start_to_the_end(site, new_page):
    page = opened(new_page, site)
    page.click(f"{BORN} [data-play]")
    assert page.locator(f"{BORN} [data-moment]").input_value() in ("0", "1")
    page.wait_for_function(f"() => document.querySelector('[data-moment]').value === '{len(UPDATES) - 1}'")
    assert page.locator(f"{BORN} [data-update]").inner_text() == f"{UPDATES[-1]:,}"


def test_curves_lie_where_the_scores_are(site, new_page):
    """In the units of the axis: from the tick of 0 to that of 1."""
    page = opened(new_page, site)
    svg = page.locator(f"{BORN} .plot").nth(1).locator(".wide svg")
    ticks = {text: float(y) - 4 for text, y in svg.locator(".tick.y").evaluate_all(
        "all => all.map((tick) => [tick.textContent, tick.getAttribute('y')])")}
    run, others = INDUCTION["runs"][0], INDUCTION["runs"][1:]
    wanted = [*(one["scores"]["induction"][1] for one in others[:2]), others[2]["scores"]["induction"][0],
              run["scores"]["previous"][0], run["scores"]["induction"][1]]
    lines = svg.locator("path.line").evaluate_all("all => all.map((line) => line.getAttribute('d'))")
    assert len(lines) == len(wanted) == 5
    for line, scores in zip(lines, wanted, strict=True):
        ys = [float(y) for _, y in re.findall(r"([\d.]+),([\d.]+)", line)]
        read = [(ticks["0.0"] - y) / (ticks["0.0"] - ticks["1.0"]) for y in ys]
        assert read == pytest.approx(scores, abs=0.001)


def test_a_button_chooses_the_model_that_reads(site, new_page):
    page = opened(new_page, site)
    buttons = page.locator(f"{READ} .pick button")
    assert buttons.count() == len(NOUN["runs"]) == 9
    for number in (4, 7):
        buttons.nth(number).click()
        assert page.locator(f"{READ} .reader:visible").count() == 1
        reader = page.locator(f"{READ} .reader").nth(number)
        assert reader.is_visible() and buttons.nth(number).get_attribute("aria-pressed") == "true"
        text, run = reader.inner_text(), NOUN["runs"][number]
        assert f"{100 * run['curve']['held_out'][-1]:.1f}%" in text
        for read, sentence, figure in zip(run["read"], NOUN["sentences"], reader.locator("figure").all(), strict=True):
            assert figure.locator(".word").all_text_contents() == sentence["words"]
            best = read["said"][0]
            assert f"{best['word']} {best['share']:.3f}" in figure.inner_text()
            weights = sorted(f"{weight:.3f}".lstrip("0") for head in read["weights"] for weight in head
                             if weight >= 0.1)
            assert sorted(figure.locator(".weight").all_text_contents()) == weights


def test_without_scripts_every_model_is_shown_and_nothing_seems_to_move(site, new_page):
    page = opened(new_page, site, java_script_enabled=False)
    assert page.locator(f"{READ} .reader:visible").count() == len(NOUN["runs"])
    assert page.locator("[data-moment]:visible, .readers button:visible").count() == 0
    assert [drawn(page, head) for head in (0, 1)] == [recorded(-1, head) for head in (0, 1)]


def test_an_arc_ends_at_its_word_and_is_as_thick_as_its_weight():
    blocks = [[0.0, 0.25, 0.01, 0.74], [0.02, 0.9, 0.05, 0.03]]
    one = sentence_picture(["the", "dog", "because", "it"], [1, 2], 0, blocks)
    left, right = ([arc for arc in one.arcs if arc.side == side] for side in ("left", "right"))
    assert [arc.width for arc in left] == [1.75, 5.18] and [arc.text for arc in left] == [".250", ".740"]
    assert [arc.width for arc in right] == [0.6, 6.3, 0.6, 0.6]
    ends = [float(re.search(r"([\d.]+)$", arc.path)[1]) for arc in right]
    assert ends == [one.words[0].y - 4, one.words[1].y - 4, one.words[2].y - 4, one.words[3].y - 9]
    assert [word.kind for word in one.words] == ["", "meant", "noun", "last"]
    xs = [float(x) for arc in one.arcs for x in re.findall(r"([\d.]+),", arc.path)]
    assert min(xs) >= 0 and max(xs) <= one.width


@pytest.mark.parametrize(("language", "scheme", "viewport"), [
    ("en", "dark", DESK), ("zh", "light", PHONE), ("en", "light", PHONE), ("zh", "dark", DESK)])
def test_axe_finds_nothing_while_it_is_used(site, new_page, language, scheme, viewport):
    page = opened(new_page, site, language, viewport=viewport, color_scheme=scheme)
    move_to(page, 10)
    page.locator(f"{READ} .pick button").nth(8).click()
    assert page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"]
    result = Axe().run(page, options={"preload": False})
    assert result.violations_count == 0, result.generate_report()


# What is said about other figures -----------------------------------------------------------------------

def reading(body: dict, folder: Path) -> str:
    """What the English page reads out of an experiment; the other language has every figure too."""
    (folder / "experiments").mkdir(exist_ok=True)
    (folder / "experiments" / "x.json").write_text(json.dumps(finish(body)), "utf-8")
    found = read_experiments(folder)
    tell(found, languages()["zh"])
    return tell(found, languages()["en"])[1][0]["reading"][1]


def test_the_reading_of_induction_follows_the_figures(tmp_path):
    said = reading(copy.deepcopy(INDUCTION), tmp_path)
    run = INDUCTION["runs"][0]
    known, moments = run["curve"]["known"], range(5, len(UPDATES) - 5)
    start = max(moments, key=lambda i: known[i] - known[i + 5])
    assert f"from {UPDATES[start]} to {UPDATES[start + 5]}, the loss falls from {known[start]:.2f}" in said
    assert "from update 680 to 760, depending on the seed" in said  # the first moments with a score above a half
    assert [next(u for u, score in zip(UPDATES, one["scores"]["induction"][1], strict=True) if score > 0.5)
            for one in INDUCTION["runs"][:3]] == [760, 680, 680]
    assert "One block never gets there" in said and "Not with every seed" not in said

    never = copy.deepcopy(INDUCTION)
    never["runs"][1]["scores"]["induction"] = [[0.1] * len(UPDATES)] * 2
    assert "Not with every seed did a head form within 1,000 updates" in reading(never, tmp_path)
    always = copy.deepcopy(INDUCTION)
    always["runs"][3]["scores"]["induction"] = [[0.9] * len(UPDATES)]
    assert "one block got there as well" in reading(always, tmp_path)
    alone = copy.deepcopy(INDUCTION)
    del alone["runs"][3]
    assert "ne block" not in reading(alone, tmp_path)


def test_the_reading_of_the_noun_follows_the_figures(tmp_path):
    said = reading(copy.deepcopy(NOUN), tmp_path)
    best = {run["seed"]: max(head[-1] for head in run["right"]) for run in NOUN["runs"] if run["blocks"] == 2}
    vague = min(best, key=best.get)
    assert f"With seed {vague} it is {best[vague]:.3f}, and the answers are just as right" in said
    assert "All 6 models of 2 blocks answer every held-out sentence right" in said
    assert "One block answers 87.3 to 90.7% right" in said

    wrong = copy.deepcopy(NOUN)
    wrong["runs"][vague]["curve"]["held_out"][-1] = 0.5
    said = reading(wrong, tmp_path)
    assert "answer at least 50.0% of the held-out sentences right" in said and "just as right" not in said
    alone = copy.deepcopy(NOUN)
    del alone["runs"][6:]
    assert "One block" not in reading(alone, tmp_path)
