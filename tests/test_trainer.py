"""The trainer: its settings, schedule, gradients and evaluation worked out by hand, and resuming to the bit."""

import json
import math
import os
import re
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from tracer import cli, data, fit, run_checkpoint
from tracer.errors import UserError
from tracer.evaluation import split_loss, window_starts
from tracer.fit import Fit
from tracer.fit_settings import FitSettings, make_settings, read_settings
from tracer.learning_rate import learning_rate
from tracer.model import GPT, Config
from tracer.processes import Processes
from tracer.run_log import RunLog, read_log

ROOT = Path(__file__).resolve().parent.parent
ALONE = Processes(0, 1, torch.device("cpu"))
SMALL = {"context": 16, "width": 16, "heads": 2, "blocks": 2, "batch": 4, "updates": 6, "warmup": 2,
         "evaluate_every": 3, "save_every": 2, "peak_tflops": 1.0}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    data.prepare(data.DEFAULT_TEXT, folder)
    return folder


@pytest.fixture
def settings(prepared, tmp_path) -> FitSettings:
    return make_settings({**SMALL, "data": str(prepared), "output": str(tmp_path / "run")})


def last(settings: FitSettings) -> run_checkpoint.RunCheckpoint:
    return run_checkpoint.load_run(Path(settings.output) / "last.pt")


def same_bits(one: run_checkpoint.RunCheckpoint, two: run_checkpoint.RunCheckpoint) -> None:
    """Parameters, both moments and counts of every parameter, number of the update, best loss."""
    assert list(one.parameters) == list(two.parameters)
    for name, value in one.parameters.items():
        assert torch.equal(value, two.parameters[name]), name
    assert one.optimizer["param_groups"] == two.optimizer["param_groups"]
    assert one.optimizer["state"].keys() == two.optimizer["state"].keys()
    for number, state in one.optimizer["state"].items():
        for name, value in state.items():
            assert torch.equal(value, two.optimizer["state"][number][name]), (number, name)
    assert (one.update, one.best) == (two.update, two.best)


# Settings ----------------------------------------------------------------------------------------------

def test_file_then_command_line_then_defaults(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("blocks = 8\nlr = 1\ndata = 'x'\n", encoding="utf-8")
    settings = read_settings(path, {"blocks": 2})
    assert (settings.blocks, settings.lr, settings.data, settings.width) == (2, 1.0, "x", 128)
    assert type(settings.lr) is float


def test_settings_are_written_so_that_they_come_back(tmp_path):
    odd = FitSettings(data='a "quoted" \\ \t你\x7f\n😀', lr=1e-5, lr_end=0.0, compile=True, seed=2**63)
    assert tomllib.loads(odd.to_toml()) == asdict(odd)
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


# Schedule ----------------------------------------------------------------------------------------------

def test_the_learning_rate_rises_and_falls_as_half_a_cosine():
    settings = FitSettings(lr=1.0, lr_end=0.2, warmup=4, updates=12)
    rates = [learning_rate(settings, update) for update in range(1, 13)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[7] == pytest.approx(0.6)      # half way: the mean of both ends
    assert rates[5] == pytest.approx(0.6 + 0.4 * math.sqrt(0.5))  # a quarter: cos 45°
    assert rates[11] == pytest.approx(0.2)
    assert learning_rate(FitSettings(lr=1.0, warmup=0, updates=1), 1) == pytest.approx(FitSettings().lr_end)
    assert learning_rate(FitSettings(lr=1.0, warmup=50, updates=10), 10) == pytest.approx(0.2)


# One update --------------------------------------------------------------------------------------------

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


@pytest.fixture
def float16(monkeypatch):
    """Mixed precision of 16 bits with its scaler, as on a GPU; a processor has the kernels, only slow ones."""
    monkeypatch.setattr(fit, "_precision", lambda name, device: torch.float16)


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


# Evaluation ----------------------------------------------------------------------------------------------

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


# Runs --------------------------------------------------------------------------------------------------

def test_a_run_leaves_settings_log_and_checkpoints(settings):
    Fit(settings, ALONE).run()
    folder = Path(settings.output)
    assert sorted(path.name for path in folder.iterdir()) == ["best.pt", "last.pt", "log.jsonl", "settings.toml"]
    assert read_settings(folder / "settings.toml", {}) == settings
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [(entry["update"], "loss" in entry) for entry in entries] == [
        (0, False), (1, True), (2, True), (3, True), (3, False), (4, True), (5, True), (6, True), (6, False)]
    losses = {entry["update"]: entry["validation_loss"] for entry in entries if "validation_loss" in entry}
    best = run_checkpoint.load_run(folder / "best.pt")
    assert best.best == min(losses.values()) == losses[best.update]
    assert last(settings).update == 6 and last(settings).settings == settings


def test_best_stays_when_the_loss_rises(settings, monkeypatch):
    values = iter([4.0, 3.0, 5.0])
    monkeypatch.setattr("tracer.fit.split_loss", lambda model, tokens, *_: next(values) if len(tokens) < 1000 else 9.0)
    Fit(settings, ALONE).run()
    folder = Path(settings.output)
    assert run_checkpoint.load_run(folder / "best.pt").update == 3
    assert (last(settings).update, last(settings).best) == (6, 3.0)


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


# GPT-2's weights ---------------------------------------------------------------------------------------

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


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from tracer import schema
from tracer.fit import Fit
from tracer.fit_settings import read_settings
from tracer.processes import Processes

torch.set_num_threads(1)
config, output = Path(sys.argv[1]), sys.argv[2]
alone = Processes(0, 1, torch.device("cpu"))

def run(name, resume):
    Fit(read_settings(config, {"output": f"{output}/{name}"}), alone, resume).run()

def start(name, resume, die=lambda: None):
    '''In a fork, which has loaded all that torch loads late.'''
    child = os.fork()
    if not child:
        die()
        run(name, resume)
        os._exit(0)
    return child

def end(child):
    status = os.waitpid(child, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

def at_call(name, number, before):
    '''SIGKILL just before or after the call of that number of a function of os, while files are written.'''
    def die():
        real, calls = getattr(os, name), 0
        def counting(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == number and before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*arguments, **options)
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return result
        setattr(os, name, counting)
    return die

def logged():
    log = Path(f"{output}/moments/log.jsonl")
    return log.read_bytes().count(b"\\n") if log.exists() else 0

run("whole", False)
kills = 0
for number in range(1, 6):  # around every kind of file that a run writes: settings, log, best, last
    for name, before in (("replace", number % 2), ("fsync", number % 2), ("replace", (number + 1) % 2)):
        resume = os.path.exists(f"{output}/files/settings.toml")
        kills += end(start("files", resume, at_call(name, number, before))) == -signal.SIGKILL
assert end(start("files", True)) == 0
random.seed(int(sys.argv[3]))
moments = 0
for lines in (1, 8, 15, 22):
    child = start("moments", os.path.exists(f"{output}/moments/settings.toml"))
    late = time.monotonic() + 60
    while logged() < lines and time.monotonic() < late:
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.01))
    os.kill(child, signal.SIGKILL)
    moments += end(child) == -signal.SIGKILL
assert end(start("moments", True)) == 0
print(kills, moments)
"""


def test_killed_at_any_moment_and_resumed_ends_with_the_same_bits(settings, tmp_path):
    """SIGKILL around every replaced file and at random moments; parameters, moments, log."""
    settings = replace(settings, updates=24, save_every=3, evaluate_every=8, dropout=0.1)
    (tmp_path / "run.toml").write_text(settings.to_toml(), encoding="utf-8")
    seed = int.from_bytes(os.urandom(4))
    result = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "run.toml", tmp_path, str(seed)], cwd=ROOT,
                            capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert result.returncode == 0, (seed, result.stderr)
    kills, moments = map(int, result.stdout.split())
    assert kills >= 9 and moments >= 2, (kills, moments, seed)
    whole = run_checkpoint.load_run(tmp_path / "whole" / "last.pt")
    log = read_log(tmp_path / "whole" / "log.jsonl")
    assert len(log) == 24 + 4
    for name in ("files", "moments"):
        same_bits(whole, run_checkpoint.load_run(tmp_path / name / "last.pt"))
        same_bits(run_checkpoint.load_run(tmp_path / "whole" / "best.pt"),
                  run_checkpoint.load_run(tmp_path / name / "best.pt"))
        again = [json.loads(line) for line in (tmp_path / name / "log.jsonl").read_text().splitlines()]
        assert [{**entry, "seconds": 0} for entry in again] == [{**entry, "seconds": 0} for entry in log], seed
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == [
            "best.pt", "last.pt", "log.jsonl", "settings.toml"], seed


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


@pytest.mark.parametrize("content", [b"", b"no checkpoint", None])
def test_a_damaged_checkpoint_is_one_line(settings, content):
    Fit(replace(settings, updates=1), ALONE).run()
    path = Path(settings.output) / "last.pt"
    path.write_bytes(path.read_bytes()[:-500] if content is None else content)
    with pytest.raises(UserError, match="is damaged or no checkpoint of a run"):
        Fit(settings, ALONE, resume=True)


# The command -------------------------------------------------------------------------------------------

def command(monkeypatch, capsys, *arguments) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["tracer", *map(str, arguments)])
    status = 0
    try:
        cli.main()
    except SystemExit as stop:
        status = stop.code
    return status, *capsys.readouterr()


def options(settings: FitSettings) -> list[str]:
    changed = {name: value for name, value in asdict(settings).items() if value != getattr(FitSettings(), name)}
    return [part for name, value in changed.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def test_fit_and_resume_from_the_command_line(settings, monkeypatch, capsys):
    status, out, err = command(monkeypatch, capsys, "fit", *options(replace(settings, updates=2)))
    assert status == 0, err
    assert "updates = 2\n" in out and "7,680 parameters, 64 tokens an update, 1 process on cpu" in out
    assert "training 2/2 loss 3.9" in err and re.search(r"tokens/s, MFU \d+\.\d%", err)
    status, out, err = command(monkeypatch, capsys, "fit", "--resume", "--output", settings.output, "--updates", 3)
    assert status == 0 and "going on after update 2" in out and "blocks = 2\n" in out
    assert last(settings).update == 3


def test_a_run_is_sampled_from(settings, monkeypatch, capsys):
    """From its folder (the best checkpoint) or a file; an empty prompt starts from a line end."""
    Fit(replace(settings, updates=1), ALONE).run()
    texts = []
    for source, prompt in ((settings.output, ""), (Path(settings.output) / "last.pt", "\n")):
        status, out, err = command(monkeypatch, capsys, "sample", source, "--prompt", prompt, "--max-new-tokens", 5)
        assert status == 0, err
        texts.append(out)
    assert texts[0] == texts[1] and texts[0].startswith("\n") and len(texts[0]) == 7
    status, out, err = command(monkeypatch, capsys, "sample", settings.output, "--prompt", "你")
    assert (status, out, err.count("\n")) == (2, "", 1) and "the vocabulary lacks '你' (U+4F60)" in err


@pytest.mark.parametrize(("given", "says"), [
    (["--data", "nowhere"], "nowhere holds no prepared data: prepare some with `python -m tracer prepare`"),
    (["--context", "642"], "the validation split has 642 tokens, a context of 642 needs at least 643"),
    (["--width", "17"], "width 17 cannot be cut into 2 heads"),
    (["--batch", "0"], "batch must be at least 1"),
    (["--config", "nowhere.toml"], "there is no settings file nowhere.toml"),
    (["--resume"], "holds no run to resume"),
    (["--device", "cuda"], "this machine has no device cuda"),
    (["--batch", "10000000000000000000"], "batch must be at most 2,147,483,647"),
    (["--threads", "99999999999"], "threads must be at most 1024, not 99999999999"),
])
def test_refusals_are_one_line_and_write_nothing(settings, tmp_path, monkeypatch, capsys, given, says):
    if "cuda" in given and torch.cuda.is_available():
        pytest.skip("this machine has one")
    status, out, err = command(monkeypatch, capsys, "fit", *options(settings), *given)
    assert (status, out, err.count("\n")) == (2, "", 1) and err.startswith("error: ") and says in err
    assert not Path(settings.output).exists()


TOGETHER = {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}


@pytest.mark.parametrize(("variables", "says"), [
    ({"WORLD_SIZE": "abc"}, "WORLD_SIZE is 'abc', no whole number from 1 on: start with torchrun"),
    ({"WORLD_SIZE": "0"}, "WORLD_SIZE is '0', no whole number from 1 on"),
    ({"WORLD_SIZE": "2"}, "WORLD_SIZE is 2, but RANK is not set: start with torchrun, or unset WORLD_SIZE"),
    ({"WORLD_SIZE": "2", "RANK": "0"}, "but MASTER_ADDR is not set"),
    (TOGETHER | {"RANK": "2"}, "RANK is 2, of 2 processes the last has 1"),
    (TOGETHER | {"RANK": "x"}, "RANK is 'x'"),
    (TOGETHER | {"MASTER_PORT": "65536"}, "MASTER_PORT is 65536"),
])
def test_variables_that_torchrun_does_not_set_are_refused(settings, monkeypatch, capsys, variables, says):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    status, out, err = command(monkeypatch, capsys, "fit", *options(settings))
    assert (status, out, err.count("\n")) == (2, "", 1) and says in err
    assert not Path(settings.output).exists()


def test_a_resume_whose_output_is_no_text_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "run.toml").write_text("output = 5", encoding="utf-8")
    status, out, err = command(monkeypatch, capsys, "fit", "--resume", "--config", tmp_path / "run.toml")
    assert (status, out, err.count("\n")) == (2, "", 1) and "output must be a text" in err and "not 5" in err


def test_more_processes_than_accumulation_steps():
    for world, accumulation in ((2, 1), (2, 3), (4, 2)):
        with pytest.raises(UserError, match=f"{world} processes cannot share {accumulation} accumulation steps"):
            Processes(0, world, torch.device("cpu")).check(accumulation)
    Processes(0, 2, torch.device("cpu")).check(4)
