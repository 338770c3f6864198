"""The induction experiment: the loss of two blocks falls off a cliff when a head learns to look for what came before.

Olsson et al. 2022, "In-context Learning and Induction Heads".
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from tracer.format.attention_text import pack
from tracer.format.experiment_figures import finish
from tracer.format.experiment_heads import INDUCTION_SCHEMA, SCORES
from tracer.format.experiments import VERSION
from tracer.library.attention_maps import attention_maps, repeated_texts
from tracer.library.head_scores import rank_heads
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.trainer.small_models import (
    logits_of,
    machine_json,
    small_model,
    training,
)
from tracer.trainer.small_settings import SmallSettings
from tracer.trainer.walks import Walks

WALKS = Walks(vocabulary=64, length=48, tokens=12, jump=0.2)
CHECKED, SCORED = 64, 8  # texts that the losses and the scores are taken over
CHECK_SEED, SCORE_SEED = 999, 998
SHOWN = 24  # tokens of the text whose attention is kept
Advance = Callable[[int, int, int, float], None]  # blocks, seed, updates that are done, loss


def run_induction(settings: SmallSettings, walks: Walks = WALKS,
                  advance: Advance = lambda blocks, seed, done, loss: None) -> dict[str, Any]:
    """Train two blocks from each seed and one block from the first; return the experiment as JSON.

    The same settings give the same numbers on the same kernels.  Raises `UserError` as `training` does.
    """
    config = Config(walks.vocabulary, walks.length, settings.fit.width, settings.fit.heads, blocks=1, dropout=0.0)
    texts = _Texts(walks)
    runs = [_run(config, blocks, seed, settings, texts, advance) for blocks, seed in settings.models]
    weights = [run.pop("shown") for run in runs]
    return finish({
        "schema": INDUCTION_SCHEMA, "version": VERSION,
        "make": {"config": {name: getattr(config, name) for name in ("vocabulary", "context", "width", "heads")},
                 "settings": settings.to_json(),
                 "task": {"tokens": walks.tokens, "jump": walks.jump, "checked": CHECKED, "scored": SCORED},
                 **machine_json()},
        "runs": runs,
        "shown": {"ids": texts.shown.tolist(), "weights": weights[0]},
    })


class _Texts:
    """What every model is looked at with: other texts than those that it learns from."""

    def __init__(self, walks: Walks):
        self.walks = walks
        self.checked, self.known = walks.draw(np.random.default_rng(CHECK_SEED), CHECKED)
        self.scored = walks.draw(np.random.default_rng(SCORE_SEED), SCORED)[0]
        self.twice = np.array(repeated_texts(walks.vocabulary, walks.length))
        self.shown = self.scored[0, :SHOWN]


def _run(config: Config, blocks: int, seed: int, settings: SmallSettings, texts: _Texts,
         advance: Advance) -> dict[str, Any]:
    """One model.  Losses are rounded to 4 decimals, scores to 3, and weights to whole thousandths."""
    model = small_model(replace(config, blocks=blocks), settings.std, seed)
    curve: dict[str, list[Any]] = {"update": [], "known": [], "unknown": []}
    scores: dict[str, list[list[float]]] = {name: [[] for _ in range(blocks * config.heads)] for name in SCORES}
    shown = []
    for done in training(model, settings.fit, texts.walks.batch, seed):
        for name, value in zip(curve, (done, *_losses(model, texts)), strict=True):
            curve[name].append(value)
        for name, heads in _scores(model, texts).items():
            for column, score in zip(scores[name], heads, strict=True):
                column.append(score)
        shown.append(pack(attention_maps(model, texts.shown[None])[0].reshape(-1, SHOWN, SHOWN)))
        advance(blocks, seed, done, curve["known"][-1])
    return {"blocks": blocks, "seed": seed, "parameters": model.parameter_count(), "curve": curve, "scores": scores,
            "shown": shown}


def _losses(model: GPT, texts: _Texts) -> tuple[float, float]:
    """Mean loss where the next token can be known from the text, and where it cannot; nats."""
    ids = torch.from_numpy(texts.checked)
    losses = F.cross_entropy(logits_of(model, ids[:, :-1]).transpose(1, 2), ids[:, 1:], reduction="none").numpy()
    known, unknown = losses[texts.known], losses[~texts.known]
    return round(float(known.mean()), 4), round(float(unknown.mean()), 4)


def _scores(model: GPT, texts: _Texts) -> dict[str, list[float]]:
    """Name of `SCORES` → the score of each head, block by block."""
    own, twice = (rank_heads(list(zip(ids, attention_maps(model, ids), strict=True)))
                  for ids in (texts.scored, texts.twice))
    of = dict(zip(SCORES, (own["induction"], own["previous token"], twice["induction"]), strict=True))
    return {name: [round(one.score, 3) for one in sorted(heads, key=lambda one: (one.block, one.head))]
            for name, heads in of.items()}
