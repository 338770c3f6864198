"""Each term has words in both languages and a link at its first use; the search finds lessons, terms and steps."""

import html
import json
import re

import pytest
from driver import LANGUAGES
from test_axe import violations
from test_prose import CJK, FIGURE, plain

from site_builder.glossary import Linker, Term, terms
from site_builder.language import languages
from site_builder.lessons import lessons
from site_builder.strings import Strings

KEYS = [term.key for term in terms(languages()["en"], {})]
TERMS = [Term("score", ("score", "scores"), "…"), Term("id", ("id", "ids"), "…"), Term("key", ("键",), "…")]


# The glossary ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("language", LANGUAGES)
def test_terms_are_said_in_their_language_without_a_figure(language):
    found = terms(languages()[language], {})
    assert [term.key for term in found] == KEYS and len(KEYS) >= 45
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
    ("<p>查询和键，键和值</p>", '<p>查询和<a class="term" href="glossary.html#key">键</a>，键和值</p>')])
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
def test_pictures_of_terms_are_steps_that_are_there(site, language):
    glossary = (site / language / "glossary.html").read_text("utf-8")
    found = re.findall(r'href="(\w+)\.html#step=([^"]*)"', glossary)
    assert len(found) > 30
    for route, step in found:
        assert f'data-step="{step}"' in (site / language / f"{route}.html").read_text("utf-8"), step


# The search ------------------------------------------------------------------------------------------------

def index(site, language: str) -> list[list[str]]:
    text = (site / "data" / f"search-{language}.js").read_text("utf-8")
    return json.loads(text[text.index("["):text.rindex("]") + 1])


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_can_be_found_is_there(site, language):
    found = index(site, language)
    words = Strings(language)
    assert {what for _, what, _, _ in found} >= {words("lesson.one"), words("lesson.glossary"), words("training")}
    sources = {path.name: path.read_text("utf-8") for path in (site / language).glob("*.html")}
    for title, _, address, _ in found:
        file, _, place = address.partition("#")
        assert title and "<" not in title
        assert not place or f'="{html.escape(place.removeprefix("step="))}"' in sources[file], address


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
