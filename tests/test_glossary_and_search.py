"""Each term has words in both languages and a link at its first use; the search finds lessons, terms and steps."""

import html
import json
import re
import shutil
from pathlib import Path

import pytest
from driver import ALL_ROUTES, LANGUAGES, WORDS, steps_of
from passes import LLAMA, model, recorded_pass
from test_axe import violations
from test_prose import CJK, FIGURE, plain

from site_builder.build import build
from site_builder.glossary import Linker, RecordedPage, Term, pictures, steps_shown, terms
from site_builder.language import languages
from site_builder.lessons import lessons
from site_builder.pages import pass_title
from site_builder.prose import render
from site_builder.search import plain as words_of
from site_builder.strings import Strings
from tracer.format.files import save
from tracer.format.passes import pass_files

TRACES = Path(__file__).resolve().parent.parent / "traces"
KEYS = [term.key for term in terms(languages()["en"], {})]
TERMS = [Term("score", ("score", "scores"), "…"), Term("id", ("id", "ids"), "…"),
         Term("key", ("键",), "…", others=("关键",)), Term("decoder", ("解码器",), "…"), Term("decode", ("解码",), "…")]


# The glossary ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("language", LANGUAGES)
def test_terms_are_said_in_their_language_without_a_figure(language):
    found = terms(languages()[language], {})
    assert [term.key for term in found] == KEYS and len(KEYS) >= 60
    names = [name.lower() for term in found for name in term.names]
    assert len(names) == len(set(names))
    for term in found:
        assert not FIGURE.findall(plain(term.say)), term.key
        assert bool(CJK.search(term.say)) == (language == "zh"), term.key


@pytest.mark.parametrize(("said", "linked"), [
    ("<p>A score, scores.</p>", '<p>A <a class="term" href="glossary.html#score">score</a>, scores.</p>'),
    ("<p>Scores of ids: idle.</p>", '<p><a class="term" href="glossary.html#score">Scores</a> of '
                                    '<a class="term" href="glossary.html#id">ids</a>: idle.</p>'),
    ("<h2>score</h2><p>one id</p>", '<h2>score</h2><p>one <a class="term" href="glossary.html#id">id</a></p>'),
    ("<p><code>id</code> <math><mi>id</mi></math> <a href='x'>score</a></p>",
     "<p><code>id</code> <math><mi>id</mi></math> <a href='x'>score</a></p>"),
    ("<p>查询和键，键和值</p>", '<p>查询和<a class="term" href="glossary.html#key">键</a>，键和值</p>'),
    ("<p>关键是键</p>", '<p>关键是<a class="term" href="glossary.html#key">键</a></p>'),
    ("<p>解码器，解码器，解码</p>", '<p><a class="term" href="glossary.html#decoder">解码器</a>，解码器，'
                            '<a class="term" href="glossary.html#decode">解码</a></p>')])
def test_a_term_is_linked_where_it_is_first_used(said, linked):
    assert Linker(TERMS)(said) == linked


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_link_to_a_term_leads_to_it_and_stands_once_on_a_lesson(site, language):
    glossary = (site / language / "glossary.html").read_text("utf-8")
    used = set()
    for path in (site / language).glob("lesson-*.html"):
        found = re.findall(r'href="glossary\.html#([^"]*)"', path.read_text("utf-8"))
        assert len(found) == len(set(found)), path
        used |= set(found)
    assert all(f'<div id="{key}">' in glossary for key in used)
    assert len(used) > 0.6 * len(KEYS)


@pytest.mark.parametrize("language", LANGUAGES)
def test_pictures_of_terms_are_steps_and_experiments_that_are_there(site, language):
    glossary = (site / language / "glossary.html").read_text("utf-8")
    found = re.findall(r'href="([\w-]+)\.html#(step|experiment)=([^"]*)"', glossary)
    assert len(found) > 35 and {what for _, what, _ in found} == {"step", "experiment"}
    for page, what, name in found:
        assert f'data-{what}="{name}"' in (site / language / f"{page}.html").read_text("utf-8"), name


@pytest.mark.parametrize(("choices", "shown", "unshown"), [
    ({}, {"layer-norm": "blocks.0.norm_1", "gelu": "blocks.0.mlp.gelu", "position-embedding": "position_embedding"},
     {"rms-norm", "swiglu", "rotary-positions", "grouped-queries", "cache"}),
    (LLAMA, {"rms-norm": "blocks.0.norm_1", "swiglu": "blocks.0.mlp.gated", "mlp": "blocks.0.mlp.up",
             "rotary-positions": "blocks.0.attention.query_rotary",
             "grouped-queries": "blocks.0.attention.key_repeat"},
     {"layer-norm", "gelu", "position-embedding", "cache"})], ids=["GPT-2", "Llama"])
def test_a_picture_is_of_the_kind_that_its_term_tells(choices, shown, unshown):
    """Models differ in their kinds: a term has the picture of the model that has it, or none."""
    trace = recorded_pass(model(**choices))
    titles = {step: f"The step {step}" for step in steps_of(trace)}
    page = RecordedPage("pass-tiny.html", "Tiny", titles, steps_shown(trace))
    found = {term.key: (term.address, term.title) for term in terms(languages()["en"], pictures([page], {}))}
    assert {term: found[term] for term in shown} == {
        term: (f"pass-tiny.html#step={step}", f"The step {step}") for term, step in shown.items()}
    assert {term for term in unshown if found[term][0]} == set()


def test_the_first_page_shows_a_term_before_another():
    pages = [RecordedPage(f"{name}.html", name, {"s": f"In {name}"}, shown)
             for name, shown in (("a", {"gelu": "s"}), ("b", {"gelu": "s", "softmax": "s"}))]
    assert pictures(pages, {"noun": ("x.html", "It")}) == {
        "gelu": ("a.html#step=s", "In a"), "softmax": ("b.html#step=s", "In b"), "experiment: noun": ("x.html", "It")}


def test_formulas_are_written_in_one_line():
    said = render("From $N$ on, $\\frac{1}{\\sqrt{d}}$ of $e^{x}$ & `<b>` is < 1.", {})
    assert "<math" in said and words_of(said) == "From N on, 1/√d of e^x & <b> is < 1."


# The search ------------------------------------------------------------------------------------------------

def index(site, language: str) -> list[list[str]]:
    text = (site / "data" / f"search-{language}.js").read_text("utf-8")
    return json.loads(text[text.index("["):text.rindex("]") + 1])


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_can_be_found_is_there(site, language):
    found = index(site, language)
    words = Strings(language)
    assert {what for _, what, _, _ in found} == {
        *(words(key) for key in ("lesson.one", "lesson.glossary", "experiments.name", *ALL_ROUTES)),
        *(pass_title(languages()[language], path.stem) for path in pass_files(TRACES))}
    sources = {path.name: path.read_text("utf-8") for path in (site / language).glob("*.html")}
    for title, _, address, _ in found:
        file, _, place = address.partition("#")
        assert title and "<" not in title
        assert not place or f'="{html.escape(place.rpartition("=")[2])}"' in sources[file], address


def test_the_search_needs_no_course(tmp_path):
    """Of a recording of one's own the words and the steps are found, those of single passes too."""
    shutil.copytree(TRACES, tmp_path / "traces", ignore=shutil.ignore_patterns("experiments", "passes", "long*"))
    (tmp_path / "traces/passes").mkdir()
    save(recorded_pass(model(**LLAMA)), tmp_path / "traces/passes/mine.json")
    site = build(tmp_path / "traces", tmp_path / "site").parent
    assert not (site / "en/course.html").exists()
    assert 'href="search.html"' in (site / "en/index.html").read_text("utf-8")
    assert "course.html" not in (site / "en/glossary.html").read_text("utf-8")
    found = index(site, "en")
    assert [address for title, _, address, _ in found if title == "A gate decides what passes"] == [
        "pass-mine.html#step=blocks.0.mlp.gated"]
    files = {address.partition("#")[0] for _, _, address, _ in found}
    assert files == {"glossary.html", "training.html", "generation.html", "early.html", "pass-mine.html"}
    assert all((site / "en" / file).exists() for file in files)


@pytest.mark.parametrize(("language", "wanted", "first"), [
    ("en", "softmax", "softmax"), ("en", "induc", "induction head"), ("en", "residual stream", "residual stream"),
    ("en", "born head", "A head is born"), ("zh", "残差流", "残差流"), ("zh", "归纳", "归纳头"),
    ("zh", "手算", "手算注意力")])
def test_the_best_comes_first(new_page, site, language, wanted, first):
    page = new_page()
    page.goto((site / language / "search.html").as_uri())
    page.locator("#wanted").fill(wanted)
    assert page.locator("#hits a").first.inner_text() == first
    said, shown = int(re.search(r"\d+", page.locator("#found").inner_text())[0]), page.locator("#hits li").count()
    assert shown == min(said, 40)
    page.reload()
    assert page.locator("#hits a").first.inner_text() == first  # the address keeps what was looked for


def test_nothing_is_found_of_what_is_nowhere(new_page, site):
    page = new_page()
    page.goto((site / "en" / "search.html").as_uri())
    for wanted in ("xylophone", "<!>", "softmax xylophone", "   ", "\\("):
        page.locator("#wanted").fill(wanted)
        assert page.locator("#hits li").count() == 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_lesson_is_found_by_its_title(new_page, site, language):
    page = new_page()
    page.goto((site / language / "search.html").as_uri())
    for lesson in lessons(languages()[language]):
        page.locator("#wanted").fill(lesson.title)
        assert lesson.title in page.locator("#hits a").all_inner_texts()[:3], lesson.title


@pytest.mark.parametrize(("language", "scheme", "width"), [("en", "light", 1280), ("zh", "dark", 360)])
@pytest.mark.parametrize("name", ["search", "glossary"])
def test_axe_finds_nothing(new_page, site, name, language, scheme, width):
    page = new_page(viewport={"width": width, "height": 740}, color_scheme=scheme)
    page.goto((site / language / f"{name}.html").as_uri())
    if name == "search":
        page.locator("#wanted").fill("token")
        assert page.locator("#hits li").count() > 3
    assert violations(page) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


# The keys --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["index", "training", "course", "lesson-attention", "experiments", "glossary"])
def test_a_stroke_leads_to_the_search_from_every_page(new_page, site, name):
    page = new_page()
    page.goto((site / "zh" / f"{name}.html").as_uri())
    page.keyboard.press("/")
    page.wait_for_url("**/zh/search.html")
    assert page.evaluate("() => document.activeElement.id") == "wanted"


def test_a_stroke_that_is_typed_leads_nowhere(new_page, site):
    page = new_page()
    page.goto((site / "en" / "training.html").as_uri())
    page.keyboard.press("?")
    assert page.locator("#help").evaluate("(help) => help.open")
    assert WORDS["en"]("help_search") in page.locator("#help").inner_text()
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    page.goto((site / "en" / "search.html").as_uri())
    page.locator("#wanted").press_sequentially("key/value")
    assert page.locator("#wanted").input_value() == "key/value"


def test_a_step_within_another_page_stays(new_page, site):
    page = new_page()
    page.goto((site / "en" / "training.html").as_uri() + "#step=head&embed")
    page.locator("html.embedded").wait_for(state="attached")
    page.keyboard.press("/")
    assert "training.html" in page.url


def test_arrows_go_through_what_was_found(new_page, site):
    page = new_page()
    page.goto((site / "en" / "search.html").as_uri())
    page.keyboard.type("softmax")
    hits = page.locator("#hits a").all_inner_texts()
    assert len(hits) > 3

    def focused() -> str:
        return page.evaluate("() => document.activeElement.id || document.activeElement.textContent")

    walked = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
        walked.append(focused())
    assert walked == [*hits[:3], hits[1], hits[0], "wanted", "wanted"]
    for back in ("Escape", "/"):
        page.keyboard.press("ArrowDown")
        page.keyboard.press(back)
        assert focused() == "wanted" and page.locator("#wanted").input_value() == "softmax"
    for _ in range(len(hits) + 2):
        page.keyboard.press("ArrowDown")
    assert focused() == hits[-1]
    page.locator("#wanted").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/en/glossary.html#softmax")


@pytest.mark.parametrize("term", ["softmax", "swiglu", "induction-head"])  # a step, one of a pass, an experiment
def test_the_picture_of_a_term_opens_below_it(new_page, site, term):
    page = new_page()
    page.goto((site / "en" / "glossary.html").as_uri() + f"#{term}")
    entry, asked = page.locator(f"#{term}"), page.locator("iframe")
    assert asked.count() == 0
    entry.locator("summary").click()
    page.frame_locator(f"#{term} iframe").locator("html.embedded").wait_for(state="attached")
    assert asked.get_attribute("title") == entry.locator("summary").inner_text()
    assert asked.get_attribute("src") == f"{entry.locator('a').get_attribute('href')}&embed"
    assert asked.evaluate("(frame) => frame.clientHeight") > 150
    entry.locator("summary").click()
    asked.wait_for(state="detached")
