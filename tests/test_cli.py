"""The command line: what it prints, what it writes, and how it refuses: one line, exit status 2, nothing written."""

import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, FAST, ROOT, command
from shared import files

from tracer.cli import commands as cli
from tracer.format.files import unused_files
from tracer.format.load import load, load_all
from tracer.format.roles import ROUTES
from tracer.format.trace import Trace
from tracer.format.verify import verify

COMMANDS = ("train", "generate", "record", "evaluate", "tokens", "verify", "attention", "heads", "parameters", "sample",
            "prepare", "fit", "experiment", "passes")


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


# What it does ----------------------------------------------------------------------------------------

def check_recordings(folder: Path, **config) -> dict[str, Trace]:
    """All recordings verify, have that config, and need every file of the folder."""
    traces = load_all(folder)
    assert set(traces) == {*ROUTES}
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
