"""What a generation's page shows beside its steps: ids and text, bytes and their roles, the tree of choices."""

import math

import numpy as np
import pytest
import torch
from driver import DESK, WORDS, address, go, opened, place, shortest, visit

from site_builder.parts import format_number
from site_builder.rounds import Byte, _byte, bytes_of, careless, layers, percent, tree
from tracer.format.trace import Step
from tracer.model.sampling import Sampling, choose

PROMPT, ROUNDS = "Hi", range(1, 6)
TEXT = ["Hi", "Hi ", "Hi ", "Hi 你", "Hi 你!", "Hi 你!"]  # after each round
IDS = [17250, 220, 19526, 254, 0, 50256]


def at(trace, number: int, step: str):
    """The layers when `step` of a round is shown."""
    chapter = next(one for one in trace.chapters if one.id == f"round{number}")
    return layers(trace, chapter, step_named(trace, f"round{number}.{step}"))


def step_named(trace, name: str) -> Step:
    return next(step for step in trace.steps() if step.id == name)


@pytest.mark.parametrize("number", ROUNDS)
def test_layers_grow_with_the_steps_of_a_round(generation_trace, number):
    """The id comes with `append`, the text with `bytes`; before, all is as the round before left it."""
    for step, ids, text in (("head", number, number - 1), ("sampler.draw", number, number - 1),
                            ("append", number + 1, number - 1), ("bytes", number + 1, number)):
        now = at(generation_trace, number, step)
        assert [one for one, _ in now.ids] == IDS[:ids], step
        assert now.text == TEXT[text], step
        assert now.new == (1 if ids > 1 else 0), step
        assert now.held == (["E4", "BD"] if text == 2 else []), step


def test_a_held_character_shows_only_when_it_is_whole(generation_trace):
    before, now, after = (at(generation_trace, number, "bytes") for number in (1, 2, 3))
    assert (before.text, now.text, after.text) == ("Hi ", "Hi ", "Hi 你")
    assert (before.held, now.held, after.held) == ([], ["E4", "BD"], [])
    assert [label for _, label in now.ids] == ["Hi", "␣", "E4·BD"]


def test_layers_of_the_other_chapters(generation_trace, training_trace):
    """With the cache a round is told again: all of it has been done."""
    def first(trace, name):
        chapter = next(one for one in trace.chapters if one.id == name)
        return layers(trace, chapter, chapter.steps[0])

    assert first(generation_trace, "cached4").text == TEXT[4]
    assert first(generation_trace, "prompt").ids == [(17250, "Hi")]
    assert first(generation_trace, "prompt").text == PROMPT
    assert first(generation_trace, "parameters") is None
    assert first(training_trace, "loss") is None


def test_bytes_of_each_round(generation_trace):
    steps = [step_named(generation_trace, f"round{n}.bytes") for n in ROUNDS]
    told = [[(one.hex, one.role, one.held_before, one.shown) for one in bytes_of(generation_trace, step)]
            for step in steps]
    assert told == [
        [("20", "single", False, True)],
        [("E4", "lead", False, False), ("BD", "continuation", False, False)],
        [("E4", "lead", True, True), ("BD", "continuation", True, True), ("A0", "continuation", False, True)],
        [("21", "single", False, True)],
        []]
    others = [step_named(generation_trace, name) for name in ("round1.head", "text")]
    assert [bytes_of(generation_trace, step) for step in others] == [[], []]


@pytest.mark.parametrize("value", range(256))
def test_the_role_of_a_byte_is_what_python_decodes(value):
    """A lead byte of n begins a character of n bytes; a byte that Python never decodes is never part of one."""
    byte: Byte = _byte(value, False, False)
    assert byte.hex == f"{value:02X}" and byte.mark + byte.rest == f"{value:08b}"
    starts = [n for n in range(1, 5) if any(decodes(bytes([value, second, *[0x80] * (n - 2)][:n]))
                                            for second in (0x80, 0x90, 0xA0))]
    follows = decodes(bytes([0xC3, value]))
    expected = (("single" if starts == [1] else "lead") if starts else "continuation" if follows else "never")
    assert byte.role == expected
    assert byte.length == (starts[0] if starts else 0)


def decodes(text: bytes) -> bool:
    try:
        return len(text.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False


def test_careless_decoding_shows_replacement_characters(generation_trace):
    steps = [step_named(generation_trace, f"round{n}.bytes") for n in range(1, 5)]
    assert [careless(generation_trace, step) for step in steps] == [" ", "\ufffd", "\ufffd", "!"]


def test_paths_of_the_tree_multiply(generation_trace):
    """Beside each candidate the probability of all that was chosen before it and of itself."""
    levels, before = tree(generation_trace), 1.0
    assert len(levels) == len(ROUNDS)
    for number, branches in zip(ROUNDS, levels, strict=True):
        recorded = generation_trace.values(f"round{number}.sampler.softmax")
        assert [one.probability for one in branches] == recorded.tolist()
        assert [one.path for one in branches] == pytest.approx([before * p for p in recorded.tolist()], rel=1e-12)
        assert [one.label.split()[0] for one in branches if one.chosen] == [str(IDS[number])]
        before = next(one.path for one in branches if one.chosen)
    assert before == pytest.approx(math.prod(r["probability"] for r in generation_trace.summary["rounds"]), rel=1e-5)


@pytest.mark.parametrize(("probability", "text"), [
    (0, "0 %"), (1, "100 %"), (0.5, "50.0 %"), (0.123456, "12.3 %"), (0.999985, "99.999 %"),
    (0.0005, "0.1 %"), (0.00034, "0.03 %"), (1e-9, "1.0e−7 %"), (3.2e-12, "3.2e−10 %")])
def test_percent(probability, text):
    assert percent(probability) == text


@pytest.mark.parametrize("exponent", range(1, 17))
def test_percent_is_neither_nothing_nor_all_by_rounding(exponent):
    for share in (10.0**-exponent, 1 - 10.0**-exponent, 4.9 * 10.0**-exponent, 1 - 2.0**-24):
        if 0 < share < 1:
            shown = float(percent(share).removesuffix(" %").replace("−", "-"))
            assert 0 < shown < 100, (share, percent(share))
            assert shown == pytest.approx(100 * share, rel=0.5)


# In the browser --------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def generation(module_page, site):
    """The page of the generation, which the tests share."""
    return visit(module_page(viewport=DESK), address(site, "generation"))


def test_two_layers_at_every_round(generation):
    """New text: a space, nothing, 你, !, nothing; the ids run ahead of it."""
    for number in ROUNDS:
        for step, ids, text in (("head", number, number - 1), ("bytes", number + 1, number)):
            go(generation, f"#step=round{number}.{step}")
            layers = generation.locator(".step.current .layers")
            assert layers.locator(".id strong").all_inner_texts() == [str(one) for one in IDS[:ids]]
            assert layers.locator(".screen").text_content() == TEXT[text]
            assert layers.locator(".soft code").all_inner_texts() == (["E4 BD"] if text == 2 else [])


def test_bytes_and_careless_text_on_the_page(generation):
    go(generation, "#step=round3.bytes")
    rows = generation.locator(".step.current .bytes tbody tr")
    assert rows.locator("th").all_inner_texts() == ["E4", "BD", "A0"]
    assert [row.get_attribute("class") for row in rows.all()] == ["shown"] * 3
    assert generation.locator(".step.current p .screen").inner_text() == "\ufffd"


TRY = ".step.current .playground"


def playground(page, number: int):
    go(page, f"#step=round{number}.choices")
    page.wait_for_selector(f"{TRY} tbody tr.now")
    return page.locator(TRY)


def tried(page) -> dict:
    """What the playground shows: its settings, its winner, and the interval that the number fell into."""
    return page.evaluate("""(box) => {
        const all = (part) => [...document.querySelectorAll(`${box} ${part}`)];
        const now = document.querySelector(`${box} tr.now`);
        const cumulative = (row) => (row ? Number(row.lastChild.textContent) : 0);
        return { settings: all(".range input[type=range]").map((input) => Number(input.value)),
            uniform: Number(all(".range output")[3].textContent), winner: now.firstChild.textContent,
            piece: document.querySelector(`${box} .piece.now`).title, rows: all("tbody tr").length,
            out: all("tbody tr.out").length, needle: parseFloat(document.querySelector(`${box} i`).style.left),
            from: cumulative(now.previousSibling), to: cumulative(now),
            says: document.querySelector(`${box} [role=status]`).textContent };
    }""", TRY)


def winner(trace, number: int, how: Sampling, uniform: float) -> str:
    logits = torch.from_numpy(trace.values(f"round{number}.head"))
    token = choose(logits, torch.tensor([uniform]), how).item()
    return f"{token} {trace.label_list('vocabulary')[token]}"


def test_other_settings_choose_another_token(generation, generation_trace):
    """Hotter, with more candidates, and another number drawn: what wins is what the library would draw."""
    words, box = WORDS["en"], playground(generation, 2)
    assert words("try.computed") in box.inner_text()
    start = tried(generation)
    assert start["winner"] == f"{IDS[2]} E4·BD"
    assert words("try.recorded_settings") in start["says"]
    assert start["settings"][:3] == [0.8, 5, 1]
    temperature, top_k, top_p, uniform = (box.locator(".range input[type=range]").nth(n) for n in range(4))
    temperature.fill("3")
    top_k.fill("50")
    seen = set()
    for share in (0.05, 0.5, 0.9, 0.98):
        uniform.fill(str(share))
        now = tried(generation)
        assert now["winner"] == now["piece"] == winner(generation_trace, 2, Sampling(3, 50), share)
        assert now["from"] <= share < now["to"] + 1e-6
        same = now["winner"] == start["winner"]
        assert (words("try.same") in now["says"]) == same
        assert words("try.recorded_settings") not in now["says"]
        seen.add(now["winner"])
    assert len(seen) > 1
    top_p.fill("0.3")
    now = tried(generation)
    assert now["winner"] == winner(generation_trace, 2, Sampling(3, 50, 0.3), 0.98)
    assert 0 < now["out"] < now["rows"] == 50
    box.get_by_role("button", name=words("try.reset")).click()
    assert tried(generation) == start


def test_the_number_of_another_seed(generation, generation_trace):
    box = playground(generation, 3)
    for seed in (8, 2**40 + 3):
        generator = torch.Generator().manual_seed(seed)
        third = [torch.rand((), generator=generator).item() for _ in range(3)][-1]
        box.locator("input[type=number]").fill(str(seed))
        now = tried(generation)
        assert now["uniform"] == pytest.approx(third, abs=1e-6)
        assert now["winner"] == winner(generation_trace, 3, Sampling(0.8, 5), third)


def test_the_number_is_dragged_along_the_bar(generation, generation_trace):
    box = playground(generation, 4)
    box.locator(".range input[type=range]").nth(0).fill("3")
    box.locator(".range input[type=range]").nth(1).fill("50")
    bar = box.locator(".cumulative")
    bar.scroll_into_view_if_needed()
    at = bar.bounding_box()
    seen = set()
    generation.mouse.move(at["x"] + 3, at["y"] + 9)
    generation.mouse.down()
    for share in (0.2, 0.55, 0.75, 0.97, 1.2):
        x = at["x"] + at["width"] * share
        generation.mouse.move(x, at["y"] + 9)
        now = tried(generation)
        assert now["uniform"] == pytest.approx(min(share, 0.999999), abs=0.01)
        assert now["winner"] == now["piece"]
        assert now["from"] <= now["uniform"] <= now["to"] + 1e-6
        assert now["needle"] / 100 == pytest.approx(now["uniform"], abs=1e-6)
        under = generation.evaluate("""([x, y]) => [x - 1, x, x + 1].flatMap((x) => document.elementsFromPoint(x, y))
            .filter((one) => one.classList.contains("piece")).map((one) => one.title)""", [x, at["y"] + 9])
        assert now["winner"] in under or share > 1  # the bar is drawn to scale, to a pixel
        seen.add(now["winner"])
    generation.mouse.up()
    assert len(seen) > 2
    generation.mouse.move(at["x"] + 5, at["y"] + 9)
    assert tried(generation) == now  # let go


def test_a_long_table_sorted_by_value(generation, generation_trace):
    """The first row is the largest logit; it opens as what it is; searching finds its row where it stands now."""
    go(generation, "#step=round2.head")
    place(generation)
    logits = generation_trace.values("round2.head")[0]
    order = np.argsort(-logits, kind="stable")
    labels = generation_trace.label_list("vocabulary")
    box = generation.locator('.step.current [data-array="round2.head"] .made')
    sort, rows = box.get_by_role("button", name=WORDS["en"]("sort_values")), box.locator("tbody tr:not(.spacer)")
    sort.click()
    assert sort.get_attribute("aria-pressed") == "true"
    shown = rows.evaluate_all("(rows) => rows.slice(0, 20).map((row) => [...row.children].map((c) => c.textContent))")
    assert shown == [[f"{i} {labels[i]}", format_number(logits[i])] for i in order[:20]]
    rows.first.locator("td").click()
    number = opened(generation)
    assert (number["index"], number["verdict"]) == ([0, int(logits.argmax())], "verdict ok")
    assert number["big"] == shortest(logits.max())
    assert rows.first.locator("td").get_attribute("class").endswith("sel")
    generation.click('#ledger [data-tab="tables"]')
    search = box.locator("input[type=search]")
    search.fill("254")
    search.press("Enter")
    found = box.locator("tr.found")
    assert found.locator("th").inner_text() == f"254 {labels[254]}"
    assert int(found.get_attribute("aria-rowindex")) == 2 + int(np.flatnonzero(order == 254)[0])
    found.locator("td").click()
    assert opened(generation)["index"] == [0, 254]
    sort.click()
    assert rows.first.locator("th").inner_text() == f"0 {labels[0]}"
