"""The experiment of the loss before the first update."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from tracer.errors import UserError
from tracer.format.experiment_figures import finish
from tracer.format.experiment_initial import INITIAL_SCHEMA
from tracer.format.experiments import VERSION
from tracer.model.config import Config
from tracer.trainer.small_models import logits_of, machine_json, small_model

CONTEXT, WIDTH, HEADS, BLOCKS, TEXTS = 32, 64, 4, 2, 8
STDS = (0.02, 0.1)  # GPT-2's, and the one that small models learn with


def run_initial(vocabularies: Sequence[int], seeds: Sequence[int], width: int = WIDTH,
                after_point: Callable[[dict[str, Any]], None] = lambda point: None) -> dict[str, Any]:
    """The loss of fresh models on random tokens, for each vocabulary and deviation; the experiment as JSON.

    Raises `UserError` for no vocabulary or seed.
    """
    if not vocabularies or not seeds:
        raise UserError("give at least one vocabulary and one seed")
    points = []
    for vocabulary in sorted(vocabularies):
        for std in STDS:
            config = Config(vocabulary, CONTEXT, width, HEADS, BLOCKS, dropout=0.0)
            models = [small_model(config, std, seed) for seed in seeds]
            points.append({"vocabulary": vocabulary, "std": std, "parameters": models[0].parameter_count(),
                           "losses": [_loss(model, seed) for model, seed in zip(models, seeds, strict=True)]})
            after_point(points[-1])
    return finish({
        "schema": INITIAL_SCHEMA, "version": VERSION,
        "make": {"config": {"context": CONTEXT, "width": width, "heads": HEADS, "blocks": BLOCKS}, "texts": TEXTS,
                 "seeds": list(seeds), **machine_json()},
        "points": points,
    })


def _loss(model: Any, seed: int) -> float:
    """Mean loss on texts of random tokens; nats, 4 decimals."""
    V, C = model.config.vocabulary, model.config.context
    ids = torch.from_numpy(np.random.default_rng(seed).integers(V, size=(TEXTS, C + 1)))
    return round(float(F.cross_entropy(logits_of(model, ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())), 4)
