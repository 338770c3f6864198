"""The command `fit`: what it prints, what it refuses, in one line and without a trace on the disk."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from runs import ALONE, last, options

from tracer.errors import UserError
from tracer.fit import Fit
from tracer.processes import Processes

# The command -------------------------------------------------------------------------------------------

def test_fit_and_resume_from_the_command_line(settings, command):
    status, out, err = command("fit", *options(replace(settings, updates=2)))
    assert status == 0, err
    assert "updates = 2\n" in out and "7,680 parameters, 64 tokens an update, 1 process on cpu" in out
    assert "training 2/2 loss 3.9" in err and re.search(r"tokens/s, MFU \d+\.\d%", err)
    status, out, err = command("fit", "--resume", "--output", settings.output, "--updates", 3)
    assert status == 0 and "going on after update 2" in out and "blocks = 2\n" in out
    assert last(settings).update == 3


def test_a_run_is_sampled_from(settings, command):
    """From its folder (the best checkpoint) or a file; an empty prompt starts from a line end."""
    Fit(replace(settings, updates=1), ALONE).run()
    texts = []
    for source, prompt in ((settings.output, ""), (Path(settings.output) / "last.pt", "\n")):
        status, out, err = command("sample", source, "--prompt", prompt, "--max-new-tokens", 5)
        assert status == 0, err
        texts.append(out)
    assert texts[0] == texts[1] and texts[0].startswith("\n") and len(texts[0]) == 7
    status, out, err = command("sample", settings.output, "--prompt", "你")
    assert (status, out, err.count("\n")) == (2, "", 1) and "the vocabulary lacks '你' (U+4F60)" in err


@pytest.mark.parametrize(("given", "says"), [
    (["--data", "nowhere"], "nowhere holds no prepared data: prepare some with `python -m tracer prepare`"),
    (["--context", "642"], "the validation split has 642 tokens, a context of 642 needs at least 643"),
    (["--width", "17"], "width 17 cannot be cut into 2 heads"),
    (["--batch", "0"], "batch must be at least 1"),
    (["--config", "nowhere.toml"], "there is no settings file nowhere.toml"),
    (["--resume"], "holds no run to resume"),
    (["--device", "cuda"], "this machine has no device cuda"),
    (["--batch", "10000000000000000000"], "batch must be at most 2,147,483,647"),
    (["--threads", "99999999999"], "threads must be at most 1024, not 99999999999"),
])
def test_refusals_are_one_line_and_write_nothing(settings, tmp_path, command, given, says):
    if "cuda" in given and torch.cuda.is_available():
        pytest.skip("this machine has one")
    status, out, err = command("fit", *options(settings), *given)
    assert (status, out, err.count("\n")) == (2, "", 1) and err.startswith("error: ") and says in err
    assert not Path(settings.output).exists()


TOGETHER = {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}


@pytest.mark.parametrize(("variables", "says"), [
    ({"WORLD_SIZE": "abc"}, "WORLD_SIZE is 'abc', no whole number from 1 on: start with torchrun"),
    ({"WORLD_SIZE": "0"}, "WORLD_SIZE is '0', no whole number from 1 on"),
    ({"WORLD_SIZE": "2"}, "WORLD_SIZE is 2, but RANK is not set: start with torchrun, or unset WORLD_SIZE"),
    ({"WORLD_SIZE": "2", "RANK": "0"}, "but MASTER_ADDR is not set"),
    (TOGETHER | {"RANK": "2"}, "RANK is 2, of 2 processes the last has 1"),
    (TOGETHER | {"RANK": "x"}, "RANK is 'x'"),
    (TOGETHER | {"MASTER_PORT": "65536"}, "MASTER_PORT is 65536"),
])
def test_variables_that_torchrun_does_not_set_are_refused(settings, monkeypatch, command, variables, says):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    status, out, err = command("fit", *options(settings))
    assert (status, out, err.count("\n")) == (2, "", 1) and says in err
    assert not Path(settings.output).exists()


def test_a_resume_whose_output_is_no_text_is_refused(tmp_path, command):
    (tmp_path / "run.toml").write_text("output = 5", encoding="utf-8")
    status, out, err = command("fit", "--resume", "--config", tmp_path / "run.toml")
    assert (status, out, err.count("\n")) == (2, "", 1) and "output must be a text" in err and "not 5" in err


def test_more_processes_than_accumulation_steps():
    for world, accumulation in ((2, 1), (2, 3), (4, 2)):
        with pytest.raises(UserError, match=f"{world} processes cannot share {accumulation} accumulation steps"):
            Processes(0, world, torch.device("cpu")).check(accumulation)
    Processes(0, 2, torch.device("cpu")).check(4)
