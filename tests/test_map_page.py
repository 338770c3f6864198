"""The map of the network in a browser: what is lit, where it leads, by hand and by keys."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from site_builder.build import ROUTES
from site_builder.network_graph import network

# In the browser --------------------------------------------------------------------------------------

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def pages(site, module_page) -> dict[str, Page]:
    """Both routes, opened once."""
    found = {}
    for route in ROUTES:
        page = found[route] = module_page(viewport=WIDE)
        page.goto((site / "en" / f"{route}.html").as_uri())
        page.wait_for_selector(".scripted .current", state="attached")
    return found


def go(page: Page, step: str) -> None:
    page.evaluate("step => { location.hash = `step=${step}`; }", step)
    page.wait_for_selector(f'.current[data-step="{step}"]', state="attached")


def lit(page: Page) -> list[tuple[str, str, str]]:
    """Key, direction and aria-current of every lit node."""
    return [tuple(one) for one in page.eval_on_selector_all(
        ".map [data-lit], .map [aria-current]",
        "all => all.map((a) => [a.dataset.key, a.dataset.lit, a.getAttribute('aria-current')])")]


TRAINING = {
    "text.shift": [("x", "forward", "step"), ("y", "forward", "step")],
    "text.merges": [("x", "forward", "true"), ("y", "forward", "true")],
    "blocks.0.attention.softmax": [("blocks.0.attention.softmax", "forward", "step")],
    "loss": [("loss", "forward", "step")],
    "grad.blocks.1.mlp.gelu": [("blocks.1.mlp.gelu", "backward", "true")],
    "grad.embedding_dropout": [("embedding_dropout", "backward", "true")],
    "adamw.blocks.0.norm_1.bias": [("blocks.0.norm_1", "update", "true")],
    "adamw.token_embedding.weight": [("token_embedding.weight", "update", "step"),
                                     ("token_embedding", "update", "true")],
    "evaluation.training.head": [("head", "forward", "step")],
    "evaluation.validation.blocks.1.mlp.up": [("blocks.1.mlp.up", "forward", "step")],
    "validation.shift": [("x", "forward", "true"), ("y", "forward", "true")],
    "series.loss": [("loss", "forward", "true")],
}
GENERATION = {
    "text": [("ids", "forward", "true")],
    "round1.ids": [("ids", "forward", "step")],
    "round3.sampler.draw": [("sampler.draw", "forward", "step")],
    "round5.blocks.1.residual_2": [("blocks.1.residual_2", "forward", "step")],
}


@pytest.mark.parametrize("route, step, expected", [
    *(("training", step, found) for step, found in TRAINING.items()),
    *(("generation", step, found) for step, found in GENERATION.items())])
def test_the_current_step_is_lit_and_in_sight(pages, route, step, expected):
    page = pages[route]
    go(page, step)
    before = "round1." if route == "generation" else ""
    assert lit(page) == [(before + key, *how) for key, *how in expected]
    shown = page.locator(".map [data-lit]").first.bounding_box()
    box = page.locator(".side").bounding_box()
    assert box["y"] - 1 <= shown["y"]
    assert shown["y"] + shown["height"] <= min(box["y"] + box["height"], page.locator(".go").bounding_box()["y"])


def test_the_key_says_the_direction(pages):
    for step, mode in {"head": "forward", "grad.head": "backward", "adamw.final_norm.bias": "update"}.items():
        go(pages["training"], step)
        expect(pages["training"].locator(".map-key [data-here]")).to_have_attribute("data-mode", mode)


def shape(page: Page, key: str) -> str:
    return page.locator(f'.map [data-key="{key}"] .shape').text_content()


def test_links_and_shapes_follow_the_pass(pages, training_trace, generation_trace):
    page = pages["generation"]
    for number in (2, 4, 1):
        go(page, f"round{number}.head")
        tokens = generation_trace.arrays[f"round{number}.ids"].size
        assert page.locator('[data-key="round1.final_norm"]').get_attribute("href") == f"#step=round{number}.final_norm"
        assert shape(page, "round1.blocks.0.attention.scores").split("×")[1] == str(tokens)
    page = pages["training"]
    go(page, "evaluation.validation.head")
    assert page.locator('[data-key="head"]').get_attribute("data-step") == "evaluation.validation.head"
    assert page.locator(".map .absent").count() == sum(key.endswith("dropout") for key in network(training_trace).nodes)
    go(page, "grad.head")
    assert page.locator(".map .absent").count() == 0
    assert page.locator('[data-key="head"]').get_attribute("href") == "#step=head"
    assert shape(page, "head").startswith("↑ ")
    go(page, "adamw.blocks.0.mlp.up.weight")
    lengths = training_trace.arrays["blocks.0.mlp.up.weight"].shape
    assert shape(page, "blocks.0.mlp.up") == "×".join(map(str, lengths))


def test_a_click_and_enter_go_to_the_step(pages):
    page = pages["training"]
    go(page, "token_embedding")
    page.click('.map [data-key="blocks.0.norm_1"] rect')
    page.wait_for_selector('.current[data-step="blocks.0.norm_1"]', state="attached")
    page.focus('.map [data-key="blocks.0.attention.qkv"]')
    page.keyboard.press("Enter")
    page.wait_for_selector('.current[data-step="blocks.0.attention.qkv"]', state="attached")
    assert lit(page) == [("blocks.0.attention.qkv", "forward", "step")]


def test_focus_is_seen_on_a_lit_node_too(pages):
    page = pages["training"]
    go(page, "token_embedding")
    for key in ("token_embedding", "positions"):
        node = page.locator(f'.map [data-key="{key}"]')
        before = node.locator("rect").evaluate("r => getComputedStyle(r).stroke")
        page.evaluate("document.activeElement.blur()")
        node.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        assert node.evaluate("a => a.matches(':focus-visible')")
        assert node.locator("rect").evaluate("r => getComputedStyle(r).stroke") != before


def test_map_or_list(pages):
    page = pages["training"]
    go(page, "grad.blocks.0.mlp.up")
    for what, seen, hidden in (("steps", ".contents", ".map"), ("map", ".map", ".contents")):
        page.click(f'button[data-show="{what}"]')
        expect(page.locator(seen)).to_be_visible()
        expect(page.locator(hidden)).to_be_hidden()
        expect(page.locator(f'button[data-show="{what}"]')).to_have_attribute("aria-pressed", "true")
        expect(page.locator(f"{seen} [aria-current]")).to_be_in_viewport()


def test_on_a_phone_the_map_is_in_the_panel(site, new_page):
    page = new_page(viewport=NARROW, has_touch=True)
    page.goto((site / "zh" / "training.html").as_uri() + "#step=blocks.1.norm_2")
    page.wait_for_selector(".scripted .current", state="attached")
    expect(page.locator(".map")).to_be_hidden()
    page.click('#ledger [data-tab="map"]')
    expect(page.locator(".map [data-lit]")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    heights = page.eval_on_selector_all(".map .node rect", "all => all.map((r) => r.getBoundingClientRect().height)")
    assert min(heights) >= 24
    page.tap('.map [data-key="blocks.1.mlp.up"]')
    page.wait_for_selector('.current[data-step="blocks.1.mlp.up"]', state="attached")
    expect(page.locator(".map")).to_be_hidden()


def test_without_scripts_map_and_list_are_there(site, new_page):
    page = new_page(viewport=WIDE, java_script_enabled=False)
    page.goto((site / "en" / "training.html").as_uri())
    expect(page.locator(".map")).to_be_visible()
    expect(page.locator(".contents")).to_be_visible()
    expect(page.locator(".switch")).to_be_hidden()


@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", NARROW)], ids=["wide", "narrow"])
def test_no_complaint_from_axe(site, new_page, scheme, viewport):
    page = new_page(viewport=viewport, color_scheme=scheme)
    page.goto((site / "en" / "training.html").as_uri() + "#step=grad.head")
    page.wait_for_selector(".scripted .current", state="attached")
    if viewport is NARROW:
        page.click('#ledger [data-tab="map"]')
    page.evaluate("document.querySelector('main').replaceChildren()")  # hundreds of hidden steps take axe a minute
    result = Axe().run(page, context=".side", options={"preload": False})
    assert result.violations_count == 0, result.generate_report()


@pytest.mark.parametrize("route", ROUTES)
def test_nodes_are_large_enough_in_the_column(pages, route):
    boxes = pages[route].eval_on_selector_all(
        ".map .node rect", "all => all.map((r) => r.getBoundingClientRect()).map((r) => [r.width, r.height])")
    assert min(min(box) for box in boxes) >= 24
    column = pages[route].locator(".side").bounding_box()
    assert column["width"] <= 240
