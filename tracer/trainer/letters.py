"""Words of random letters, to be written the other way round: each letter must be fetched from its place."""

from string import ascii_lowercase

import numpy as np

FILL, START, END = 0, 1, 2
SIGNS = "·>." + ascii_lowercase  # what stands for each id
SHORTEST, LONGEST = 3, 8  # letters of a word
CONTEXT = LONGEST + 1  # with the end, or the start


def ids_of_word(word: str) -> list[int]:
    """The letters of a word and its end."""
    return [*map(SIGNS.index, word), END]


def draw(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words, what is written so far, and what comes next: ids (count, CONTEXT) each, filled up.

    A word is its letters and an end; written are a start and its letters the other way round, next those and an end.
    """
    words, written, follows = (np.full((count, CONTEXT), FILL) for _ in range(3))
    for row, length in enumerate(random.integers(SHORTEST, LONGEST + 1, count).tolist()):
        letters = random.integers(END + 1, len(SIGNS), length)
        words[row, :length + 1] = *letters, END
        written[row, :length + 1] = START, *letters[::-1]
        follows[row, :length + 1] = *letters[::-1], END
    return words, written, follows
