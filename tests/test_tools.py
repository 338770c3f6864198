"""The tools of the lessons in the browser: each number is what Python computes in another way."""

import re
from dataclasses import asdict, fields, replace

import numpy as np
import pytest
from playwright.sync_api import expect
from test_course_page import opened

from site_builder.language import languages
from site_builder.lesson_figures import Sized, in_bytes, softmax
from site_builder.lessons import lessons
from tracer.format.memory import training_memory
from tracer.format.shapes import SHAPES
from tracer.format.sizes import cache_bytes, flops_per_token, parameter_count, shape_of
from tracer.library import attention_by_hand as by_hand
from tracer.library.attention_by_hand import TOKENS

SIZES = ("vocabulary", "context", "width", "heads", "kv_heads", "blocks", "hidden")


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


@pytest.mark.parametrize(("masked", "divided"), [(True, True), (False, True), (True, False), (False, False)])
@pytest.mark.parametrize("x", [TOKENS, np.round(np.random.default_rng(7).normal(size=(3, 4)), 2).tolist()],
                         ids=["tokens of the start", "others"])
def test_attention_is_that_by_hand(new_page, site, masked, divided, x):
    """Table by table, against plain arithmetic in Python."""
    page = opened(new_page, site, f"lesson-{with_tool('attention')}")
    tool = page.locator("[data-tool=attention]").first
    fields = tool.locator("td input").all()
    assert [[numbers(field.input_value())[0] for field in fields[4 * i:][:4]] for i in range(3)] == TOKENS
    for field, value in zip(fields, np.ravel(x), strict=True):
        field.fill(str(value))
    boxes = tool.locator("input[type=checkbox]")
    boxes.nth(0).set_checked(masked)
    boxes.nth(1).set_checked(divided)
    wanted = [now := by_hand.scores(x, x)]
    wanted += [now := by_hand.scale(now, 4)] if divided else []
    wanted += [now := by_hand.mask(now)] if masked else []
    wanted += [now := by_hand.softmax(now), by_hand.weighted_sum(now, x)]
    tables = tool.locator(".matrices table").all()
    for table, expected, digits in zip(tables, wanted, [*(3 for _ in wanted[:-2]), 2, 2], strict=True):
        rows = table.locator("tbody tr").all()
        shown = [[numbers(cell)[0] for cell in row.locator("td").all_inner_texts()] for row in rows]
        np.testing.assert_allclose(shown, expected, rtol=0.6 * 10.0 ** (1 - digits), atol=1e-9)


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
        bars, sides = (tool.locator(f".histogram {part}").evaluate_all(
            f"all => all.map((one) => {where}.map((name) => Number(one.getAttribute(name))))")
            for part, where in (("rect", '["x", "width", "height"]'), ("line", '["x1", "x2"]')))
        middles, counts = np.array([x + width / 2 - 300 for x, width, _ in bars]), [bar[2] for bar in bars]
        drawn = np.sqrt(np.average(middles**2, weights=counts))  # of the bars: a third of the spread wide
        np.testing.assert_allclose(np.array(sides) - 300, [[-drawn] * 2, [drawn] * 2], rtol=0.02)
        assert drawn / 300 * 3 * 512**0.5 == pytest.approx(spread, rel=0.02)
    tool.locator("input[type=checkbox]").check()
    assert numbers(tool.locator(".working").inner_text())[0] == pytest.approx(1, rel=0.1)


def test_sizes_are_those_that_python_counts(new_page, site):
    """Every shape with a name, and shapes of the reader's own."""
    page = opened(new_page, site, f"lesson-{with_tool('sizes')}")
    tool = page.locator("[data-tool=sizes]").first

    def check(shape, batch, number):
        shape = replace(shape, dropout=0.0)
        parameters, operations, training, generating = (values.evaluate_all(
            "all => all.map((one) => Number(one.dataset.value))") for values in map(listed, range(4)))
        parts = Sized(**asdict(shape)).parts.values()
        assert parameters == [part.total for part in parts]
        assert numbers(figure(0).locator("figcaption").inner_text())[-1] == parameter_count(shape)
        assert sum(operations) == flops_per_token(shape)
        assert numbers(figure(1).locator("figcaption").inner_text())[-1] == flops_per_token(shape)
        memory = training_memory(shape, batch)
        assert training == [getattr(memory, field.name) for field in fields(memory)]
        assert figure(2).locator("figcaption").inner_text().endswith(f": {in_bytes(memory.total)}")
        cache = cache_bytes(shape, number)
        assert generating == [number * parameter_count(shape), batch * shape.context * cache]
        assert f"{batch * shape.context:,} × {in_bytes(cache)} = " in listed(3).last.inner_text()
        for at in range(4):  # as large as they are: a pixel is worth the same in all of a drawing
            drawn = figure(at).locator("svg g").evaluate_all("""all => all.map((one) => {
                const { width, height } = one.querySelector("rect");
                return [Number(one.dataset.value), width.baseVal.value * height.baseVal.value];
            })""")
            values, areas = np.transpose(drawn)
            np.testing.assert_allclose(areas / areas.sum(), values / values.sum(), atol=1e-3)

    def figure(at):
        return tool.locator("figure.sized").nth(at)

    def listed(at):
        return figure(at).locator("li")

    for name, shape in SHAPES.items():
        tool.get_by_role("button", name=name, exact=True).click()
        check(shape_of(shape), 1, 2)
        typed = [float(field.input_value()) for field in tool.locator("input[type=text]").all()]
        assert typed == [*(getattr(shape_of(shape), size) for size in SIZES), 1]  # to the last digit
    random = np.random.default_rng(5)
    for _ in range(6):
        heads = int(random.choice([1, 2, 6]))
        shape = {"vocabulary": int(random.integers(1, 9999)), "context": int(random.integers(1, 4096)),
                 "width": heads * 2 * int(random.integers(1, 50)), "heads": heads,
                 "kv_heads": int(random.choice([0, 1, heads])), "blocks": int(random.integers(1, 50)),
                 "hidden": int(random.choice([0, 77])), "norm": str(random.choice(["layer_norm", "rms_norm"])),
                 "activation": str(random.choice(["gelu", "gelu_tanh", "swiglu"])),
                 "position": str(random.choice(["learned", "rotary"])),
                 "bias": bool(random.integers(2)), "tied": bool(random.integers(2))}
        for field, name in zip(tool.locator("input[type=text]").all()[:7], SIZES, strict=True):
            field.fill(str(shape[name]))
        batch, number = int(random.integers(1, 20)), int(random.choice([2, 4]))
        tool.get_by_label("sequences at once").last.fill(str(batch))
        for choice, value in zip(tool.locator("select").all(), [*list(shape.values())[7:], number], strict=True):
            choice.select_option(str(value).lower())
        check(shape_of(shape), batch, number)
    tool.locator("input[type=text]").nth(2).fill("7")
    tool.locator("input[type=text]").nth(3).fill("3")
    assert tool.locator(".wrong").count() == 1


@pytest.mark.parametrize(("like", "changed", "says"), [
    ("gpt2", {}, ["parameters: 124,439,808", "38,597,376 · 31 %", "786,432 · 0.632 %"]),
    ("llama-3-8b", {}, ["8,192 × 128 KiB = 1 GiB"]),
    # The article prints 256 more for each block: its own sum, 256·768 + 768 + 256·256 + 256, is 263,168.
    ("gpt2", {"blocks": 8, "width": 256, "heads": 4, "vocabulary": 1000, "context": 512}, ["parameters: 6,705,664"]),
    ("gpt2", {"vocabulary": 65, "context": 64, "width": 128, "heads": 4, "blocks": 4}, ["parameters: 809,856"])])
def test_sizes_that_are_known(new_page, site, like, changed, says):
    """Of GPT-2 small, of Llama 3's cache for a token, of the second article's models."""
    page = opened(new_page, site, f"lesson-{with_tool('sizes')}", viewport={"width": 360, "height": 740})
    tool = page.locator("[data-tool=sizes]").first
    tool.get_by_role("button", name=like, exact=True).click()
    for name, value in changed.items():
        tool.locator("input[type=text]").nth(SIZES.index(name)).fill(str(value))
    assert [text for text in says if text not in tool.inner_text()] == []


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


def test_a_vocabulary_that_does_not_arrive_is_said_and_asked_for_again(new_page, site):
    page = opened(new_page, site, f"lesson-{with_tool('tokenizer')}", quiet=("missing.js",))
    tool = page.locator("[data-tool=tokenizer]").first
    page.evaluate("""() => {
        const { head } = document;
        head.append = (script) => { // once: what it would load is not there
            delete head.append;
            script.src = "../data/missing.js";
            head.append(script);
        };
    }""")
    tool.get_by_role("button").click()
    expect(tool.get_by_role("status")).to_have_text(re.compile("did not arrive"))
    tool.get_by_role("button").click()
    expect(tool.get_by_role("status")).to_have_text(re.compile(r"tokens: \d+"))
