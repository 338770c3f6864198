"""Sampling at its boundaries, against exact fractions of the probabilities; what is no distribution is refused."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from trials import generated

from tracer.errors import UserError
from tracer.library.generate import generate
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.sampling import Sampler, Sampling, choose, nucleus, passed

LARGEST_UNIFORM = 1 - 2**-24  # torch draws whole numbers of 24 bits, divided by 2²⁴
UNIFORMS = st.one_of(st.sampled_from([0, 1, 2**23, 2**24 - 2, 2**24 - 1]), st.integers(0, 2**24 - 1)).map(
    lambda bits: bits / 2**24)
many = generated(60)


def fractions(values) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def how_many(probabilities, top_p: float | Fraction) -> int:
    """Of the probabilities, largest first, how many hold `top_p` together, in exact arithmetic."""
    sums = itertools.accumulate(fractions(probabilities))
    return next((n for n, total in enumerate(sums, start=1) if total >= top_p), len(probabilities))


# Top-p -----------------------------------------------------------------------------------------------

def kept_of(probabilities, top_p: float, dtype: torch.dtype) -> int:
    kept = nucleus(torch.tensor([probabilities], dtype=dtype), top_p)[0]
    assert sum(fractions(kept)) == pytest.approx(1, rel=1e-5)
    return int((kept > 0).sum())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probabilities_that_hold_top_p_exactly_are_enough(dtype):
    """.5 + .3 is .8: two of four, where `cumsum − p < top_p` keeps three."""
    for top_p, kept in ((0.8, 2), (0.5, 1), (math.nextafter(0.5, 1), 2), (0.9, 3), (1e-300, 1)):
        assert kept_of([0.5, 0.3, 0.1, 0.1], top_p, dtype) == kept, top_p
    logits = torch.tensor([[0.3, 0.1, 0.1, 0.5]], dtype=torch.float32).log()
    chosen = {int(choose(logits, torch.tensor([n / 1000]), Sampling(top_p=0.8))) for n in range(1000)}
    # Whether the two largest hold .8 is a matter of the last digit of their softmax, which hangs on the kernels.
    largest = sum(fractions(logits.softmax(-1)[0])[token] for token in (3, 0))
    assert chosen == ({0, 3} if largest >= Fraction(0.8) else {0, 1, 3})


@st.composite
def dyadic(draw) -> tuple[list[float], float]:
    """Probabilities whose float64 sums are exact, with many ties, and a `top_p` at or beside one of the sums."""
    counts = draw(st.lists(st.one_of(st.integers(1, 4), st.integers(1, 2**20)), min_size=1, max_size=40))
    probabilities = sorted((count / 2**26 for count in counts), reverse=True)
    boundary = draw(st.sampled_from(list(itertools.accumulate(probabilities))))
    side = draw(st.sampled_from([boundary, math.nextafter(boundary, 0), math.nextafter(boundary, 1)]))
    return probabilities, draw(st.one_of(st.just(side), st.floats(0, 1, exclude_min=True, exclude_max=True)))


@many
@given(dyadic(), st.sampled_from([torch.float32, torch.float64]))
def test_top_p_at_every_boundary_is_that_of_exact_fractions(case, dtype):
    probabilities, top_p = case
    assert kept_of(probabilities, top_p, dtype) == how_many(probabilities, Fraction(top_p))


@many
@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=300).filter(any), st.floats(0, 1, exclude_min=True))
def test_top_p_of_any_float_probabilities(values, top_p):
    """The sums are float64's, one after the other: beyond their rounding the fractions decide."""
    probabilities = sorted(values, reverse=True)
    sums = list(itertools.accumulate(probabilities))
    inside = next((n for n, total in enumerate(sums, start=1) if total >= top_p), len(sums))
    kept = nucleus(torch.tensor([probabilities]), top_p)[0]
    assert torch.equal(kept > 0, (torch.tensor(probabilities) / math.fsum(probabilities[:inside]) > 0)
                       & (torch.arange(len(values)) < inside))
    slack = Fraction(len(values), 2**52)
    low, high = (how_many(probabilities, Fraction(top_p) * (1 + sign * slack)) for sign in (-1, 1))
    assert low <= inside <= high


# The draw --------------------------------------------------------------------------------------------

@many
@given(dyadic(), UNIFORMS)
def test_the_draw_is_the_first_candidate_whose_exact_sum_exceeds_the_number(case, uniform):
    """float32 sums are rounded ones: each is the exact sum rounded once; then all is exact."""
    probabilities = torch.tensor(case[0])
    probabilities /= probabilities.sum()
    cumulative = probabilities.cumsum(0)
    sums = [np.float32(float(total)) for total in itertools.accumulate(fractions(probabilities))]
    assert cumulative.numpy() == pytest.approx(sums, rel=2**-23)
    exceeds = [n for n, total in enumerate(fractions(cumulative)) if total > Fraction(uniform)]
    grows = [n for n, total in enumerate(cumulative.tolist()) if total > ([0.0, *cumulative.tolist()])[n]]
    assert int(passed(torch.tensor(uniform), cumulative)) == (exceeds[0] if exceeds else grows[-1])


@pytest.mark.parametrize("size", [2, 1050, 50_257])
def test_a_token_of_probability_0_is_never_drawn(size):
    """The last ones underflow, and the sum of the others often ends below 1: the largest number is then beyond it."""
    generator = torch.Generator().manual_seed(size)
    below = 0
    for _ in range(6 if size > 10_000 else 60):
        logits = torch.randn(1, size, generator=generator)
        logits[:, size - max(size // 20, 1):] = -200
        probabilities = logits[0].softmax(0)
        assert (probabilities == 0).any()
        ids, order = torch.tensor([LARGEST_UNIFORM]), logits[0].sort(descending=True, stable=True)[1]
        below += int(probabilities[order].cumsum(0)[-1] <= LARGEST_UNIFORM)
        for how in (Sampling(), Sampling(top_k=size), Sampling(top_p=LARGEST_UNIFORM)):
            assert probabilities[choose(logits, ids, how)] > 0
        assert probabilities[int(Sampler(1.0, size, size)(logits, ids[0]))] > 0
    assert below > 0 or size == 2  # so that it matters


# All of it -------------------------------------------------------------------------------------------

@st.composite
def rows(draw) -> torch.Tensor:
    """Logits (1, V), often with ties, sometimes masked by −∞, sometimes far apart."""
    size = draw(st.one_of(st.just(1), st.integers(1, 6), st.integers(7, 3000)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    logits = torch.randn(1, size, generator=generator) * draw(st.sampled_from([0.0, 0.5, 3.0, 200.0, 1e30]))
    if draw(st.booleans()):
        logits = logits.round()
    if draw(st.booleans()):
        masked = torch.rand(1, size, generator=generator) < 0.5
        masked[0, draw(st.integers(0, size - 1))] = False
        logits[masked] = -math.inf
    narrow = [torch.bfloat16, torch.float16] if logits[logits.isfinite()].abs().max() < 60_000 else []
    return logits.to(draw(st.sampled_from([torch.float32, torch.float64, *narrow])))


@many
@given(rows(), UNIFORMS, st.sampled_from([1e-6, 0.1, 0.8, 1.0, 3.0, 1e30]),
       st.one_of(st.none(), st.integers(1, 5), st.integers(1, 4000)),
       st.one_of(st.none(), st.floats(0, 1, exclude_min=True), st.sampled_from([5e-324, 0.5, 1.0])))
@example(torch.tensor([[1e38, -1e38]]), 0.0, 1e-6, None, None)
def test_the_chosen_token_is_that_of_exact_fractions(logits, uniform, temperature, k, top_p):
    how = Sampling(temperature, k, top_p)
    wide = logits if logits.dtype == torch.float64 else logits.float()
    order = sorted(range(wide.size(1)), key=lambda id: (-float(wide[0, id]), id))[:k]
    scores = wide[0, order] / temperature
    if not math.isfinite(scores[0]):  # beyond float32: nothing can be said of the others
        with pytest.raises(UserError, match="the largest score"):
            choose(logits, torch.tensor([uniform]), how)
        return
    probabilities = fractions(scores.softmax(0))
    kept = probabilities[:len(order) if top_p in (None, 1) else how_many(probabilities, Fraction(top_p))]
    place = order.index(int(choose(logits, torch.tensor([uniform]), how)))
    slack = Fraction(1, 2**21)  # of the division, and of sums that end below or above 1
    assert probabilities[place] > 0
    assert place < len(kept) or probabilities[place] <= Fraction(1, 2**50)  # float64 sums, of the tiniest ones
    before, target = sum(kept[:place]), Fraction(uniform) * sum(kept)
    assert before - slack <= target <= before + probabilities[place] + slack
    if uniform == 0 or k == 1 or len(kept) == 1:
        assert place == 0
    if top_p is None:
        assert int(Sampler(temperature, len(order), wide.size(1))(wide, torch.tensor(uniform))) == order[place]


@many
@given(rows(), st.integers(1, 4000))
def test_without_a_limit_all_candidates_are_kept(logits, seed):
    """`top_k` of more than there are and `top_p` of 1 change nothing; one candidate is the greedy one."""
    uniform = torch.rand(1, generator=torch.Generator().manual_seed(seed))
    free = choose(logits, uniform, Sampling())
    for how in (Sampling(top_p=1), Sampling(top_p=1.0, top_k=logits.size(1) + 5), Sampling(top_k=10**30)):
        assert torch.equal(choose(logits, uniform, how), free)
    greedy = choose(logits, None, Sampling(temperature=0))
    for how in (Sampling(top_k=1), Sampling(top_p=1e-300)):
        assert torch.equal(choose(logits, uniform, how), greedy)
    assert logits[0, greedy] == logits.max() and not (logits[0, :greedy] == logits.max()).any()


# What is no distribution -----------------------------------------------------------------------------

WRONG = {"nan": math.nan, "inf": math.inf}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("how", [Sampling(temperature=0), Sampling(), Sampling(top_k=1), Sampling(top_k=2),
                                 Sampling(top_p=0.5), Sampling(top_k=40, top_p=0.9)], ids=str)
def test_logits_that_are_no_distribution_are_refused(how, dtype):
    """Wherever in a batch the wrong number is."""
    uniforms = torch.tensor([0.5, 0.5])
    for name, value in WRONG.items():
        for row, id in ((0, 0), (1, 49), (1, 20)):
            logits = torch.randn(2, 50, generator=torch.Generator().manual_seed(id)).to(dtype)
            logits[row, id] = value
            refused(lambda logits=logits: choose(logits, uniforms, how), f"is {name}: use a checkpoint")
    refused(lambda: choose(torch.full((2, 50), -math.inf, dtype=dtype), uniforms, how), "is -inf")
    refused(lambda: choose(torch.empty(2, 0, dtype=dtype), uniforms, how), "the logits are empty")


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_the_recorded_draw_refuses_the_same(wrong):
    logits = torch.full((1, 9), -1.0)
    logits[0, 4 if wrong > 0 or wrong != wrong else slice(None)] = wrong
    refused(lambda: Sampler(0.8, 3, 9)(logits, torch.tensor(0.5)), "the largest score")


def test_a_model_that_diverged_generates_nothing():
    torch.manual_seed(0)
    model = GPT(Config(vocabulary=9, context=8, width=4, heads=1, blocks=1), explicit=False)
    with torch.no_grad():
        model.final_norm.weight[1] = math.nan
    for how in (Sampling(), Sampling(temperature=0), Sampling(top_k=2, top_p=0.5)):
        refused(lambda how=how: generate(model, [[1, 2], [3]], how, 5), "is nan: use a checkpoint from before")


@pytest.mark.parametrize(("name", "value"), [
    *(("top_k", value) for value in (True, 2.0, "3", 0, np.int64(0))),
    *(("seed", value) for value in (None, 1.5, "7", False, torch.tensor(7)))])
def test_what_is_no_whole_number_is_refused_before_anything_is_drawn(name, value):
    refused(lambda: Sampling(**{name: value}), f"{name.replace('_', '-')} must be a whole number")


def test_whole_numbers_of_numpy_are_whole_numbers():
    model = GPT(Config(vocabulary=9, context=8, width=4, heads=1, blocks=1), explicit=False)
    own, numpys = Sampling(top_k=3, seed=2**63 - 1), Sampling(top_k=np.int64(3), seed=np.int64(2**63 - 1))
    assert generate(model, [[1], [1]], own, 9) == generate(model, [[1], [1]], numpys, 9)


def refused(call, message: str) -> None:
    with pytest.raises(UserError) as error:
        call()
    assert message in str(error.value) and "\n" not in str(error.value)
