"""What every tokenizer does, and text from ids that come one at a time."""

import codecs
from collections.abc import Iterable
from typing import Protocol, runtime_checkable


class TextCodec(Protocol):
    """What generation needs of a tokenizer.  One that is a `ByteTokenizer` may split a character over tokens."""

    def encode(self, text: str) -> list[int]: ...
    def decode(self, ids: Iterable[int]) -> str: ...


class TextTokenizer(TextCodec, Protocol):
    """What training asks of a tokenizer besides."""

    @property
    def name(self) -> str: ...
    @property
    def vocabulary_size(self) -> int: ...


@runtime_checkable
class ByteTokenizer(Protocol):
    """One whose tokens are bytes."""

    def token_bytes(self, id: int) -> bytes: ...


class IncrementalDecoder:
    """Turns ids into text one at a time without showing half a character.

    The texts of all `feed` calls and the last `finish`, joined, are ``tokenizer.decode(ids)``.
    """

    def __init__(self, tokenizer: ByteTokenizer):
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
