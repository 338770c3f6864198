"""Recordings of models whose gradients are sums of more than two numbers: they follow from their parts."""

import os

import pytest
from torch import nn
from variants import NEW_NORM, a_new_norm

from tracer.errors import UserError
from tracer.format.files import save
from tracer.format.load import load
from tracer.format.verify import verify
from tracer.model import gpt
from tracer.model.layers import in_role
from tracer.model.optimizer import TrainingSettings
from tracer.model.tokenizer import gpt2
from tracer.recording.training import TrainingJob, record_training


class AddAgain(nn.Module):
    """x + (x + attention) as two steps: with the norm, three steps read the value."""

    kind, axes = "add", ("position", "feature")

    def forward(self, a, b):
        return a + b


def job(norm: str = "layer_norm", **settings) -> TrainingJob:
    config = gpt.Config(context=16, width=8, heads=2, blocks=2, dropout=0.0, norm=norm)
    return TrainingJob("to be or not to be", "to be", config, TrainingSettings(updates=1, **settings))


def wrong(trace) -> list[str]:
    return [f"{check.name}: {check.problem}" for check in verify(trace, hashes=False) if check.problem]


@pytest.mark.parametrize("seed", range(int(os.environ.get("TWO_ROUTES_TRIALS", "1"))))
def test_a_gradient_that_came_in_pieces_follows(tmp_path, seed):
    """The norm is computed in plain operations, of which several read x."""
    with a_new_norm():
        trace, _ = record_training(job(NEW_NORM, seed=seed), gpt2())
        save(trace, tmp_path / "training.json")
        assert wrong(load(tmp_path / "training.json")) == []
    parts = {name: step for name, step in trace.operations.items() if step.kind == NEW_NORM and "@" in name}
    assert len(parts) == 4  # of the two norms of two blocks; the last norm's part is the whole
    assert all(trace.arrays[name].derived for name in parts)


def test_a_gradient_of_three_uses_is_added_two_by_two(monkeypatch):
    class Block(gpt.Block):
        def __init__(self, config):
            super().__init__(config)
            self.residual_0 = in_role("attention", AddAgain())

        def forward(self, x, cache=None, allowed=None, places=None):
            y = self.residual_0(x, self.attention(self.norm_1(x), cache, allowed, places))
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
