"""The small models that the lessons open: on GPT-2's plan, with each of Llama's changes, and with all of them."""

from collections.abc import Callable
from typing import Any

from tracer.format.shapes import LLAMA_SHAPES
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.trainer.experiment_noun import batch
from tracer.trainer.sentences import ID, LONGEST, WORDS
from tracer.trainer.small_models import small_model, training
from tracer.trainer.small_settings import noun_settings

_LLAMA = LLAMA_SHAPES["llama-3-8b"]


def _of_llama(*names: str) -> dict[str, Any]:
    return {name: _LLAMA[name] for name in names}


GROUPED: dict[str, Any] = {"kv_heads": 1}
CHANGES: dict[str, dict[str, Any]] = {  # name of the recording → what differs from GPT-2
    "plain": {}, "norm": _of_llama("norm"), "rotary": _of_llama("position"), "gate": _of_llama("activation"),
    "grouped": GROUPED, "bias": _of_llama("bias"),
    "llama": _of_llama("norm", "position", "activation", "bias", "tied") | GROUPED}
READ = "the dog feared the cat because it"
TRAINED_ON = "sentences in which a verb says whom it means"
UPDATES, SEED = 600, 0
FIT = noun_settings(width=16, heads=2, batch=32, updates=UPDATES, evaluate_every=100, seeds=(SEED,))
SETTINGS = {"seed": SEED, "updates": UPDATES, "lr": FIT.fit.lr, "batch": FIT.fit.batch, "std": FIT.std}
LABELS, IDS = list(WORDS), [ID[word] for word in READ.split()]


def trained(name: str, advance: Callable[[int], None] = lambda done: None) -> GPT:
    """The model of that name after its training; the same numbers on the same kernels."""
    config = Config(len(WORDS), LONGEST, FIT.fit.width, FIT.fit.heads, blocks=1, dropout=0.0, **CHANGES[name])
    model = small_model(config, FIT.std, SEED)
    for done in training(model, FIT.fit, batch, SEED):
        advance(done)
    return model
