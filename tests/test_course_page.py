"""The pages of the course in the browser: tools compute what the equations say, exercises answer, links lead on."""

import gzip
import html
import json
import re
import threading
from dataclasses import asdict

import numpy as np
import pytest
from driver import LANGUAGES
from page_checks import pages_of
from playwright.sync_api import expect
from test_axe import violations

from site_builder.language import languages
from site_builder.lesson_figures import Sized, attention, softmax
from site_builder.lessons import exercise, lessons
from site_builder.server import server_of
from site_builder.strings import Strings
from tracer.format.shapes import SHAPES
from tracer.format.sizes import cache_bytes, flops_per_token, parameter_count, shape_of

NAMES = [lesson.name for lesson in lessons(languages()["en"])]
FIRST_LOAD = 250_000  # bytes, gzip


def opened(new_page, site, name: str, language: str = "en", **how):
    page = new_page(**{"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"} | how)
    page.goto((site / language / f"{name}.html").as_uri())
    page.wait_for_function("() => !document.querySelector('[data-tool]:empty')")
    return page


def with_tool(tool: str) -> str:
    """A lesson that has it."""
    return next(lesson.name for lesson in lessons(languages()["en"])
                if any(piece.kind == "tool" and piece.words[0] == tool for piece in lesson.pieces))


def numbers(text: str) -> list[float]:
    found = re.findall(r"−?(?:\d[\d,]*\.?\d*(?:e[+−]?\d+)?|∞)", text)
    return [float(one.replace("−", "-").replace("∞", "inf").replace(",", "")) for one in found]


def slide(tool, value: float) -> None:
    tool.locator("input[type=range]").evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); }", value)


# Tools -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("masked", "divided"), [(True, True), (False, True), (True, False)])
def test_attention_is_what_the_equations_say(new_page, site, masked, divided):
    page = opened(new_page, site, f"lesson-{with_tool('attention')}")
    tool = page.locator("[data-tool=attention]").first
    x = np.round(np.random.default_rng(7).normal(size=(3, 4)), 2)
    for field, value in zip(tool.locator("td input").all(), x.ravel(), strict=True):
        field.fill(str(value))
    boxes = tool.locator("input[type=checkbox]")
    boxes.nth(0).set_checked(masked)
    boxes.nth(1).set_checked(divided)
    factor = 1 if divided else np.sqrt(np.sqrt(4))  # on both sides of every product: undivided again
    wanted = attention((x * factor).tolist(), masked)
    wanted["out"] = (np.array(wanted["weights"]) @ x).tolist()
    tables = tool.locator(".matrices table").all()
    for table, name, digits in zip(tables, ("scores", "weights", "out"), (3, 2, 2), strict=True):
        rows = table.locator("tbody tr").all()
        shown = [[numbers(cell)[0] for cell in row.locator("td").all_inner_texts()] for row in rows]
        expected = np.array(wanted[name])
        if name == "scores" and masked:
            expected[np.triu_indices(3, 1)] = -np.inf
        np.testing.assert_allclose(shown, expected, rtol=0.6 * 10.0 ** (1 - digits), atol=1e-9, err_msg=name)


def test_shares_of_numbers_of_ones_own(new_page, site):
    page = opened(new_page, site, f"lesson-{with_tool('softmax')}")
    tool = page.locator("[data-tool=softmax]").first
    tool.get_by_role("button", name="one more").click()
    values = [1.5, -2, 0.25, 3]
    for field, value in zip(tool.locator("input[type=text]").all(), values, strict=True):
        field.fill(str(value))
    slide(tool, 2)
    shown = [numbers(row.locator(".mono").last.inner_text())[0] for row in tool.locator(".bar-row").all()]
    np.testing.assert_allclose(shown, softmax(values, 4), rtol=6e-3)
    tool.locator("input[type=text]").first.fill("x")
    assert tool.locator("input[aria-invalid=true]").count() == 1


def test_random_products_spread_as_the_root_of_the_width(new_page, site):
    page = opened(new_page, site, f"lesson-{with_tool('dots')}")
    tool = page.locator("[data-tool=dots]").first
    for power in (2, 9):
        slide(tool, power)
        spread, root = numbers(tool.locator(".working").inner_text())
        assert root == pytest.approx(2 ** (power / 2), rel=5e-3)
        assert spread == pytest.approx(root, rel=0.1)  # of 2000 draws: four of their standard deviations
    tool.locator("input[type=checkbox]").check()
    assert numbers(tool.locator(".working").inner_text())[0] == pytest.approx(1, rel=0.1)


def test_sizes_are_those_that_python_counts(new_page, site):
    """Every shape with a name, and shapes of the reader's own."""
    page = opened(new_page, site, f"lesson-{with_tool('sizes')}")
    tool = page.locator("[data-tool=sizes]").first

    def check(shape):
        parameters, flops, *cache = [int(n) for n in numbers(tool.locator(".working").inner_text())]
        assert (parameters, flops) == (parameter_count(shape), flops_per_token(shape))
        assert cache == [cache_bytes(shape, 2), cache_bytes(shape, 4)]
        areas = [numbers(row.locator(".mono").inner_text()) for row in tool.locator(".bar-row").all()]
        parts = Sized(**asdict(shape)).parts.values()
        assert [area[:-1] for area in areas] == [[part.count, part.times][:1 + (part.times > 1)] for part in parts]

    for name, shape in SHAPES.items():
        tool.get_by_role("button", name=name, exact=True).click()
        check(shape_of(shape))
    random = np.random.default_rng(5)
    for _ in range(6):
        heads = int(random.choice([1, 2, 6]))
        shape = {"vocabulary": int(random.integers(1, 9999)), "context": int(random.integers(1, 4096)),
                 "width": heads * int(random.integers(1, 99)), "heads": heads,
                 "kv_heads": int(random.choice([0, 1, heads])), "blocks": int(random.integers(1, 50)),
                 "hidden": int(random.choice([0, 77])), "norm": str(random.choice(["layer_norm", "rms_norm"])),
                 "activation": str(random.choice(["gelu", "swiglu"])),
                 "position": str(random.choice(["learned", "rotary"])),
                 "bias": bool(random.integers(2)), "tied": bool(random.integers(2))}
        for field, name in zip(tool.locator("input[type=text]").all(), list(shape)[:7], strict=True):
            field.fill(str(shape[name]))
        for choice, name in zip(tool.locator("select").all(), list(shape)[7:], strict=True):
            choice.select_option(str(shape[name]).lower())
        check(shape_of(shape))
    tool.locator("input[type=text]").nth(2).fill("7")
    tool.locator("input[type=text]").nth(3).fill("3")
    assert tool.locator(".wrong").count() == 1


@pytest.mark.parametrize("text", ["Hi 你!", "é🙂\u0301", "<b>&amp;</b>"])
def test_bytes_of_a_text(new_page, site, text):
    page = opened(new_page, site, f"lesson-{with_tool('utf8')}")
    tool = page.locator("[data-tool=utf8]").first
    tool.locator("input").fill(text)
    shown = "".join(tool.locator(".byte b").all_inner_texts())
    assert bytes.fromhex(shown) == text.encode()
    assert tool.locator(".glyph").count() == len(text)


def test_the_tokenizer_is_gpt2s(new_page, site, tokenizer):
    """On text of several scripts, spaces of every kind, and random signs; every token's bytes are the tokenizer's."""
    page = opened(new_page, site, f"lesson-{with_tool('tokenizer')}")
    tool = page.locator("[data-tool=tokenizer]").first
    random = np.random.default_rng(11)
    ranges = [(0x20, 0x7F), (0xA0, 0x250), (0x370, 0x530), (0x5D0, 0x700), (0x900, 0xA00), (0x2000, 0x2070),
              (0x3000, 0x3100), (0x4E00, 0x5000), (0xAC00, 0xAD00), (0x1F300, 0x1F650), (0x9, 0xE), (0x80, 0x90)]
    texts = ["Hello, world! It's 2026; don't   stop.\n\n\tTabs", "Hi 你!", "", " ", "  a  ", "\ufeffx\x85 y",
             "naïve café — 日本語とタイ語 ภาษาไทย"]
    for _ in range(60):
        low, high = ranges[random.integers(len(ranges))]
        signs = [chr(random.integers(low, high)) if random.random() < 0.8 else str(random.choice(list(" \n'sAa1.")))
                 for _ in range(random.integers(1, 40))]
        texts.append("".join(sign for sign in signs if sign not in "\r"))
    for text in texts:
        tool.locator("textarea").evaluate("(area, text) => { area.value = text; }", text)
        tool.get_by_role("button").click()
        page.wait_for_function("(n) => document.querySelector('[data-tool=tokenizer]').tokens?.length === n",
                               arg=len(tokenizer.encode(text)))
        assert tool.evaluate("(tool) => tool.tokens") == tokenizer.encode(text), ascii(text)


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
        for number, choice in enumerate(one.choices):
            box.locator(".choices button").nth(number).click()
            assert verdict.inner_text() == words("lesson.right" if choice.right else "lesson.not_so")
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
        page.wait_for_function("() => JSON.parse(localStorage.getItem('two-routes.course')).read.length")
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
