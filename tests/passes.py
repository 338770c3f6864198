"""One pass of a model too small to have learnt anything, recorded."""

import torch

from tracer.format.trace import Trace
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.recording.single_pass import record_pass

LABELS = ["the", "dog", "saw", "a", "cat", "."]
IDS, TARGETS = [0, 1, 2, 3], [1, 2, 3, 4]
SETTINGS = {"seed": 3, "updates": 1, "lr": 0.1}
LLAMA = {"position": "rotary", "norm": "rms_norm", "activation": "swiglu", "kv_heads": 1, "bias": False, "tied": False}


def model(**choices) -> GPT:
    """One whose numbers are large enough to tell everything apart."""
    torch.manual_seed(3)
    made = GPT(Config(vocabulary=6, context=5, width=8, heads=2, blocks=2, dropout=0.2, **choices))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(5).add_(0.1 * torch.randn_like(parameter))
    return made


def recorded_pass(made: GPT, targets: list[int] | None = TARGETS, ids: list[int] = IDS) -> Trace:
    return record_pass(made, ids, targets, labels=LABELS, trained_on="nothing", settings=SETTINGS)


def tiny_pass() -> Trace:
    return recorded_pass(model())
