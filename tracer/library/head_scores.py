"""What attention heads look at: how much of their weight goes to the previous token, the first one, …

A pattern says, for every query position, which key positions it means.  The score of a head is the weight
that it puts there, averaged over the queries for which the pattern means any.  Needs no torch: a
recording is scored by itself.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracer.errors import UserError
from tracer.format.load import record_again
from tracer.format.trace import Array, Pass, Trace

Pattern = Callable[[np.ndarray], np.ndarray]


def previous_token(ids: np.ndarray) -> np.ndarray:
    """The position before the query's.  As every pattern: ids (T,) → bool (T, T), queries in rows."""
    return np.eye(len(ids), k=-1, dtype=bool)


def first_token(ids: np.ndarray) -> np.ndarray:
    """Of later queries: where a head often looks when it finds nothing."""
    where = np.zeros((len(ids), len(ids)), bool)
    where[1:, 0] = True
    return where


def same_token(ids: np.ndarray) -> np.ndarray:
    """Earlier occurrences of the query's token."""
    return np.tril(ids[:, None] == ids[None, :], -1)


def induction(ids: np.ndarray) -> np.ndarray:
    """What followed the query's token earlier: the next token, if the text repeats itself (Olsson et al. 2022)."""
    where = np.zeros((len(ids), len(ids)), bool)
    where[:, 1:] = same_token(ids)[:, :-1]
    return where


PATTERNS: dict[str, Pattern] = {"previous token": previous_token, "first token": first_token,
                                "same token": same_token, "induction": induction}


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
            where = pattern(np.asarray(ids))
            sums[name].append((weights * where).sum(axis=-1)[..., where.any(axis=-1)])  # (blocks, heads, queries)
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
