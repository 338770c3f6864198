"""What the command line refuses: one line, exit status 2, nothing written."""

import errno
import os
import re
import shutil

import pytest
from cli_runs import FAST, command, refused
from shared import files

from tracer.model import layers

# Bad input -------------------------------------------------------------------------------------------

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"


@pytest.mark.parametrize(("options", "says"), [
    (("--text", LONG), "is 17 tokens, the context holds 16: shorten it or choose a longer context"),
    (("--validation-text", LONG), "the validation text"),
    (("--text", ""), "the text is empty: give at least one character"),
    (("--validation-text", ""), "the validation text is empty"),
    (("--text", "a\udcffb"), "character 1 of the text is the lone surrogate U+DCFF"),
    (("--updates", "0"), "updates must be at least 1, not 0"),
    (("--updates", "-5"), "updates must be at least 1, not -5"),
    (("--width", "15"), "width 15 cannot be cut into 2 heads"),
    (("--width", "0"), "width must be at least 1"),
    (("--heads", "0"), "heads must be at least 1"),
    (("--blocks", "0"), "blocks must be at least 1"),
    (("--context", "0"), "context must be at least 1"),
    (("--context", "4"), "is 5 tokens, the context holds 4"),
    (("--context", str(10**18)), "context must be at most 2,147,483,647"),
    (("--width", str(2**31 - 2)), "this training is too large to record: recomputing it would take"),
    (("--dropout", "1"), "dropout must be at least 0 and below 1, not 1.0"),
    (("--dropout", "-0.1"), "dropout must be at least 0 and below 1"),
    (("--dropout", "nan"), "dropout must be at least 0 and below 1, not nan"),
    (("--lr", "-1"), "lr must be"),
    (("--lr", "nan"), "lr must be"),
    (("--lr", "inf"), "lr must be"),
    (("--lr", "1e39"), "lr must be"),
    (("--seed", str(2**64)), "seed must be"),
    (("--seed", "-1"), "seed must be"),
])
def test_bad_training_is_refused(run, tmp_path, options, says):
    for name in ("train", "record"):
        assert says in refused(run(name, *FAST, *options, "-o", tmp_path / "out"))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("options", "says"), [
    (("--prompt", ""), "the prompt is empty: give at least one character"),
    (("--prompt", LONG), "the context holds 16"),
    (("--prompt", "\udcff"), "lone surrogate U+DCFF"),
    (("--temperature", "0"), "temperature must be"),
    (("--temperature", "-1"), "temperature must be"),
    (("--temperature", "nan"), "temperature must be"),
    (("--temperature", "inf"), "temperature must be"),
    (("--top-k", "0"), "top-k must be from 1"),
    (("--top-k", "50258"), "top-k"),
    (("--max-new-tokens", "0"), "max-new-tokens must be at least 1, not 0"),
    (("--sampling-seed", str(2**64)), "seed must be"),
])
def test_bad_generation_is_refused(run, tmp_path, recorded, options, says):
    """By `record` before it trains: nothing of a recording that cannot be finished is written."""
    assert says in refused(run("record", *FAST, *options, "-o", tmp_path / "out"))
    checkpoint = recorded / "checkpoint.pt"
    assert says in refused(run("generate", *options, "--checkpoint", checkpoint, "-o", tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["train", "record", "generate"])
def test_an_output_that_cannot_be_written_is_refused_at_once(run, tmp_path, recorded, name):
    (tmp_path / "file").write_text("mine")
    options = ("--checkpoint", recorded / "checkpoint.pt") if name == "generate" else FAST
    for output in (tmp_path / "file", tmp_path / "file" / "below"):
        message = refused(run(name, *options, "-o", output))
        assert message == f"cannot write into {output}: choose another --output ({tmp_path / 'file'} is a file)"
    assert files(tmp_path) == {"file": b"mine"}


@pytest.mark.parametrize(("number", "says"), [
    (errno.ENOSPC, "the disk is full (No space left on device); what was there before is as it was: make room"),
    (errno.EROFS, "it lies on a disk that can only be read (Read-only file system); choose another place"),
    (errno.EIO, "Input/output error; check the path and the disk"),
])
@pytest.mark.parametrize("call", ["fsync", "chmod", "replace"])
def test_a_disk_that_refuses_is_one_line_with_the_file(run, tmp_path, recorded, monkeypatch, call, number, says):
    """The file that was to be written is named, whatever the system names."""
    def refuse(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, refuse)
    result = run("generate", "--max-new-tokens", "1", "--checkpoint", recorded / "checkpoint.pt", "-o", tmp_path)
    assert result.status == 2 and result.err.count("\n") == 1
    assert re.match(rf"error: {tmp_path}/(arrays/\w+|generation)\.json: ", result.err) and says in result.err
    assert files(tmp_path) == {}


@pytest.mark.parametrize("damage", ["missing", "empty", "cut off", "text", "other pickle", "folder"])
def test_a_damaged_checkpoint_is_refused(run, tmp_path, recorded, damage):
    import torch

    path = tmp_path / "checkpoint.pt"
    if damage == "folder":
        path.mkdir()
    elif damage == "other pickle":
        torch.save({"format": "two-routes/checkpoint/99"}, path)
    elif damage != "missing":
        whole = (recorded / "checkpoint.pt").read_bytes()
        path.write_bytes({"empty": b"", "cut off": whole[: len(whole) // 2], "text": b"no checkpoint"}[damage])
    before = files(tmp_path)
    for arguments in (("generate", "--checkpoint", path), ("generate", "-o", tmp_path),
                      ("evaluate", "--checkpoint", path, "Hi")):
        message = refused(run(*arguments))
        assert str(path) in message and "train" in message
    assert files(tmp_path) == before


def test_bad_recordings_are_refused(run, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "cut.json").write_text('{"schema": "two-routes/trace", "ver')
    for path, says in ((tmp_path / "none", "there is no folder"), (tmp_path / "none.json", "there is no folder"),
                       (tmp_path / "empty", f"again with `python -m tracer record --output {tmp_path / 'empty'}`"),
                       (tmp_path / "bad", "cut.json: the file is cut off or damaged"),
                       (tmp_path / "bad" / "cut.json", "cut.json: the file is cut off or damaged")):
        message = refused(run("verify", path))
        assert says in message and str(path) in message


@pytest.mark.parametrize("content", ["{", "{}", "[1, 2]", '{"schema": "notes", "text": "two-routes/trace"}'])
def test_json_of_another_kind_beside_recordings_is_left_alone(run, recorded, tmp_path, content):
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    (tmp_path / "notes.json").write_text(content)
    result = run("verify", "--brief", tmp_path)
    assert result.status == 0 and "notes: " not in result.out
    assert result.err == f"left alone: {tmp_path / 'notes.json'}, which does not say that it is a recording\n"


def test_bad_texts_are_refused(run, recorded):
    checkpoint = recorded / "checkpoint.pt"
    assert "lone surrogate U+DCFF" in refused(run("tokens", "\udcff"))
    assert "lone surrogate U+D800" in refused(run("evaluate", "--checkpoint", checkpoint, "\ud800"))
    assert "the text is empty" in refused(run("evaluate", "--checkpoint", checkpoint, ""))
    assert "the context holds 16" in refused(run("evaluate", "--checkpoint", checkpoint, LONG))


def test_bytes_that_are_no_text_are_refused_as_an_argument_too():
    result = command("tokens", b"\xff")
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr == (b"error: character 0 of the text is the lone surrogate U+DCFF, which UTF-8 cannot "
                             b"express: remove it\n")


@pytest.mark.parametrize("arguments", [
    ("verify", "--unknown"), ("--unknown",), ("unknown",), ("tokens",), ("evaluate",), ("tokens", "a", "b"),
    ("train", "--updates", "many"), ("train", "--updates"), ("record", "--lr", "fast")])
def test_what_click_does_not_know_shows_the_usage(run, arguments):
    result = run(*arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.splitlines()[-1].startswith("Error: ") and "Traceback" not in result.err
    assert result.err.startswith("Usage: python -m tracer") or arguments == ("train", "--updates")


def test_a_recording_whose_numbers_do_not_follow_is_not_written(run, tmp_path, monkeypatch):
    """A kernel that is one per cent off: the recorder checks itself before it writes."""
    gelu = layers.F.gelu
    monkeypatch.setattr(layers.F, "gelu", lambda x, **form: gelu(x, **form) * 1.01)
    result = run("train", "--updates", "1", "--text", "q", "--validation-text", "q", "-o", tmp_path)
    assert (result.status, result.out) == (2, "")
    progress, last = result.err.splitlines()
    assert progress.startswith("training 1/1 loss ")
    assert last.startswith("error: operation blocks.0.mlp.gelu (gelu.out) does not follow from its operands: "
                           "64 of 64 wrong")
    assert last.endswith("; this recording was not written: choose a smaller lr, or report this with the command you "
                         "gave")
    assert list(tmp_path.iterdir()) == []
