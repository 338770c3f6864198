"""Recordings of other texts, shapes and settings than the committed ones: what pages have to be right about."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor

from tracer.format.trace import Trace
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


def small(**shape) -> Variant:
    """A short text through one narrow block."""
    return _variant("to be or not to be", "to", **shape)


def recorded(variant: Variant, tokenizer: Tokenizer) -> dict[str, Trace]:
    """The recordings of a variant by route."""
    training, checkpoint = record_training(variant.training, tokenizer)
    found = {"training": training, "generation": record_generation(variant.generation, checkpoint, tokenizer),
             "early": record_generation(variant.generation, checkpoint.early, tokenizer, route="early")}
    if variant.past_context:
        job = past_context_job(variant.generation, variant.training.text, tokenizer, variant.training.config)
        found["long"] = record_generation(job, checkpoint, tokenizer, route="long")
    return found


NEW_NORM = "length_norm"


def length_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return weight * x / (x * x).sum(-1, keepdim=True).add(eps).sqrt()


@contextmanager
def a_new_norm() -> Iterator[Config]:
    """Inside, there is a norm of a kind that no prose knows, said in one place; the shape of a model that has it."""
    define(NEW_NORM, "made up: every position is brought to length 1", """
        length[...] = sqrt(sum(d, x[..., d] * x[..., d]) + eps)
        out[..., d] = weight[d] * x[..., d] / length[...]
        """, differentiate=("x", "weight"), place="norm", torch=length_norm)
    try:
        yield Config(context=16, width=8, heads=2, blocks=1, norm=NEW_NORM)
    finally:
        KINDS.pop(NEW_NORM)
