"""Where attention heads may look: patterns that have a name.

A pattern says, for every query position, which key positions it means.  The score of a head is the weight
that it puts there, averaged over the queries for which the pattern means any.
"""

from collections.abc import Callable

import numpy as np

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


def weights_where(weights: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The weight (…, queries) that weights (…, T, T) put where the pattern says, of the queries that it means any for.

    Its mean over the last axis is the score.
    """
    found: np.ndarray = (weights * where).sum(axis=-1)[..., where.any(axis=-1)]
    return found
