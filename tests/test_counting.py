"""Counting: from zero, as the code counts; updates and rounds from one.  Page, picture, panel and address agree."""

import re

import pytest
from driver import DESK, address, go, visit

from site_builder.counting import FIRST, numbered
from tracer.format.trace import AXES

TEXTS = "document.querySelector('figure.stage').shapes.map(({ text }) => text).filter(Boolean)"
SCORES = "#step=blocks.1.attention.scores&of=blocks.1.attention.scores&h=1&i=3&j=2"


@pytest.fixture(scope="module")
def page(site, module_page):
    return visit(module_page(viewport=DESK, reduced_motion="reduce"), address(site, "training", "en", SCORES))


def test_only_updates_are_counted_from_one():
    assert {axis: numbered(axis, 0) for axis in AXES if numbered(axis, 0)} == FIRST == {"update": 1}
    assert numbered("update", 119) == 120 and numbered("head", 1) == 1


def test_block_head_position_and_feature_have_one_number_wherever_they_stand(page):
    """Block 1, head 1, query 3, key 2: in names, titles, the way here, the picker, the map, the chips, the panel."""
    go(page, SCORES)
    assert "Block 1" in page.locator("#distances").inner_text()
    assert "Block 1" in page.locator(".map").text_content()
    assert page.locator("figure.stage .which .chip[aria-pressed=true]").inner_text() == "head 1"
    assert page.locator("#variants select[aria-label=Block]").evaluate("list => list.selectedOptions[0].text") == "1"
    options = page.locator("#number select[data-axis]").evaluate_all(
        "lists => lists.map((list) => [list.dataset.axis, list.selectedOptions[0].text])")
    shown = {axis: re.sub("[\u2068\u2069]", "", text) for axis, text in options}
    assert shown == {"head": "1", "query_position": "3 A0", "key_position": "2 E4·BD"}
    texts = page.evaluate(TEXTS)
    assert any("[1,3,2]" in text for text in texts)


def test_an_update_has_one_number_wherever_it_stands(page):
    """Index 39 of the losses is update 40: on the slider, in the picture, in the tables; in the address it is s=39."""
    go(page, "#step=series.loss&s=39")
    assert page.locator("figure.stage .which output").inner_text() == "update 40 / 120"
    texts = page.evaluate(TEXTS)
    assert any(text.startswith("update 40: ") for text in texts)
    assert "update 40 of 120" in page.locator(".step.current .updates output").inner_text()


def test_the_help_says_how_things_are_counted(page):
    assert "counted from zero" in page.locator("#help").evaluate("dialog => dialog.textContent")
