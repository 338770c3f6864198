"""The trainer: its settings, schedule, gradients and evaluation worked out by hand."""

import json
import math
import time
import tomllib
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import ALONE, last

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.trainer import corpus as data
from tracer.trainer.evaluation import split_loss, window_starts
from tracer.trainer.fit import Fit
from tracer.trainer.log import read_log
from tracer.trainer.schedule import learning_rate
from tracer.trainer.settings import FitSettings, read_settings, resumed_settings

# Settings --------------------------------------------------------------------------------------------

def test_file_then_command_line_then_defaults(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("blocks = 8\nlr = 1\ndata = 'x'\n", encoding="utf-8")
    settings = read_settings(path, {"blocks": 2})
    assert (settings.blocks, settings.lr, settings.data, settings.width) == (2, 1.0, "x", 128)
    assert type(settings.lr) is float


def test_settings_are_written_so_that_they_come_back(tmp_path):
    odd = FitSettings(data='a "quoted" \\ \t你\x7f\n😀', lr=1e-5, lr_end=0.0, compile=True, seed=2**63)
    assert tomllib.loads(odd.to_toml()) | {"output": "run"} == asdict(odd)
    assert "output" not in odd.to_toml()  # the folder may be copied or moved
    (tmp_path / "settings.toml").write_text(odd.to_toml(), encoding="utf-8")
    assert read_settings(tmp_path / "settings.toml", {}) == odd


@pytest.mark.parametrize(("text", "says"), [
    ("block = 3", "there is no setting 'block'"),
    ("[model]\nblocks = 3", "there is no setting 'model'"),
    ("blocks = '3'", "blocks must be a whole number, not '3'"),
    ("blocks = 3.0", "blocks must be a whole number, not 3.0"),
    ("blocks = true", "blocks must be a whole number, not True"),
    ("lr = 'fast'", "lr must be a number"),
    ("lr = nan", "lr must be a number, not nan"),
    ("compile = 1", "compile must be true or false, not 1"),
    ("updates = 0", "updates must be at least 1, not 0"),
    ("peak_tflops = 1e300", "peak_tflops must be at most 10¹², not 1e"),
    ("dropout = 1.0", "dropout must be at least 0 and below 1"),
    ("lr_end = 1.0", "lr_end must be at most lr"),
    ("seed = -1", "seed must be from 0"),
    ("device = 'abacus'", "device must be one of auto, cpu, cuda, mps"),
    ("precision = 'half'", "precision must be one of"),
    *((f"{name} = {2**31}", f"{name} must be at most 2,147,483,647") for name in ("batch", "context", "warmup")),
    (f"accumulation = {10**20}", "accumulation must be at most 2,147,483,647"),
    ("threads = 1025", "threads must be at most 1024, not 1025"),
    ("lr = 1" + "0" * 400, "lr must be a number, not inf"),
    ("seed = " + "1" * 5000, "a number of thousands of digits"),
    ("a = " + "[" * 3000, "tables nested that deep"),
    ('output = "a\\u0000b"', "output must be a text without the character 0"),
    ("blocks = ", "is no TOML"),
    ("import os", "is no TOML"),
])
def test_wrong_settings_are_refused(tmp_path, text, says):
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=says):
        read_settings(path, {})


@pytest.mark.parametrize("lr", [3e-3, 1e-5, 1.0, 0.0, 1e-300])
def test_the_last_rate_follows_the_largest(tmp_path, lr):
    """A thirtieth of it by default; a rate given to a run that goes on keeps the ratio of the two."""
    assert FitSettings(lr=lr).lr_end == lr / 30 == read_settings(None, {"lr": lr}).lr_end
    assert FitSettings().lr_end == 1e-4
    (tmp_path / "settings.toml").write_text("lr = 0.5\nlr_end = 0.125\n", encoding="utf-8")
    assert resumed_settings(tmp_path, {}).lr_end == resumed_settings(tmp_path, {"lr": 0.5}).lr_end == 0.125
    assert resumed_settings(tmp_path, {"lr": lr}).lr_end == lr / 4
    assert resumed_settings(tmp_path, {"lr": lr, "lr_end": lr}).lr_end == lr
    (tmp_path / "settings.toml").write_text("lr = 0.3\nlr_end = 0.3\n", encoding="utf-8")
    assert resumed_settings(tmp_path, {"lr": lr}).lr_end == lr
    with pytest.raises(UserError, match=r"lr_end must be at most lr, which is 0\.3, not 0\.4"):
        resumed_settings(tmp_path, {"lr_end": 0.4})


# Schedule --------------------------------------------------------------------------------------------

def test_the_learning_rate_rises_and_falls_as_half_a_cosine():
    settings = FitSettings(lr=1.0, lr_end=0.2, warmup=4, updates=12)
    rates = [learning_rate(settings, update) for update in range(1, 13)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[7] == pytest.approx(0.6)      # half way: the mean of both ends
    assert rates[5] == pytest.approx(0.6 + 0.4 * math.sqrt(0.5))  # a quarter: cos 45°
    assert rates[11] == pytest.approx(0.2)
    assert learning_rate(FitSettings(lr=1.0, lr_end=0.25, warmup=0, updates=1), 1) == pytest.approx(0.25)
    assert learning_rate(FitSettings(lr=1.0, warmup=50, updates=10), 10) == pytest.approx(0.2)


# One update ------------------------------------------------------------------------------------------

def reference_update(settings: FitSettings, updates: int) -> tuple[list[float], list[float], dict]:
    """The same updates in float64 with one large batch, gradient and AdamW written out with NumPy.

    Returns losses, gradient norms and the parameters.
    """
    loaded = data.load_data(Path(settings.data))
    torch.manual_seed(settings.seed)
    model = GPT(Config(loaded.tokenizer.vocabulary_size, settings.context, settings.width, settings.heads,
                       settings.blocks, 0.0), explicit=False).double()
    moments = {name: [0.0, 0.0] for name, _ in model.named_parameters()}
    losses, norms = [], []
    for update in range(1, updates + 1):
        starts = np.concatenate([data.random_starts(len(loaded.train), settings.batch, settings.context, settings.seed,
                                                    update, micro) for micro in range(settings.accumulation)])
        text = [loaded.train[start: start + settings.context + 1] for start in starts]
        rows = torch.tensor(np.stack(text).astype(np.int64))
        model.zero_grad()
        loss = model(rows[:, :-1], rows[:, 1:])[1]
        loss.backward()
        norm = math.sqrt(sum(float((p.grad**2).sum()) for p in model.parameters()))
        rate = learning_rate(settings, update)
        for name, p in model.named_parameters():
            gradient = p.grad.numpy() * min(1.0, settings.clip / norm)
            m, v = moments[name]
            m = settings.beta1 * m + (1 - settings.beta1) * gradient
            v = settings.beta2 * v + (1 - settings.beta2) * gradient**2
            moments[name] = [m, v]
            decay = settings.weight_decay if p.dim() > 1 else 0.0
            step = (m / (1 - settings.beta1**update)) / (np.sqrt(v / (1 - settings.beta2**update)) + settings.eps)
            p.data = torch.tensor(p.data.numpy() * (1 - rate * decay) - rate * step)
        losses.append(loss.item())
        norms.append(norm)
    return losses, norms, dict(model.named_parameters())


@pytest.mark.parametrize("accumulation", [1, 3])
def test_updates_follow_from_numpy(settings, accumulation):
    """Division by the micro-batches, clipping (it bites: every norm is above it), decay, schedule."""
    settings = replace(settings, accumulation=accumulation, clip=0.5, lr=0.01, eps=1e-3, weight_decay=2.0)
    losses, norms, parameters = reference_update(settings, 3)
    run = Fit(settings, ALONE)
    for number in range(1, 4):
        update = run.update(number)
        assert update.loss == pytest.approx(losses[number - 1], rel=1e-5)
        assert update.norm == pytest.approx(norms[number - 1], rel=1e-4) and update.norm > 0.5
    for name, value in run.model.named_parameters():
        assert torch.allclose(value.double(), parameters[name], rtol=1e-3, atol=1e-6), name


def test_clip_zero_leaves_the_gradient_alone(settings):
    settings = replace(settings, clip=0.0, warmup=0, eps=1.0, weight_decay=0.0)  # with a large eps size matters
    run = Fit(settings, ALONE)
    run.update(1)
    _, _, parameters = reference_update(replace(settings, clip=1e9), 1)
    for name, value in run.model.named_parameters():
        assert torch.allclose(value.double(), parameters[name], rtol=1e-3, atol=1e-7), name


def test_bfloat16_products_keep_float32_parameters(settings):
    exact, mixed = Fit(settings, ALONE), Fit(replace(settings, precision="bfloat16"), ALONE)
    losses = [run.update(1).loss for run in (exact, mixed)]
    assert losses[0] != losses[1] and losses[1] == pytest.approx(losses[0], rel=1e-2)
    assert {p.dtype for p in mixed.model.parameters()} == {torch.float32}
    with pytest.raises(UserError, match="float16 needs a CUDA device"):
        Fit(replace(settings, precision="float16"), ALONE)


def test_float16_with_its_scaler_learns_as_float32_does(settings, float16, monkeypatch):
    mixed = Fit(settings, ALONE)
    mixed.run()
    monkeypatch.undo()
    exact = Fit(replace(settings, output=settings.output + "2"), ALONE)
    exact.run()
    logs = [read_log(run.folder / "log.jsonl") for run in (mixed, exact)]
    losses = [[entry["loss"] for entry in log if "loss" in entry] for log in logs]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=5e-3)
    norms = [[entry["norm"] for entry in log if "norm" in entry] for log in logs]  # unscaled before clipping
    assert norms[0] == pytest.approx(norms[1], rel=5e-2)


def test_an_overflow_of_float16_skips_the_step_and_halves_the_scale(settings, float16):
    run = Fit(replace(settings, warmup=0), ALONE)
    before = [p.detach().clone() for p in run.model.parameters()]
    run.scaler.load_state_dict(run.scaler.state_dict() | {"scale": 2.0**40})
    overflow, parameters = run.update(1), list(run.model.parameters())
    assert not math.isfinite(overflow.norm)
    assert run.scaler.get_scale() == 2.0**39
    assert all(torch.equal(old, new) for old, new in zip(before, parameters, strict=True))
    run.scaler.load_state_dict(run.scaler.state_dict() | {"scale": 2.0**10})
    assert math.isfinite(run.update(2).norm)
    assert not any(torch.equal(old, new) for old, new in zip(before, parameters, strict=True))


def test_the_log_of_an_overflow_is_json(settings, float16, monkeypatch):
    monkeypatch.setattr(torch.amp, "GradScaler", partial(torch.amp.GradScaler, init_scale=2.0**40))
    Fit(replace(settings, updates=2), ALONE).run()
    lines = (Path(settings.output) / "log.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON")) for line in lines]
    assert [entry["norm"] for entry in entries if "norm" in entry] == [None, None]


def test_a_loss_that_is_not_finite_ends_the_run(settings):
    run = Fit(settings, ALONE)
    with torch.no_grad():
        run.model.token_embedding.weight[:] = math.nan
    with pytest.raises(UserError, match="the loss of update 1 is nan: choose a smaller lr"):
        run.update(1)


def test_the_peak_is_given_or_measured(settings):
    """Measured, it is what a product of two matrices reaches: timed once more here, within a wide margin."""
    assert Fit(settings, ALONE).peak() == 1e12
    measured = Fit(replace(settings, peak_tflops=0.0), ALONE).peak()
    a = torch.ones(1024, 1024)
    start = time.perf_counter()
    a @ a
    assert 0.1 < measured / (2 * 1024**3 / (time.perf_counter() - start)) < 100


# Evaluation ------------------------------------------------------------------------------------------

class Remember(torch.nn.Module):
    """A loss by hand: the mean of the targets; remembers which it was asked about."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x, y):
        assert not self.training and x.shape == y.shape
        self.seen += y.flatten().tolist()
        return None, y.double().mean()


@pytest.mark.parametrize("count", [2, 9, 10, 11, 24, 25, 26])
def test_every_target_counts_once(count):
    tokens = np.arange(100, 100 + count, dtype=np.uint8)
    model = Remember()
    loss = split_loss(model, tokens, window_starts(count, 8), 8, 2, ALONE)
    assert sorted(model.seen) == list(range(101, 100 + count))
    assert loss == pytest.approx(np.mean(model.seen)) and model.training


def test_a_sample_of_the_windows_is_spread_evenly():
    assert window_starts(81, 8).tolist() == [0, 8, 16, 24, 32, 40, 48, 56, 64, 72]
    assert window_starts(81, 8, at_most=4).tolist() == [0, 16, 40, 56]
    assert window_starts(81, 8, at_most=50).tolist() == window_starts(81, 8).tolist()


def test_evaluation_agrees_with_one_window_at_a_time(settings):
    run = Fit(settings, ALONE)
    seen = []
    run.settings = replace(settings, updates=1)
    run.run(after_evaluation=seen.append)
    model = last(settings).model()
    tokens = run.data.validation.astype(np.int64)
    total = 0.0
    for start in range(0, len(tokens) - 1, 16):
        ids = torch.from_numpy(tokens[start: start + 17])
        logits, _ = model(ids[None, :-1], ids[None, 1:])
        total -= logits[0].double().log_softmax(-1)[range(len(ids) - 1), ids[1:]].sum().item()
    assert seen[-1].validation == pytest.approx(total / (len(tokens) - 1), rel=1e-6)
    assert [item.number for item in seen] == [0, 1]
    assert seen[0].validation == pytest.approx(math.log(52), rel=0.02)  # it starts by knowing nothing
