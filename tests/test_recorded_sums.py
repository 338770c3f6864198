"""Recordings of models whose gradients are sums of more than two numbers: they follow from their parts."""

import os

import pytest
import torch
from torch import nn

from tracer.errors import UserError
from tracer.format.files import save
from tracer.format.load import load
from tracer.format.verify import verify
from tracer.model import gpt
from tracer.model.optimizer import TrainingSettings
from tracer.model.tokenizer import gpt2
from tracer.ops import KINDS
from tracer.ops.registry import define
from tracer.recording.training import TrainingJob, record_training


class RMSNorm(nn.Module):
    """Zhang and Sennrich 2019, in plain operations: x is read by three of them."""

    kind, axes = "rms_norm", ("position", "feature")
    parameter_axes = {"weight": ("feature",)}

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.settings = {"eps": eps}

    def forward(self, x):
        return x * (x.pow(2).mean(-1, keepdim=True) + self.settings["eps"]).rsqrt() * self.weight


class AddAgain(nn.Module):
    """x + (x + attention) as two steps: with the norm, three steps read the value."""

    kind, axes = "add", ("position", "feature")

    def forward(self, a, b):
        return a + b


@pytest.fixture
def rms_norm(monkeypatch):
    define("rms_norm", "Zhang and Sennrich 2019", """
        root[...] = 1 / sqrt(sum(d, x[..., d] * x[..., d]) / size(d) + eps)
        out[..., d] = x[..., d] * root[...] * weight[d]
        """, gradients={
        "weight": """
            root[...] = 1 / sqrt(sum(d, x[..., d] * x[..., d]) / size(d) + eps)
            d_weight[d] = sum(..., d_out[..., d] * x[..., d] * root[...])
            """,
        "x": """
            root[...] = 1 / sqrt(sum(d, x[..., d] * x[..., d]) / size(d) + eps)
            g[..., d] = d_out[..., d] * weight[d]
            stretch[...] = sum(d, g[..., d] * x[..., d]) / size(d)
            d_x[..., d] = root[...] * g[..., d] - x[..., d] * root[...] * root[...] * root[...] * stretch[...]
            """})
    monkeypatch.setattr(gpt, "LayerNorm", RMSNorm)
    yield
    del KINDS["rms_norm"]


def job(**settings) -> TrainingJob:
    return TrainingJob("to be or not to be", "to be", gpt.Config(context=16, width=8, heads=2, blocks=2, dropout=0.0),
                       TrainingSettings(updates=1, **settings))


def wrong(trace) -> list[str]:
    return [f"{check.name}: {check.problem}" for check in verify(trace, hashes=False) if check.problem]


@pytest.mark.parametrize("seed", range(int(os.environ.get("TWO_ROUTES_TRIALS", "1"))))
def test_a_gradient_that_came_in_pieces_follows(rms_norm, tmp_path, seed):
    trace, _ = record_training(job(seed=seed), gpt2())
    save(trace, tmp_path / "training.json")
    assert wrong(load(tmp_path / "training.json")) == []
    parts = {name: step for name, step in trace.operations.items() if step.kind == "rms_norm" and "@" in name}
    assert len(parts) == 4  # of the two norms of two blocks; the last norm's part is the whole
    assert all(trace.arrays[name].derived for name in parts)


def test_a_gradient_of_three_uses_is_added_two_by_two(monkeypatch):
    class Block(gpt.Block):
        def __init__(self, config):
            super().__init__(config)
            self.residual_0 = AddAgain()

        def forward(self, x, cache=None, allowed=None):
            y = self.residual_0(x, self.attention(self.norm_1(x), cache, allowed))
            x = self.residual_1(x, y)
            return self.residual_2(x, self.mlp(self.norm_2(x)))

    monkeypatch.setattr(gpt, "Block", Block)
    trace, _ = record_training(job(), gpt2())
    assert wrong(trace) == []
    x, block = "grad.embedding_sum", "blocks.0"
    assert trace.operations[f"{x}@2"].operands == {"first": f"{x}@{block}.residual_1",
                                                   "second": f"{x}@{block}.residual_0"}
    assert trace.operations[x].operands == {"first": f"{x}@2", "second": f"{x}@{block}.norm_1"}


def test_a_penalty_that_nobody_recorded_refuses_the_recording(monkeypatch):
    """The loss has a part that no step of the recording shows."""
    class GPT(gpt.GPT):
        def forward(self, *args, **kwargs):
            logits, loss = super().forward(*args, **kwargs)
            return logits, loss if loss is None else loss + self.token_embedding.weight.square().mean()

    import tracer.recording.training as module
    monkeypatch.setattr(module, "GPT", GPT)
    with pytest.raises(UserError, match="would not be whole") as error:
        record_training(job(), gpt2())
    assert "\n" not in str(error.value)
