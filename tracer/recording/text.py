"""The first chapter of every recording: from text to ids, every merge on the way."""

import functools

import numpy as np

from tracer.format.trace import SPLITS, Step
from tracer.model.tokenizer import Tokenizer, append_eos, shift
from tracer.recording.trace_builder import TraceBuilder


def add_vocabulary(builder: TraceBuilder, tokenizer: Tokenizer) -> None:
    """The label of every id."""
    builder.label("vocabulary", list(_vocabulary(tokenizer)))


@functools.cache
def _vocabulary(tokenizer: Tokenizer) -> tuple[str, ...]:
    return tuple(tokenizer.label(i) for i in range(tokenizer.vocabulary_size))


def token_labels(builder: TraceBuilder, name: str, tokenizer: Tokenizer, ids: list[int]) -> dict[str, str]:
    return {"token": builder.label(name, [tokenizer.label(i) for i in ids])}


def add_text(builder: TraceBuilder, tokenizer: Tokenizer, text: str, which: str, prefix: str = "text") -> list[int]:
    """Steps for bytes, merges and ids of `text`; returns the ids, recorded as ``<prefix>.ids``.

    `which`: "training", "validation" or "prompt".
    """
    split = which if which in SPLITS else ""
    step = builder.step(prefix, "byte_tokens", split=split)
    builder.trace.texts[which] = {name: f"{prefix}.{name}" for name in ("bytes", "byte_tokens", "ids")}
    raw = np.frombuffer(text.encode(), dtype=np.uint8)
    step.arrays.append(builder.source(f"{prefix}.bytes", raw, ("byte",),
                                      {"byte": builder.label(f"{prefix}.bytes", [f"{b:02X}" for b in raw])}))
    if "byte_table" not in builder.trace.arrays:
        table = tokenizer.byte_to_id
        builder.trace.roles["byte_table"] = builder.source("byte_table", table, ("byte",))
    start = [i for piece in tokenizer.byte_ids(text) for i in piece]
    name = builder.operation(f"{prefix}.byte_tokens", "byte_tokens",
                        {"bytes": f"{prefix}.bytes", "byte_table": "byte_table"}, start, ("token",),
                        labels=token_labels(builder, f"{prefix}.byte_tokens", tokenizer, start))
    step.operations.append(name)
    return _add_merges(builder, tokenizer, text, step, name, start)


def _add_merges(builder: TraceBuilder, tokenizer: Tokenizer, text: str, step: Step, before: str,
                ids: list[int]) -> list[int]:
    prefix = step.id
    merges = tokenizer.merge_steps(text)
    done: dict[int, int] = {}  # piece → number of its merges made so far, to place a piece's merge in the whole text
    lengths = [len(piece) for piece in tokenizer.byte_ids(text)]
    if merges:
        step = builder.step(f"{prefix}.merges", "bpe_merge", split=step.split)
    for number, merge in enumerate(merges, start=1):
        start = sum(lengths[: merge.piece]) - sum(done.get(p, 0) for p in range(merge.piece))
        done[merge.piece] = done.get(merge.piece, 0) + 1
        position = start + merge.position
        ids = [*ids[:position], merge.merged, *ids[position + 2:]]
        last = number == len(merges)
        name = f"{prefix}.ids" if last else f"{prefix}.merge{number}"
        before = builder.operation(name, "bpe_merge", {"before": before}, ids, ("token",),
                              settings={"position": position, "merged": merge.merged},
                              labels=token_labels(builder, name, tokenizer, ids))
        step.operations.append(name)
    if not merges:
        labels = token_labels(builder, f"{prefix}.ids", tokenizer, ids)
        step.operations.append(builder.operation(f"{prefix}.ids", "window", {"ids": before}, ids, ("token",),
                                       settings={"offset": 0}, labels=labels))
    return ids


def add_pairs(builder: TraceBuilder, tokenizer: Tokenizer, ids: list[int], which: str, prefix: str,
              names: tuple[str, str], tokens: str) -> tuple[list[int], list[int]]:
    """EOS appended by data preparation, then inputs and targets shifted by one, recorded as `names`."""
    whole = append_eos(ids, tokenizer)
    builder.trace.texts[which] |= {"end": f"{prefix}.eos", "with_end": f"{prefix}.with_eos"}
    step = builder.step(f"{prefix}.eos", "append", "end", split=which)
    builder.source(f"{prefix}.eos", tokenizer.eos)
    step.arrays.append(f"{prefix}.eos")
    step.operations.append(builder.operation(f"{prefix}.with_eos", "append",
                                   {"before": f"{prefix}.ids", "token": f"{prefix}.eos"},
                                   whole, ("token",), settings={"length": len(ids)},
                                   labels=token_labels(builder, f"{prefix}.with_eos", tokenizer, whole)))
    x, y = shift(whole)
    step = builder.step(f"{prefix}.shift", "window", "pairs", split=which)
    for name, part, offset, labels in zip(names, (x, y), (0, 1), (tokens, f"{tokens}.targets"), strict=True):
        builder.label(labels, [tokenizer.label(i) for i in part])
        step.operations.append(builder.operation(name, "window", {"ids": f"{prefix}.with_eos"}, part, ("position",),
                                       settings={"offset": offset}, labels={"position": labels}))
    return x, y
