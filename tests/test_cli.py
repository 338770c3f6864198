"""The command line: what it prints, what it writes, and how it refuses: one line, exit status 2, nothing written."""

import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from shared import common_folder, shared_folder

from tracer.cli import commands as cli
from tracer.format.files import unused_files
from tracer.format.load import load, load_all
from tracer.format.trace import Trace
from tracer.format.verify import verify
from tracer.model import layers

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = ("train", "generate", "record", "evaluate", "tokens", "verify", "attention", "heads", "parameters", "sample",
            "prepare", "fit", "experiment")
ENVIRONMENT = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
FAST = ("--updates", "3")


def without_notes(err: str) -> str:
    """Without what is said on a machine whose kernels are not the pinned ones."""
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith("note: "))


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capfd):
    """The program in this process, as `python -m tracer` runs it: torch is loaded once for all."""
    def call(*arguments) -> Result:
        monkeypatch.setattr(sys, "argv", ["tracer", *map(str, arguments)])
        try:
            cli.main()
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
        out, err = capfd.readouterr()
        return Result(status, out, without_notes(err))

    return call


def command(*arguments, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "tracer", *arguments], capture_output=True, cwd=ROOT, timeout=300,
                          env=ENVIRONMENT, **options)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """A folder that `record` wrote, in a process of its own.  Tests only read it."""
    return shared_folder(common_folder(tmp_path_factory), "recorded", _record) / "deep" / "traces"


def _record(parent: Path) -> None:
    folder = parent / "deep" / "traces"
    result = command("record", *FAST, "--max-new-tokens", "3", "-o", folder, text=True)
    assert result.returncode == 0, result.stderr
    assert without_notes(result.stderr).startswith("training 1/3 loss 10.8")
    assert f"wrote {folder / 'training.json'}: " in result.stdout
    assert f"wrote {folder / 'generation.json'}: " in result.stdout


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(result: Result) -> str:
    """The message of a refusal: one line on stderr, nothing on stdout, no traceback, exit status 2."""
    assert (result.status, result.out) == (2, ""), result
    assert result.err.startswith("error: ") and result.err.count("\n") == 1 and result.err.endswith("\n"), result.err
    return result.err[len("error: "):-1]


# Help ------------------------------------------------------------------------------------------------

def test_help(run):
    for option in ("--help", "-h"):
        result = run(option)
        assert (result.status, result.err) == (0, "")
        assert "Usage: " in result.out
        for name in COMMANDS:
            assert f"\n  {name} " in result.out


def test_help_comes_without_torch():
    """Also where only what the site needs is installed."""
    code = ("import sys\nsys.modules['torch'] = None\nfrom tracer.cli.commands import main\n"
            "sys.argv = ['tracer', 'record', '--help']\nmain()")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT)
    assert (result.returncode, result.stderr) == (0, "") and "--updates" in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command(run, name):
    result = run(name, "--help")
    assert (result.status, result.err) == (0, "")
    assert f"Usage: python -m tracer {name} " in result.out
    command = cli.commands.commands[name]
    for parameter in command.params:
        if parameter.param_type_name == "option":
            assert parameter.opts[0] in result.out
            assert parameter.help or parameter.default, f"{parameter.opts[0]} of {name} says nothing of itself"
    assert " ".join(command.help.split()) in " ".join(result.out.split())


def test_every_command_is_tested_here():
    assert set(cli.commands.commands) == set(COMMANDS)


def test_recording_without_torch_says_what_to_install():
    code = ("import sys\nsys.modules['torch'] = None\nfrom tracer.cli.commands import main\n"
            "sys.argv = ['tracer', 'train']\nmain()")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT)
    assert result.returncode == 2
    wanted = re.fullmatch("error: torch is not installed, recording needs it: run `pip install (.*)`\n", result.stderr)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert shlex.split(wanted[1]) == project["optional-dependencies"]["record"]


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


# What it does ----------------------------------------------------------------------------------------

def check_recordings(folder: Path, **config) -> dict[str, Trace]:
    """All recordings verify, have that config, and need every file of the folder."""
    traces = load_all(folder)
    assert set(traces) == {"training", "generation", "long"}
    for trace in traces.values():
        assert [check for check in verify(trace) if check.problem] == []
        assert {key: trace.make["config"][key] for key in config} == config
    assert unused_files(folder, traces.values()) == []
    assert {path.name for path in folder.iterdir()} == {f"{name}.json" for name in traces} | {"checkpoint.pt", "arrays"}
    return traces


def test_a_recording_verifies(recorded):
    traces = check_recordings(recorded, width=16, heads=2, blocks=2)
    assert traces["training"].make["text"] == "Hi 你!" and traces["generation"].make["prompt"] == "Hi"
    assert traces["training"].summary["ids"] == [17250, 220, 19526, 254, 0]
    assert len(traces["training"].values("series.loss")) == 3


def test_train_then_generate_is_record_and_another_process_gives_the_same_bytes(run, recorded, tmp_path):
    assert run("train", *FAST, "-o", tmp_path).status == 0
    assert {path.name for path in tmp_path.iterdir()} == {"training.json", "checkpoint.pt", "arrays"}
    result = run("generate", "--max-new-tokens", "3", "-o", tmp_path)
    assert result.status == 0 and "round 1: id " in result.out
    assert files(tmp_path) == files(recorded)


def test_a_recording_replaces_the_one_before(run, recorded, tmp_path):
    """Another shape over an old folder: files of the old one go, files of others stay."""
    folder = tmp_path / "traces"
    shutil.copytree(recorded, folder)
    (folder / "arrays" / "mine.json").write_text("{}")
    text = "👍[/b]"
    result = run("record", "--updates", "1", "--blocks", "1", "--heads", "4", "--width", "32", "--text", text,
                 "--validation-text", "é\n", "--prompt", "[bold]", "--max-new-tokens", "1", "-o", folder)
    assert result.status == 0, result.err
    assert f"on {text!r} and" in result.out  # brackets are text, not markup
    (folder / "arrays" / "mine.json").unlink()
    traces = check_recordings(folder, blocks=1, heads=4, width=32)
    assert traces["training"].make["text"] == text
    assert bytes(traces["training"].values("text.bytes").tolist()).decode() == text


def test_a_text_without_merges(run, tmp_path):
    result = run("record", "--updates", "1", "--text", "q", "--validation-text", "~q", "--prompt", "q",
                 "--max-new-tokens", "1", "-o", tmp_path)
    assert result.status == 0, result.err
    traces = check_recordings(tmp_path)
    assert not any(step.kind == "bpe_merge" for step in traces["training"].operations.values())
    assert traces["training"].summary["ids"] == [80]


def test_an_unreadable_neighbour_stops_nothing_and_nothing_is_removed(run, recorded, tmp_path):
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    (tmp_path / "other.json").write_text("{")
    old = files(tmp_path / "arrays")
    result = run("generate", "--max-new-tokens", "1", "--temperature", "2", "-o", tmp_path)
    assert result.status == 0
    assert result.err == (f"old array files are kept, for {tmp_path / 'other.json'} does not say that it is a "
                          "recording, and may need some\n")
    assert old.items() <= files(tmp_path / "arrays").items()


def test_evaluate(run, recorded):
    """The same loss as the recording's own evaluation."""
    summary = load(recorded / "training.json").summary
    result = run("evaluate", "--checkpoint", recorded / "checkpoint.pt", "Hi 你!", "Hi 你好!", ":cat: [/b]")
    assert result.status == 0
    first, second, third = result.out.splitlines()
    assert first == f"{summary['train_loss']:.6f}  'Hi 你!'"
    assert second == f"{summary['validation_loss']:.6f}  'Hi 你好!'"
    assert third.endswith("  ':cat: [/b]'")  # no emoji, no markup


def test_tokens(run):
    assert run("tokens", "Hi 你!").out.splitlines() == [
        "bytes   48 69 20 e4 bd a0 21", "merge   H + i → Hi  (id 17250)", "merge   E4 + BD → E4·BD  (id 19526)",
        *[f"id      {i}  {label}" for i, label in (
            (17250, "Hi"), (220, "␣"), (19526, "E4·BD"), (254, "A0"), (0, "!"))]]
    assert "[/b]" in run("tokens", "[/b]").out or "[/" in run("tokens", "[/b]").out


def test_a_terminal_that_cannot_show_a_letter_gets_its_code():
    result = subprocess.run([sys.executable, "-m", "tracer", "tokens", "你"], capture_output=True, cwd=ROOT,
                            env={**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}, timeout=300)
    assert result.returncode == 0, result.stderr
    assert b"bytes   e4 bd a0" in result.stdout and b"\\u2192" in result.stdout


# Verify ----------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def verified(recorded) -> str:
    result = command("verify", recorded, text=True)  # into a pipe, with COLUMNS=80
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_verify_shows_one_row_for_every_step_with_its_whole_name(recorded, verified):
    for trace in load_all(recorded).values():
        for step in trace.operations.values():
            if not trace.arrays[step.id].derived:
                assert f"│ {step.id} " in verified, step.id
                assert f"│ {step.kind}.{step.target} " in verified
    longest = max((line for line in verified.splitlines() if line.startswith("│")), key=len)
    assert 80 < len(longest) < 200
    assert "…" not in verified


def test_every_row_of_verify_is_one_line(verified):
    rows = [line.strip("│").split("│") for line in verified.splitlines() if line.startswith("│")]
    assert len(rows) > 600
    for row in rows:
        assert len(row) == 6 and all(cell.strip() for cell in row), row
        assert row[5].strip() == "ok"
        float(row[3]), float(row[4])


def test_verify_brief_shows_one_row_for_every_kind(run, recorded):
    result = run("verify", "--brief", recorded / "generation.json")
    assert result.status == 0
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in result.out.splitlines()
            if line.startswith("│")]
    trace = load(recorded / "generation.json")
    stored = [step for step in trace.operations.values() if not trace.arrays[step.id].derived]
    kinds = list(dict.fromkeys(f"{step.kind}.{step.target}" for step in stored))
    assert [row[0] for row in rows] == [*kinds, "summary", "sha256"]
    for row in rows[:-2]:
        of_kind = [step for step in stored if f"{step.kind}.{step.target}" == row[0]]
        assert row[1] == str(len(of_kind))
        assert row[2] == f"{sum(trace.arrays[step.id].size for step in of_kind):,}"
    numbers = sum(trace.arrays[step.id].size for step in stored)
    assert f"generation: {len(list(verify(trace)))} checks, {numbers:,} numbers recomputed, 0 wrong" in result.out


def test_verify_says_what_is_wrong_and_exits_with_1(run, recorded, tmp_path):
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "generation.json"
    content = path.read_text()
    assert content.count('"trained_on":"Hi 你!"') == 1
    path.write_text(content.replace('"trained_on":"Hi 你!"', '"trained_on":"Hi 我!"'))
    for hashes, status in (("--hashes", 1), ("--no-hashes", 0)):
        result = run("verify", "--brief", hashes, path)
        assert (result.status, result.err) == (status, "")
        assert ("WRONG generation: outline (sha256): how it was made, its labels or its list of operations was changed "
                "(sha256 differs)" in result.out) == bool(status)
    assert run("verify", "--brief", path).out.splitlines()[-1] == "WRONG in all: 2, the first: generation, outline"


# Interruption ----------------------------------------------------------------------------------------

def start_training(folder: Path) -> subprocess.Popen:
    """A long training that has shown its first line of progress."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tracer", "train", "--updates", "100000", "-o", folder], cwd=ROOT, env=ENVIRONMENT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a shell's background job ignores it
    said = (line for line in process.stderr if not line.startswith("note: "))
    assert next(said).startswith("a large recording: up to ")  # so many updates take long
    assert next(said).startswith("training 1/100000 loss 10.8")
    time.sleep(0.2)
    return process


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_training_that_is_stopped_leaves_the_old_folder(recorded, tmp_path, sent, status):
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    process = start_training(tmp_path)
    process.send_signal(sent)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (status, "")
    lines = [line for line in err.splitlines() if line]
    assert lines == (["error: interrupted; what was there before is as it was"] if sent == signal.SIGINT else [])
    assert files(tmp_path) == files(recorded)
