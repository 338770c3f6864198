"""Attention as pictures for SVG: a matrix of cells between tokens, and a sentence with arcs from its last word."""

from dataclasses import dataclass

import numpy as np

from tracer.format.attention_patterns import Pattern
from tracer.format.attention_text import WHOLE

CELL, LABELS = 12, 16  # units of a matrix: a cell, and what the tokens take beside it
LINE, MIDDLE, ARC = 22, 115, 72  # of a sentence: from word to word, where the words stand, how far an arc may reach
WORD = 40  # half of what the longest word takes
FEW = 0.02  # a weight that is less is not drawn
TOLD = 0.1  # one that is less is not said in figures
THICK = 7
SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def sign(token: int) -> str:
    """What stands for a token without a text: one letter or digit each for the first 64."""
    return SIGNS[token] if token < len(SIGNS) else str(token)


@dataclass
class Cell:
    """One weight of a matrix; `meant`: whether the pattern of its head means it."""

    x: int
    y: int
    weight: float
    meant: bool


@dataclass
class Token:
    """What stands beside a row and above the column of the same number, and where.

    `due`: what a model should write there, where the row is what it writes.
    """

    row: str
    column: str
    across: int
    down: int
    due: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether something else is written than is due."""
        return self.due != self.row


@dataclass
class Matrix:
    """One head: its cells row by row, and the tokens beside rows and above columns."""

    size: int
    cell: int
    cells: list[Cell]
    tokens: list[Token]


def matrix(ids: list[int], weights: np.ndarray, pattern: Pattern) -> Matrix:
    """The picture of thousandths (T, T)."""
    T, meant = len(ids), pattern(np.array(ids))
    cells = [Cell(LABELS + CELL * j, LABELS + CELL * i, int(weights[i, j]) / WHOLE, bool(meant[i, j]))
             for i in range(T) for j in range(i + 1)]
    return _matrix(cells, [(sign(token), sign(token), "") for token in ids])


def cross_matrix(word: str, written: str, end: str, weights: np.ndarray) -> Matrix:
    """The picture of thousandths: a row for each sign that is written, a column for each letter of `word` and its end.

    Meant is the letter that is due: the last one first, and at last the end.
    """
    count = len(word)
    cells = [Cell(LABELS + CELL * j, LABELS + CELL * i, int(weights[i, j]) / WHOLE, i + j == count - 1)
             for i in range(count + 1) for j in range(count + 1)]
    return _matrix(cells, [*zip(written, word + end, word[::-1] + end, strict=True)])


def _matrix(cells: list[Cell], signs: list[tuple[str, str, str]]) -> Matrix:
    middles = [LABELS + CELL * place + CELL // 2 for place in range(len(signs))]
    return Matrix(LABELS + CELL * len(signs), CELL, cells,
                  [Token(row, column, middle, middle + 3, due)
                   for (row, column, due), middle in zip(signs, middles, strict=True)])


@dataclass
class Arc:
    """From the last word to an earlier one; `text` at (x, y) is its weight, where it is not small."""

    path: str
    width: float
    side: str  # "left" or "right"
    text: str
    x: int
    y: int
    anchor: str


@dataclass
class Word:
    text: str
    y: int
    kind: str  # "", "noun", "meant" or "last"


@dataclass
class SentencePicture:
    """Words below each other; the arcs of the first block to the left of them, of the second to the right."""

    width: int
    height: int
    middle: int
    words: list[Word]
    arcs: list[Arc]

    @property
    def label(self) -> str:
        """The sentence, and the weights that are told."""
        return " · ".join([" ".join(word.text for word in self.words), *(arc.text for arc in self.arcs if arc.text)])


def sentence_picture(words: list[str], nouns: list[int], right: int | None, blocks: list[list[float]]
                     ) -> SentencePicture:
    """`blocks`: of each block the weights of the last word on every word."""
    ys = [LINE * place + 16 for place in range(len(words))]
    kinds = dict.fromkeys(nouns, "noun") | ({} if right is None else {nouns[right]: "meant"}) | {len(words) - 1: "last"}
    arcs = [_arc(ys, place, weight, block, len(words)) for block, weights in enumerate(blocks)
            for place, weight in enumerate(weights) if weight >= FEW]
    return SentencePicture(2 * MIDDLE, ys[-1] + 14, MIDDLE,
                           [Word(text, ys[place] + 4, kinds.get(place, "")) for place, text in enumerate(words)], arcs)


def _arc(ys: list[int], place: int, weight: float, block: int, count: int) -> Arc:
    side = 1 if block % 2 else -1
    start, end = MIDDLE + side * WORD, ys[place]
    steps = count - 1 - place  # the farther, the wider; on itself a small loop
    reach = start + side * (round(ARC * steps / max(count - 1, 1) * 0.9) + 8)
    low = ys[-1] + (0 if steps else 5)
    high = end - (0 if steps else 5)
    path = f"M{start},{low}C{reach},{low} {reach},{high} {start},{high}"
    text = f"{weight:.3f}".lstrip("0") if weight >= TOLD else ""
    name, anchor = ("right", "start") if side > 0 else ("left", "end")
    return Arc(path, round(max(THICK * weight, 0.6), 2), name, text, start + side * 4, end - 4, anchor)
