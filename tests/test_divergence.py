"""A run whose numbers stop being finite, wherever: what is left is good, is told in JSON, and is gone on from."""

import io
import json
import math
import re
import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from runs import ALONE, SMALL, TRIALS, generator, log_without_time, options, same_bits
from shared import files

from tracer.model.finite import Diverged, all_finite, first_not_finite
from tracer.trainer import fit
from tracer.trainer.checkpoints import RunCheckpoint, load_run
from tracer.trainer.evaluation import split_loss
from tracer.trainer.fit import Fit
from tracer.trainer.log import RunLog, read_log
from tracer.trainer.settings import FitSettings, make_settings, resumed_settings

WORDS = (math.nan, math.inf, -math.inf)


class Poisoned(Fit):
    """A run in which, at one update, one number is not finite."""

    def poison(self, place: str, update: int, value: float) -> "Poisoned":
        self.place, self.when, self.value = place, update, value
        return self

    def _here(self, *places: str) -> bool:
        return self.place in places and self.done == self.when - 1

    def _loss(self, *arguments):
        loss = super()._loss(*arguments)
        return loss * self.value if self._here("loss") else loss

    def _clip(self):
        if self._here("gradient"):
            self.model.position_embedding.weight.grad[3, 5] = self.value
        return super()._clip()

    def _step(self):
        super()._step()
        if self._here("parameter"):
            self.model.final_norm.bias.data[2] = self.value
        if self._here("moment"):
            self.optimizer.state[self.model.final_norm.bias]["exp_avg_sq"][1] = abs(self.value)

    def split_loss(self, model, tokens, *arguments):
        split = {"training loss": self.data.train, "validation loss": self.data.validation}.get(self.place)
        return self.value if split is tokens and self.done == self.when else split_loss(model, tokens, *arguments)


def strict_log(folder: Path) -> list[dict]:
    def no_json(name: str):
        raise AssertionError(f"{name} is no JSON")

    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line, parse_constant=no_json) for line in lines]


@pytest.fixture(scope="module")
def good(prepared, tmp_path_factory) -> tuple[FitSettings, list[dict[str, bytes]]]:
    """Settings of a run that does not diverge, and the files that it had after each of its updates."""
    settings = make_settings({**SMALL, "save_every": 1, "data": str(prepared),
                              "output": str(tmp_path_factory.mktemp("good"))})
    run, folders = Fit(settings, ALONE), []
    save = run._save

    def saving(best=False):
        save(best)
        folders.append(files(Path(settings.output)))

    run._save = saving
    run.run()
    assert len(folders) == 7
    return settings, folders


PLACES = ["loss", "gradient", "parameter", "moment", "training loss", "validation loss"]


@pytest.mark.parametrize("place", PLACES)
def test_what_a_diverged_run_leaves_is_good_and_is_gone_on_from(good, tmp_path, monkeypatch, place):
    """To the bit as a run that was stopped there, and goes on with the settings that this one goes on with."""
    unbroken, after = good
    seed, random = generator()
    for trial in range(2 * TRIALS):
        value = random.choice(WORDS)
        every, save_every = random.randint(1, 4), random.randint(1, 4)
        update = random.randrange(every, 7, every) if place.endswith(" loss") else random.randint(1, 6)
        case = (seed, trial, place, update, value, every, save_every)
        folder = tmp_path / str(trial)
        settings = replace(unbroken, output=str(folder), evaluate_every=every, save_every=save_every)
        run = Poisoned(settings, ALONE).poison(place, update, value)
        with monkeypatch.context() as patch:
            patch.setattr(fit, "split_loss", run.split_loss)
            with pytest.raises(Diverged):
                run.run()
        saved = load_run(folder / "last.pt")
        assert saved.update == run.saved < update, case
        # No further back than the last moment at which it was due and known to be good.
        due = [number for number in range(update) if number % every == 0 or (number % save_every == 0 and number < (
            update - 1 if place in ("loss", "gradient") else update))]
        assert saved.update >= max(due), case
        same_parameters(saved, after[saved.update])
        best = load_run(folder / "best.pt")
        assert best.best == saved.best and best.update == saved.best_update, case
        log = strict_log(folder)
        # A moment that is not finite is found when it is to be saved, or makes the next parameters so.
        noticed = range(update, 8) if place == "moment" else (update,)
        assert log[-1]["diverged"] and log[-1]["update"] in noticed, case
        for entry in log:
            assert all(math.isfinite(number) for number in entry.values() if isinstance(number, float)), case
            assert all(entry[name] is None for name in entry.get("not_finite", {})), case
        going_on(settings, saved.update, tmp_path / f"{trial}-whole", case)


def same_parameters(saved: RunCheckpoint, files: dict[str, bytes]) -> None:
    body = torch.load(io.BytesIO(files["last.pt"]), weights_only=True)
    assert body["update"] == saved.update
    assert all(torch.equal(value, body["parameters"][name]) for name, value in saved.parameters.items())
    for number, state in saved.optimizer.items():
        assert all(torch.equal(value, body["optimizer"][number][name]) for name, value in state.items())


def going_on(settings: FitSettings, start: int, whole: Path, case: object) -> None:
    """With a smaller lr, from what the diverged run left, and from a run that was only stopped at that update."""
    stopped = replace(settings, output=str(whole))

    class Stop(Exception):
        pass

    def stop(update):
        if update.number > start:
            raise Stop

    half = Fit(stopped, ALONE)
    with suppress(Stop):
        half.run(after_update=stop)
    assert half.saved == start, case
    for folder in (settings.output, whole):
        Fit(resumed_settings(Path(folder), {"lr": 3e-4}), ALONE, resume=True).run()
    same_bits(load_run(whole / "last.pt"), load_run(Path(settings.output) / "last.pt"))
    assert log_without_time(whole) == log_without_time(settings.output), case


@pytest.mark.parametrize("lr", [1e38, 1e30, 1e10])
@pytest.mark.parametrize("save_every", [1, 4])
def test_the_command_that_a_diverged_run_advises_works(settings, command, lr, save_every):
    """A rate so large that float32 overflows by itself; the advice is followed to the letter."""
    settings = replace(settings, lr=lr, lr_end=0.0, warmup=0, save_every=save_every, clip=0.0, evaluate_every=6)
    status, _, err = command("fit", *options(settings))
    followed = 0
    while status == 2:
        line = err.splitlines()[-1]
        assert re.match(r"error: .*: the run has diverged\. .*last\.pt has update \d+, when all was finite", line), err
        strict_log(Path(settings.output))
        program, _, module, *arguments = shlex.split(re.search("`(.*)`", line)[1])
        assert (program, module) == ("python", "tracer")
        status, _, err = command(*arguments)
        followed += 1
        assert followed < 4
    assert status == 0 and followed, err
    saved = load_run(Path(settings.output) / "last.pt")
    assert saved.update == 6 and math.isfinite(saved.best)
    assert load_run(Path(settings.output) / "best.pt").best_update == saved.best_update


def test_a_run_that_is_not_finite_from_the_start_says_so(settings, command, monkeypatch):
    monkeypatch.setattr("tracer.trainer.fit.split_loss", lambda *_: math.nan)
    status, _, err = command("fit", *options(settings))
    assert status == 2 and err.splitlines()[-1] == (
        "error: the training loss after 0 updates is nan: the run has diverged before its first checkpoint; check the "
        "data, or the --pretrained model")
    assert sorted(path.name for path in Path(settings.output).iterdir()) == ["log.jsonl", "settings.toml"]
    assert strict_log(Path(settings.output)) == [{
        "update": 0, "diverged": "the training loss after 0 updates is nan", "train_loss": None,
        "validation_loss": None, "not_finite": {"train_loss": "nan", "validation_loss": "nan"}}]
    monkeypatch.undo()
    monkeypatch.setattr("tracer.trainer.fit.Fit.peak", lambda self: 1e12)
    Fit(settings, ALONE).run()  # nothing stands in the way
    assert load_run(Path(settings.output) / "last.pt").update == 6


# The log -------------------------------------------------------------------------------------------------

def test_a_log_holds_json_whatever_is_written(tmp_path):
    log = RunLog(tmp_path / "log.jsonl")
    log.write(update=1, loss=math.nan, norm=-math.inf, lr=0.5, sample="NaN")
    log.close()
    assert strict_log(tmp_path) == read_log(tmp_path / "log.jsonl") == [
        {"update": 1, "loss": None, "norm": None, "lr": 0.5, "sample": "NaN",
         "not_finite": {"loss": "nan", "norm": "-inf"}}]


def test_a_log_of_an_earlier_version_is_read_and_mended(tmp_path):
    """NaN and numbers that no float holds; a line that was damaged takes no others with it."""
    (tmp_path / "log.jsonl").write_bytes(b'{"update": 1, "loss": NaN, "deep": [1e999, -Infinity]}\n{"upd\xff}\n'
                                         b'{"update": 2, "loss": 1.5}\n')
    wanted = [{"update": 1, "loss": None, "deep": [None, None]}, {"update": 2, "loss": 1.5}]
    assert read_log(tmp_path / "log.jsonl") == wanted
    RunLog(tmp_path / "log.jsonl", 2).close()
    assert strict_log(tmp_path) == wanted


# Looking for it ------------------------------------------------------------------------------------------

def test_one_number_among_many_is_found():
    _, random = generator()
    for value in WORDS:
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
            tensors = [torch.full((3, 5), torch.finfo(dtype).max, dtype=dtype), torch.zeros(7), torch.arange(3)]
            body = {"a": [1, tensors[2]], "b": {"c": tensors[0], "d": tensors[1]}, "e": None, "f": torch.zeros(0)}
            assert all_finite(tensors) and first_not_finite(body) is None
            tensors[0][random.randrange(3), random.randrange(5)] = value
            assert not all_finite(tensors) and first_not_finite(body) == "b/c"
    assert first_not_finite({"a": [0.0, math.nan]}) == "a/1"
