"""Which kernels compute: asked for before torch is imported, measured afterwards, said when they are others."""

import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from tracer import kernels
from tracer.cli import commands as cli
from tracer.cli import fit as cli_fit
from tracer.cli import library as cli_library
from tracer.cli import record as cli_record
from tracer.model import kernel_probe, products
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.training import TrainingJob, record_training
from tracer.trainer.corpus import DEFAULT_TEXT, prepare
from tracer.trainer.fit import Fit
from tracer.trainer.log import read_log
from tracer.trainer.processes import Processes
from tracer.trainer.settings import FitSettings

ROOT = Path(__file__).resolve().parent.parent

# Other processors, played on this one ------------------------------------------------------------------

FOREIGN = {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"}
HANGS_ON_KERNELS = ("tests/test_verify.py::test_a_recording_made_afresh_verifies", "tests/test_reference.py",
                    "tests/test_made_again.py::test_the_recordings_made_again_are_the_committed_ones",
                    "tests/test_made_again.py::test_the_first_update_made_again_is_as_near_as_rounding_allows",
                    "tests/test_heads.py")


def printed_with(settings: dict[str, str], *arguments) -> list[str]:
    """What Python prints for `arguments` in a process with these settings, which must succeed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=600,
                            env={**environment, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **settings})
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr
    lines = result.stdout.splitlines()
    header = next(line for line in lines if line.startswith("kernels: "))
    assert all(f"{name}={value}" in header for name, value in settings.items())
    if kernel_probe.pinned():  # or the processor has no such kernels to choose from
        assert "pinned" not in header
    return lines


def test_what_hangs_on_kernels_holds_with_others(tmp_path):
    """The figures, and the recordings made there: they verify, and are as near as rounding allows."""
    lines = printed_with(FOREIGN, "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'run'}",
                         *HANGS_ON_KERNELS)
    assert " passed" in lines[-1] and not any(word in lines[-1] for word in ("skipped", "deselected", "xfailed"))


@pytest.mark.parametrize("name", FOREIGN)
def test_the_first_update_holds_with_others_of_one_library(name, spread, tmp_path):
    (tmp_path / "spread").write_bytes(pickle.dumps(spread))
    printed_with({name: FOREIGN[name]}, "tests/made_again.py", tmp_path / "spread")


ALONE = Processes(0, 1, torch.device("cpu"))


@pytest.fixture
def prepared(tmp_path) -> FitSettings:
    prepare(DEFAULT_TEXT, tmp_path / "data", "characters")
    return FitSettings(data=str(tmp_path / "data"), output=str(tmp_path / "run"), context=8, width=8, heads=1, blocks=1,
                       batch=2, updates=2, evaluate_every=1, save_every=1, peak_tflops=1.0)


# Asking for them ---------------------------------------------------------------------------------------

@pytest.fixture
def environment(monkeypatch) -> dict[str, str]:
    """An environment without settings, which a test may fill."""
    own: dict[str, str] = {}
    monkeypatch.setattr(kernels, "os", SimpleNamespace(environ=own))
    monkeypatch.setattr(kernels, "sys", SimpleNamespace(modules={}))
    return own


def test_all_three_libraries_are_asked_before_torch_is_imported(environment):
    assert kernels.pin_kernels() is None
    assert environment == kernels.PINS == kernels.environment()
    assert {name.split("_")[0] for name in environment} == {"ATEN", "ONEDNN", "MKL"}
    assert kernels.pin_kernels() is None


@pytest.mark.parametrize("name", kernels.PINS)
def test_a_setting_of_the_users_stays_and_is_named(environment, name):
    environment[name] = "AUTO"
    reason = kernels.pin_kernels()
    assert environment == {**kernels.PINS, name: "AUTO"}
    assert f"the environment sets {name}=AUTO, which stays" in reason and "\n" not in reason


def test_too_late_is_said_and_nothing_is_set(environment):
    kernels.sys.modules["torch"] = torch
    reason = kernels.pin_kernels()
    assert environment == {}
    assert "torch was imported before its kernels were pinned" in reason and "\n" not in reason
    environment |= kernels.PINS  # set by hand before
    assert kernels.pin_kernels() is None


def test_asking_needs_no_torch():
    code = "import sys, tracer.kernels; tracer.kernels.pin_kernels(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


# Saying so ---------------------------------------------------------------------------------------------

@pytest.fixture
def others(monkeypatch) -> None:
    """A processor that has other kernels."""
    monkeypatch.setattr(kernel_probe, "pinned", lambda: False)


def test_the_command_line_says_so_once_in_one_line(others, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["tracer", "record", "--updates", "1", "--max-new-tokens", "1", "--width", "2",
                                      "--blocks", "1", "-o", str(tmp_path)])
    with warnings.catch_warnings():
        cli.main()
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("training ")]
    assert len(said) == 1 and said[0].startswith("note: ") and "last digits may differ" in said[0]


def test_the_library_warns(others, tokenizer, prepared):
    config = Config(tokenizer.vocabulary_size, width=2, heads=1, blocks=1)
    with pytest.warns(kernels.KernelWarning, match="last digits"):
        _, checkpoint = record_training(TrainingJob(config=config, settings=TrainingSettings(updates=1)), tokenizer)
    with pytest.warns(kernels.KernelWarning, match="last digits"):
        record_generation(GenerationJob(max_new_tokens=1), checkpoint, tokenizer)
    with pytest.warns(kernels.KernelWarning, match="last digits"):
        Fit(replace(prepared, pin_kernels=True), ALONE)
    with warnings.catch_warnings(action="error"):
        Fit(prepared, ALONE)


@pytest.mark.parametrize(("arguments", "pins"), [
    ("record", True), ("train", True), ("generate", True), ("fit --pin-kernels", True),
    ("fit", False), ("prepare", False), ("sample x", False), ("evaluate x", False), ("heads x", False),
    ("parameters", False), ("experiment depth", False), ("experiment cache", False)])
def test_only_what_promises_bits_pins(monkeypatch, arguments, pins):
    class Asked(Exception):
        pass

    def needs(*packages, pin=False):
        raise Asked(pin)

    for module in (cli_record, cli_fit, cli_library):
        monkeypatch.setattr(module, "needs", needs)
    with pytest.raises(Asked) as asked:
        cli.commands(arguments.split(), standalone_mode=False)
    assert asked.value.args == (pins,)


def test_a_recording_says_what_made_it(fresh):
    used = fresh.training.make["kernels"]
    assert used == fresh.generation.make["kernels"] == kernel_probe.kernels_used()
    assert used["torch"] == torch.backends.cpu.get_cpu_capability()
    assert used["settings"] == {name: os.environ[name] for name in kernels.PINS}
    assert used["pinned"] == (kernel_probe.fingerprint() == kernel_probe.PINNED)


def test_a_run_notes_its_kernels_and_one_that_goes_on_with_others_is_told(prepared, tmp_path, monkeypatch, capsys):
    settings = prepared
    Fit(settings, ALONE).run()
    noted = {entry["kernels"] for entry in read_log(tmp_path / "run" / "log.jsonl") if "validation_loss" in entry}
    assert noted == {kernel_probe.described(kernel_probe.kernels_used())}
    goes_on = ["fit", "--resume", "--output", settings.output, "--updates", "3"]
    cli.commands([*goes_on], standalone_mode=False)
    assert "other kernels" not in capsys.readouterr().err
    monkeypatch.setattr("tracer.trainer.fit.kernels_used", lambda: {"torch": "AVX512", "settings": {}, "pinned": False})
    cli.commands([*goes_on[:-1], "4"], standalone_mode=False)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert len(said) == 1 and f"trained with other kernels, {noted.pop()}:" in said[0]
    assert read_log(tmp_path / "run" / "log.jsonl")[-1]["kernels"] == "AVX512"


# Products that are the same on processors of every maker -------------------------------------------------

@pytest.mark.parametrize("rows", [(1, 1), (1, 2), (2, 1), (1, 3), (1, 4), (3, 2)])
def test_products_of_few_rows(rows):
    x, weight, bias = torch.randn(*rows, 7, requires_grad=True), torch.randn(9, 7), torch.randn(9)
    out = products.linear(x, weight, bias)
    torch.testing.assert_close(out.double(), F.linear(x.double(), weight.double(), bias.double()), rtol=1e-5, atol=1e-5)
    gradient = torch.randn(*rows, 9)
    out.backward(gradient)
    torch.testing.assert_close(x.grad.double(), gradient.double() @ weight.double(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(products.linear(x, weight), out - bias, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 2, 1, 1, 8), (1, 2, 5, 5, 8), (2, 3, 16, 16, 8), (1, 1, 16, 16, 3),
                                   (1, 2, 16, 16, 12), (1, 2, 1, 64, 8)])
def test_weighted_sums_of_few_columns(shape):
    B, H, T, S, D = shape
    weights, value = torch.rand(B, H, T, S), torch.randn(B, H, S, D, requires_grad=True)
    out = products.weighted_sum(weights, value)
    assert out.is_contiguous()
    torch.testing.assert_close(out.double(), weights.double() @ value.double(), rtol=1e-5, atol=1e-5)
    out.sum().backward()
    expected = weights.sum(dim=-2).unsqueeze(-1).expand(B, H, S, D)
    torch.testing.assert_close(value.grad, expected, rtol=1e-5, atol=1e-5)
