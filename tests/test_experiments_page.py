"""The page of experiments: its figures are those of the recordings, its curves lie where the losses are."""

import copy
import html
import json
import math
import re
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import jinja2
import pytest
from axe_playwright_python.sync_playwright import Axe
from driver import LANGUAGES

from site_builder.experiments import read_experiments, tell
from site_builder.experiments_page import experiments_data, shown
from site_builder.language import languages
from site_builder.modules import policy
from site_builder.plots import Series, Size, plot, round_numbers, tick_text
from site_builder.strings import Strings
from tracer.errors import UserError
from tracer.format.experiment_figures import finish
from tracer.library.counting import parameter_count
from tracer.model.config import Config

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "traces" / "experiments"
RAW = {path.stem: json.loads(path.read_text("utf-8"), parse_float=Decimal) for path in sorted(FOLDER.glob("*.json"))}
DEPTHS = sorted((body for body in RAW.values() if body["schema"].endswith("/depth")),
                key=lambda body: body["make"]["settings"]["updates"])
CACHES = [body for body in RAW.values() if body["schema"].endswith("/cache")]
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
HOSTILE = "</script><img src=x onerror=alert(1)> `{{ 7*7 }}` $x$ **b**\n\n# h"


@pytest.fixture(scope="module")
def sources(site) -> dict[str, str]:
    return {language: (site / language / "experiments.html").read_text("utf-8") for language in LANGUAGES}


def elements(source: str, tag: str) -> list[ElementTree.Element]:
    """Every element of this name; tables and pictures are XML."""
    return [ElementTree.fromstring(text) for text in re.findall(rf"<{tag}\b.*?</{tag}>", source, re.DOTALL)]


def rows(source: str, heading: str) -> list[list[list[str]]]:
    """The cells of every table that has `heading`, as text, the rows of the body alone."""
    return [[["".join(cell.itertext()) for cell in row] for row in table.find("tbody")]
            for table in elements(source, "table") if heading in [head.text for head in table.iter("th")]]


def number(text: str) -> Decimal:
    return Decimal(re.sub(r"[^\d.\-e]", "", text.replace("−", "-")))


# Figures -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_of_depths_says_what_was_recorded(sources, language):
    tables = rows(sources[language], Strings(language)("experiments.whole"))
    assert len(tables) == len(DEPTHS) > 0
    for table, body in zip(tables, DEPTHS, strict=True):
        first = Fraction(body["runs"][0]["seconds_per_update"])
        assert len(table) == len(body["runs"])
        for cells, run in zip(table, body["runs"], strict=True):
            told = [number(cell) for cell in cells]
            ends = run["evaluations"]
            assert told[:4] == [run["blocks"], run["parameters"], ends["train"][-1], ends["validation"][-1]]
            assert told[4] == pytest.approx(run["seconds_per_update"] * 1000, rel=Decimal("5e-4"))
            assert abs(Fraction(told[5]) - Fraction(run["seconds_per_update"]) / first) <= Fraction(1, 200)
            assert told[6] == run["training_seconds"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_of_the_cache_counts_every_position(sources, language):
    tables = rows(sources[language], Strings(language)("experiments.bytes"))
    assert len(tables) == len(CACHES) > 0
    for table, body in zip(tables, CACHES, strict=True):
        make = body["make"]
        for cells, point in zip(table, body["points"], strict=True):
            prompt, uncached, cached, ratio, all_positions, positions, size = (number(cell) for cell in cells)
            assert [prompt, uncached, cached, size] == [
                point[name] for name in ("prompt", "uncached_seconds", "cached_seconds", "cache_bytes")]
            assert abs(Fraction(ratio) - Fraction(uncached) / Fraction(cached)) <= Fraction(1, 20)
            text = [0] * point["prompt"]  # generate by hand: what a round reads, with and without what was kept
            read, kept, new = 0, 0, 0
            for _ in range(make["new_tokens"]):
                read, new, kept = read + len(text), new + len(text) - kept, len(text)
                text.append(0)
            assert (all_positions, positions) == (read, new)
            assert size == positions * make["bytes_per_token"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_prose_samples_settings_and_conditions_are_there(sources, language):
    text = html.unescape(sources[language])
    lists = [dict(re.findall(r"<dt>(\w+)</dt><dd>(.*?)</dd>", one))
             for one in re.findall(r"<dl.*?</dl>", text, re.DOTALL)]
    for body in DEPTHS:
        make, runs = body["make"], body["runs"]
        ends = [run["evaluations"]["validation"][-1] for run in runs]
        facts = [make["text"]["name"], make["text"]["sha256"], f"{make['tokens']['validation']:,}", str(min(ends)),
                 str(max(ends) - min(ends)), make["torch"], make["machine"]]
        assert [fact for fact in facts if fact not in text] == []
        for run in runs:
            assert [sample["text"] for sample in run["samples"] if sample["text"] not in text] == []
        settings = next(one for one in lists if number(one.get("updates", "0")) == make["settings"]["updates"])
        assert settings.keys() == make["settings"].keys()
        assert all(number(settings[name]) == value for name, value in make["settings"].items()
                   if type(value) in (int, Decimal))
    for body in CACHES:
        config = body["make"]["config"]
        assert body["make"]["bytes_per_token"] == 2 * 4 * config["blocks"] * config["width"]
        assert f"{body['make']['bytes_per_token']:,}" in text


# Pictures ----------------------------------------------------------------------------------------------

def pictures(source: str, form: str, inner: str) -> list[ElementTree.Element]:
    """The pictures of one form, wide or narrow, that hold an element of class `inner`."""
    source = source.partition("data-moments")[0]  # what comes then has tests of its own
    found = "".join(re.findall(rf'<div class="{form}">(.*?)</div>', source, re.DOTALL))
    return [svg for svg in elements(found, "svg") if of_class(svg, inner)]


def of_class(svg: ElementTree.Element, *classes: str, without: str = "") -> list[ElementTree.Element]:
    held = [(element, element.get("class", "").split()) for element in svg.iter()]
    return [element for element, own in held if set(classes) <= set(own) and without not in own]


def axis(svg: ElementTree.Element, which: str) -> tuple[Fraction, Fraction]:
    """(value at 0, values a unit) of an axis, from its first and last tick as the picture shows them."""
    ticks = [(Fraction(tick.get(which)) - 4 * (which == "y"), Fraction(number(tick.text)))
             for tick in of_class(svg, "tick", which)]
    (a, low), (b, high) = ticks[0], ticks[-1]
    slope = (high - low) / (b - a)
    return low - slope * a, slope


def corners(svg: ElementTree.Element, path: ElementTree.Element) -> list[tuple[float, float]]:
    """The corners of a path in the units of the axes."""
    (x0, dx), (y0, dy) = axis(svg, "x"), axis(svg, "y")
    return [(float(x0 + dx * Fraction(x)), float(y0 + dy * Fraction(y)))
            for x, y in re.findall(r"([\d.]+),([\d.]+)", path.get("d"))]


@pytest.mark.parametrize("form", ["wide", "narrow"])
def test_curves_lie_where_the_losses_are(sources, form):
    found = pictures(sources["en"], form, "guide")
    assert len(found) == len(DEPTHS)
    for svg, body in zip(found, DEPTHS, strict=True):
        for lines, part, loss in ((of_class(svg, "line", without="thin"), "evaluations", "validation"),
                                  (of_class(svg, "line", "thin"), "curve", "loss")):
            for line, run in zip(lines, body["runs"], strict=True):
                drawn, last = corners(svg, line), run["curve"]["update"][-1]
                assert [x for x, _ in drawn] == pytest.approx(run[part]["update"], abs=last / 1e4)
                assert [y for _, y in drawn] == pytest.approx([float(y) for y in run[part][loss]], abs=2e-4)
        dashed = Fraction(re.search(r",([\d.]+)H", of_class(svg, "guide")[0].get("d"))[1])
        y0, dy = axis(svg, "y")
        assert math.exp(y0 + dy * dashed) == pytest.approx(body["make"]["vocabulary"], rel=5e-4)


def test_differences_are_drawn_against_the_shallowest(sources):
    found = [svg for svg in pictures(sources["en"], "wide", "zero") if not of_class(svg, "c3")]  # the cache has c3
    for svg, body in zip(found, [body for body in DEPTHS if len(body["runs"]) > 1], strict=True):
        base = body["runs"][0]["evaluations"]["validation"]
        for line, run in zip(of_class(svg, "line"), body["runs"], strict=True):
            wanted = [float(a - b) for a, b in zip(run["evaluations"]["validation"], base, strict=True)]
            assert [y for _, y in corners(svg, line)] == pytest.approx(wanted, abs=2e-5)


def test_times_and_positions_are_drawn_as_recorded(sources):
    for svg, body in zip(pictures(sources["en"], "wide", "c3")[::2], CACHES, strict=True):
        for line, name in zip(of_class(svg, "line"), ("uncached_seconds", "cached_seconds"), strict=True):
            wanted = [(point["prompt"], float(point[name])) for point in body["points"]]
            assert sum(corners(svg, line), ()) == pytest.approx(sum(wanted, ()), abs=0.05)
    for svg, body in zip(pictures(sources["en"], "wide", "area"), CACHES, strict=True):
        first, new = body["points"][0]["prompt"], body["make"]["new_tokens"]
        for path, count in zip(of_class(svg, "area"), (sum(range(first, first + new)), first + new - 1), strict=True):
            around = corners(svg, path)
            twice = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(around, [*around[1:], around[0]], strict=True))
            assert abs(twice) / 2 == pytest.approx(count, rel=5e-3)  # the area is the number of positions


OUTSIDE = """() => [...document.querySelectorAll(".plot > div > svg")].flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].filter((text) => {
        const box = text.getBoundingClientRect();
        return box.left < frame.left - 0.5 || box.right > frame.right + 0.5 || box.bottom > frame.bottom + 0.5;
    }).map((text) => text.textContent);
})"""


@pytest.mark.parametrize(("low", "high", "count", "expected"), [
    (0, 10, 5, [0, 2, 4, 6, 8, 10]), (0, 0.06, 3, [0, 0.02, 0.04, 0.06]), (-0.03, 0.06, 3, [-0.05, 0, 0.05, 0.1]),
    (1.6, 4.2, 7, [1.5, 2, 2.5, 3, 3.5, 4, 4.5]), (3, 3, 2, [0, 2, 4, 6])])
def test_ticks_are_round_and_span_what_is_drawn(low, high, count, expected):
    assert round_numbers(low, high, count) == pytest.approx(expected)


def test_ticks_say_as_many_decimals_as_they_need():
    assert [tick_text(v, [0, 0.05]) for v in (-0.05, 0, 0.1)] == ["−0.05", "0.00", "0.10"]
    assert [tick_text(v, [0, 500]) for v in (0, 2000)] == ["0", "2,000"]


def test_names_of_lines_that_end_together_are_moved_apart():
    drawn = plot([Series([0, 1], [0, 1], look, f"line {look}") for look in range(4)], Size(400, 200, right=80))
    ys = [name.y for name in drawn.names]
    assert [b - a for a, b in pairwise(ys)] == pytest.approx([16, 16, 16])
    assert ys[0] >= 26 and ys[-1] <= 168


# What is said about other figures -----------------------------------------------------------------------

def experiment(ends: dict[int, tuple[float, float]], updates: int = 2) -> dict:
    """A depth experiment that ends with these losses: blocks → (train, validation)."""
    body = json.loads((FOLDER / "depth.json").read_text("utf-8"))
    make, run = body["make"], body["runs"][0]
    every = (updates + 1) // 2
    make["settings"] |= {"updates": updates, "evaluate_every": every}
    tested = [0, every, updates]
    body["runs"] = [run | {
        "blocks": blocks,
        "parameters": parameter_count(Config(vocabulary=make["vocabulary"], blocks=blocks, **{
            name: make["settings"][name] for name in ("context", "width", "heads")})),
        "curve": {"update": [*range(1, updates + 1)], "loss": [*[3.0] * (updates - 1), train]},
        "evaluations": {"update": tested, "train": [4.17, 3.0, train], "validation": [4.17, 3.0, loss]},
        "samples": [{"update": update, "text": ""} for update in tested]} for blocks, (train, loss) in ends.items()]
    return body


def read(folder: Path, **bodies: dict) -> list[dict]:
    (folder / "experiments").mkdir(exist_ok=True)
    for stem, body in bodies.items():
        (folder / "experiments" / f"{stem}.json").write_text(json.dumps(finish(body)), "utf-8")
    return read_experiments(folder)


@pytest.mark.parametrize(("ends", "said", "unsaid"), [
    ({1: (2.0, 2.2), 2: (1.9, 2.1), 4: (1.8, 2.0)}, ["more depth helped", "lowest is depth 4 with 2.0000"],
     ["did not help", "overfitting", "begun to fit"]),
    ({1: (1.8, 2.0), 2: (1.9, 2.1)}, ["more depth did not help at", "lowest is depth 1", "not overfitting"],
     ["more depth helped", "begun to fit"]),
    ({1: (1.8, 2.0), 2: (1.7, 2.1)}, ["more depth did not help at", "begun to fit"], ["overfitting"]),
    ({1: (1.9, 2.1), 2: (1.8, 2.0), 4: (2.0, 2.2)}, ["not help every time, and the deepest", "the highest depth 4",
                                                     "they lie 0.2000 apart"], ["more depth helped"]),
    ({1: (1.9, 2.1), 2: (1.8, 2.2), 4: (1.7, 2.0)}, ["not help every time, but the deepest"], ["more depth helped"]),
    ({3: (1.9, 2.1)}, ["One depth alone says nothing about depth"], ["lowest", "shallowest"])])
def test_the_reading_follows_the_figures(tmp_path, ends, said, unsaid):
    _, told = tell(read(tmp_path, depth=experiment(ends)), languages()["en"])
    reading = told[0]["reading"][1]
    assert [text for text in said if text not in reading] == []
    assert [text for text in unsaid if text in reading] == []
    assert ("apart" in told[0]["plots"]) == (len(ends) > 1)
    tell(read(tmp_path, depth=experiment(ends)), languages()["zh"])  # the other language has every figure too


def test_a_gap_larger_than_the_last_gain_is_called_so(tmp_path):
    def reading(ends) -> str:
        return tell(read(tmp_path, depth=experiment(ends)), languages()["en"])[1][0]["reading"][1]

    assert "may change with more updates" in reading({1: (1.9, 2.1), 2: (1.9, 2.0)})
    assert "larger than that" in reading({1: (1.9, 2.9), 2: (1.9, 2.0)})
    assert "not every model improved, by −0.2000" in reading({1: (1.9, 3.2), 2: (1.9, 2.0)})


def test_several_depth_experiments_are_all_shown_and_a_depth_keeps_its_colour(tmp_path):
    found = read(tmp_path, long=experiment({2: (1.5, 1.6), 8: (1.4, 1.5)}, updates=9),
                 depth=experiment({4: (1.9, 2.1), 8: (1.8, 2.0)}),
                 cache=json.loads((FOLDER / "cache.json").read_bytes()))
    assert [one["id"] for one in found] == ["depth", "long", "cache"]  # fewest updates first
    assert [[run["look"] for run in one["runs"]] for one in found[:2]] == [[1, 2], [0, 2]]
    _, told = tell(found, languages()["en"])
    assert [one["what"][0][:9] for one in told] == ["Depth: 2 ", "Depth: 9 ", "The cache"]


def test_without_experiments_there_is_nothing_to_read(tmp_path):
    assert read_experiments(tmp_path) == []


@pytest.mark.parametrize(("stem", "place"), [("depth", "settings"), ("depth", "text"), ("cache", "config")])
def test_a_missing_setting_is_named(tmp_path, stem, place):
    body = json.loads((FOLDER / f"{stem}.json").read_text("utf-8"))
    body["make"][place] = {}
    says = rf"'{place}' of the experiment {stem} has no '\w+'|'\w+' of {place} cannot be None"
    with pytest.raises(UserError, match=says):
        read(tmp_path, **{stem: body})


def test_hostile_text_shows_as_itself(tmp_path, new_page):
    body = experiment({1: (1.9, 2.1), 2: (1.8, 2.0)})
    body["make"]["text"]["name"] = body["make"]["sample"]["prompt"] = body["make"]["machine"] = HOSTILE
    body["runs"] = copy.deepcopy(body["runs"])
    body["runs"][0]["samples"][0]["text"] = HOSTILE
    experiments = read(tmp_path, depth=body)
    (title, lead), told = tell(experiments, languages()["en"])
    templates = jinja2.Environment(loader=jinja2.FileSystemLoader(ROOT / "templates"), undefined=jinja2.StrictUndefined,
                                   autoescape=True, trim_blocks=True, lstrip_blocks=True)
    (tmp_path / "page.html").write_text(templates.get_template("experiments.html").render(
        language=languages()["en"], words=Strings("en"), root="", policy=policy(), page_links=[], language_links=[],
        title=title, lead=lead, experiments=shown(told, languages()["en"]),
        script_data=experiments_data(told, "")), "utf-8")
    (tmp_path / "two-routes.css").write_text("")
    page = new_page(java_script_enabled=False)
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator("main").text_content().count(HOSTILE) == 4
    assert page.locator("img, script").count() == 0


# The page in a browser ---------------------------------------------------------------------------------

@pytest.mark.parametrize("language", LANGUAGES)
def test_home_and_every_page_lead_to_it(site, language):
    for path in (site / language).glob("*.html"):
        assert 'href="experiments.html"' in path.read_text("utf-8"), path.name
    source = (site / language / "experiments.html").read_text("utf-8")
    assert 'href="experiments.html" aria-current="page"' in source
    assert (site / language / "index.html").read_text("utf-8").count('href="experiments.html"') == 2


@pytest.mark.parametrize(("language", "scheme", "viewport"), [("en", "light", WIDE), ("zh", "dark", NARROW)])
def test_no_complaint_from_axe_and_no_sideways_scroll(site, new_page, language, scheme, viewport):
    page = new_page(viewport=viewport, color_scheme=scheme)
    page.goto((site / language / "experiments.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    assert page.evaluate(OUTSIDE) == []
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    result = Axe().run(page, options={"preload": False})
    assert result.violations_count == 0, result.generate_report()
