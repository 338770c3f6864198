"""The tokenizer against transformers' GPT-2 tokenizer, GPT-2's own merge list, and Python's UTF-8."""

import functools
import json
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_cases import any_text, byte_ids, check_error, ordinary_ids, properties

import tracer.model.tokenizer as module
from tracer.model.tokenizer import MergeStep, append_eos, gpt2, shift

# transformers' regex engine follows another version of Unicode; code points that are unassigned in
# Python 3.11's (14.0) may be letters in one and not in the other.
assigned_text = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=60)
# Few different characters, so that real merges and whitespace rules come up often.
dense_text = st.text(st.sampled_from(" \t\n\r\u00a0\u3000aeinrstl'012!.-你好é\u0301\u200d👩🏽"), max_size=60)

TEXTS = [
    "",
    " ",
    "a",
    "Hi 你!",
    "Hi 你好!",
    "It's what they're after; I'll say we've DON'T 'S 'lless 'd'm't",
    "The quick brown fox jumps over the lazy dog. 3.14159 1234567890",
    "Größe, œuvre, naïve café, cafe\u0301 ångström İstanbul ß ẞ",
    "Привет, мир! Γειά σου κόσμε. Բարեւ աշխարհ",
    "こんにちは世界。カタカナ、漢字。안녕하세요 세계",
    "नमस्ते दुनिया। สวัสดีชาวโลก ሰላም ልዑል ᚠᛇᚻ",
    "مرحبا بالعالم ١٢٣ שָׁלוֹם עוֹלָם \u200fabc\u200e",
    "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇩🇪 1️⃣ ☃️ 😀😀",
    "x² ½ Ⅷ ① ٣ 𝟘𝒳 𠜎𠜱 𐍈",
    "  two   three    four\n\n\nfive\t\ttabs \t mixed \n end   ",
    "\r\nline\r\n\r\n  indented\r\n",
    "\u00a0\u2003\u3000\u2028x\u2029\u0085 y\ufeff\u200bz",
    "".join(map(chr, range(0x100))),
    "\x00\x00\x1b[31mred\x1b[0m\x7f",
    "<|endoftext|>",
    "a<|endoftext|> <|endoftext|>b",
    "�� \ufffe\uffff\U0010ffff",
    "a" * 300,
    "ab" * 200 + "aba" * 100,
    " " * 500 + "x" + "\n" * 70,
    "é" * 150 + "你" * 150,
    "def f(x):\n    return {'a': [x**2 for _ in range(10)]}  # ok\n",
    "https://example.org/a_b?c=d&e=%20#f SolidGoldMagikarp",
]


@pytest.fixture(scope="module")
def reference(data):
    from transformers import GPT2Tokenizer

    return GPT2Tokenizer(vocab=str(data / "encoder.json"), merges=str(data / "vocab.bpe"))


@pytest.fixture(scope="module")
def merges(data) -> list[tuple[str, str]]:
    lines = (data / "vocab.bpe").read_text(encoding="utf-8").splitlines()
    return [tuple(line.split(" ")) for line in lines if not line.startswith("#version")]


@pytest.fixture(scope="module")
def encoder(data) -> dict[str, int]:
    return json.loads((data / "encoder.json").read_text(encoding="utf-8"))


def reference_ids(reference, text: str) -> list[int]:
    # By default transformers makes EOS of the literal <|endoftext|>.
    return reference.encode(text, add_special_tokens=False, split_special_tokens=True)


def reference_text(reference, ids: list[int]) -> str:
    return reference.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def test_facts():
    tokenizer = gpt2()
    assert tokenizer is gpt2()
    assert (tokenizer.name, tokenizer.vocabulary_size, tokenizer.eos) == ("gpt2", 50257, 50256)
    assert tokenizer.encode("Hi 你!") == [17250, 220, 19526, 254, 0]
    assert tokenizer.pieces("Hi 你!") == ["Hi", " 你", "!"]
    assert "你".encode() == b"\xe4\xbd\xa0"
    assert tokenizer.token_bytes(19526) == b"\xe4\xbd"
    assert tokenizer.token_bytes(254) == b"\xa0"
    assert tokenizer.decode(tokenizer.encode("Hi 你好!")) == "Hi 你好!"
    assert tokenizer.byte_ids("Hi 你!") == [[39, 72], [220, 160, 121, 254], [0]]
    assert tokenizer.merge_steps("Hi 你!") == [
        MergeStep(0, [39, 72], 0, 39, 72, 17250, [17250]),
        MergeStep(1, [220, 160, 121, 254], 1, 160, 121, 19526, [220, 19526, 254]),
    ]


def test_merge_steps_of_a_longer_word():
    steps = gpt2().merge_steps(" hello")
    named = ["|".join(gpt2().label(id) for id in step.after) for step in steps]
    assert named == ["␣|he|l|l|o", "␣|he|ll|o", "␣he|ll|o", "␣hell|o", "␣hello"]
    assert steps[-1].after == gpt2().encode(" hello") == [23748]


def test_empty_text():
    tokenizer = gpt2()
    assert tokenizer.encode("") == tokenizer.pieces("") == []
    assert tokenizer.byte_ids("") == tokenizer.merge_steps("") == []
    assert tokenizer.decode([]) == ""


def test_eos_only_by_data_preparation():
    tokenizer = gpt2()
    ids = tokenizer.encode("a<|endoftext|>")
    assert tokenizer.eos not in ids
    assert tokenizer.decode(ids) == "a<|endoftext|>"
    assert tokenizer.token_bytes(50256) == b"<|endoftext|>"
    assert append_eos(ids, tokenizer) == [*ids, 50256]
    assert ids == tokenizer.encode("a<|endoftext|>")
    assert append_eos([], tokenizer) == [50256]


def test_shift():
    assert shift([5, 6, 7]) == ([5, 6], [6, 7])
    assert shift((1, 2)) == ([1], [2])
    check_error(lambda: shift([5]), "at least 2", "got 1")
    check_error(lambda: shift([]), "got 0")


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_agrees_with_transformers(reference, text):
    tokenizer = gpt2()
    ids = tokenizer.encode(text)
    assert ids == reference_ids(reference, text)
    assert tokenizer.decode(ids) == text == reference_text(reference, ids)
    check_merges(text)


@properties
@given(st.one_of(assigned_text, dense_text))
def test_random_text_agrees_with_transformers(reference, text):
    assert gpt2().encode(text) == reference_ids(reference, text)


@properties
@given(st.one_of(ordinary_ids, byte_ids))
def test_random_ids_decode_as_in_transformers(reference, ids):
    assert gpt2().decode(ids) == reference_text(reference, ids)


def test_every_token_agrees_with_encoder_json(encoder, reference):
    tokenizer = gpt2()
    assert len(encoder) == tokenizer.vocabulary_size
    assert sorted(encoder.values()) == list(range(50257))
    assert encoder["<|endoftext|>"] == tokenizer.eos
    for id in range(0, 50257, 7):
        assert tokenizer.decode([id]) == reference_text(reference, [id])


def test_order_of_ids_is_order_of_merges(merges, encoder):
    """Why ids suffice as ranks: merge k = 0, 1, … of vocab.bpe makes token 256 + k."""
    assert len(merges) == 50000
    assert [encoder[left + right] for left, right in merges] == list(range(256, 50256))
    assert [gpt2().token_bytes(id) for id in gpt2().byte_to_id] == [bytes([value]) for value in range(256)]
    assert sorted(gpt2().byte_to_id) == list(range(256))


def test_joined_bytes_decide_like_the_merge_list(merges, encoder):
    """Why "the joined bytes are a token" is GPT-2's rule, which asks whether the pair is in vocab.bpe.

    From its bytes each token is reached, and the last merge is the pair vocab.bpe lists for it. In a
    longer text, what happens inside a token before its last merge is what happens to its bytes alone,
    so there too only listed pairs are ever merged.
    """
    tokenizer = gpt2()
    for id, (left, right) in enumerate(merges, start=256):
        *_, last = tokenizer._merges(0, [tokenizer.byte_to_id[value] for value in tokenizer.token_bytes(id)])
        assert (last.left, last.right, last.after) == (encoder[left], encoder[right], [id])


@functools.cache
def vocabulary() -> dict[bytes, int]:
    return {gpt2().token_bytes(id): id for id in range(50256)}


def candidates(ids: list[int]) -> list[tuple[int, int]]:
    joined = [gpt2().token_bytes(left) + gpt2().token_bytes(right) for left, right in pairwise(ids)]
    return [(vocabulary()[data], at) for at, data in enumerate(joined) if data in vocabulary()]


def check_merges(text: str) -> None:
    """Replays the steps and checks each against the rule, stated here anew."""
    tokenizer = gpt2()
    now = tokenizer.byte_ids(text)
    piece = 0
    for step in tokenizer.merge_steps(text):
        assert step.piece >= piece
        piece = step.piece
        assert step.before == now[piece]
        assert (step.merged, step.position) == min(candidates(step.before))
        assert [step.left, step.right] == step.before[step.position : step.position + 2]
        assert step.after[step.position] == step.merged
        assert step.after[: step.position] == step.before[: step.position]
        assert step.after[step.position + 1 :] == step.before[step.position + 2 :]
        now[piece] = step.after
    assert not any(candidates(ids) for ids in now)
    assert [id for ids in now for id in ids] == tokenizer.encode(text)


@settings(properties, max_examples=40)
@given(st.one_of(any_text, dense_text))
def test_merges_replay(text):
    check_merges(text)


def test_steps_share_no_lists():
    first, second, *_ = gpt2().merge_steps("hello")
    first.after.clear()
    assert second.before and gpt2().encode("hello") == [31373]


def test_wrong_merges_are_an_internal_error(monkeypatch):
    tokenizer = gpt2()
    monkeypatch.setattr(tokenizer, "encode", lambda text: [0])
    with pytest.raises(AssertionError, match="internal error"):
        tokenizer.merge_steps("hello")


@properties
@given(st.one_of(any_text, dense_text))
def test_pieces_and_bytes(text):
    tokenizer = gpt2()
    pieces = tokenizer.pieces(text)
    assert "".join(pieces) == text
    assert all(pieces)
    assert [id for piece in pieces for id in tokenizer.encode(piece)] == tokenizer.encode(text)
    assert [b"".join(map(tokenizer.token_bytes, ids)) for ids in tokenizer.byte_ids(text)] == [
        piece.encode() for piece in pieces
    ]


def test_pieces_by_hand():
    pieces = gpt2().pieces
    assert pieces("It's  we'LL!?") == ["It", "'s", " ", " we", "'", "LL", "!?"]
    assert pieces("a \n\n b12½") == ["a", " \n\n", " b", "12½"]
    assert pieces("x \u3000你's\u00a0!") == ["x", " ", "\u3000", "你", "'s", "\u00a0", "!"]
    assert pieces("end \n") == ["end", " \n"]
    assert pieces("e\u0301a'é'ſ") == ["e", "\u0301", "a", "'", "é", "'", "ſ"]


def test_pieces_know_the_assigned_characters():
    """Letters and numbers by Python's own Unicode tables (without the great CJK and Hangul blocks)."""
    codes = [*range(128, 0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x17000), *range(0x1B000, 0x20000)]
    known = [c for c in map(chr, codes) if unicodedata.category(c) not in ("Cn", "Co") and not c.isspace()]
    assert len(known) > 20000
    after_letter, after_number = [], []
    for c in known:
        kind = unicodedata.category(c)[0]
        after_letter += [f"a{c}", "\n"] if kind == "L" else ["a", c, "\n"]
        after_number += [f"1{c}", "\n"] if kind == "N" else ["1", c, "\n"]
    assert gpt2().pieces("".join(after_letter)) == after_letter
    assert gpt2().pieces("".join(after_number)) == after_number


def test_pieces_follow_tiktoken_where_unicode_versions_differ():
    """Code points tiktoken's and the regex package's Unicode may class differently: tiktoken's counts."""
    finder = module._class_finder(r"\p{L}")
    for code in (0x558, 0x88F, 0xC5C, 0xCDC, 0x208F, 0x2B73A, 0x11DE0, 0x1E6C0, 0x323B0):
        c = chr(code)
        letter = bytes(finder.encode_ordinary(c)).decode() == c
        assert gpt2().pieces(f"a{c}a")[0] == (f"a{c}a" if letter else "a")
        gpt2().merge_steps(f"a{c} {c}1{c}")


@properties
@given(st.one_of(any_text, dense_text))
def test_round_trip(text):
    tokenizer = gpt2()
    ids = tokenizer.encode(text)
    assert all(type(id) is int and 0 <= id < 50256 for id in ids)
    assert tokenizer.decode(ids) == text


@properties
@given(st.one_of(ordinary_ids, byte_ids))
def test_decode_is_pythons_replace(ids):
    tokenizer = gpt2()
    data = b"".join(tokenizer.token_bytes(id) for id in ids)
    assert tokenizer.decode(ids) == data.decode("utf-8", errors="replace")
    assert tokenizer.decode(iter(ids)) == tokenizer.decode(np.array(ids, dtype=np.int64))
