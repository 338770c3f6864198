"""A text as token ids on disk, mapped into memory, and the windows that training reads from it.

`prepare` writes ``train-….bin`` and ``validation-….bin`` (plain little-endian ids, the first nine tenths of
the text and the rest), named by their content, and last of all ``meta.json``, which names them: until it is
replaced, whoever reads the folder sees the old data whole.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tracer.errors import UserError
from tracer.model.text_tokenizer import TextTokenizer
from tracer.resources import TEXT
from tracer.storage.atomic import write_atomically
from tracer.trainer.settings import META

FORMAT = "two-routes/tokens/1"
SPLITS = ("train", "validation")
DEFAULT_TEXT = TEXT
_FILE = re.compile(r"(train|validation)-[0-9a-f]{16}\.bin")
_AGAIN = "prepare it again with `python -m tracer prepare`"


class Characters:
    """One id for each character, in the order of their code points.

    Raises UserError for a character that is not among them, with its place in the text.
    """

    name = "characters"

    def __init__(self, characters: Iterable[str]):
        self.characters = sorted(set(characters))
        self.vocabulary_size = len(self.characters)
        self._ids = {character: id for id, character in enumerate(self.characters)}

    def encode(self, text: str) -> list[int]:
        """The ids of `text`: (n,)."""
        try:
            return [self._ids[character] for character in text]
        except KeyError as error:
            missing = error.args[0]
            raise UserError(f"the vocabulary lacks {missing!r} (U+{ord(missing):04X}), character {text.index(missing)} "
                            f"of {text[:40]!r}: use only characters of the text it was made from") from None

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`."""
        return "".join(self.characters[id] for id in ids)


def tokenizer_to_json(tokenizer: TextTokenizer) -> dict[str, Any]:
    """All that is needed to have the same tokenizer again, and to tell two apart."""
    body = {"name": tokenizer.name, "vocabulary_size": tokenizer.vocabulary_size}
    return body | {"characters": tokenizer.characters} if isinstance(tokenizer, Characters) else body


def tokenizer_from_json(body: dict[str, Any]) -> TextTokenizer:
    """Raises UserError for a tokenizer that this program does not know, ValueError for one that cannot be."""
    if body["name"] == Characters.name:
        characters = body["characters"]
        if type(characters) is not list or not all(type(each) is str and len(each) == 1 for each in characters):
            raise ValueError("the characters of the vocabulary are no list of single characters")
        if characters != sorted(set(characters)):
            raise ValueError("the characters of the vocabulary are not in order, each once")
        tokenizer: TextTokenizer = Characters(characters)
    else:
        tokenizer = make_tokenizer(body["name"], "")
    if body["vocabulary_size"] != tokenizer.vocabulary_size:
        raise ValueError(f"the vocabulary has {tokenizer.vocabulary_size} tokens, not {body['vocabulary_size']!r}")
    return tokenizer


def make_tokenizer(name: str, text: str) -> TextTokenizer:
    """`name`: "characters" (those of `text`) or "gpt2".  Raises UserError for another."""
    if name == Characters.name:
        return Characters(text)
    if name == "gpt2":
        from tracer.model.tokenizer import gpt2

        return gpt2()
    raise UserError(f"there is no tokenizer {name!r}: use characters or gpt2")


def check_same_tokenizer(data: TextTokenizer, model: TextTokenizer, where: object) -> None:
    """Raises UserError when the ids of the data mean other tokens to the model of the checkpoint `where`."""
    if tokenizer_to_json(data) != tokenizer_to_json(model):
        raise UserError(f"the data was prepared with the tokenizer {_describe(data)}, {where} has {_describe(model)}: "
                        "prepare the data with the same tokenizer, or start from scratch in another output folder")


def check_same_files(data: "Corpus", files: dict[str, str], where: object) -> None:
    """Raises UserError when the data is not, id for id, what the run of the checkpoint `where` has learnt from."""
    if data.files != files:
        raise UserError(f"{data.folder} holds another text than {where} was trained on: prepare the same text again, "
                        "or start from scratch in another output folder")


def _describe(tokenizer: TextTokenizer) -> str:
    return f"{tokenizer.name} ({tokenizer.vocabulary_size} tokens)"


def prompt_ids(tokenizer: TextTokenizer, prompt: str) -> list[int]:
    """The ids of a prompt; an empty one starts from a line end, as a text does after its first line.

    Raises UserError for a character that the vocabulary lacks.  Where the locale is not UTF-8, Python hands
    over the bytes of a command line as lone surrogates: they are read as UTF-8 here.
    """
    try:
        text = prompt.encode(errors="surrogateescape").decode() or "\n"
        return tokenizer.encode(text)
    except UnicodeError:
        raise UserError(f"the prompt {prompt!r} is not UTF-8: give it in UTF-8") from None
    except UserError:
        if prompt:
            raise
        raise UserError("an empty prompt starts from a line end, and the vocabulary has none: give a --prompt of its "
                        f"characters, for example {tokenizer.decode([0])!r}") from None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file whatever the locale is, line ends as they are, a byte-order mark dropped.

    Raises UserError for a file that is missing, empty or not UTF-8, with the place of the first wrong byte.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no text {path}: name a UTF-8 text file") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a UTF-8 text file") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = "UTF-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
        raise UserError(f"{path} is {hint} (byte {content[error.start]:#04x} at {error.start}): "
                        "convert it to UTF-8") from None
    if not text:
        raise UserError(f"{path} is empty: name a text file with something in it")
    return text


def token_dtype(vocabulary_size: int) -> np.dtype:
    """The smallest unsigned little-endian type that holds every id."""
    for name in ("<u1", "<u2", "<u4"):
        dtype = np.dtype(name)
        if vocabulary_size <= np.iinfo(dtype).max + 1:
            return dtype
    raise UserError(f"a vocabulary of {vocabulary_size} does not fit 32 bits")


def prepare(text_path: str | Path, folder: str | Path, tokenizer_name: str = Characters.name) -> dict[str, Any]:
    """Write the ids of a text into `folder`; returns what ``meta.json`` says.

    The first nine tenths (of the ids, rounded down) are for training, the rest for validation.
    Raises UserError as `encode_text` does.
    """
    text_path, folder = Path(text_path), Path(folder)
    meta, contents = encode_text(text_path, tokenizer_name)
    files = meta["files"]
    for split, content in contents.items():
        write_atomically(folder / files[split], content)
    write_atomically(folder / META, json.dumps(meta, ensure_ascii=False, indent=1).encode() + b"\n")
    for path in folder.glob("*.bin"):
        if _FILE.fullmatch(path.name) and path.name not in files.values():
            path.unlink()
    return meta


def encode_text(text_path: Path, tokenizer_name: str = Characters.name) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What `prepare` writes: what ``meta.json`` says, and the bytes of the ids of each split.

    Raises UserError as `read_text` does and for a text of which one split would have no next token.
    """
    text = read_text(text_path)
    tokenizer = make_tokenizer(tokenizer_name, text)
    ids = np.asarray(tokenizer.encode(text), token_dtype(tokenizer.vocabulary_size))
    cut = len(ids) * 9 // 10
    parts = dict(zip(SPLITS, (ids[:cut], ids[cut:]), strict=True))
    if min(map(len, parts.values())) < 2:
        raise UserError(f"{text_path} has {len(ids)} tokens, too few for two splits with a next token each: "
                        "use a text of at least 11 tokens")
    contents = {split: part.tobytes() for split, part in parts.items()}
    files = {split: f"{split}-{hashlib.sha256(content).hexdigest()[:16]}.bin" for split, content in contents.items()}
    name = os.fsencode(text_path.name).decode(errors="replace")  # the locale may not have known its characters
    meta = {"format": FORMAT, "text": name, "dtype": ids.dtype.name,
            "tokens": {split: len(part) for split, part in parts.items()}, "files": files,
            "tokenizer": tokenizer_to_json(tokenizer)}
    return meta, contents


@dataclass(frozen=True)
class Corpus:
    """Prepared data.  `train`, `validation`: (n,) ids, mapped from their files, which are named by their content."""

    folder: Path
    tokenizer: TextTokenizer
    files: dict[str, str]
    train: np.ndarray
    validation: np.ndarray

    def tokens(self, split: str) -> np.ndarray:
        """The ids (n,) of one of `SPLITS`."""
        return {"train": self.train, "validation": self.validation}[split]


def load_data(folder: Path) -> Corpus:
    """Raises UserError when the folder holds no prepared data, or its files do not fit one another."""
    path = folder / META
    if not path.is_file():
        raise UserError(f"{folder} holds no prepared data: prepare some with `python -m tracer prepare`, or name "
                        "another folder with --data")
    try:
        meta = json.loads(path.read_bytes())
        if meta["format"] != FORMAT:
            raise UserError(f"{path} has format {meta['format']!r}, this program reads {FORMAT!r}: {_AGAIN}")
        tokenizer = tokenizer_from_json(meta["tokenizer"])
        parts = {split: _map(folder, split, meta, tokenizer.vocabulary_size) for split in SPLITS}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path} is damaged ({type(error).__name__}: {error}): {_AGAIN}") from None
    return Corpus(folder, tokenizer, meta["files"], **parts)


def _map(folder: Path, split: str, meta: dict[str, Any], vocabulary_size: int) -> np.ndarray:
    if not _FILE.fullmatch(meta["files"][split]):
        raise UserError(f"{folder / META} names a file that is no token file: {_AGAIN}")
    path, count = folder / meta["files"][split], meta["tokens"][split]
    dtype = token_dtype(vocabulary_size)
    if not path.is_file():
        raise UserError(f"{path} is missing: {_AGAIN}")
    if path.stat().st_size != count * dtype.itemsize or dtype.name != meta["dtype"]:
        raise UserError(f"{path} does not hold {count} ids of {meta['dtype']}, as {META} says: {_AGAIN}")
    tokens = np.memmap(path, dtype, mode="r")
    if (largest := int(tokens.max())) >= vocabulary_size:
        raise UserError(f"{path} has the id {largest}, the vocabulary ends at {vocabulary_size - 1}: {_AGAIN}")
    return tokens


def check_length(data: Corpus, context: int) -> None:
    """Raises UserError when a split is too short for one window of `context` inputs and their targets."""
    for split in SPLITS:
        if (count := len(data.tokens(split))) <= context:
            raise UserError(f"the {split} split has {count} tokens, a context of {context} needs at least "
                            f"{context + 1}: use a longer text, or a context of at most {count - 1}")


def random_starts(count: int, batch: int, context: int, seed: int, update: int, micro_batch: int) -> np.ndarray:
    """(batch,) where the windows of one micro-batch start among `count` tokens.

    A function of its arguments alone: a run that goes on needs no state to see the same data again, and any
    number of processes see what one would.
    """
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, update, micro_batch])))
    return generator.integers(0, count - context, size=batch)


def windows(tokens: np.ndarray, starts: np.ndarray, context: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets (B, T) int64; a target is the token after its input."""
    rows = tokens[np.asarray(starts)[:, None] + np.arange(context + 1)].astype(np.int64)  # (B, T + 1)
    both = torch.from_numpy(rows)
    return both[:, :-1].contiguous(), both[:, 1:].contiguous()
