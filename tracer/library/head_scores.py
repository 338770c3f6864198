"""What attention heads look at: how much of their weight goes to the previous token, the first one, …

A head is scored by each of the patterns (`tracer.format.attention_patterns`).  Needs no torch: a recording is
scored by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracer.errors import UserError
from tracer.format.attention_patterns import PATTERNS, weights_where
from tracer.format.load import record_again
from tracer.format.trace import Array, Pass, Trace


@dataclass(frozen=True)
class HeadScore:
    """The share of its weight that head `head` of block `block` puts where the pattern says."""

    block: int
    head: int
    score: float


def rank_heads(texts: Iterable[tuple[np.ndarray, np.ndarray]]) -> dict[str, list[HeadScore]]:
    """For each pattern all heads, highest score first; an empty list where no text shows the pattern.

    `texts`: of each its ids (T,) and the attention weights (blocks, heads, T, T).  Raises `UserError` for weights
    that are no numbers.
    """
    sums: dict[str, list[np.ndarray]] = {name: [] for name in PATTERNS}
    for ids, weights in texts:
        if not np.isfinite(weights).all():
            raise UserError("the attention weights are not all finite numbers: use a checkpoint from before the "
                            "training diverged, or one that is not damaged")
        for name, pattern in PATTERNS.items():
            sums[name].append(weights_where(weights, pattern(np.asarray(ids))))  # (blocks, heads, queries)
    ranking = {}
    for name, parts in sums.items():
        scored = np.concatenate(parts, axis=-1)
        scores = scored.mean(axis=-1) if scored.shape[-1] else np.empty((0, 0))
        all_heads = [HeadScore(b, h, float(score)) for (b, h), score in np.ndenumerate(scores)]
        ranking[name] = sorted(all_heads, key=lambda head: -head.score)
    return ranking


def even_scores(texts: Iterable[np.ndarray]) -> dict[str, float | None]:
    """What a head would score that looks at everything it may see evenly; None where no text shows the pattern."""
    weights = [(ids, (np.tril(np.ones((len(ids),) * 2)) / np.arange(1, len(ids) + 1)[:, None])[None, None])
               for ids in texts]
    return {name: heads[0].score if heads else None for name, heads in rank_heads(weights).items()}


def recorded_passes(trace: Trace) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Every forward pass of a recording: its name → its ids (T,) and attention weights (blocks, heads, T, T).

    Raises `UserError` for a recording without any, or one whose blocks have weights of different shapes.
    """
    found = {}
    for one in trace.passes:
        ids, maps = trace.arrays[one.arrays["ids"]], _maps(trace, one)
        if len(ids.shape) == 1 and not ids.derived and maps and all(_is_map(array, ids.size) for array in maps):
            found[one.name] = trace.values(ids.name), [trace.values(array.name) for array in maps]
    if not found:
        raise UserError("the recording holds no attention weights: make one with `python -m tracer record`")
    if any(len({one.shape for one in weights}) > 1 for _, weights in found.values()):
        raise UserError("the blocks of the recording have different numbers of heads: "
                        f"{record_again(trace.folder or Path('traces'))}")
    return {name: (ids, np.stack(weights)) for name, (ids, weights) in found.items()}


def _maps(trace: Trace, of: Pass) -> list[Array]:
    """The attention weights of a pass, block by block."""
    steps = [step for step in trace.steps() if (step.kind, step.role) == ("softmax", "attention")
             and step.direction == "forward" and trace.pass_of(step) is of]
    return [trace.arrays[name] for step in steps for name in step.operations]


def _is_map(array: Array, length: int) -> bool:
    """Whether these are attention weights (heads, T, T) that are held."""
    return array.axes[:1] == ("head",) and not array.derived and array.shape[1:] == (length, length)
