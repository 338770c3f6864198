"""Recordings of other texts, shapes and settings than the committed ones: what pages have to be right about."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from tracer.format.trace import Trace
from tracer.model import gpt as model_module
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.model.tokenizer import Tokenizer
from tracer.ops import KINDS
from tracer.ops.registry import define
from tracer.recording.generation import GenerationJob, past_context_job, record_generation
from tracer.recording.training import TrainingJob, record_training

ARABIC, HEBREW = "مرحبا 12", "שלום, 3 עולם"


@dataclass(frozen=True)
class Variant:
    """What is recorded; `past_context`: a recording of the route "long" too."""

    training: TrainingJob
    generation: GenerationJob
    past_context: bool = False


def _variant(text: str, prompt: str, *, validation: str = "Hi", updates: int = 2, settings: dict | None = None,
             past_context: bool = False, sampling: dict | None = None, **shape) -> Variant:
    config = Config(**({"context": 16, "width": 8, "heads": 2, "blocks": 1, "dropout": 0.1} | shape))
    job = TrainingJob(text, validation, config, TrainingSettings(updates=updates, **(settings or {})))
    sampling = {"max_new_tokens": 2} | (sampling or {})
    return Variant(job, GenerationJob(prompt, **sampling), past_context)


VARIANTS = {
    "one of everything": _variant("a", "a", validation="a", updates=1, heads=1, context=2, dropout=0.0, width=1,
                                  sampling={"top_k": 1, "max_new_tokens": 2}),
    "no decay, cold": _variant("to be or not to be", "to", settings={"weight_decay": 0.0, "lr": 1e-5},
                               sampling={"temperature": 1e-3}),
    "hot, wide": _variant("to be or not", "to be", heads=4, width=16, blocks=2, settings={"lr": 2.0},
                          sampling={"temperature": 50.0, "top_k": 50, "max_new_tokens": 1}),
    "full context": _variant("Hi 你!", "Hi", context=5, updates=3, past_context=True, dropout=0.5,
                             sampling={"max_new_tokens": 7}),
    "from right to left": _variant(ARABIC, ARABIC, validation=HEBREW, context=32, updates=3, past_context=True,
                                   sampling={"max_new_tokens": 3}),
}


def recorded(variant: Variant, tokenizer: Tokenizer) -> dict[str, Trace]:
    """The recordings of a variant by route."""
    training, checkpoint = record_training(variant.training, tokenizer)
    found = {"training": training, "generation": record_generation(variant.generation, checkpoint, tokenizer)}
    if variant.past_context:
        job = past_context_job(variant.generation, variant.training.text, tokenizer, variant.training.config)
        found["long"] = record_generation(job, checkpoint, tokenizer, route="long")
    return found


class RMSNorm(nn.Module):
    """Root mean square normalisation (Zhang and Sennrich 2019): no mean is taken off, nothing is shifted."""

    kind, axes = "rms_norm", ("position", "feature")
    parameter_axes = {"weight": ("feature",)}
    explicit = True

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.settings = {"eps": eps}

    def forward(self, x: Tensor) -> Tensor:
        return _RMS.apply(x, self.weight, self.settings["eps"])


class _RMS(torch.autograd.Function):
    """One step of the graph, so that `x` has one use."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        r = torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, r)
        return x * r * weight

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, r = ctx.saved_tensors
        g = gradient * weight
        return r * g - x * r ** 3 * (g * x).mean(-1, keepdim=True), (gradient * x * r).sum((0, 1)), None


@contextmanager
def model_with_rms_norm() -> Iterator[None]:
    """Inside, every norm of a model is an `RMSNorm`, of a kind that no prose knows."""
    define("rms_norm", "Zhang and Sennrich 2019, equation 4", """
        r[...] = 1 / sqrt(sum(d, x[..., d] * x[..., d]) / size(d) + eps)
        out[..., d] = x[..., d] * r[...] * weight[d]
        """, gradients={
            "weight": """
                r[...] = 1 / sqrt(sum(d, x[..., d] * x[..., d]) / size(d) + eps)
                d_weight[d] = sum(..., d_out[..., d] * x[..., d] * r[...])
                """,
            "x": """
                r[...] = 1 / sqrt(sum(d, x[..., d] * x[..., d]) / size(d) + eps)
                g[..., d] = d_out[..., d] * weight[d]
                inner[...] = sum(d, g[..., d] * x[..., d]) / size(d)
                d_x[..., d] = r[...] * g[..., d] - x[..., d] * (r[...] * r[...] * r[...] * inner[...])
                """})
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model_module, "LayerNorm", RMSNorm)
            yield
    finally:
        KINDS.pop("rms_norm")
