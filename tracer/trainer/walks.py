"""Texts in which a token repeats what followed it before: what an induction head is good for.

A text draws some tokens of the vocabulary and gives each one of them as its successor, a permutation of its own.  It
begins at one of them; each next token is the successor, or, now and then, any of them: a jump.  What follows a token
can so be known from the text alone, once it was seen: not before, and no other text helps.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Walks:
    """Texts of `length` tokens, each of `tokens` that it draws from `vocabulary`; it jumps with probability `jump`."""

    vocabulary: int
    length: int
    tokens: int
    jump: float

    def draw(self, random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids (count, length), and where (count, length − 1) the next token is a successor that was seen before."""
        drawn = random.random((count, self.vocabulary)).argsort(1)[:, :self.tokens]
        successor = random.random((count, self.tokens)).argsort(1)
        jumps = random.random((count, self.length)) < self.jump
        targets = random.integers(self.tokens, size=(count, self.length))
        rows, seen = np.arange(count), np.zeros((count, self.tokens), bool)
        ids, known = np.empty((count, self.length), np.int64), np.zeros((count, self.length - 1), bool)
        at = targets[:, 0]
        ids[:, 0] = drawn[rows, at]
        for place in range(1, self.length):
            follows = ~jumps[:, place]
            known[:, place - 1] = follows & seen[rows, at]
            seen[rows, at] |= follows
            at = np.where(follows, successor[rows, at], targets[:, place])
            ids[:, place] = drawn[rows, at]
        return ids, known

    def batch(self, random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids and targets (count, length − 1), for training."""
        ids, _ = self.draw(random, count)
        return ids[:, :-1], ids[:, 1:]
