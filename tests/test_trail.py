"""The trail of a number: back to the ids, on to the end, each number of it as recorded."""

from itertools import pairwise

import numpy as np
import pytest
from driver import address, visit

TRAIL = """async (place) => {
    const { player } = document.querySelector("figure.stage").stage;
    const { trailOf } = await import("trail");
    const { places, at } = await trailOf(player.store, place);
    return { at, places: places.map(({ array, index }) => [array, index, player.store.value(array, index)]) };
}"""


SHOWN = "(name) => tools.until(() => document.querySelector('#number .name')?.textContent === name)"


@pytest.fixture(scope="module")
def pages(module_page, site):
    return {route: visit(module_page(), address(site, route)) for route in ("training", "generation")}


CASES = [("training", "blocks.0.attention.scores", [0, 2, 1], "loss"),
         ("training", "blocks.1.mlp.gelu", [4, 60], "loss"),
         ("generation", "round3.head", [0, 254], "round3.sampler.draw.token")]


@pytest.mark.parametrize(("route", "array", "index", "end"), CASES, ids=lambda part: str(part))
def test_a_trail_leads_from_the_ids_to_the_end(pages, recordings, route, array, index, end):
    trace = recordings[route]
    found = pages[route].evaluate(TRAIL, {"array": array, "index": index})
    names = [name for name, _, _ in found["places"]]
    assert names[found["at"]] == array
    assert trace.arrays[names[0]].dtype == "int64"  # ids, or the bytes before them
    assert names[-1] == end
    for name, at, value in found["places"]:
        if not trace.arrays[name].derived:
            recorded = trace.values(name)[tuple(at)]
            assert value == recorded or (np.isnan(value) and np.isnan(recorded)), (name, at)
    for before, after in pairwise(names):
        assert before in trace.operations[after].operands.values(), (before, after)


def test_each_step_back_takes_the_operand_that_matters_most(pages, recordings):
    """Of a sum of products the term with the largest product, worked out by NumPy; of the two factors either."""
    trace = recordings["training"]
    found = pages["training"].evaluate(TRAIL, {"array": "blocks.0.attention.scores", "index": [0, 2, 1]})
    name, index, _ = found["places"][found["at"] - 1]
    query, key = (trace.values(f"blocks.0.attention.split.{one}") for one in ("query", "key"))
    feature = int(np.abs(query[0, 2] * key[0, 1]).argmax())
    assert (name.rsplit(".", 1)[1], index) in (("query", [0, 2, feature]), ("key", [0, 1, feature]))


def test_crumbs_are_walked_and_drawn_on_the_map(pages):
    page = pages["training"]
    place = "blocks.0.attention.softmax"
    page.evaluate(f"tools.goTo('#step={place}&of={place}&h=0&i=3&j=1')")
    page.keyboard.press("t")
    page.wait_for_selector("#trail a[aria-current]")
    crumbs = page.locator("#trail a")
    assert crumbs.count() > 15
    points = page.get_attribute(".map .trail-line", "points").split()
    assert len(points) > 8
    current = crumbs.evaluate_all("(all) => all.findIndex((one) => one.hasAttribute('aria-current'))")
    assert crumbs.nth(current).get_attribute("title") == f"{place} [0, 3, 1]"
    page.keyboard.press(",")
    before = crumbs.nth(current - 1).get_attribute("title")
    page.evaluate(SHOWN, before)
    page.keyboard.press(".")
    page.evaluate(SHOWN, f"{place} [0, 3, 1]")
    page.keyboard.press("t")
    assert page.locator("#trail").is_hidden()
    assert page.locator(".trail-line").count() == 0
