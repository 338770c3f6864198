"""The program run in this process and in others, and the folder that one of its commands recorded."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from shared import common_folder, shared_folder

from tracer.cli import commands as cli

ROOT = Path(__file__).resolve().parent.parent
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


def refused(result: Result) -> str:
    """The message of a refusal: one line on stderr, nothing on stdout, no traceback, exit status 2."""
    assert (result.status, result.out) == (2, ""), result
    assert result.err.startswith("error: ") and result.err.count("\n") == 1 and result.err.endswith("\n"), result.err
    return result.err[len("error: "):-1]
