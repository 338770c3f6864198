"""Resuming: the same bits as a run that was never stopped, wherever it was killed and wherever its folder went."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from runs import ALONE, last, same_bits

from tracer import data
from tracer.errors import UserError
from tracer.fit import Fit
from tracer.run_log import RunLog, read_log

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
])
def test_a_resume_with_another_shape_is_refused(settings, change, says):
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
