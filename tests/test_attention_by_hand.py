"""The arithmetic of one head against the article's figures, NumPy and torch."""

import math

import numpy as np
import pytest

from tracer.library.attention_by_hand import TOKENS, attention, difference_from_torch, scale, softmax


def test_the_figures_of_the_article():
    tables = attention(TOKENS, TOKENS, TOKENS)
    assert list(tables) == ["scores", "scaled", "masked", "weights", "output"]
    assert tables["scores"] == [[2, 0, 1], [0, 2, 1], [1, 1, 2]]
    assert tables["masked"][0] == [1, -math.inf, -math.inf]
    assert [round(share, 2) for share in tables["weights"][2]] == [0.27, 0.27, 0.45]
    assert [round(number, 2) for number in tables["output"][2]] == [0.73, 0.73, 0.27, 0.27]
    assert tables["output"][0] == TOKENS[0]  # the first token sees itself alone


def test_it_agrees_with_torch():
    assert difference_from_torch(TOKENS, TOKENS, TOKENS) < 1e-7


@pytest.mark.parametrize("seed", range(3))
def test_other_numbers_and_sizes(seed):
    random = np.random.default_rng(seed)
    query, key, value = random.normal(size=(3, 6, 5)) * 3
    scores = query @ key.T / np.sqrt(5)
    scores[np.triu_indices(6, 1)] = -np.inf
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    tables = attention(query.tolist(), key.tolist(), value.tolist())
    np.testing.assert_allclose(tables["weights"], weights, rtol=1e-12)
    np.testing.assert_allclose(tables["output"], weights @ value, rtol=1e-12)
    assert difference_from_torch(query.tolist(), key.tolist(), value.tolist()) < 1e-5


def test_undivided_scores_give_one_token_more():
    """The quiz of the second article."""
    divided, undivided = softmax(scale([[2, 6, 4]], 4))[0], softmax([[2, 6, 4]])[0]
    assert [round(share, 2) for share in divided] == [0.09, 0.67, 0.24]
    assert [round(share, 3) for share in undivided] == [0.016, 0.867, 0.117]
