"""Scores of heads: counted by hand, and found in a model whose weights are written so that it has such heads."""

import random
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from trials import TRIALS

from tracer.errors import UserError
from tracer.library.attention_maps import attention_weights, repeated_texts
from tracer.library.head_scores import PATTERNS, even_scores, rank_heads, recorded_passes
from tracer.model.config import Config
from tracer.model.gpt import GPT

V, C = 12, 25
IDS = [0, 3, 7, 1, 9, 4, 2, 11, 5, 8, 3, 7, 1, 9, 4, 2, 11, 5, 8]  # after the first, the same text twice
STRENGTH = 30.0


def built_model() -> GPT:
    """Block 0: previous token, first token, same token, nothing; block 1: induction in its head 2.

    A position of the residual stream holds its token as V numbers of which one is 1, its position as C such
    numbers, and V numbers into which the head that looks back writes the token before.  Layer norm
    scales all positions alike.  The MLPs add nothing.
    """
    d = V + C
    model = GPT(Config(vocabulary=V, context=C, width=4 * d, heads=4, blocks=2, dropout=0.0), explicit=False)
    token, position, before = range(V), range(V, V + C), range(V + C, 2 * V + C)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(float("norm" in name and name.endswith("weight")))
        model.token_embedding.weight[:, token] = torch.eye(V)
        model.position_embedding.weight[:, position] = torch.eye(C)
        first = model.blocks[0].attention
        query, key, value = (lambda head, part=part: slice(part * 4 * d + head * d, part * 4 * d + (head + 1) * d)
                             for part in range(3))
        qkv, bias, out = first.qkv.weight, first.qkv.bias, first.projection.weight
        for i in range(C):  # head 0: the query at i asks for the key at i − 1
            qkv[query(0)][max(i - 1, 0), position[i]] = STRENGTH
            qkv[key(0)][i, position[i]] = 1
        for i in range(V):  # … and hands its token on
            qkv[value(0)][i, token[i]] = out[before[i], i] = 1
        bias[query(1)][0] = STRENGTH  # head 1: every query asks for the key at 0
        qkv[key(1)][0, position[0]] = 10
        for i in range(V):  # head 2: the query's own token …
            qkv[query(2)][i, token[i]] = qkv[key(2)][i, token[i]] = STRENGTH ** 0.5
        for i in range(C):  # … but not at its own position
            qkv[query(2)][V + i, position[i]] = -(STRENGTH ** 0.5)
            qkv[key(2)][V + i, position[i]] = STRENGTH ** 0.5
        second = model.blocks[1].attention.qkv.weight
        for i in range(V):  # the query's token against the token before the key
            second[query(2)][i, token[i]] = second[key(2)][i, before[i]] = STRENGTH ** 0.5
    return model


def test_the_heads_of_a_built_model_are_found():
    model = built_model()
    ranking = rank_heads([(np.array(IDS), attention_weights(model, IDS))])
    best = {name: (heads[0].block, heads[0].head) for name, heads in ranking.items()}
    assert best == {"previous token": (0, 0), "first token": (0, 1), "same token": (0, 2), "induction": (1, 2)}
    for name, heads in ranking.items():
        assert len(heads) == 8
        assert heads[0].score > 0.95, name
        assert heads[1].score < 0.6, name
        assert [head.score for head in heads] == sorted((head.score for head in heads), reverse=True)
    assert not model.explicit


def test_random_repeated_texts_find_them_too():
    texts = repeated_texts(V, C)
    assert [len(text) for text in texts] == [24] * 4
    assert all(text[:12] == text[12:] for text in texts)
    model = built_model()
    ranking = rank_heads([(np.array(ids), attention_weights(model, ids)) for ids in texts])
    assert [(heads[0].block, heads[0].head) for heads in ranking.values()] == [(0, 0), (0, 1), (0, 2), (1, 2)]


def test_patterns_by_hand():
    """a b a c a b"""
    ids = np.array([0, 1, 0, 2, 0, 1])
    found = {name: {(int(i), int(j)) for i, j in np.argwhere(pattern(ids))} for name, pattern in PATTERNS.items()}
    assert found == {
        "previous token": {(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)},
        "first token": {(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)},
        "same token": {(2, 0), (4, 0), (4, 2), (5, 1)},
        "induction": {(2, 1), (4, 1), (4, 3), (5, 2)}}


def test_scores_by_hand():
    ids = np.array([5, 6, 5])
    weights = np.array([[1, 0, 0], [0.25, 0.75, 0], [0.5, 0.3, 0.2]])[None, None]
    scores = {name: heads[0].score for name, heads in rank_heads([(ids, weights)]).items()}
    assert scores == pytest.approx({"previous token": (0.25 + 0.3) / 2, "first token": (0.25 + 0.5) / 2,
                                    "same token": 0.5, "induction": 0.3})
    assert even_scores([ids]) == pytest.approx({"previous token": (1 / 2 + 1 / 3) / 2,
                                                "first token": (1 / 2 + 1 / 3) / 2,
                                                "same token": 1 / 3, "induction": 1 / 3})


def test_a_text_without_repetition_shows_no_induction():
    ids = np.arange(4)
    ranking = rank_heads([(ids, np.full((1, 2, 4, 4), 0.25))])
    assert ranking["induction"] == ranking["same token"] == []
    assert len(ranking["previous token"]) == 2
    assert even_scores([ids])["induction"] is None


def test_texts_count_by_their_queries():
    short, long = np.arange(2), np.arange(5)
    texts = [(short, np.eye(2, k=-1)[None, None]), (long, np.zeros((1, 1, 5, 5)))]
    assert rank_heads(texts)["previous token"][0].score == 1 / 5


def test_passes_of_the_recordings(training_trace, generation_trace, fresh):
    passes = recorded_passes(training_trace)
    assert list(passes) == ["first", "again", "evaluation.training", "evaluation.validation"]
    ids, weights = passes["evaluation.validation"]
    assert ids.tolist() == training_trace.summary["validation_ids"]
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)
    ids, weights = recorded_passes(fresh.training)["evaluation.validation"]  # of the model that is at hand
    np.testing.assert_allclose(weights, attention_weights(fresh.checkpoint.model, ids.tolist()), rtol=1e-5, atol=1e-7)
    rounds = recorded_passes(generation_trace)
    assert [weights.shape for _, weights in rounds.values()] == [(2, 2, n, n) for n in range(1, 6)]
    assert list(rounds)[-1] == "round5"


def test_weights_that_are_no_numbers_are_not_ranked():
    weights = np.full((1, 1, 3, 3), 1 / 3)
    for wrong in (np.nan, np.inf):
        weights[0, 0, 2, 1] = wrong
        with pytest.raises(UserError, match="not all finite numbers: use a checkpoint from before"):
            rank_heads([(np.arange(3), weights)])


def test_a_changed_recording_is_scored_or_refused(generation_trace):
    """Its steps made other kinds, its passes given other ids, its arrays of other shapes."""
    draw = random.Random(2)
    kinds, outcomes = ("softmax", "embedding"), set()
    repeated = {array.same_as for array in generation_trace.arrays.values()}  # these stay as their repetitions are
    for _ in range(150 * TRIALS):
        trace = replace(generation_trace, chapters=deepcopy(generation_trace.chapters),
                        passes=deepcopy(generation_trace.passes),
                        operations=dict(generation_trace.operations), arrays=dict(generation_trace.arrays))
        step = draw.choice([one for one in trace.operations.values() if one.kind in kinds and one.id not in repeated])
        match draw.randrange(5):
            case 0:
                draw.choice(trace.passes).arrays["ids"] = draw.choice(list(trace.arrays))
            case 1:
                shown = draw.choice([one for one in trace.steps() if one.kind == "softmax"])
                shown.role = draw.choice(["attention", "candidates", ""])
            case 2:
                shown = draw.choice([one for one in trace.steps() if len(one.operations) == 1])
                shown.kind, shown.role, shown.direction = "softmax", "attention", "forward"
            case 3:
                axes = draw.choice([(), ("head",), ("position", "feature"), ("head", "query_position", "key_position")])
                trace.arrays[step.id] = replace(trace.arrays[step.id], axes=axes)
            case _:
                other = draw.choice([array for array in trace.arrays.values() if array.data is not None])
                trace.arrays[step.id] = replace(other, name=step.id)
        try:
            for text in recorded_passes(trace).values():
                rank_heads([text])
                even_scores([text[0]])
            outcomes.add("scored")
        except UserError as error:
            assert "\n" not in str(error)
            outcomes.add("refused")
    assert outcomes == {"scored", "refused"}
