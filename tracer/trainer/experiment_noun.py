"""The noun experiment: a model learns whom *it* means, and whether its attention shows it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tracer.format.experiment_figures import finish
from tracer.format.experiment_heads import NOUN_SCHEMA
from tracer.format.experiments import VERSION
from tracer.library.attention_maps import attention_maps
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.trainer.sentences import (
    FILL,
    HELD_OUT,
    ID,
    LONGEST,
    MEANS_FIRST,
    MEANS_SECOND,
    NOUNS,
    TRAINED,
    UNTRAINED,
    WORDS,
    Sentence,
    ids_of,
    sentence,
)
from tracer.trainer.small_models import (
    NONE,
    logits_of,
    machine_json,
    small_model,
    training,
)
from tracer.trainer.small_settings import SmallSettings

CHECKED, CHECK_SEED = 400, 99  # sentences that answers and weights are taken over
SAID = 3  # likeliest next words that are kept
# What every model reads, up to *it*: two sentences that differ in the verb alone, a long one, one without a verb.
READ = ("the dog feared the cat because it", "the dog frightened the cat because it",
        "yesterday the old kettle annoyed the small ghost because it", "the cat the dog because it")

Advance = Callable[[int, int, int, float], None]  # blocks, seed, updates that are done, share of right answers


def run_noun(settings: SmallSettings,
             advance: Advance = lambda blocks, seed, done, right: None) -> dict[str, Any]:
    """Train two blocks from each seed and one block from the first ones; return the experiment as JSON.

    The same settings give the same numbers on the same kernels.  Raises `UserError` as `training` does.
    """
    config = Config(len(WORDS), LONGEST, settings.fit.width, settings.fit.heads, blocks=1, dropout=0.0)
    random = np.random.default_rng(CHECK_SEED)
    checked = {name: [sentence(random, pairs) for _ in range(CHECKED)]
               for name, pairs in (("trained", TRAINED), ("held_out", UNTRAINED))}
    runs = [_run(config, blocks, seed, settings, checked, advance) for blocks, seed in settings.models]
    return finish({
        "schema": NOUN_SCHEMA, "version": VERSION,
        "make": {"config": {name: getattr(config, name) for name in ("vocabulary", "context", "width", "heads")},
                 "settings": settings.to_json(),
                 "task": {"nouns": [*NOUNS], "first": [*MEANS_FIRST], "second": [*MEANS_SECOND],
                          "held_out": HELD_OUT, "checked": CHECKED},
                 **machine_json()},
        "runs": runs,
        "sentences": [_shown(text.split()) for text in READ],
    })


def batch(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids and targets of sentences about the pairs that are trained on; nothing is asked of what fills them up."""
    ids = ids_of([sentence(random, TRAINED) for _ in range(count)])
    targets = ids[:, 1:].copy()
    targets[targets == ID[FILL]] = NONE
    return ids[:, :-1], targets


def _run(config: Config, blocks: int, seed: int, settings: SmallSettings,
         checked: dict[str, list[Sentence]], advance: Advance) -> dict[str, Any]:
    """One model.  Shares are rounded to 3 decimals."""
    model = small_model(replace(config, blocks=blocks), settings.std, seed)
    curve: dict[str, list[Any]] = {"update": [], "trained": [], "held_out": []}
    looks: dict[str, list[list[float]]] = {name: [[] for _ in range(blocks * config.heads)]
                                           for name in ("right", "other")}
    for done in training(model, settings.fit, batch, seed):
        curve["update"].append(done)
        for name, sentences in checked.items():
            curve[name].append(_answered(model, sentences))
        for name, heads in zip(looks, _looked_at(model, checked["held_out"]), strict=True):
            for column, weight in zip(looks[name], heads, strict=True):
                column.append(weight)
        advance(blocks, seed, done, curve["held_out"][-1])
    return {"blocks": blocks, "seed": seed, "parameters": model.parameter_count(), "curve": curve, **looks,
            "read": [_read(model, text.split()) for text in READ]}


def _answered(model: GPT, sentences: list[Sentence]) -> float:
    """The share of sentences in which the likeliest word after *it* is one that only the right noun does."""
    logits = logits_of(model, torch.from_numpy(ids_of(sentences)))
    said = logits[torch.arange(len(sentences)), [one.it for one in sentences]].argmax(-1).tolist()
    return round(sum(WORDS[word] in one.answers for word, one in zip(said, sentences, strict=True)) / len(said), 3)


def _looked_at(model: GPT, sentences: list[Sentence]) -> tuple[list[float], list[float]]:
    """The mean weight of *it* on the noun that it means, and on the other, of each head, block by block."""
    maps = attention_maps(model, ids_of(sentences))
    of_it = np.stack([each[:, :, one.it] for each, one in zip(maps, sentences, strict=True)])  # (n, blocks, heads, T)
    means = []
    for other in (False, True):
        places = [one.nouns[one.right ^ other] for one in sentences]
        means.append(of_it[np.arange(len(sentences)), :, :, places].mean(0).reshape(-1))
    return _shares(means[0]), _shares(means[1])


def _read(model: GPT, words: list[str]) -> dict[str, Any]:
    """What the last word looks at, head by head, and the likeliest words that follow it."""
    ids = torch.tensor([[ID[word] for word in words]])
    last = logits_of(model, ids)[0, -1].softmax(-1).topk(SAID)
    maps = attention_maps(model, ids.numpy())[0]
    return {"weights": [_shares(head[-1]) for head in maps.reshape(-1, *maps.shape[-2:])],
            "said": [{"word": WORDS[word], "share": share}
                     for word, share in zip(last.indices.tolist(), _shares(last.values.numpy()), strict=True)]}


def _shown(words: list[str]) -> dict[str, Any]:
    """A sentence of `READ`: where its nouns stand, which of them its verb means, and what that noun does."""
    first, second = (place for place, word in enumerate(words) if word in NOUNS)
    right = next((int(word in MEANS_SECOND) for word in words if word in (*MEANS_FIRST, *MEANS_SECOND)), None)
    answers = [] if right is None else [*NOUNS[words[(first, second)[right]]]]
    return {"words": words, "nouns": [first, second], "right": right, "answers": answers}


def _shares(values: np.ndarray) -> list[float]:
    return [round(float(value), 3) for value in values]
