"""From how far a step is seen, the tours, home, and the pages for a class: what a reader does with the pictures."""

import pytest
from driver import LANGUAGES, WORDS, address, steps_of, visit

from site_builder.tour import stops

STEP = "blocks.0.attention.scores"
SHAPES = "document.querySelector('figure.stage').stage.shapes"


@pytest.fixture(scope="module")
def training(module_page, site):
    return visit(module_page(reduced_motion="reduce"), address(site, "training", "en", f"#step={STEP}"))


@pytest.fixture
def at_step(training):
    training.evaluate(f"tools.goTo('#step={STEP}')")
    training.evaluate("tools.settled()")
    return training


def picture(page) -> str:
    page.evaluate("tools.until(() => !document.querySelector('figure.stage').classList.contains('waiting'))")
    return page.get_attribute("figure.stage", "data-picture")


def links(page) -> list[str]:
    return page.evaluate(f"[...new Set({SHAPES}.map((shape) => shape.link).filter(Boolean))]")


def test_escape_goes_farther_and_enter_nearer(at_step, training_trace):
    page = at_step
    assert picture(page) == STEP
    page.keyboard.press("Escape")
    assert picture(page) == "chapter"
    chapter = next(chapter for chapter in training_trace.chapters if STEP in [step.id for step in chapter.steps])
    assert links(page) == [f"#step={step.id}" for step in chapter.steps]
    page.keyboard.press("Escape")
    assert picture(page) == "route"
    assert page.url.endswith("view=route")
    page.keyboard.press("Escape")
    assert picture(page) == "route"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert picture(page) == STEP


def test_the_route_shows_the_stream_as_recorded(at_step, training_trace):
    at_step.evaluate(f"tools.goTo('#step={STEP}&view=route')")
    assert picture(at_step) == "route"
    cells = at_step.evaluate(f"{SHAPES}.filter((shape) => shape.kind === 'cell' && shape.place)"
                             ".map(({ place, strength }) => [place.array, place.index, strength])")
    seen = {name for name, _, _ in cells}
    stream = ["embedding_dropout", *(f"blocks.{b}.residual_{n}" for b in (0, 1) for n in (1, 2))]
    assert seen >= {*stream, *(f"grad.{name}" for name in stream)}
    for name, index, strength in cells:
        if name in stream:
            values = training_trace.values(name)
            share = abs(values[tuple(index)]) / abs(values).max()
            assert abs(strength) == pytest.approx(share ** 0.6, abs=1e-6), (name, index)
            assert strength * values[tuple(index)] >= 0


def test_a_tour_goes_from_stop_to_stop(training, training_trace):
    page = training
    page.evaluate(f"tools.goTo('#step={STEP}')")
    wanted = [stop for _, _, stop in stops(training_trace)]
    assert 10 <= len(wanted) <= 15
    page.click("[data-tour]")
    for number, stop in enumerate(wanted, 1):
        assert page.get_attribute(".tour", "data-stop") == stop["name"]
        assert page.locator(".tour .soft").inner_text().split(" · ")[0] == WORDS["en"](
            "tour.count", n=number, total=len(wanted))
        assert picture(page) == (stop["view"] if stop["view"] != "step" else stop["step"])
        assert page.locator(".tour h2").inner_text() and page.locator(".tour .sentence").inner_text()
        page.keyboard.press("ArrowRight")
    assert page.locator(".tour").is_hidden()
    assert picture(page) == wanted[-1]["step"]


def test_a_picture_goes_on_though_a_key_brought_it(new_page, site):
    """Whatever is loaded already: the key that leads to a stop is not one that stops its picture."""
    page = visit(new_page(), address(site, "early", "en", "#step=prompt.bpe_merge&tour=prompt"))
    for stop in ("last", "held", "closed"):
        page.keyboard.press("ArrowRight")
        page.wait_for_function("(stop) => document.querySelector('.tour').dataset.stop === stop", arg=stop)
        page.wait_for_function("() => document.querySelector('.moves-bar input').value === "
                               "document.querySelector('.moves-bar input').max", timeout=9000)
    for stop in ("held", "last"):  # all is loaded now
        page.keyboard.press("ArrowLeft")
        assert page.get_attribute(".tour", "data-stop") == stop
        page.wait_for_function("() => document.querySelector('.moves-bar input').value === "
                               "document.querySelector('.moves-bar input').max", timeout=9000)
    assert page.locator(".tour .soft").inner_text().endswith(f" · {WORDS['en']('tour.round', n=2)}")


def test_the_address_of_a_stop_opens_there(new_page, site):
    page = visit(new_page(), address(site, "generation", "zh", "#step=round2.sampler.draw&tour=draw"))
    assert page.get_attribute(".tour", "data-stop") == "draw"
    page.keyboard.press("Escape")
    assert page.locator(".tour").is_hidden()
    assert picture(page) == "round2.sampler.draw"


def test_presentation_leaves_picture_title_and_sentence(at_step):
    at_step.keyboard.press("p")
    assert at_step.locator(".top, .chapters, .side, .go [data-go]").evaluate_all(
        "(all) => all.every((one) => getComputedStyle(one).display === 'none')")
    assert at_step.locator("#step-title").is_visible() and at_step.locator("figure.stage canvas").is_visible()
    at_step.keyboard.press("Escape")
    assert at_step.locator(".go [data-go='1']").is_visible()
    assert picture(at_step) == STEP


def test_a_step_in_another_page_tells_its_height(new_page, site):
    page = new_page(viewport={"width": 1000, "height": 800})
    page.goto((site / "en" / "teach.html").as_uri())
    frame = page.locator("iframe").element_handle().content_frame()
    frame.wait_for_selector("html.embedded figure.stage")
    page.wait_for_selector('iframe:not([height="560"])')
    told = int(page.get_attribute("iframe", "height"))
    assert told == frame.evaluate("document.documentElement.scrollHeight") > 300
    assert frame.locator(".top, .chapters, .side").evaluate_all("(all) => all.every((one) => !one.offsetParent)")


def test_a_finger_that_goes_sideways_goes_on(at_step, training_trace):
    steps = steps_of(training_trace)
    at_step.evaluate("""() => {
        const canvas = document.querySelector("figure.stage canvas");
        const touch = (x, y) => new Touch({ identifier: 1, target: canvas, clientX: x, clientY: y });
        const send = (type, x, y) => canvas.dispatchEvent(new TouchEvent(type, { touches: [touch(x, y)],
            changedTouches: [touch(x, y)], bubbles: true }));
        send("touchstart", 600, 400); send("touchend", 590, 300);
        send("touchstart", 600, 400); send("touchend", 480, 410);
    }""")
    assert at_step.evaluate("tools.settled()")["step"] == steps[steps.index(STEP) + 1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_home_shows_both_routes_moving(new_page, site, language):
    page = new_page(viewport={"width": 1280, "height": 800})
    page.goto((site / language / "index.html").as_uri())
    moving = ("[...document.querySelectorAll('figure[data-route]')]"
              ".map((host) => host.moving?.surface.painted.length ?? 0)")
    page.wait_for_selector("figure[data-route]:nth-of-type(1) canvas")
    page.wait_for_timeout(400)
    before = page.evaluate(moving)
    page.wait_for_timeout(900)
    after = page.evaluate(moving)
    assert len(before) == 2 and all(now > then > 0 for then, now in zip(before, after, strict=True))
    for box in page.locator("figure[data-route]").all():
        at = box.bounding_box()
        assert at["y"] + at["height"] <= 800


@pytest.mark.parametrize(("locale", "language"), [("zh-CN", "zh"), ("en-GB", "en"), ("fr-FR", "")])
def test_the_door_opens_in_the_readers_language(new_page, site, locale, language):
    page = new_page(locale=locale)
    page.goto((site / "index.html").as_uri())
    page.wait_for_timeout(300)
    assert page.url.endswith(f"{language}/index.html" if language else "site/index.html")
