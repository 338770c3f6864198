"""One thing of ours where another is meant: a folder, a checkpoint, a name; and an output that is closed."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from runs import ALONE, options
from shared import files

from tracer.recording.checkpoint import save_checkpoint
from tracer.trainer.fit import Fit

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def places(tmp_path, settings, prepared, fresh) -> dict[str, Path]:
    """What `fit`, `prepare` and `train` leave."""
    Fit(replace(settings, updates=1), ALONE).run()
    (tmp_path / "set").mkdir()
    save_checkpoint(fresh.checkpoint, tmp_path / "set" / "checkpoint.pt")
    return {"run": Path(settings.output), "data": prepared, "set": tmp_path / "set"}


def test_a_folder_holds_one_kind_of_thing(places, settings, command):
    recording = ("record", "--updates", 1, "--output")
    fitting = ("fit", *options(settings), "--output")
    for arguments, folder, says in (
            (fitting, "set", "holds recordings: choose another --output for a run"),
            (fitting, "data", "holds prepared data: choose another --output for a run"),
            (("prepare", "--output"), "set", "holds recordings: choose another --output for prepared data"),
            (("prepare", "--output"), "run", "holds a run: choose another --output for prepared data"),
            (recording, "run", "holds a run: choose another --output for recordings"),
            (recording, "data", "holds prepared data: choose another --output for recordings"),
            (("experiment", "depth", "--runs"), "run", "holds a run: choose another --runs for runs"),
            (("experiment", "depth", "--runs"), "set", "holds recordings: choose another --runs for runs")):
        before = files(places[folder])
        assert command(*arguments, places[folder]) == (2, "", f"error: {places[folder]} {says}\n")
        assert files(places[folder]) == before


def test_a_checkpoint_of_another_kind_is_called_by_its_name(places, command):
    run, recording = places["run"] / "last.pt", places["set"] / "checkpoint.pt"
    for arguments in (("evaluate", "Hi", "--checkpoint", run),
                      ("generate", "--checkpoint", run, "-o", places["set"] / "new")):
        assert command(*arguments) == (
            2, "", f"error: {run} is the checkpoint of a run, a recording's is needed: name the checkpoint.pt beside a "
                   "recording, or continue a prompt with `python -m tracer sample`\n")
    assert command("experiment", "cache", "--checkpoint", recording, "-o", places["set"] / "new.json") == (
        2, "", f"error: {recording} is the checkpoint of a recording, a run's is needed: name the folder of a run, or "
               "its last.pt or best.pt\n")
    assert command("evaluate", "Hi", "--checkpoint", places["run"])[2] == (
        f"error: {places['run']} is a folder: name the checkpoint in it, or train one with `python -m tracer train`\n")


def test_a_closed_output_is_no_error():
    result = subprocess.run(f"{sys.executable} -m tracer tokens Hi >&-", shell=True, cwd=ROOT, stderr=subprocess.PIPE)
    assert (result.returncode, result.stderr) == (0, b"")
