"""The experiment of the two other families: words are written the other way round, masked words filled in."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tracer.format.attention_text import pack_whole
from tracer.format.experiment_families import FAMILIES_SCHEMA, SIDES, candidates, right_words
from tracer.format.experiment_figures import finish
from tracer.format.experiments import VERSION
from tracer.model.config import Config
from tracer.model.families import Encoder, EncoderDecoder, draw_weights
from tracer.model.fused import causal
from tracer.model.gpt import HasBothForms
from tracer.model.optimizer import check_seed
from tracer.trainer import letters, masked_words
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
    sentence,
)
from tracer.trainer.small_models import NONE, machine_json, training
from tracer.trainer.small_settings import SmallSettings

CHECKED, CHECK_SEED = 400, 99  # words and sentences that shares are taken over
SHOWN = ("stressed", "drawer", "live")  # words whose cross-attention is kept
READ = ("the dog [mask] the cat because it purred .", "the dog [mask] the cat because it barked .",
        "the dog feared the [mask] because it hissed .")
BLOCKS = {"reversing": 1, "masked": 2}
TASK: dict[str, Any] = {"does": {noun: [*does] for noun, does in NOUNS.items()}, "first": [*MEANS_FIRST],
                        "second": [*MEANS_SECOND], "held_out": HELD_OUT, "checked": CHECKED}

Advance = Callable[[str, int, int, float], None]  # what is learnt, seed, updates that are done, share right


def run_families(reversing: SmallSettings, masking: SmallSettings,
                 advance: Advance = lambda what, seed, done, right: None) -> dict[str, Any]:
    """Train an encoder–decoder from each seed, and an encoder twice; return the experiment as JSON.

    The same settings give the same numbers on the same kernels.  Raises `UserError` as `training` does.
    """
    configs = {"reversing": _config(len(letters.SIGNS), letters.CONTEXT, reversing, BLOCKS["reversing"]),
               "masked": _config(masked_words.VOCABULARY, LONGEST, masking, BLOCKS["masked"])}
    runs = [_reversing(configs["reversing"], seed, reversing, advance) for seed in reversing.seeds]
    looks = [run.pop("shown") for run in runs]
    random = np.random.default_rng(CHECK_SEED)
    checked = {name: [sentence(random, pairs) for _ in range(CHECKED)]
               for name, pairs in (("trained", TRAINED), ("held_out", UNTRAINED))}
    fillings = [_masked(configs["masked"], sides, seed, masking, checked, advance)
                for sides in SIDES for seed in masking.seeds]
    return finish({
        "schema": FAMILIES_SCHEMA, "version": VERSION,
        "make": {"reversing": _making(configs["reversing"], reversing, {
                     "letters": len(letters.SIGNS) - letters.END - 1, "shortest": letters.SHORTEST,
                     "longest": letters.LONGEST, "end": letters.SIGNS[letters.END], "checked": CHECKED}),
                 "masked": _making(configs["masked"], masking, TASK),
                 **machine_json()},
        "reversing": runs,
        "shown": {"words": [*SHOWN],
                  "written": [[look[number][0] for look in looks[0]] for number in range(len(SHOWN))],
                  "weights": [pack_whole([weights for _, weights in look]) for look in looks[0]]},
        "masked": fillings,
        "sentences": [_asked(text.split()) for text in READ],
    })


def _config(vocabulary: int, context: int, settings: SmallSettings, blocks: int) -> Config:
    return Config(vocabulary, context, settings.fit.width, settings.fit.heads, blocks, dropout=0.0)


def _making(config: Config, settings: SmallSettings, task: dict[str, Any]) -> dict[str, Any]:
    return {"config": {name: getattr(config, name) for name in ("vocabulary", "context", "width", "heads", "blocks")},
            "settings": settings.to_json(), "task": task}


def _fresh(model: nn.Module, settings: SmallSettings, seed: int) -> int:
    """Draws its weights, in the form of few kernels; returns how many there are."""
    check_seed(seed)
    torch.manual_seed(seed)
    draw_weights(model, settings.std)
    for module in model.modules():
        if isinstance(module, HasBothForms):
            module.explicit = False
    return sum(parameter.numel() for parameter in model.parameters())


# Reversing ----------------------------------------------------------------------------------------------

def _reversing(config: Config, seed: int, settings: SmallSettings, advance: Advance) -> dict[str, Any]:
    """One model.  Shares are rounded to 3 decimals."""
    model = EncoderDecoder(config, letters.FILL)
    parameters = _fresh(model, settings, seed)
    checked = letters.draw(np.random.default_rng(CHECK_SEED), CHECKED)
    curve: dict[str, list[Any]] = {"update": [], "words": [], "right": []}
    shown = []
    for done in training(model, settings.fit, _words, seed, lambda model, *given: model(*given)):
        model.eval()
        for name, value in zip(curve, (done, *_reversed(model, *checked)), strict=True):
            curve[name].append(value)
        shown.append([_look(model, word) for word in SHOWN])
        advance("reversing", seed, done, curve["words"][-1])
    return {"seed": seed, "parameters": parameters, "curve": curve, "shown": shown}


def _words(random: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    """A batch: what fills a word up is no target."""
    words, written, follows = letters.draw(random, count)
    return words, written, np.where(follows == letters.FILL, NONE, follows)


@torch.no_grad()
def write(model: EncoderDecoder, words: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Ids (B, count) that the model writes of words (B, S), each time the likeliest, and how it looks at them.

    The weights are those of the last block: (B, H, count, S).
    """
    kept: list[Tensor] = []
    softmax = model.blocks[-1].get_submodule("cross_attention.softmax")
    handle = softmax.register_forward_hook(lambda _module, _given, weights: kept.append(weights[:, :, -1:]))
    memory, seen = model.encode(words)
    ids = torch.full((len(words), 1), letters.START)
    for _ in range(count):
        ids = torch.cat((ids, model.decode(ids, memory, seen)[:, -1:].argmax(-1)), 1)
    handle.remove()
    return ids[:, 1:], torch.cat(kept, 2)


def _reversed(model: EncoderDecoder, words: np.ndarray, _written: np.ndarray, follows: np.ndarray
              ) -> tuple[float, float]:
    """The share of words that are written right, and the mean weight on the letter that is due, over all letters."""
    written, weights = write(model, torch.from_numpy(words), letters.CONTEXT)
    asked = follows != letters.FILL
    right = ((written.numpy() == follows) | ~asked).all(1).mean()
    rows, places = np.nonzero(follows > letters.END)
    due = asked.sum(1)[rows] - 2 - places  # of k letters the one that is written at t stands at k − 1 − t
    looks = weights.mean(1).numpy()[rows, places, due].mean()
    return round(float(right), 3), round(float(looks), 3)


def _look(model: EncoderDecoder, word: str) -> tuple[str, np.ndarray]:
    """What is written of a word, and the weights (letters and end, letters and end): a row for each sign written."""
    ids = letters.ids_of_word(word)
    written, weights = write(model, torch.tensor([ids]), len(ids))
    return "".join(letters.SIGNS[one] for one in written[0].tolist()), weights[0].mean(0).numpy()


# Masked words -------------------------------------------------------------------------------------------

def fill_in(model: nn.Module, ids: Tensor, left: bool) -> Tensor:
    """Logits (B, T, V) for ids (B, T), each position looking at both sides or to the left alone."""
    allowed = (ids != ID[FILL])[:, None, None]
    if left:
        allowed = allowed & causal(ids.size(1), ids.size(1))
    logits: Tensor = model(ids, allowed)
    return logits


def _masked(config: Config, sides: str, seed: int, settings: SmallSettings,
            checked: dict[str, list[Sentence]], advance: Advance) -> dict[str, Any]:
    """One model.  Shares are rounded to 3 decimals."""
    model = Encoder(config)
    parameters = _fresh(model, settings, seed)
    logits = partial(fill_in, left=sides == "left")
    curve: dict[str, list[Any]] = {"update": [], "noun": [], "noun_held_out": [], "verb": [], "verb_held_out": []}
    batch = partial(masked_words.batch, pairs=TRAINED)
    for done in training(model, settings.fit, batch, seed, logits):
        model.eval()
        curve["update"].append(done)
        for more, sentences in zip(("", "_held_out"), checked.values(), strict=True):
            for name, value in _filled_in(model, logits, sentences).items():
                curve[name + more].append(value)
        advance(f"masked, {sides}", seed, done, curve["noun"][-1])
    return {"sides": sides, "seed": seed, "parameters": parameters, "curve": curve,
            "read": [_shares(model, logits, text.split()) for text in READ]}


@torch.no_grad()
def _likeliest(model: nn.Module, logits: Callable[..., Tensor], sentences: list[Sentence], name: str) -> list[int]:
    places = [masked_words.maskable(one)[name] for one in sentences]
    found = logits(model, torch.from_numpy(masked_words.masked(sentences, places)))
    said: list[int] = found[torch.arange(len(places)), places].argmax(-1).tolist()
    return said


def _filled_in(model: nn.Module, logits: Callable[..., Tensor], sentences: list[Sentence]) -> dict[str, float]:
    """The shares of sentences in which the noun that *it* means is found, and a verb that means this noun."""
    nouns, verbs = (_likeliest(model, logits, sentences, name) for name in ("meant", "verb"))
    right = [[word == ID[one.words[one.nouns[one.right]]] for word, one in zip(nouns, sentences, strict=True)],
             [word < len(WORDS) and WORDS[word] in (MEANS_FIRST, MEANS_SECOND)[one.right]
              for word, one in zip(verbs, sentences, strict=True)]]
    return {name: round(sum(each) / len(each), 3) for name, each in zip(("noun", "verb"), right, strict=True)}


@torch.no_grad()
def _shares(model: nn.Module, logits: Callable[..., Tensor], words: list[str]) -> list[float]:
    """Of a sentence of `READ` the probability of each of its candidates at the masked place."""
    found = logits(model, torch.from_numpy(masked_words.ids_of_words(words)))[0, words.index(masked_words.MASK)]
    shares = found.softmax(-1)
    return [round(float(shares[ID[word]]), 3) for word in candidates(words, TASK)]


def _asked(words: list[str]) -> dict[str, Any]:
    """A sentence of `READ`: which words are asked about, and with which of them it holds."""
    place = words.index(masked_words.MASK)
    return {"words": words, "place": place, "candidates": candidates(words, TASK),
            "right": right_words(words, place, TASK)}
