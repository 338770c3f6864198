"""Sentences of `tracer.trainer.sentences` with one word masked, to be filled in from what stands around it."""

import numpy as np

from tracer.trainer.sentences import ID, VERBS, WORDS, Sentence, ids_of, sentence
from tracer.trainer.small_models import NONE

MASK = "[mask]"
MASK_ID = len(WORDS)
VOCABULARY = MASK_ID + 1


def maskable(one: Sentence) -> dict[str, int]:
    """Where the words stand that may be masked: what says something about the rest, or is said by it."""
    verb = next(place for place, word in enumerate(one.words) if word in VERBS)
    return {"meant": one.nouns[one.right], "other": one.nouns[1 - one.right], "verb": verb, "did": one.it + 1}


def masked(sentences: list[Sentence], places: list[int]) -> np.ndarray:
    """Ids (sentences, LONGEST), each with the word at its place masked."""
    ids = ids_of(sentences)
    ids[np.arange(len(places)), places] = MASK_ID
    return ids


def ids_of_words(words: list[str]) -> np.ndarray:
    """Ids (1, words) of a sentence in which `MASK` stands."""
    return np.array([[MASK_ID if word == MASK else ID[word] for word in words]])


def batch(random: np.random.Generator, count: int, pairs: list[tuple[str, str]]) -> tuple[np.ndarray, np.ndarray]:
    """Masked sentences and targets, (count, LONGEST) each: nothing is asked but for the masked word."""
    sentences = [sentence(random, pairs) for _ in range(count)]
    places = [[*maskable(one).values()][int(random.integers(4))] for one in sentences]
    ids, targets = masked(sentences, places), np.full((count, ids_of(sentences[:1]).shape[1]), NONE)
    for row, (one, place) in enumerate(zip(sentences, places, strict=True)):
        targets[row, place] = ID[one.words[place]]
    return ids, targets
