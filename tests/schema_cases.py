"""A small recording of every sort of array, and what the format says of changed ones."""

from pathlib import Path

import numpy as np
import orjson
import pytest

from tracer.errors import UserError
from tracer.format import files as trace_files
from tracer.format.files import save
from tracer.format.load import load
from tracer.format.trace import Array, Parameter, Trace, content_hash
from tracer.format.verify import verify
from tracer.recording.trace_builder import TraceBuilder

INLINE = 8  # of the small recording, so that a file needs few numbers


@pytest.fixture
def short_inline(monkeypatch):
    monkeypatch.setattr(trace_files, "INLINE_LIMIT", INLINE)


def small() -> Trace:
    builder = TraceBuilder("by hand", {"why": "a test", "list": [1, 2.5, None]})
    tokens = {"position": builder.label("tokens", ["H", "i", "你"])}
    rows = {"row": builder.label("vocabulary", [f"token {n}" for n in range(12)])}
    table = np.random.default_rng(1).normal(size=(12, 2)).astype(np.float32)
    ids = np.array([3, 1, 11])
    builder.chapter("first", "embedding")
    run = builder.add_pass("first", "training", ids="ids")
    step = builder.step("embedding", "embedding", "token", run, direction="forward")
    step.arrays += [builder.source("ids", ids, ("position",), tokens),
                    builder.source("table", table, ("row", "feature"), rows)]
    step.operations += [
        builder.operation("embedding", "embedding", {"table": "table", "ids": "ids"}, table[ids],
                          ("position", "feature"), labels=tokens),
        builder.operation("twice", "add", {"a": "embedding", "b": "embedding"}, table[ids] * 2, ("position", "feature"),
                     derived=True),
        builder.operation("mean", "layer_norm", {"x": "twice"}, table[ids].mean(axis=1) * 2, ("position",),
                          target="mean"),
        builder.operation("same ids", "window", {"ids": "ids"}, ids, ("position",), settings={"offset": 0})]
    builder.trace.texts["prompt"] = {"ids": "same ids"}
    builder.trace.parameters = [Parameter("wte", "token_table", 0, {"trained": "table"})]
    builder.trace.roles["mean"] = "mean"
    builder.chapter("second", "round", 0, 1)
    step = builder.step("masked", "causal_mask", direction="update", block=0, round=1, of="wte")
    scores = np.array([[[1, 2], [3, 4]]], np.float32)
    masked = np.array([[[1, -np.inf], [3, 4]]], np.float32)
    axes = ("head", "query_position", "key_position")
    cancelling = np.array([[1e4, -1e4 + 0.01]], np.float32)
    step.arrays += [builder.source("scores", scores, axes), builder.source("precise", np.array(0.1)),
                    builder.source("cancelling", cancelling, ("position", "feature"))]
    off = np.float64(cancelling).mean() + 1e-4  # as a kernel may be that adds in another way
    step.operations += [
        builder.operation("masked", "causal_mask", {"scores": "scores"}, masked, axes),
        builder.operation("rounded", "layer_norm", {"x": "cancelling"}, np.array([off], np.float32), ("position",),
                     target="mean")]
    trace, precise = builder.finish(), np.array(0.1)  # the recorder holds float32 alone, the format float64 too
    trace.arrays["precise"] = Array("precise", (), "float64", (), data=precise, sha256=content_hash(precise))
    return trace


@pytest.fixture
def saved(tmp_path, short_inline) -> Path:
    save(small(), tmp_path / "small.json")
    return tmp_path / "small.json"


def body_of(path: Path) -> dict:
    return orjson.loads(path.read_bytes())


def refusal(path: Path, body=None) -> str:
    """What `load` says of the file (with `body` written into it): one line that names it and what to do."""
    if body is not None:
        path.write_bytes(body if isinstance(body, bytes) else orjson.dumps(body))
    with pytest.raises(UserError) as caught:
        load(path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(f"{path}: ") and message.endswith(
        f"record again with `python -m tracer record --output {path.parent}`"), message
    return message


def found_by_verify(trace: Trace) -> list[str]:
    return [check.problem for check in verify(trace) if check.problem]


def folder_bytes(folder: Path, without: str = "nothing") -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and without not in path.parts}


def file_of(body: dict) -> str:
    return body["arrays"]["table"]["file"]
