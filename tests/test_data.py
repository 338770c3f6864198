"""A text as token files: every id, every split, every refusal; and the windows that training reads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.cli import commands as cli
from tracer.errors import UserError
from tracer.trainer import corpus as data

ROOT = Path(__file__).resolve().parent.parent
TEXT = "".join(f"line {number} of a small text, 你好\n" for number in range(40))


def prepared(folder: Path, text: str | bytes = TEXT, tokenizer: str = "characters") -> data.Corpus:
    path = folder / "text.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    data.prepare(path, folder / "data", tokenizer)
    return data.load_data(folder / "data")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# What is written ---------------------------------------------------------------------------------------

def test_the_files_hold_the_ids_of_the_text(tmp_path):
    """Read without the program: code points in order, nine tenths and the rest, bytes little-endian."""
    prepared(tmp_path)
    meta = json.loads((tmp_path / "data" / "meta.json").read_text(encoding="utf-8"))
    order = sorted(set(TEXT))
    assert meta["tokenizer"] == {"name": "characters", "vocabulary_size": len(order), "characters": order}
    ids = bytes(order.index(character) for character in TEXT)
    cut = int(len(TEXT) * 0.9)
    for split, part in (("train", ids[:cut]), ("validation", ids[cut:])):
        assert meta["tokens"][split] == len(part)
        assert (tmp_path / "data" / meta["files"][split]).read_bytes() == part
    assert names(tmp_path / "data") == sorted([*meta["files"].values(), "meta.json"])


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=11).filter(lambda text: text[0] != "\ufeff"))
def test_any_text_comes_back(tmp_path_factory, text):
    loaded = prepared(tmp_path_factory.mktemp("any"), text)
    assert loaded.tokenizer.decode([*loaded.train, *loaded.validation]) == text


def test_line_ends_stay_as_they_are(tmp_path):
    loaded = prepared(tmp_path, "one\r\ntwo\rthree\n" * 5)
    assert loaded.tokenizer.decode(loaded.train)[:15] == "one\r\ntwo\rthree\n"


def test_gpt2_ids(tmp_path, tokenizer):
    loaded = prepared(tmp_path, TEXT, "gpt2")
    assert [*loaded.train, *loaded.validation] == tokenizer.encode(TEXT)
    assert loaded.train.dtype == np.dtype("<u2") and isinstance(loaded.train, np.memmap)


@pytest.mark.parametrize(("size", "dtype"), [(1, "uint8"), (256, "uint8"), (257, "uint16"), (50257, "uint16"),
                                             (65536, "uint16"), (65537, "uint32")])
def test_dtype_follows_the_vocabulary(size, dtype):
    assert data.token_dtype(size).name == dtype


def test_a_large_vocabulary_takes_two_bytes(tmp_path):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))
    loaded = prepared(tmp_path, text)
    assert loaded.train.dtype.name == "uint16" and list(loaded.train) == list(range(270))


def test_other_data_replaces_the_old_whole(tmp_path):
    prepared(tmp_path)
    before = names(tmp_path / "data")
    (tmp_path / "data" / "mine.bin").write_bytes(b"kept")
    loaded = prepared(tmp_path, "another text, longer than twenty characters")
    assert loaded.tokenizer.decode(loaded.train[:12]) == "another text"
    assert len(names(tmp_path / "data")) == 4 and not {*before} & {*names(tmp_path / "data")} - {"meta.json"}


def test_the_text_that_comes_along(tmp_path):
    data.prepare(data.DEFAULT_TEXT, tmp_path)
    loaded = data.load_data(tmp_path)
    assert len(loaded.train) > 5000 and set(loaded.validation) <= set(loaded.train)


# Refusals ----------------------------------------------------------------------------------------------

def test_a_byte_order_mark_is_dropped(tmp_path):
    plain = prepared(tmp_path)
    marked = prepared(tmp_path, b"\xef\xbb\xbf" + TEXT.encode())
    assert np.array_equal(marked.train, plain.train) and marked.tokenizer.characters == plain.tokenizer.characters


@pytest.mark.parametrize(("content", "says"), [
    (b"", "is empty"),
    (b"\xef\xbb\xbf", "is empty"),
    (b"caf\xe9 au lait", "is not UTF-8 (byte 0xe9 at 3): convert it to UTF-8"),
    ("two words".encode("utf-16"), "is UTF-16"),
    (b"ten tokens", "has 10 tokens, too few for two splits"),
])
@pytest.mark.parametrize("there", [False, True])
def test_refused_texts_leave_the_folder_as_it_was(tmp_path, content, says, there):
    if there:
        prepared(tmp_path)
    before = names(tmp_path / "data") if there else None
    with pytest.raises(UserError, match=_exactly(says)):
        prepared(tmp_path, content)
    assert (names(tmp_path / "data") if there else None) == before
    assert there or not (tmp_path / "data").exists()


def _exactly(text: str) -> str:
    return text.translate({ord(character): f"\\{character}" for character in "()."})


def test_a_missing_text_and_missing_data(tmp_path):
    with pytest.raises(UserError, match="there is no text"):
        data.prepare(tmp_path / "none.txt", tmp_path / "data")
    with pytest.raises(UserError, match="cannot be read"):
        data.prepare(tmp_path, tmp_path / "data")
    with pytest.raises(UserError, match="holds no prepared data"):
        data.load_data(tmp_path)


@pytest.mark.parametrize(("change", "says"), [
    (lambda meta: meta.update(format="two-routes/tokens/9"), "has format"),
    (lambda meta: meta["files"].update(train="../secret.bin"), "names a file that is no token file"),
    (lambda meta: meta["files"].update(train="train-0000000000000000.bin"), "is missing"),
    (lambda meta: meta["tokens"].update(train=7), "does not hold 7 ids"),
    (lambda meta: meta.update(dtype="uint16"), "of uint16"),
    (lambda meta: meta["tokenizer"].update(name="other"), "there is no tokenizer 'other'"),
    (lambda meta: meta["tokenizer"].update(characters=["a", "b"], vocabulary_size=2), "the vocabulary ends at 1"),
    (lambda meta: meta["tokenizer"].update(vocabulary_size=2), "is damaged .*has 26 tokens, not 2"),
    (lambda meta: meta["tokenizer"]["characters"].reverse(), "is damaged .*not in order"),
    (lambda meta: meta["tokenizer"]["characters"].append("zz"), "is damaged .*no list of single characters"),
    (lambda meta: meta.pop("files"), "is damaged"),
    (lambda meta: meta.update(tokenizer=None), "is damaged"),
])
def test_damaged_metadata_is_named(tmp_path, change, says):
    prepared(tmp_path)
    path = tmp_path / "data" / "meta.json"
    meta = json.loads(path.read_text(encoding="utf-8"))
    change(meta)
    path.write_text(json.dumps(meta), encoding="utf-8")
    with pytest.raises(UserError, match=says):
        data.load_data(tmp_path / "data")


def test_the_command_in_a_locale_that_is_not_utf_8(tmp_path):
    """With Python's own way out of such a locale switched off; file name and text are Chinese."""
    path = tmp_path / "文.txt"
    path.write_text(TEXT, encoding="utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment.pop("PYTHONIOENCODING", None)
    code = ("import sys\nfrom tracer.cli.commands import main\nfrom tracer.trainer import corpus as data\n"
            "prompt = sys.argv.pop()\nassert not prompt.isprintable(), 'this locale is UTF-8 after all'\n"
            "main()\n"
            "print(data.prompt_ids(data.load_data(data.Path(sys.argv[4])).tokenizer, prompt))")
    result = subprocess.run([sys.executable, "-c", code, "prepare", path, "-o", tmp_path / "data", "你好"],
                            env=environment, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    order = sorted(set(TEXT))
    assert result.stdout.splitlines()[-1] == str([order.index("你"), order.index("好")])
    meta = json.loads((tmp_path / "data" / "meta.json").read_text(encoding="utf-8"))
    assert meta["text"] == "文.txt" and meta["tokenizer"]["characters"] == order and len(names(tmp_path / "data")) == 3


def test_the_command_refuses_in_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\x00")
    monkeypatch.setattr(sys, "argv", ["tracer", "prepare", str(tmp_path / "bad.txt"), "-o", str(tmp_path / "data")])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1) and err.startswith("error: ")
    assert names(tmp_path) == ["bad.txt"]


# Tokenizers and prompts ----------------------------------------------------------------------------------

def test_a_character_that_the_vocabulary_lacks_is_named():
    with pytest.raises(UserError, match=r"the vocabulary lacks '好' \(U\+597D\), character 2 of 'ab好'"):
        data.prompt_ids(data.Characters("abc"), "ab好")


def test_an_empty_prompt_starts_from_a_line_end(tokenizer):
    assert data.prompt_ids(data.Characters("ab\n"), "") == [0]
    assert data.prompt_ids(tokenizer, "") == [198]  # "\n" in GPT-2's vocabulary
    with pytest.raises(UserError, match="an empty prompt starts from a line end, and the vocabulary has none"):
        data.prompt_ids(data.Characters("ab"), "")


def test_a_prompt_that_is_not_utf_8_is_refused():
    with pytest.raises(UserError, match="not UTF-8"):
        data.prompt_ids(data.Characters("ab"), "\udcff")


def test_tokenizers_survive_json_and_are_told_apart(tokenizer):
    characters = data.Characters("ab\n你")
    again = data.tokenizer_from_json(json.loads(json.dumps(data.tokenizer_to_json(characters))))
    data.check_same_tokenizer(characters, again, "x")
    for other in (data.Characters("ab\n好"), tokenizer):
        with pytest.raises(UserError, match=r"prepared with the tokenizer characters \(4 tokens\)"):
            data.check_same_tokenizer(characters, other, "x")


# Windows -------------------------------------------------------------------------------------------------

def test_targets_are_the_next_tokens(tmp_path):
    tokens = np.arange(100, dtype=np.uint8)
    x, y = data.windows(tokens, np.array([0, 7, 89]), 10)
    assert x.dtype == y.dtype == torch.int64 and x.is_contiguous() and y.is_contiguous()
    assert x.tolist() == [list(range(s, s + 10)) for s in (0, 7, 89)]
    assert y.tolist() == [list(range(s + 1, s + 11)) for s in (0, 7, 89)]


def test_every_window_can_be_drawn_and_none_beyond_the_end():
    starts = np.concatenate([data.random_starts(20, 50, 8, 1, update, 0) for update in range(40)])
    assert set(starts) == set(range(12))  # the last one has inputs 11 … 18 and targets 12 … 19
    counts = np.bincount(starts)
    assert abs(counts - 2000 / 12).max() < 5 * (2000 / 12) ** 0.5


def test_windows_depend_on_seed_update_and_micro_batch_alone():
    def draw(*key):
        return data.random_starts(10**6, 16, 64, *key).tolist()

    keys = [(1, 1, 0), (2, 1, 0), (1, 2, 0), (1, 1, 1), (1, 0, 1)]
    assert len({tuple(draw(*key)) for key in keys}) == len(keys)
    np.random.seed(5)
    torch.manual_seed(5)
    assert draw(*keys[0]) == draw(*keys[0])


def test_a_text_shorter_than_the_context(tmp_path):
    loaded = prepared(tmp_path, "x" * 29 + "y" * 11)  # 36 and 4 tokens
    data.check_length(loaded, 3)
    with pytest.raises(UserError, match="the validation split has 4 tokens, a context of 4 needs at least 5: use a "
                                        "longer text, or a context of at most 3"):
        data.check_length(loaded, 4)
