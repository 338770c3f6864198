"""What the tests of training share: a small run, its data, and whether two of them ended with the same bits."""

import os
import random
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from tracer.cli import commands as cli
from tracer.trainer import checkpoints as run_checkpoint
from tracer.trainer import corpus as data
from tracer.trainer import fit
from tracer.trainer.log import read_log
from tracer.trainer.processes import Processes
from tracer.trainer.settings import FitSettings, make_settings

ALONE = Processes(0, 1, torch.device("cpu"))
SMALL = {"context": 16, "width": 16, "heads": 2, "blocks": 2, "batch": 4, "updates": 6, "warmup": 2,
         "evaluate_every": 3, "save_every": 2, "peak_tflops": 1.0}
TRIALS = int(os.environ.get("TWO_ROUTES_TRIALS", "1"))  # how many times as many generated cases as usual
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    data.prepare(data.DEFAULT_TEXT, folder)
    return folder


@pytest.fixture
def settings(prepared, tmp_path) -> FitSettings:
    return make_settings({**SMALL, "data": str(prepared), "output": str(tmp_path / "run")})


@pytest.fixture
def float16(monkeypatch):
    """Mixed precision of 16 bits with its scaler, as on a GPU; a processor has the kernels, only slow ones."""
    monkeypatch.setattr(fit, "precision_of", lambda name, device: torch.float16)


@pytest.fixture
def command(monkeypatch, capsys) -> Command:
    """The program in this process: exit status, standard output, standard error."""
    def call(*arguments) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tracer", *map(str, arguments)])
        status = 0
        try:
            cli.main()
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return call


def generator() -> tuple[int, random.Random]:
    """A seed to say when a test fails, and random numbers of it."""
    seed = int(os.environ.get("TWO_ROUTES_SEED", int.from_bytes(os.urandom(4))))
    return seed, random.Random(seed)


def options(settings: FitSettings) -> list[str]:
    changed = {name: value for name, value in asdict(settings).items() if value != getattr(FitSettings(), name)}
    return [part for name, value in changed.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def last(settings: FitSettings) -> run_checkpoint.RunCheckpoint:
    return run_checkpoint.load_run(Path(settings.output) / "last.pt")


def log_without_time(folder: str | Path) -> list[dict]:
    return [{**entry, "seconds": 0} for entry in read_log(Path(folder) / "log.jsonl")]


def same_bits(one: run_checkpoint.RunCheckpoint, two: run_checkpoint.RunCheckpoint) -> None:
    """Parameters, both moments and counts of every parameter, number of the update, best loss."""
    assert list(one.parameters) == list(two.parameters)
    for name, value in one.parameters.items():
        assert torch.equal(value, two.parameters[name]), name
    assert one.optimizer.keys() == two.optimizer.keys()
    for number, state in one.optimizer.items():
        for name, value in state.items():
            assert torch.equal(value, two.optimizer[number][name]), (number, name)
    assert (one.update, one.best, one.best_update) == (two.update, two.best, two.best_update)
    assert one.scaler == two.scaler
