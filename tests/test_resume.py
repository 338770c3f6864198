"""Resuming: the same bits as a run that was never stopped, wherever it was killed and wherever its folder went."""

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from runs import ALONE, SMALL, last, log_without_time, same_bits
from shared import files

from tracer.errors import UserError
from tracer.storage.lock import Busy, is_locked, locked
from tracer.trainer import corpus as data
from tracer.trainer.checkpoints import load_run
from tracer.trainer.fit import Fit
from tracer.trainer.log import RunLog, read_log
from tracer.trainer.settings import make_settings, resumed_settings

# Resuming ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_resumed_run_ends_with_the_same_bits(settings, dropout):
    same_bits_when_stopped_and_resumed(settings, dropout)


def test_a_resumed_run_in_float16_ends_with_the_same_bits(settings, float16):
    same_bits_when_stopped_and_resumed(settings, 0.0)
    assert last(settings).scaler["_growth_tracker"] == settings.updates


def same_bits_when_stopped_and_resumed(settings, dropout):
    settings = replace(settings, dropout=dropout, accumulation=2)
    Fit(settings, ALONE).run()
    whole, log = last(settings), read_log(Path(settings.output) / "log.jsonl")
    halves = replace(settings, output=settings.output + "2")

    class Stop(Exception):
        pass

    def stop(update):
        if update.number == 5:  # one after the last checkpoint
            raise Stop

    with pytest.raises(Stop):
        Fit(halves, ALONE).run(after_update=stop)
    assert last(halves).update == 4
    torch.rand(7)  # whatever happened in between
    Fit(halves, ALONE, resume=True).run()
    same_bits(whole, last(halves))
    assert last(halves).scaler == whole.scaler
    again = read_log(Path(halves.output) / "log.jsonl")
    assert [{**entry, "seconds": 0} for entry in again] == [{**entry, "seconds": 0} for entry in log]


def test_a_torn_line_of_the_log_is_taken_back(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"update": 1}\n{"update": 2}\n{"update": 3}\n{"upd')
    log = RunLog(path, 2)
    log.write(update=3, loss=0.5)
    log.close()
    assert path.read_bytes() == b'{"update": 1}\n{"update": 2}\n{"update": 3, "loss": 0.5}\n'


def test_a_line_of_the_log_that_is_no_entry_is_left_out(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"update": 1}\n{"a": 1}\n[]\n{"update": null}\n{"update": 2}\n')
    RunLog(tmp_path / "log.jsonl", 2).close()
    assert (tmp_path / "log.jsonl").read_text() == '{"update": 1}\n{"update": 2}\n'


def test_a_resume_with_fewer_updates_than_are_done_is_refused(settings):
    Fit(settings, ALONE).run()
    before = {path.name: path.read_bytes() for path in Path(settings.output).iterdir()}
    with pytest.raises(UserError, match=r"last\.pt has 6 updates done, more than 3: resume with --updates 6 or more"):
        Fit(replace(settings, updates=3), ALONE, resume=True)
    assert {path.name: path.read_bytes() for path in Path(settings.output).iterdir()} == before


@pytest.mark.parametrize(("change", "says"), [
    ({"blocks": 3}, "has blocks 2, the settings say 3: resume with blocks 2"),
    ({"width": 32}, "has width 16, the settings say 32"),
    ({"heads": 4}, "has heads 2, the settings say 4"),
    ({"context": 8}, "has context 16, the settings say 8"),
    ({"pretrained": "gpt2"}, "was started from scratch, not from 'gpt2'"),
])
def test_a_resume_with_another_shape_or_start_is_refused(settings, change, says):
    settings = replace(settings, updates=1)
    Fit(settings, ALONE).run()
    before = {path: path.read_bytes() for path in Path(settings.output).iterdir()}
    with pytest.raises(UserError, match=says):
        Fit(replace(settings, **change), ALONE, resume=True)
    assert {path: path.read_bytes() for path in Path(settings.output).iterdir()} == before


def test_a_resume_with_data_of_another_tokenizer_is_refused(settings, tmp_path):
    settings = replace(settings, updates=1)
    Fit(settings, ALONE).run()
    (tmp_path / "other.txt").write_text("other characters, " * 20, encoding="utf-8")
    data.prepare(tmp_path / "other.txt", tmp_path / "other")
    with pytest.raises(UserError, match=r"was prepared with the tokenizer characters \(10 tokens\).*52 tokens"):
        Fit(replace(settings, data=str(tmp_path / "other")), ALONE, resume=True)


def test_a_resume_with_another_text_of_the_same_characters_is_refused(settings, tmp_path):
    settings = replace(settings, updates=1)
    Fit(settings, ALONE).run()
    text = "".join(data.load_data(Path(settings.data)).tokenizer.characters) * 20
    (tmp_path / "other.txt").write_text(text, encoding="utf-8", newline="")
    data.prepare(tmp_path / "other.txt", tmp_path / "other")
    with pytest.raises(UserError, match=r"other holds another text than .*last\.pt was trained on: prepare the same"):
        Fit(replace(settings, data=str(tmp_path / "other")), ALONE, resume=True)


def test_a_run_is_neither_overwritten_nor_made_up(settings):
    with pytest.raises(UserError, match="holds no run to resume"):
        Fit(settings, ALONE, resume=True)
    Fit(replace(settings, updates=1), ALONE).run()
    with pytest.raises(UserError, match="holds a run already"):
        Fit(settings, ALONE)


# Where a run is ------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def two_updates(prepared, tmp_path_factory) -> Path:
    """The folder of a run that is to be gone on with.  Tests share it: copy before changing anything."""
    folder = tmp_path_factory.mktemp("two") / "run"
    Fit(make_settings({**SMALL, "updates": 2, "data": str(prepared), "output": str(folder)}), ALONE).run()
    return folder


def copied(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))


def moved(source: Path, target: Path) -> Path:
    return Path(shutil.move(source, target))


def linked(source: Path, target: Path) -> Path:
    """A copy whose files are the same files."""
    return Path(shutil.copytree(source, target, copy_function=os.link))


@pytest.mark.parametrize("stored", [None, "elsewhere", "original", 7])
@pytest.mark.parametrize("way", [copied, moved, linked, "symbolic"])
def test_what_a_run_is_resumed_from_is_what_it_writes_to(two_updates, tmp_path, monkeypatch, command, way, stored):
    """Whatever its settings say, wherever its folder went; the whole run to compare with was never moved."""
    original = copied(two_updates, tmp_path / "original")
    if stored is not None:  # as earlier versions wrote it, or somebody by hand
        value = str(original) if stored == "original" else stored
        with (original / "settings.toml").open("a", encoding="utf-8") as file:
            file.write(f"output = {json.dumps(value)}\n")
    before = files(original)
    if way == "symbolic":
        shutil.copytree(original, tmp_path / "deep" / "copy", copy_function=os.symlink)
        folder = tmp_path / "deep" / "copy"
    else:
        (tmp_path / "deep").mkdir()
        folder = way(original, tmp_path / "deep" / "copy")
    monkeypatch.chdir(folder.parent)
    status, _, err = command("fit", "--resume", "--output", "copy", "--updates", 4)
    assert status == 0, err
    assert (files(original) if original.exists() else before) == before
    assert load_run(folder / "last.pt").update == 4
    assert not (tmp_path / "deep" / "elsewhere").exists() and not Path("run").exists()
    whole = copied(two_updates, tmp_path / "whole")
    Fit(resumed_settings(whole, {"updates": 4}), ALONE, resume=True).run()
    same_bits(load_run(whole / "last.pt"), load_run(folder / "last.pt"))
    assert log_without_time(whole) == log_without_time(folder)


def test_the_settings_of_a_run_lead_no_other_run_into_its_folder(two_updates, tmp_path, monkeypatch, command):
    before = files(two_updates)
    monkeypatch.chdir(tmp_path)
    status, _, err = command("fit", "--config", two_updates / "settings.toml", "--updates", 1)
    assert status == 0, err
    assert load_run(Path("run") / "last.pt").update == 1 and files(two_updates) == before


# One process a folder ------------------------------------------------------------------------------------

def test_a_second_process_is_refused_and_the_first_goes_on(two_updates, tmp_path, command):
    folder = copied(two_updates, tmp_path / "run")
    says = f"error: another process writes into {folder}: wait until it has ended, or choose another --output\n"
    seen = []

    def meanwhile(update):
        before = files(folder)
        for resume in (["--resume"], []):
            assert command("fit", *resume, "--output", folder) == (2, "", says)
        assert command("sample", folder, "--max-new-tokens", 2)[0] == 0  # reading is free
        assert files(folder) == before
        seen.append(update.number)

    Fit(resumed_settings(folder, {"updates": 4}), ALONE, resume=True).run(meanwhile)
    assert seen == [3, 4] and load_run(folder / "last.pt").update == 4
    assert [entry["update"] for entry in read_log(folder / "log.jsonl")] == [0, 1, 2, 2, 3, 3, 4, 4]


def test_a_process_that_began_before_another_one_ended_does_not_undo_it(two_updates, settings, tmp_path):
    folder = copied(two_updates, tmp_path / "old")
    for own, resume in ((settings, False), (resumed_settings(folder, {"updates": 4}), True)):
        first, second = Fit(own, ALONE, resume), Fit(own, ALONE, resume)
        first.run()
        before = files(Path(own.output))
        with pytest.raises(UserError, match=r"another process has trained in .* meanwhile: give the command again"):
            second.run()
        assert files(Path(own.output)) == before


def test_two_processes_that_start_at_once(settings):
    """Real ones: one trains, the other is refused, and nothing of either is mixed."""
    children = []
    for _ in range(2):
        child = os.fork()
        if not child:
            status = 1
            try:
                Fit(settings, ALONE).run()
                status = 0
            except UserError:
                status = 2
            finally:
                os._exit(status)
        children.append(child)
    ends = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert ends == [0, 2]
    assert [entry["update"] for entry in read_log(Path(settings.output) / "log.jsonl")] == [0, 1, 2, 3, 3, 4, 5, 6, 6]
    assert last(settings).update == 6


def test_the_lock_of_a_process_that_was_killed_holds_nobody_up(settings, tmp_path):
    path = tmp_path / ".lock"
    child = os.fork()
    if not child:
        with locked(path):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert path.exists() and not is_locked(path)
    with locked(path):
        assert is_locked(path)
        with pytest.raises(Busy), locked(path):
            pass
    assert not path.exists()
