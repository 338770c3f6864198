"""The placed picture as geometry: what stands left, above and in line follows from letters alone.

`static/js/placement.js` and `arrange.js` know no kind, so any equation one makes up gets a picture: rows level with
rows, columns over columns, no box over another, all within the window.
"""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operation_case import forward
from operation_cases import CASES

from site_builder.modules import import_map
from tracer.ops import KINDS
from tracer.ops.replay import bound_equations

SOURCES = Path(__file__).parent.parent / "static" / "js"
TARGETS = [(kind, target) for kind in KINDS for target in KINDS[kind].targets]
TITLE = 18  # px that a box has above it

ARRANGE = """async ([equations, sizes, width, height]) => {
    const { place } = await import("placement");
    const { arrange, offset } = await import("arrange");
    const placement = place(equations);
    const length = (box, axis) => sizes[box.axes[axis].letter] ?? 7;
    const narrow = width < 560;
    const made = arrange(placement, { x: narrow ? 6 : 20, width: width - (narrow ? 12 : 40), height: height - 28,
        narrow, labels: 40, sum: 104, length, wanted: () => [1], title: (box) => 8 * box.name.length });
    const { cell: [cw, ch], sum, main } = made;
    return { rows: placement.rows, columns: placement.columns, sum, cell: [cw, ch], main: main.box.name,
        boxes: made.boxes.map(({ box, x, y, width, height, columns, rows }) => ({ name: box.name, where: box.where,
            x, y, width, height, lookup: box.lookup,
            letters: [box.down, box.across].map((axis) => (axis === null ? null : box.axes[axis].letter)),
            roles: [box.down, box.across].map((axis) => (axis === null ? null : box.axes[axis].role)),
            rows: rows.list, columns: columns.list,
            ys: rows.list.map((_, i) => y + offset(rows, i) * ch),
            xs: columns.list.map((_, i) => x + offset(columns, i) * cw) })) };
}"""


@pytest.fixture(scope="module")
def arranged(module_page, tmp_path_factory):
    """``arranged(equations, sizes, width, height)``: where everything stands, px."""
    path = tmp_path_factory.mktemp("placement") / "placement.html"
    path.write_text(f'<!doctype html><title>p</title><script type="importmap">{import_map(SOURCES)}</script>')
    page = module_page()
    page.goto(path.as_uri())
    return lambda *given: page.evaluate(ARRANGE, list(given))


@cache
def equations_of(kind: str, target: str) -> list:
    """The equations as a page gets them, with the letters of an example's axes, as JSON."""
    case = next(case for case in CASES if case.kind == kind)
    known = {name: np.ndim(value) for name, value in {**forward(case, case.operands), **case.operands}.items()}
    letters = lambda name: [f"{name} axis {i}" for i in range(known[name.removeprefix("d_")])]  # noqa: E731
    return json.loads(json.dumps([equation.to_json() for equation in bound_equations(kind, target, letters)]))


def check(made: dict, width: float, height: float) -> None:
    """What holds for every picture: nothing over another, all in the window, one letter folds in one way."""
    boxes, [cw, ch] = made["boxes"], made["cell"]
    assert cw > 0
    assert ch > 0
    spaces = [(box["x"], box["y"] - TITLE + 6, box["x"] + box["width"], box["y"] + box["height"], box["name"])
              for box in boxes]
    place = made["sum"]
    spaces.append((place["x"], place["y"], place["x"] + place["width"], place["y"] + place["height"], "the working"))
    for i, (left, top, right, bottom, name) in enumerate(spaces):
        assert left >= 0, name
        assert top >= 0, name
        assert right <= width + 0.5, (name, right)
        assert bottom <= height + 0.5, (name, bottom)
        for other in spaces[i + 1:]:
            apart = other[2] <= left or right <= other[0] or other[3] <= top or bottom <= other[1]
            assert apart, (name, other[-1])
    folds: dict[str, list[int]] = {}
    for box in boxes:
        for letter, shown in zip(box["letters"], (box["rows"], box["columns"]), strict=True):
            if letter:
                assert folds.setdefault(letter, shown) == shown
    out = boxes[-1]
    assert out["name"] == made["main"]
    for box in boxes[:-1]:
        down, across = box["letters"]
        rows = "rows" if made["rows"] else None
        assert box["where"] != "left" or box["roles"] == [rows, "sum"]  # the summed letter runs to what is made …
        assert box["where"] != "above" or box["roles"] == ["sum", "columns"]  # … and down to it
        if out["letters"][1] and across == out["letters"][1] and box["where"] in ("above", "row"):
            assert box["xs"] == pytest.approx(out["xs"])  # columns over the columns
            assert box["y"] + box["height"] <= out["y"]
        if out["letters"][0] and down == out["letters"][0] and box["where"] in ("left", "column"):
            assert box["ys"] == pytest.approx(out["ys"])  # rows level with the rows
            assert box["x"] + box["width"] <= out["x"]
        if box["where"] == "line" and box["letters"] == out["letters"]:  # cell on cell, beside or above
            assert box["ys"] == pytest.approx(out["ys"]) or box["xs"] == pytest.approx(out["xs"])


def expected(equations: list, name: str) -> str | None:
    """Where an operand stands, said again: from the letters of its plain reads; None where an index computes."""
    target = [letter for _, letter in equations[-1][1]]
    rows, columns = (target[-2], target[-1]) if len(target) > 1 else (None, None)
    # `["read", name, [["letter", a], …]]` wherever it stands
    reads = [json.loads(found) for found in re.findall(
        rf'\["read", "{name}", (\[(?:\["letter", "[^"]+"\](?:, )?)*\])\]', json.dumps(equations))]
    every = json.dumps(equations).count(f'["read", "{name}", ')
    if len(reads) != 1 or every != 1 or rows is None:
        return None
    letters = [letter for _, letter in reads[0]]
    shown = [letter for letter in letters if letter not in target[:-2]][-2:]
    if len(set(letters)) != len(letters):
        return None
    has = (rows in shown, columns in shown, any(letter not in target for letter in shown))
    return {(True, True, False): "line", (True, False, True): "left", (False, True, True): "above",
            (True, False, False): "column", (False, True, False): "row"}.get(has)


@pytest.mark.parametrize(("kind", "target"), TARGETS)
@pytest.mark.parametrize(("width", "height"), [(1000, 560), (340, 330)])
def test_every_kind_is_placed_by_its_letters(arranged, kind, target, width, height):
    equations = equations_of(kind, target)
    made = arranged(equations, {}, width, height)
    check(made, width, height)
    said = {box["name"]: box["where"] for box in made["boxes"]}
    for name in said.keys() - {equation[0] for equation in equations}:
        assert said[name] == (expected(equations, name) or said[name]), name


def test_a_product_stands_as_the_rule_says(arranged):
    """``out[h, i, j] = sum(d, query[h, i, d] * key[h, j, d])``: the query left, the key above and turned."""
    equations = equations_of("scaled_scores", "out")
    letters = [letter for _, letter in equations[0][1]]
    made = arranged(equations, dict(zip([*letters, "d"], (2, 3, 5, 4), strict=True)), 1000, 560)
    query, key, out = made["boxes"]
    assert [box["name"] for box in made["boxes"]] == ["query", "key", "out"]
    assert (query["where"], key["where"]) == ("left", "above")
    assert [len(query["rows"]), len(query["columns"])] == [3, 4]
    assert [len(key["rows"]), len(key["columns"])] == [4, 5]
    assert query["ys"] == out["ys"]
    assert key["xs"] == out["xs"]
    assert made["sum"]["corner"]
    assert made["sum"]["x"] + made["sum"]["width"] <= key["x"]
    assert made["sum"]["y"] + made["sum"]["height"] <= query["y"]


# Equations that nobody wrote -------------------------------------------------------------------------

def read(name: str, letters: list[str]) -> list:
    return ["read", name, [["letter", letter] for letter in letters]]


@st.composite
def made_up(draw):
    """An equation with random letters, in random order, and the sizes of its axes; what each operand must be."""
    names = draw(st.permutations(["i", "j", "k", "p", "q", "z"]))
    rows, columns, inner, layer = names[:4]
    layers = [layer] if draw(st.booleans()) else []
    shape = draw(st.sampled_from(["product", "elements", "statistic", "lookup", "mixed"]))
    order = draw(st.permutations([0, 1]))
    left = [*layers, *[[rows, inner][i] for i in order]]
    above = [*layers, *[[inner, columns][i] for i in draw(st.permutations([0, 1]))]]
    both = [*layers, *[[rows, columns][i] for i in draw(st.permutations([0, 1]))]]
    out = [*layers, rows, columns]
    if shape == "product":
        body = ["reduce", "sum", [["letter", inner]], ["binary", "*", read("a", left), read("b", above)]]
        where = {"a": "left", "b": "above"}
    elif shape == "elements":
        body = ["binary", draw(st.sampled_from("+-*/")), read("a", both), read("b", [columns])]
        where = {"a": "line", "b": "row"}
    elif shape == "statistic":
        body, where = ["reduce", "sum", [["letter", inner]], read("a", [*layers, rows, inner])], {"a": "left"}
        out = [*layers, rows]
        return [["out", [["letter", letter] for letter in out], body]], sizes(draw, names), (where if layers else {})
    elif shape == "lookup":
        body = ["read", "a", [["read", "b", [["letter", rows]]], ["letter", columns]]]
        where = {"a": "line", "b": "column"}
    else:
        product = ["reduce", "sum", [["letter", inner]], ["binary", "*", read("a", left), read("b", above)]]
        body = ["binary", "+", ["binary", "+", product, read("c", both)], read("d", [rows])]
        where = {"a": "left", "b": "above", "c": "line", "d": "column"}
    return [["out", [["letter", letter] for letter in out], body]], sizes(draw, names), where


def sizes(draw, names) -> dict[str, int]:
    return {name: draw(st.sampled_from([1, 2, 5, 16, 64, 768, 50257])) for name in names}


@settings(max_examples=150, deadline=None)
@given(made_up(), st.integers(340, 1600), st.integers(330, 900))
def test_any_equation_has_a_picture(arranged, made, width, height):
    equations, lengths, where = made
    found = arranged(equations, lengths, width, height)
    check(found, width, height)
    said = {box["name"]: box["where"] for box in found["boxes"]}
    if len(equations[0][1]) == 3 or "c" in where or set(where) == {"a", "b"}:
        assert {name: said[name] for name in where} == where


def test_no_kind_is_named():
    for name in ("placement", "arrange", "boxes", "placed", "sum", "legend", "taken"):
        text = (SOURCES / f"{name}.js").read_text("utf-8")
        quoted = set(re.findall(r'"(\w+)"', text))
        assert quoted & set(KINDS) == set(), name
