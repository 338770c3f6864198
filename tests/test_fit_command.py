"""The command `fit`: what it prints, what it refuses, in one line and without a trace on the disk."""

import os
import re
import signal
import socket
import sys
import traceback
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
import torch
from runs import ALONE, last, options

from tracer.cli import commands as cli
from tracer.errors import UserError
from tracer.library.counting import training_memory
from tracer.storage.lock import locked
from tracer.trainer import memory
from tracer.trainer.fit import Fit
from tracer.trainer.memory import device_memory
from tracer.trainer.processes import Processes

# The command -------------------------------------------------------------------------------------------

def test_fit_and_resume_from_the_command_line(settings, command):
    status, out, err = command("fit", *options(replace(settings, updates=2)))
    assert status == 0, err
    assert "updates = 2\n" in out and "7,680 parameters, 64 tokens an update, 1 process on cpu" in out
    assert "training 2/2 loss 3.9" in err and re.search(r"tokens/s, MFU \d+\.\d%", err)
    status, out, err = command("fit", "--resume", "--output", settings.output, "--updates", 3)
    assert status == 0 and "going on after update 2" in out and "blocks = 2\n" in out
    assert last(settings).update == 3


def test_an_interrupted_run_says_which_update_is_kept(settings, command, monkeypatch):
    def stop(self, after_update, after_evaluation):
        run(self, lambda update: interrupt() if update.number == 5 else None, after_evaluation)

    def interrupt():
        raise KeyboardInterrupt

    run = Fit.run
    monkeypatch.setattr(Fit, "run", stop)
    status, _, error = command("fit", *options(settings))
    assert status == 130
    assert f"{Path(settings.output) / 'last.pt'} has update 4: --resume goes on from there" in error
    assert last(settings).update == 4


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
    (["--batch", "2147483647"], "a batch of 2147483647 × 16 tokens needs "),
    (["--width", "2147483646"], "a batch of 4 × 16 tokens needs "),
    (["--blocks", "2147483647"], "choose a smaller batch, context, width or number of blocks"),
    (["--lr", "1e-3", "--lr-end", "1e-2"], "lr_end must be at most lr, which is 0.001, not 0.01"),
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


def test_a_run_without_its_settings_is_not_said_to_be_none(settings, command):
    """Without --resume the same folder is refused for the run that it holds."""
    assert command("fit", *options(settings), "--updates", "1")[0] == 0
    (Path(settings.output) / "settings.toml").unlink()
    for given in (["--resume", "--output", settings.output], options(settings)):
        status, _, err = command("fit", *given)
        assert status == 2 and "holds no run" not in err
    assert "settings.toml is missing, last.pt is there" in command("fit", "--resume", "--output", settings.output)[2]


def test_a_resume_whose_output_is_no_text_is_refused(tmp_path, command):
    (tmp_path / "run.toml").write_text("output = 5", encoding="utf-8")
    status, out, err = command("fit", "--resume", "--config", tmp_path / "run.toml")
    assert (status, out, err.count("\n")) == (2, "", 1) and "output must be a text" in err and "not 5" in err


def test_more_processes_than_accumulation_steps():
    for world, accumulation in ((2, 1), (2, 3), (4, 2)):
        with pytest.raises(UserError, match=f"{world} processes cannot share {accumulation} accumulation steps"):
            Processes(0, world, torch.device("cpu")).check(accumulation)
    Processes(0, 2, torch.device("cpu")).check(4)


def test_a_small_lr_is_all_that_need_be_said(settings, command):
    status, out, err = command("fit", *options(replace(settings, updates=1)), "--lr", "1e-5")
    assert status == 0 and "lr = 1e-05\n" in out and f"lr_end = {1e-5 / 30!r}\n" in out, err
    assert "best validation loss 3.9" in out and ", after " in out.splitlines()[-1]


def test_an_empty_prompt_and_a_vocabulary_without_a_line_end(settings, tmp_path, command):
    """Given or by default."""
    (tmp_path / "text.txt").write_text("one line of a text that has no other " * 20, encoding="utf-8")
    assert command("prepare", tmp_path / "text.txt", "-o", tmp_path / "data")[0] == 0
    settings = replace(settings, data=str(tmp_path / "data"), updates=1)
    Fit(settings, ALONE).run()
    for arguments in ((), ("--prompt", "")):
        assert command("sample", settings.output, *arguments) == (
            2, "", "error: an empty prompt starts from a line end, and the vocabulary has none: give a --prompt of its "
                   "characters, for example ' '\n")
    assert command("sample", settings.output, "--prompt", " ", "--max-new-tokens", 1)[0] == 0
    assert "the vocabulary lacks '\\n' (U+000A)" in command("sample", settings.output, "--prompt", "\n")[2]


@pytest.mark.parametrize(("flag", "says"), [(os.ST_RDONLY, "lies on a disk that can only be read"),
                                            (0, "this user may not write into")])
def test_a_place_that_cannot_be_written_is_refused_with_why(settings, tmp_path, monkeypatch, command, flag, says):
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flag))
    for arguments in (("prepare", "-o", tmp_path / "new"), ("fit", *options(settings)), ("record", "-o", tmp_path)):
        status, out, err = command(*arguments)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("error: cannot write into ") and says in err and f"{tmp_path}" in err
    assert list(tmp_path.iterdir()) == []


# Memory ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_needs_more_memory_than_there_is_is_refused_at_once(settings, monkeypatch, precision):
    """One byte decides; in 16 bits half of what the backward needs is counted."""
    settings = replace(settings, precision=precision, batch=33)
    memory = training_memory(Fit(settings, ALONE).model.config, 33)
    kept = memory.activations + memory.backward
    need = memory.total - (0 if precision == "float32" else kept // 2)
    monkeypatch.setattr("tracer.trainer.memory.device_memory", lambda device: need)
    Fit(settings, ALONE)
    monkeypatch.setattr("tracer.trainer.memory.device_memory", lambda device: need - 1)
    with pytest.raises(UserError, match=r"a batch of 33 × 16 tokens needs 0\.0 GB with this model, this"):
        Fit(settings, ALONE)
    monkeypatch.setattr("tracer.trainer.memory.device_memory", lambda device: None)
    Fit(settings, ALONE)


def test_the_memory_of_this_machine(tmp_path, monkeypatch):
    there = device_memory(torch.device("cpu"))
    assert 2**28 < there < 2**50
    (tmp_path / "limit").write_text("1000000\n")
    (tmp_path / "none").write_text("max\n")
    monkeypatch.setattr(memory, "LIMITS", (tmp_path / "none", tmp_path / "missing"))
    assert device_memory(torch.device("cpu")) >= there
    monkeypatch.setattr(memory, "LIMITS", (tmp_path / "none", tmp_path / "limit"))
    assert device_memory(torch.device("cpu")) == 1000000


# Several processes -----------------------------------------------------------------------------------------

def free_port() -> int:
    with socket.socket() as each:
        each.bind(("localhost", 0))
        return each.getsockname()[1]


def one_of_two(rank: int, port: int, said: Path, arguments: list[str]) -> NoReturn:
    """Ends the process, and at once: taking a group apart that has lost a member may wait for good."""
    signal.alarm(60)
    try:
        output = os.open(said, os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
        os.environ |= {"WORLD_SIZE": "2", "RANK": f"{rank}", "LOCAL_RANK": f"{rank}", "MASTER_ADDR": "localhost",
                       "MASTER_PORT": f"{port}", "TORCHELASTIC_RUN_ID": "x"}
        sys.argv = ["tracer", "fit", *arguments]
        cli.main()
        os._exit(0)
    except SystemExit as stop:
        os._exit(stop.code)
    except BaseException:
        traceback.print_exc()
        os._exit(3)


def together(folder: Path, arguments: list[str]) -> tuple[list[int], str]:
    """The command in two forks, with the variables that torchrun sets: their exit statuses, what they say."""
    port, children = free_port(), []
    for rank in range(2):
        child = os.fork()
        if not child:
            one_of_two(rank, port, folder / f"said-{rank}", arguments)
        children.append(child)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return ends, "".join((folder / f"said-{rank}").read_text(encoding="utf-8") for rank in range(2))


@pytest.mark.parametrize(("given", "says"), [
    (["--lr", "-1"], "lr must be at least 0"),
    (["--data", "nowhere"], "nowhere holds no prepared data"),
    (["--accumulation", "3"], "2 processes cannot share 3 accumulation steps"),
    (["locked"], "another process writes into"),
    (["--lr", "1e38", "--warmup", "0"], "the run has diverged"),
])
def test_several_processes_refuse_in_one_line(settings, tmp_path, monkeypatch, given, says):
    """What all find, what one finds that alone writes, and what stops them while they train."""
    arguments = [*options(replace(settings, accumulation=2)), *given]
    with ExitStack() as stack:
        if given == ["locked"]:
            arguments.pop()
            Path(settings.output).mkdir()
            stack.enter_context(locked(Path(settings.output) / ".lock"))
        ends, said = together(tmp_path, arguments)
    assert ends == [2, 2], said
    assert said.count("error: ") == 1 and says in said and "Traceback" not in said
