"""Whole runs of training, and runs that start from GPT-2's weights."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import ALONE, last

from tracer.errors import UserError
from tracer.model.gpt import GPT
from tracer.trainer import checkpoints as run_checkpoint
from tracer.trainer import corpus as data
from tracer.trainer.fit import Fit
from tracer.trainer.settings import resumed_settings

# Runs ------------------------------------------------------------------------------------------------

def test_a_run_leaves_settings_log_and_checkpoints(settings):
    Fit(settings, ALONE).run()
    folder = Path(settings.output)
    assert sorted(path.name for path in folder.iterdir()) == ["best.pt", "last.pt", "log.jsonl", "settings.toml"]
    assert resumed_settings(folder, {}) == settings
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [(entry["update"], "loss" in entry) for entry in entries] == [
        (0, False), (1, True), (2, True), (3, True), (3, False), (4, True), (5, True), (6, True), (6, False)]
    losses = {entry["update"]: entry["validation_loss"] for entry in entries if "validation_loss" in entry}
    best = run_checkpoint.load_run(folder / "best.pt")
    assert best.best == min(losses.values()) == losses[best.update] and best.update == best.best_update
    assert last(settings).update == 6 and last(settings).settings == settings


def test_best_stays_when_the_loss_rises(settings, monkeypatch):
    values = iter([4.0, 3.0, 5.0])
    monkeypatch.setattr("tracer.trainer.fit.split_loss",
                        lambda model, tokens, *_: next(values) if len(tokens) < 1000 else 9.0)
    Fit(settings, ALONE).run()
    folder = Path(settings.output)
    assert run_checkpoint.load_run(folder / "best.pt").update == 3
    assert (last(settings).update, last(settings).best, last(settings).best_update) == (6, 3.0, 3)


def test_a_run_whose_best_is_gone_goes_on_and_its_checkpoint_can_be_read(settings):
    """The checkpoint between the resume and the next evaluation knows of no best one."""
    Fit(replace(settings, updates=3), ALONE).run()
    (Path(settings.output) / "best.pt").unlink()
    run = Fit(settings, ALONE, resume=True)
    other = Path(settings.output) / "other.pt"
    run.run(after_update=lambda update: run_checkpoint.save_run(run.checkpoint(), [other]))
    between = run_checkpoint.load_run(other)
    assert (between.update, between.best, between.best_update) == (6, None, None)
    assert last(settings).best_update == 6 == run_checkpoint.load_run(Path(settings.output) / "best.pt").update


def test_the_model_that_a_run_starts_from_may_be_the_best(settings, monkeypatch):
    """What is called best is in best.pt, update 0 included."""
    values = iter([2.0, 3.0, 2.0])
    monkeypatch.setattr("tracer.trainer.fit.split_loss",
                        lambda model, tokens, *_: next(values) if len(tokens) < 1000 else 9.0)
    Fit(settings, ALONE).run()
    best = run_checkpoint.load_run(Path(settings.output) / "best.pt")
    torch.manual_seed(settings.seed)
    initial = GPT(best.config, explicit=False).state_dict()
    assert (best.update, last(settings).best_update, last(settings).best) == (0, 0, 2.0)
    assert all(torch.equal(value, initial[name]) for name, value in best.parameters.items())


def test_more_updates_learn(settings):
    seen = []
    Fit(replace(settings, updates=80, evaluate_every=80, batch=8, lr=0.02), ALONE).run(after_evaluation=seen.append)
    assert seen[-1].validation < 3.1 < 3.9 < seen[0].validation


class Compiled(torch.nn.Module):
    """Holds the model as torch.compile's own result does."""

    def __init__(self, model):
        super().__init__()
        self._orig_mod, self.calls = model, 0

    def forward(self, *arguments):
        self.calls += 1
        return self._orig_mod(*arguments)


def test_compile_on_request_is_used_and_leaves_no_trace_in_the_checkpoint(settings, monkeypatch):
    monkeypatch.setattr(torch, "compile", Compiled)
    assert not isinstance(Fit(settings, ALONE).parallel, Compiled)
    run = Fit(replace(settings, compile=True, updates=2, evaluate_every=2), ALONE)
    run.run()
    assert run.compiled.calls > 2  # updates and evaluations
    assert last(settings).parameters.keys() == run.model.state_dict().keys()


# GPT-2's weights -------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def gpt2_folder(tmp_path_factory) -> Path:
    """A small GPT-2 that transformers made and saved: tanh GELU, a context longer than the run's."""
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("gpt2")
    torch.manual_seed(3)
    GPT2LMHeadModel(GPT2Config(vocab_size=50257, n_positions=32, n_embd=8, n_layer=1, n_head=2)).save_pretrained(folder)
    return folder


def test_a_run_starts_from_gpt2_weights_and_is_resumed(settings, tmp_path, gpt2_folder):
    """The loss before training is transformers' own, and the shape is the checkpoint's, at the run's context."""
    from transformers import GPT2LMHeadModel

    data.prepare(data.DEFAULT_TEXT, tmp_path / "bpe", "gpt2")
    settings = replace(settings, data=str(tmp_path / "bpe"), pretrained=str(gpt2_folder), updates=2, save_every=1)
    run = Fit(settings, ALONE)
    ids = torch.from_numpy(run.data.validation[:17].astype(np.int64))[None]
    theirs = GPT2LMHeadModel.from_pretrained(gpt2_folder).eval()(ids[:, :-1]).logits
    wanted = torch.nn.functional.cross_entropy(theirs[0], ids[0, 1:]).item()
    assert run.model(ids[:, :-1], ids[:, 1:])[1].item() == pytest.approx(wanted, rel=1e-6)
    run.run()
    saved = last(settings)
    assert (saved.config.width, saved.config.blocks, saved.config.context) == (8, 1, 16)
    assert saved.config.activation == "gelu_tanh" and saved.settings.width == 8
    Fit(replace(saved.settings, updates=3), ALONE, resume=True).run()
    assert last(settings).config == saved.config and last(settings).update == 3


def test_gpt2_weights_ask_for_gpt2_tokens(settings, gpt2_folder):
    with pytest.raises(UserError, match=r"has 50257 tokens, the data was prepared with 52 \(characters\)"):
        Fit(replace(settings, pretrained=str(gpt2_folder)), ALONE)
