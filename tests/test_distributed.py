"""Two processes that train one model, started by torchrun, against one process with the same global batch."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from tracer.trainer import checkpoints as run_checkpoint
from tracer.trainer import corpus as data
from tracer.trainer.fit import Fit
from tracer.trainer.log import read_log
from tracer.trainer.processes import Processes
from tracer.trainer.settings import make_settings

ROOT = Path(__file__).resolve().parent.parent
# The command itself; and in how many backward passes gradients were summed over all processes.  They are counted by
# the group's own number of its last operation: a hook in Python would be called from a thread of gloo, which ends the
# process badly when the interpreter is gone before it.
COUNTED = """
import os, sys
from pathlib import Path
import torch
from torch.distributed.distributed_c10d import _get_default_group
from tracer.cli import commands as cli

summed = 0
backward = torch.Tensor.backward
def counted(*arguments, **options):
    global summed
    group = _get_default_group()
    before = group._get_sequence_number_for_group()
    backward(*arguments, **options)
    summed += group._get_sequence_number_for_group() > before
torch.Tensor.backward = counted
output = Path(sys.argv.pop(1))
cli.main()
(output / f"sums-{os.environ['RANK']}").write_text(str(summed))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of the run of two processes and of the run of one, and of how often gradients were summed."""
    folder = tmp_path_factory.mktemp("two")
    data.prepare(data.DEFAULT_TEXT, folder / "data")
    settings = {"data": str(folder / "data"), "context": 16, "width": 16, "heads": 2, "blocks": 2, "batch": 4,
                "accumulation": 4, "updates": 6, "warmup": 2, "lr": 0.01, "evaluate_every": 3, "dropout": 0.2,
                "peak_tflops": 1.0}
    (folder / "two.toml").write_text(make_settings({**settings, "output": str(folder / "two")}).to_toml(), "utf-8")
    (folder / "counted.py").write_text(COUNTED, encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         folder / "counted.py", folder, "fit", "--config", folder / "two.toml", "--output", folder / "two"],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert result.returncode == 0, result.stderr
    alone = make_settings({**settings, "output": str(folder / "one")})
    Fit(alone, Processes(0, 1, torch.device("cpu"))).run()
    return folder, result


def test_losses_are_those_of_one_process(runs):
    """Of every update and evaluation, and so are the gradients' norms; with dropout, whose masks are shared out."""
    folder, _ = runs
    two, one = (read_log(folder / name / "log.jsonl") for name in ("two", "one"))
    assert [entry["update"] for entry in two] == [0, 1, 2, 3, 3, 4, 5, 6, 6]
    for left, right in zip(two, one, strict=True):
        assert left.keys() == right.keys()
        assert left.get("kernels") == right.get("kernels")
        for name in left.keys() - {"seconds", "kernels"}:
            assert left[name] == pytest.approx(right[name], rel=2e-5), (left["update"], name)
    assert one[-1]["validation_loss"] < one[0]["validation_loss"] - 0.1


def test_parameters_are_those_of_one_process(runs):
    folder, _ = runs
    two, one = (run_checkpoint.load_run(folder / name / "last.pt") for name in ("two", "one"))
    for name, value in one.parameters.items():
        assert torch.allclose(two.parameters[name], value, rtol=1e-3, atol=1e-4), name
    assert two.update == one.update == 6
    assert {**asdict(two.settings), "output": ""} == {**asdict(one.settings), "output": ""}


def test_gradients_are_summed_once_an_update(runs):
    """Each process runs two micro-batches an update, and sums after the second alone."""
    folder, _ = runs
    assert [(folder / f"sums-{rank}").read_text() for rank in (0, 1)] == ["6", "6"]


def test_one_process_writes_and_speaks(runs):
    folder, result = runs
    assert sorted(path.name for path in (folder / "two").iterdir()) == ["best.pt", "last.pt", "log.jsonl",
                                                                       "settings.toml"]
    lines = (folder / "two" / "log.jsonl").read_text().splitlines()
    assert len(lines) == len({json.dumps({**json.loads(line), "seconds": 0}) for line in lines}) == 9
    assert result.stdout.count("2 processes on cpu") == result.stdout.count("best validation loss") == 1
    assert result.stderr.count("training 6/6 loss") == 1
