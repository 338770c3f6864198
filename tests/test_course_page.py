"""The pages of the course in the browser: exercises answer, links lead on; the tools: `test_tools.py`."""

import gzip
import html
import json
import re
import threading

import pytest
from driver import LANGUAGES
from page_checks import pages_of
from playwright.sync_api import expect
from test_axe import violations

from site_builder.language import languages
from site_builder.lessons import exercise, lessons
from site_builder.server import server_of
from site_builder.strings import Strings

NAMES = [lesson.name for lesson in lessons(languages()["en"])]
FIRST_LOAD = 250_000  # bytes, gzip


def opened(new_page, site, name: str, language: str = "en", **how):
    page = new_page(**{"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"} | how)
    page.goto((site / language / f"{name}.html").as_uri())
    page.wait_for_function("() => !document.querySelector('[data-tool]:empty')")
    return page


# Exercises -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_every_exercise_is_answered(new_page, site, name, language):
    """The right answer as it is shown is taken, each slip is told what it is, each choice why."""
    lesson = next(one for one in lessons(languages()[language]) if one.name == name)
    asked = [exercise(lesson, piece) for piece in lesson.pieces if piece.kind == "exercise"]
    page, words = opened(new_page, site, f"lesson-{name}", language), Strings(language)
    boxes = page.locator("[data-exercise]").all()
    assert len(boxes) == len(asked)
    for box, one in zip(boxes, asked, strict=True):
        verdict = box.locator(".verdict")
        buttons = box.locator(".choices button").all()
        assert [button.get_attribute("data-right") for button in buttons].count("true") == bool(one.choices)
        assert len(buttons) == len(one.choices)
        for button in buttons:
            button.click()
            right = button.get_attribute("data-right") == "true"
            assert verdict.inner_text() == words("lesson.right" if right else "lesson.not_so")
            assert box.locator(".choices .why:visible").count() == 1
        if one.choices:
            continue
        box.locator("input").fill("so much")
        box.get_by_role("button", name=words("lesson.check")).click()
        assert verdict.inner_text() == words("lesson.no_number")
        for why in box.locator("> .why").all():
            value, right = float(why.get_attribute("data-value")), why.get_attribute("data-right") == "true"
            box.locator("input").fill((str(int(value)) if value == int(value) else f"{value:.6g}").replace("-", "−"))
            box.get_by_role("button", name=words("lesson.check")).click()
            assert verdict.inner_text() == words("lesson.right" if right else "lesson.not_so")
            expect(why).to_be_visible()
        box.locator("summary").click()
        written = box.locator(".answer .mono").inner_text()
        box.locator("input").fill(written)
        box.get_by_role("button", name=words("lesson.check")).click()
        assert verdict.inner_text() == words("lesson.right")
    right = page.evaluate("() => JSON.parse(localStorage.getItem('two-routes.course')).right")
    assert right == [box.get_attribute("id") for box in boxes]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_read_and_answered_is_seen_on_the_course_and_can_be_forgotten(browser, site, language):
    """From a web host: pages of file:// share what they keep only some time later."""
    words, lesson = Strings(language), lessons(languages()[language])[0]
    total = sum(piece.kind == "exercise" for piece in lesson.pieces)
    with server_of(site, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{running.server_port}/{language}"
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{place}/lesson-{lesson.name}.html")
        page.locator("button[data-right=true]").first.click()
        page.locator("[data-end]").scroll_into_view_if_needed()
        page.wait_for_function("() => JSON.parse(localStorage.getItem('two-routes.course') ?? '{}').read?.length")
        page.goto(f"{place}/course.html")
        kept = page.locator(f'[data-lesson="{lesson.name}"] .kept')
        expect(kept).to_have_text(f" · {words('lesson.read')} · {words('lesson.answered', right=1, total=total)}")
        page.locator("#forget").click()
        expect(kept).to_have_text("")
        context.close()
        running.shutdown()


# Pages -----------------------------------------------------------------------------------------------------

def test_a_live_step_shows_the_number_that_the_lesson_chose_and_tells_its_height(new_page, site):
    page = opened(new_page, site, "lesson-attention")
    frame = page.locator("iframe").first
    frame.scroll_into_view_if_needed()
    inner = frame.element_handle().content_frame()
    inner.wait_for_selector("html.embedded figure.stage")
    inner.wait_for_function("() => document.querySelector('figure.stage').stage?.drawing")
    assert inner.evaluate("() => document.querySelector('figure.stage').stage.scene.index") == [0, 3, 1]
    page.wait_for_function("() => document.querySelector('iframe').height !== '520'")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_link_and_every_step_is_there(site, language):
    """Steps are known by their sections in the page of the route."""
    sources = {path.name: path.read_text("utf-8") for path in (site / language).glob("*.html")}
    found = 0
    for name, source in sources.items():
        if not name.startswith(("lesson-", "course")):
            continue
        for address in re.findall(r'(?:href|src)="([^"#:]*\.html[^"]*)"', source):
            file, _, fragment = address.replace("&amp;", "&").partition("#")
            target = file if not file.startswith("../") else None
            assert target in sources or (site / language / file).exists(), address
            if step := re.match(r"step=([^&]*)", fragment):
                assert f'data-step="{step[1]}"' in sources[file], address
                found += 1
    assert found > 2 * len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_first_load_is_small(site, name):
    """Page, style and scripts; a step within it loads when it comes into view."""
    files = [site / file for file in (f"en/lesson-{name}.html", "two-routes.css", "boot.js", "lesson-modules.js")]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) <= FIRST_LOAD


@pytest.mark.parametrize(("language", "scheme", "width"), [("en", "light", 1280), ("zh", "dark", 360)])
@pytest.mark.parametrize("name", ["course", "course-print", *(f"lesson-{one}" for one in NAMES)])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(new_page, site, name, language, scheme, width):
    page = opened(new_page, site, name, language, viewport={"width": width, "height": 740}, color_scheme=scheme)
    page.evaluate("() => document.querySelectorAll('iframe').forEach((frame) => frame.remove())")  # tested elsewhere
    assert violations(page) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_the_page_to_print_has_every_lesson_and_nothing_that_moves(site):
    source = (site / "en" / "course-print.html").read_text("utf-8")
    assert "<iframe" not in source and "data-tool" not in source and "<script" not in source
    assert re.findall(r'<article id="([^"]*)"', source) == NAMES


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_course_is_reached_from_everywhere(site, language):
    for name, page in pages_of(site).items():
        if name.startswith(f"{language}/"):
            assert "course.html" in page.links or 'href="course.html"' in (site / name).read_text("utf-8"), name
    source = html.unescape((site / language / "course.html").read_text("utf-8"))
    minutes = [int(found) for found in re.findall(r"(\d+) (?:minutes|分钟)", source)]
    assert all(lesson.title in source for lesson in lessons(languages()[language])) and minutes


def test_scripts_of_lessons_are_not_loaded_by_routes(site):
    texts = [(site / f"{name}.js").read_text("utf-8") for name in ("modules", "lesson-modules")]
    lists = [json.loads(text[text.index("["):text.rindex("]") + 1]) for text in texts]
    routes, of_lessons = ({name for name, _ in pairs} for pairs in lists)
    assert routes < of_lessons
    assert {name.split("/")[0] for name in of_lessons - routes} == {"lessons", "tools", "toolbox"}
