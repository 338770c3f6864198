"""Tables in the pages: headers, digits, search, sorting, files, keys."""

from pathlib import Path

import numpy as np
import pytest
from driver import WORDS, address, fragment_of, opened, place, ulp, visit

from site_builder.parts import format_number
from tracer.format.trace import AXES
from tracer.ops.replay import Replay


def test_minus_infinity_shows_as_such(page, site, training_trace):
    visit(page, address(site, "training", "en", "#step=blocks.0.attention.mask"))
    cells = page.locator('[data-array="blocks.0.attention.mask"] .made td[data-r]').all_text_contents()
    masked = training_trace.values("blocks.0.attention.mask")[0]
    assert cells == [format_number(value) for value in masked.ravel()]
    assert cells.count("−∞") == np.isinf(masked).sum() > 0
    page.locator('.step.current .made td[data-r="0"][data-c="1"]').click()
    number = opened(page)
    assert number["big"] == "−∞"
    assert number["verdict"] == "verdict ok"


def test_what_is_not_stored_says_so(page, site, training_trace):
    array = training_trace.arrays["adamw.token_embedding.weight.after"]
    assert array.derived
    visit(page, address(site, "training", "en", fragment_of(training_trace, array.name, [220, 0])))
    number = opened(page)
    expected = Replay(training_trace, AXES).values(array.name)[220, 0]
    shown = float(number["big"].replace("−", "-"))
    assert abs(shown - expected) <= 4 * ulp(expected)
    assert WORDS["en"]("computed_here") in page.locator("#number").inner_text()
    assert WORDS["en"]("computed_here") in page.locator(f'[data-array="{array.name}"]').text_content()
    assert page.locator("#number .verdict").count() == 0


@pytest.mark.parametrize("fragment", ["", "#step=adamw.token_embedding.weight", "#step=cross_entropy", "#step=loss"])
def test_tables_are_tables(page, site, fragment):
    """Row and column headers for all that has rows and columns; a step opened first loads all its tables."""
    visit(page, address(site, "training", "en", fragment))
    tables = page.evaluate("""() => [...document.querySelectorAll(".step.current .numbers table")].map((table) => ({
        name: table.getAttribute("aria-label"), role: table.getAttribute("role"),
        columns: table.querySelectorAll('thead th[scope="col"], thead td.corner').length,
        widths: [...new Set([...table.querySelectorAll("tbody tr:not(.spacer)")].map((row) => row.children.length))],
        rows: table.querySelectorAll('tbody th[scope="row"]').length,
        cells: table.querySelectorAll("tbody tr:not(.spacer)").length,
        reachable: table.querySelectorAll('[tabindex="0"]').length,
    }))""")
    assert tables
    for table in tables:
        assert table["role"] == "grid"
        assert table["name"]
        assert table["widths"] == [table["columns"]]
        assert table["rows"] == table["cells"]
        assert table["reachable"] == 1


def test_labels_beside_numbers(page, site, training_trace):
    visit(page, address(site, "training", "en", "#step=token_embedding"))
    rows = page.locator('[data-array="token_embedding"] .made th[scope="row"]').all_text_contents()
    labels = training_trace.label_list(training_trace.arrays["token_embedding"].labels["position"])
    assert rows == [f"{n} {label}" for n, label in enumerate(labels)]


TABLE = '.step.current [data-array="{}"] .made'


@pytest.mark.parametrize(("step", "name"), [("grad.token_embedding", "grad.token_embedding.weight"), ("head", "head")])
def test_long_tables(page, site, training_trace, step, name):
    """50,257 rows: scrolling, searching by id and by text, and the whole array as a file."""
    visit(page, address(site, "training", "en", f"#step={step}"))
    box = TABLE.format(name)
    values = training_trace.values(name)
    values = values.T if name == "head" else values
    labels = training_trace.label_list("vocabulary")
    rows = page.locator(f"{box} tbody tr:not(.spacer)")
    assert int(page.get_attribute(f"{box} table", "aria-rowcount")) == len(values) + 1

    def row(number: int) -> None:
        text = page.locator(f'{box} tr[aria-rowindex="{number + 2}"]').locator("th, td").all_text_contents()
        assert text == [f"{number} {labels[number]}", *(format_number(value) for value in values[number])]

    row(0)
    assert rows.count() < 60
    for share in (0.5, 1, 0.123):
        page.evaluate("""async ([box, share]) => {
            const view = document.querySelector(`${box} .window`);
            view.scrollTop = share * view.scrollHeight;
            await tools.frame(); await tools.frame();
        }""", [box, share])
        visible = page.evaluate("""(box) => {
            const { top, bottom } = document.querySelector(`${box} .window`).getBoundingClientRect();
            return [...document.querySelectorAll(`${box} tbody tr:not(.spacer)`)].filter((row) => {
                const at = row.getBoundingClientRect();
                return at.top >= top + 28 && at.bottom <= bottom;
            }).map((row) => row.getAttribute("aria-rowindex") - 2);
        }""", box)
        assert len(visible) > 3
        assert abs(visible[0] / len(values) - share) < 0.01 or (share == 1 and visible[-1] == len(values) - 1)
        row(visible[0])
        row(visible[-1])
    assert rows.count() < 60
    search, found = page.locator(f"{box} input[type=search]"), page.locator(f"{box} form [role=status]")
    for asked, number in (("50256", 50256), (labels[17250], 17250), ("0", 0), (labels[220], 220), (" Paris", None)):
        number = labels.index("␣Paris") if number is None else number
        search.fill(asked)
        search.press("Enter")
        assert found.inner_text() == f"{number} {labels[number]}"
        row(number)
        assert page.locator(f"{box} tr.found").get_attribute("aria-rowindex") == str(number + 2)
    search.fill("no such token anywhere")
    page.locator(f"{box} form button[type=submit]").click()
    assert found.inner_text() == WORDS["en"]("not_found")
    with page.expect_download() as saving:
        page.locator(f"{box} .tools button").click()
    lines = Path(saving.value.path()).read_text("utf-8").splitlines()
    assert saving.value.suggested_filename == f"{name}.csv"
    assert lines[0].startswith(f"# {name} ")
    saved = np.array([line.split(",") for line in lines[1:]], dtype=np.float32)
    recorded = training_trace.values(name)
    assert saved.dtype == recorded.dtype
    assert np.array_equal(saved, recorded)


@pytest.mark.parametrize("name", ["blocks.0.attention.mask", "x", "loss", "adamw.final_norm.bias.v"])
def test_small_tables_as_files(page, site, training_trace, name):
    visit(page, address(site, "training", "en", fragment_of(training_trace, name, [0] * len(
        training_trace.arrays[name].shape))))
    with page.expect_download() as saving:
        page.locator(f"{TABLE.format(name)} .tools button").click()
    lines = Path(saving.value.path()).read_text("utf-8").splitlines()
    recorded = training_trace.values(name)
    saved = np.array([line.split(",") for line in lines[1:]], dtype=recorded.dtype).reshape(recorded.shape)
    assert np.array_equal(saved, recorded)


def test_heads_are_chosen_above_the_table(page, site, training_trace):
    visit(page, address(site, "training", "en", "#step=blocks.0.attention.scores"))
    box = TABLE.format("blocks.0.attention.scores")
    scores = training_trace.values("blocks.0.attention.scores")
    chips = page.locator(f"{box} [role=group] .chip")
    assert chips.all_text_contents() == [str(head) for head in range(len(scores))]
    for head in (1, 0):
        chips.nth(head).click()
        assert page.locator(f"{box} td[data-r]").all_text_contents() == [format_number(v) for v in scores[head].ravel()]
        assert page.evaluate("document.activeElement.textContent") == str(head)
    chips.nth(1).click()
    page.keyboard.press("n")  # the choice holds
    place(page)
    box = TABLE.format("blocks.0.attention.mask")
    assert page.locator(f"{box} .chip[aria-pressed=true]").all_text_contents() == ["1"]
    page.locator(f'{box} td[data-r="4"][data-c="1"]').click()
    assert opened(page)["index"] == [1, 4, 1]


# Keyboard and focus ----------------------------------------------------------------------------------

def cell(page) -> list:
    """Array, row and column of the cell that has the focus."""
    return page.evaluate("""() => {
        const { activeElement: at } = document;
        const name = at.closest("table")?.getAttribute("aria-label") ?? at.tagName;
        return [name, Number(at.dataset.r), Number(at.dataset.c)];
    }""")


@pytest.mark.parametrize("name", ["embedding_sum", "blocks.0.attention.scores"])
def test_keys_in_a_table(page, site, name):
    """Arrow keys move, Enter opens and keeps the focus, Escape closes and gives it back."""
    visit(page, address(site, "training", "en", f"#step={name}"))
    last = page.locator(f"{TABLE.format(name)} tbody tr").first.locator("td").count() - 1
    page.locator(f'{TABLE.format(name)} td[tabindex="0"]').focus()
    for key, at in (("ArrowRight", [0, 1]), ("ArrowDown", [1, 1]), ("End", [1, last]), ("ArrowRight", [1, last]),
                    ("Home", [1, 0]), ("PageDown", [4, 0]), ("ArrowUp", [3, 0]), ("ArrowLeft", [3, 0]),
                    ("ArrowRight", [3, 1])):
        page.keyboard.press(key)
        assert cell(page) == [name, *at]
    assert place(page)["step"] == name
    page.keyboard.press("Enter")
    assert opened(page)["index"][-2:] == [3, 1]
    page.evaluate("tools.frame()")
    assert cell(page) == [name, 3, 1]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("ArrowUp")
    page.keyboard.press(" ")
    page.evaluate("() => tools.until(() => document.querySelector('#number .name').textContent.includes('2, 1]'))")
    page.evaluate("tools.frame()")
    assert cell(page) == [name, 2, 1]
    page.keyboard.press("Escape")
    assert page.locator("#number").is_hidden()
    assert cell(page) == [name, 2, 1]


def test_focus_returns_to_the_number_after_closing(page, site, training_trace):
    name = "blocks.1.norm_2"
    visit(page, address(site, "training", "en", fragment_of(training_trace, name, [3, 5])))
    opened(page)
    page.locator("#number .close").focus()
    page.keyboard.press("Enter")
    assert page.locator("#number").is_hidden()
    assert cell(page) == [name, 3, 5]
    assert place(page)["hash"] == f"#step={name}"


def test_long_table_by_keys(page, site):
    visit(page, address(site, "training", "en", "#step=grad.token_embedding"))
    name = "grad.token_embedding.weight"
    page.locator(f'{TABLE.format(name)} td[tabindex="0"]').focus()
    for _ in range(12):
        page.keyboard.press("PageDown")
    page.keyboard.press("ArrowRight")
    assert cell(page) == [name, 120, 1]
    page.keyboard.press("Enter")
    assert opened(page)["index"] == [120, 1]
    assert cell(page) == [name, 120, 1]


def test_tab_reaches_everything_and_is_seen(page, site):
    """Every stop of the Tab key on a step is visible and marked; the first leads past the navigation."""
    visit(page, address(site, "training", "en", "#step=loss"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    seen = []
    for _ in range(400):
        page.keyboard.press("Tab")
        at = page.evaluate("""() => {
            const at = document.activeElement;
            if (at === document.body) return null;
            const box = at.getBoundingClientRect(), style = getComputedStyle(at);
            const frame = at.querySelector(":scope > rect"); // a node of the map
            const framed = Boolean(frame) && parseFloat(getComputedStyle(frame).strokeWidth) > 2;
            return [at.tagName, at.id || at.className.baseVal || at.className || at.textContent.slice(0, 30),
                box.width > 0 && box.height > 0, framed || style.outlineStyle !== "none"];
        }""")
        if at is None:
            break
        seen.append(at)
    assert [stop for stop in seen if not stop[2]] == []
    assert [stop for stop in seen if not stop[3]] == []
    assert {"progress", "play", "speed", "help-open"} <= {stop[1] for stop in seen}
    assert any(tag == "TD" for tag, *_ in seen)
