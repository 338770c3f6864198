"""Every kind of operation against NumPy, PyTorch or plain Python, and every gradient against differences.

`CASES` holds small random examples of each kind, with what it must compute worked out by other means.
The gradients are checked on the same examples: central differences of the forward equations, in
float64, contracted with a random gradient of the output.
"""

import codecs
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operation_case import (
    LEADING,
    complete,
    compute,
    differences,
    forward,
    forward_targets,
    gradient_targets,
    uses_ellipsis,
)
from operation_cases import CASES

from tracer.ops import KINDS

properties = settings(max_examples=100, deadline=None, database=None)


# The tests -------------------------------------------------------------------------------------------

def test_no_kind_is_forgotten():
    assert {case.kind for case in CASES} == set(KINDS)
    general = {kind for kind in KINDS if uses_ellipsis(kind)}
    variants = {(case.kind, case.leading) for case in CASES}
    assert {(kind, letters) for kind in general for letters, _ in LEADING} <= variants


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward(case):
    computed = forward(case, case.operands)
    assert set(case.expected) == set(forward_targets(case.kind))
    for target, expected in case.expected.items():
        np.testing.assert_allclose(computed[target], expected, rtol=1e-12, atol=1e-13, err_msg=target)


@pytest.mark.parametrize(("case", "target"), [(c, t) for c in CASES for t in gradient_targets(c.kind)], ids=str)
def test_gradient_agrees_with_differences(case, target):
    known = forward(case, case.operands)
    reads = KINDS[case.kind].operands(target)
    draws = np.random.default_rng(1)
    incoming = {name: draws.normal(size=known[name[2:]].shape) for name in reads if name.startswith("d_")}
    operand = target.removeprefix("d_")
    gradient = compute(case, target, known | incoming, case.operands[operand].shape)
    np.testing.assert_allclose(gradient, differences(case, operand, incoming), rtol=1e-7, atol=1e-8)
    assert np.abs(gradient).max() > 1e-3  # two zeros would agree as well


def test_every_differentiable_operand_has_a_gradient():
    """Written out once more, so that a gradient that disappears is missed."""
    assert {kind: set(gradient_targets(kind)) for kind in KINDS if gradient_targets(kind)} == {
        "add": {"d_a", "d_b"}, "causal_mask": {"d_scores"}, "concatenate_heads": {"d_x"},
        "cross_entropy": {"d_logits"}, "dropout": {"d_x"}, "embedding": {"d_table"}, "gelu": {"d_x"},
        "gelu_tanh": {"d_x"},
        "layer_norm": {"d_x", "d_weight", "d_bias"}, "linear": {"d_x", "d_weight", "d_bias"}, "mean": {"d_x"},
        "linear_without_bias": {"d_x", "d_weight"}, "repeat_heads": {"d_x"}, "rms_norm": {"d_x", "d_weight"},
        "rotary": {"d_x"}, "split_grouped_heads": {"d_qkv"}, "swiglu": {"d_x", "d_gate"},
        "scaled_scores": {"d_query", "d_key"}, "softmax": {"d_x"}, "split_heads": {"d_qkv"},
        "tied_head": {"d_x", "d_table"}, "weighted_sum": {"d_weights", "d_value"},
    }


def check_against_decoder(raw: bytes, cuts: list[int]) -> None:
    """Feed `raw` cut into tokens, as a generation does, to Python's decoder and to the operation."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    places = sorted({0, len(raw), *(cut % (len(raw) + 1) for cut in cuts)})
    for start, stop in itertools.pairwise(places):
        held = decoder.getstate()[0]
        decoder.decode(raw[start:stop])
        whole = held + raw[start:stop]
        assert complete(whole) == len(whole) - len(decoder.getstate()[0]), whole


cuts = st.lists(st.integers(0, 1000), max_size=8)
# Bytes at which the rules change, so that sequences that are almost right come up often.
EDGES = [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF,
         0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]


@properties
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(str.encode), cuts)
def test_complete_bytes_of_utf8(raw, cuts):
    check_against_decoder(raw, cuts)


@properties
@given(st.binary(max_size=12) | st.lists(st.sampled_from(EDGES), max_size=12).map(bytes), cuts)
def test_complete_bytes_of_anything(raw, cuts):
    """A model may emit bytes that are no UTF-8."""
    check_against_decoder(raw, cuts)


def test_complete_bytes_after_every_lead():
    for pair in itertools.product([byte for byte in EDGES if byte >= 0xC0], EDGES):
        check_against_decoder(bytes(pair), [])
