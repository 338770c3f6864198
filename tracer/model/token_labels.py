"""A short text for what a token stands for, to be read in a table's heading."""

import unicodedata
from itertools import groupby


def label_of(data: bytes) -> str:
    """Printable text as it is, what shows nothing by its picture or code point, bytes that are no text in hex.

    `Tokenizer.label` says which is which.
    """
    try:
        return _visible(data.decode("utf-8"))
    except UnicodeDecodeError:
        return "·".join(f"{value:02X}" for value in data)


def _visible(text: str) -> str:
    shown: list[str] = []
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
