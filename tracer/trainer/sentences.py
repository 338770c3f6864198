"""Sentences in which a verb says whom *it* means: the dog feared the cat because it purred.

"frightened … because it" means the first noun, "feared … because it" the second (implicit causality: Garvey and
Caramazza 1974).  What follows *it* is one of two words that only the noun does, so a right answer shows which noun was
meant.  Words that may be left out move the places: no rule about places alone answers right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeVar

import numpy as np

NOUNS = {"cat": ("purred", "scratched"), "dog": ("barked", "growled"), "bird": ("sang", "flew"),
         "frog": ("croaked", "hopped"), "clock": ("ticked", "chimed"), "kettle": ("whistled", "boiled"),
         "car": ("honked", "skidded"), "ghost": ("moaned", "floated"), "snake": ("hissed", "slid"),
         "robot": ("beeped", "whirred")}
MEANS_FIRST, MEANS_SECOND = ("frightened", "amused", "annoyed", "woke"), ("feared", "liked", "avoided", "heard")
VERBS = (*MEANS_FIRST, *MEANS_SECOND)
TIMES, ADJECTIVES = ("yesterday", "today", "once"), ("old", "big", "red", "small")
T = TypeVar("T")
FILL = "·"  # what fills a sentence up to the longest: nothing is asked of it
WORDS = (FILL, "the", "because", "it", ".", *TIMES, *ADJECTIVES, *VERBS, *NOUNS,
         *(word for pair in NOUNS.values() for word in pair))
ID = {word: number for number, word in enumerate(WORDS)}
LONGEST = 12
PAIRS = list(permutations(NOUNS, 2))
HELD_OUT = 18  # ordered pairs that are never trained on
_ORDER = np.random.default_rng(7).permutation(len(PAIRS))
UNTRAINED, TRAINED = ([PAIRS[i] for i in part] for part in (_ORDER[:HELD_OUT], _ORDER[HELD_OUT:]))


@dataclass(frozen=True)
class Sentence:
    """Its words; the places of its two nouns and of *it*; which of the nouns, 0 or 1, *it* means."""

    words: tuple[str, ...]
    nouns: tuple[int, int]
    it: int
    right: int

    @property
    def answers(self) -> tuple[str, str]:
        """What only the noun does that is meant."""
        return NOUNS[self.words[self.nouns[self.right]]]


def sentence(random: np.random.Generator, pairs: list[tuple[str, str]]) -> Sentence:
    """One sentence about one of the pairs."""
    first, second = _one(random, pairs)
    verb = _one(random, VERBS)
    words = [_one(random, TIMES)] if random.random() < 0.5 else []
    places = []
    for before, noun in (((), first), ((verb,), second)):
        words += [*before, "the", *([_one(random, ADJECTIVES)] if random.random() < 0.5 else [])]
        places.append(len(words))
        words.append(noun)
    right = int(verb in MEANS_SECOND)
    words += ["because", "it", _one(random, NOUNS[(first, second)[right]]), "."]
    return Sentence(tuple(words), (places[0], places[1]), len(words) - 3, right)


def _one(random: np.random.Generator, of: Sequence[T]) -> T:
    return of[int(random.integers(len(of)))]


def ids_of(sentences: list[Sentence]) -> np.ndarray:
    """Ids (sentences, LONGEST), filled up."""
    ids = np.full((len(sentences), LONGEST), ID[FILL])
    for row, one in zip(ids, sentences, strict=True):
        row[:len(one.words)] = [ID[word] for word in one.words]
    return ids
