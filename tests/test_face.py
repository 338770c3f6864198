"""The names that the package offers: all there, imported when asked for, without torch where torch is not needed."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tracer
from tracer import FitSettings, UserError, fit, load, prepare, verify
from tracer.format.roles import ROUTES
from tracer.format.verify import Check

ROOT = Path(__file__).resolve().parent.parent
WITHOUT_TORCH = ("load", "verify", "Config", "FitSettings", "UserError")
# As the project promises them; more may come, none may go.
PROMISED = {"Recorder", "GPT", "Config", "generate", "Sampling", "choose", "from_pretrained", "save_pretrained", "fit",
            "verify", "load"}


def test_every_promised_name_is_there_and_says_what_it_is():
    assert set(tracer.__all__) >= PROMISED
    for name in tracer.__all__:
        found = getattr(tracer, name)
        assert found.__name__ == name
        assert inspect.getdoc(found), name
        assert name in dir(tracer)


def test_names_for_type_checkers_are_those_that_are_imported():
    """A checker reads the imports that never run; they must name the same homes."""
    source = (ROOT / "tracer" / "__init__.py").read_text(encoding="utf-8")
    for name, home in tracer._HOMES.items():
        line = next(line for line in source.splitlines() if line.startswith(f"    from tracer.{home} import "))
        assert name in line.partition(" import ")[2].split(", ")
    assert sorted(tracer._HOMES) == sorted(tracer.__all__)


def test_torch_is_imported_when_it_is_needed():
    code = ("import sys, tracer; dir(tracer)\n"
            f"from tracer import {', '.join(WITHOUT_TORCH)}\n"
            f"assert not verify(load({str(ROOT / 'traces' / 'long.json')!r}))[-1].problem\n"
            "assert 'torch' not in sys.modules and 'site_builder' not in sys.modules\n"
            "from tracer import GPT; assert 'torch' in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(AttributeError, match="has no attribute 'Generate'; it has GPT, Config"):
        _ = tracer.Generate
    with pytest.raises(ImportError, match="cannot import name 'Generate'"):
        exec("from tracer import Generate")


# load and verify -------------------------------------------------------------------------------------

def test_a_file_is_one_recording_a_folder_is_all():
    folder = ROOT / "traces"
    recordings = load(folder)
    assert sorted(recordings) == sorted(ROUTES)
    one = load(str(folder / "long.json"))
    assert one.outline_sha256 == recordings["long"].outline_sha256


def test_verify_names_what_is_wrong():
    recording = load(ROOT / "traces" / "long.json")
    checks = verify(recording)
    assert all(isinstance(check, Check) and not check.problem for check in checks)
    name = next(check.name for check in checks if check.kind.startswith("softmax"))
    recording.values(name).flat[0] += 0.25
    assert name in [check.name for check in verify(recording) if check.problem]


@pytest.mark.parametrize("path", ["nothing.json", "empty"])
def test_what_is_no_recording_is_refused(tmp_path, path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=path):
        load(tmp_path / path)


# fit --------------------------------------------------------------------------------------------------

def test_fit_tells_of_every_update_goes_on_and_leaves_threads_alone(tmp_path):
    (tmp_path / "text.txt").write_text("to be or not to be\n" * 20, encoding="utf-8")
    prepare(tmp_path / "text.txt", tmp_path / "data")
    settings = FitSettings(data=str(tmp_path / "data"), output=str(tmp_path / "run"), context=4, width=8, heads=2,
                           blocks=1, updates=2, batch=2, threads=2)
    before, updates, evaluations = torch.get_num_threads(), [], []
    run = fit(settings, after_update=updates.append, after_evaluation=evaluations.append)
    assert [update.number for update in updates] == [1, 2]
    assert [each.number for each in evaluations] == [0, 2]
    assert run.best == min(each.validation for each in evaluations)
    assert torch.get_num_threads() == before
    with pytest.raises(UserError, match="holds a run already"):
        fit(settings)
    assert fit(settings, resume=True, after_update=updates.append).done == 2
    assert len(updates) == 2
