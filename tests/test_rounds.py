"""What a generation's page shows beside its steps: ids and text, bytes and their roles, the tree of choices."""

import math

import pytest

from site_builder.rounds import Byte, _byte, bytes_of, careless, layers, percent, tree

PROMPT, ROUNDS = "Hi", range(1, 6)
TEXT = ["Hi", "Hi ", "Hi ", "Hi 你", "Hi 你!", "Hi 你!"]  # after each round
IDS = [17250, 220, 19526, 254, 0, 50256]


def at(trace, number: int, step: str):
    """The layers when `step` of a round is shown."""
    return layers(trace, f"round{number}", f"round{number}.{step}")


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
    assert layers(generation_trace, "cached4", "cached4.head").text == TEXT[4]
    assert layers(generation_trace, "prompt", "prompt.ids").ids == [(17250, "Hi")]
    assert layers(generation_trace, "prompt", "prompt.ids").text == PROMPT
    assert layers(generation_trace, "parameters", "parameters.token_embedding") is None
    assert layers(training_trace, "loss", "loss") is None


def test_bytes_of_each_round(generation_trace):
    told = [[(one.hex, one.role, one.held_before, one.shown) for one in bytes_of(generation_trace, f"round{n}.bytes")]
            for n in ROUNDS]
    assert told == [
        [("20", "single", False, True)],
        [("E4", "lead", False, False), ("BD", "continuation", False, False)],
        [("E4", "lead", True, True), ("BD", "continuation", True, True), ("A0", "continuation", False, True)],
        [("21", "single", False, True)],
        []]
    assert bytes_of(generation_trace, "round1.head") == bytes_of(generation_trace, "prompt.ids") == []


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
    assert [careless(generation_trace, f"round{n}.bytes") for n in range(1, 5)] == [" ", "\ufffd", "\ufffd", "!"]


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
