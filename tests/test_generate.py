"""The decoding loop: with a cache and without, alone and in a batch, against transformers, and drawing by hand."""

import math
from dataclasses import replace

import pytest
import torch
import transformers

from tracer.errors import UserError
from tracer.library.generate import generate, rounds, stream
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.pretrained import save_pretrained
from tracer.model.sampling import Sampler, Sampling, choose, uniform_numbers

CONFIG = Config(vocabulary=31, context=16, width=24, heads=3, blocks=2, dropout=0.1)
GREEDY = Sampling(temperature=0)
WARM = Sampling(temperature=1.5, top_k=20, top_p=0.95, seed=11)


@pytest.fixture(scope="module")
def model() -> GPT:
    torch.manual_seed(4)
    model = GPT(CONFIG, explicit=False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6).add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def prompt(length: int, seed: int = 0) -> list[int]:
    return torch.randint(CONFIG.vocabulary, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def by_hand(model: GPT, ids: list[int], how: Sampling, count: int) -> list[int]:
    """A new forward pass over the window for every id, and the choice written out."""
    draws, new = uniform_numbers(how.seed), []
    for _ in range(count):
        logits = model(torch.tensor([[*ids, *new][-CONFIG.context:]]))[0][0, -1]
        new.append(choice_by_hand(logits.tolist(), float(next(draws)), how))
    return new


def choice_by_hand(logits: list[float], uniform: float, how: Sampling) -> int:
    order = sorted(range(len(logits)), key=lambda id: (-logits[id], id))
    if how.temperature == 0:
        return order[0]
    order = order[:how.top_k]
    weights = [math.exp((logits[id] - logits[order[0]]) / how.temperature) for id in order]
    if how.top_p is not None:
        total, held, kept = sum(weights), 0.0, 0
        while kept < len(weights) and held < how.top_p * total:
            held, kept = held + weights[kept], kept + 1
        order, weights = order[:kept], weights[:kept]
    threshold, passed = uniform * sum(weights), 0.0
    for id, weight in zip(order, weights, strict=True):
        passed += weight
        if threshold < passed:
            return id
    return order[-1]


@pytest.mark.parametrize(("how", "explicit"), [(GREEDY, False), (WARM, False), (Sampling(seed=3), False), (WARM, True)])
@torch.no_grad()
def test_the_same_ids_with_a_cache_without_and_by_hand_for_every_prompt_length(model, how, explicit):
    """From every prompt to the context's end and four ids beyond it, and from prompts beyond it."""
    model.explicit = explicit
    for length in range(1, CONFIG.context + 3):
        ids, count = prompt(length, length), max(CONFIG.context - length, 0) + 4
        expected = by_hand(model, ids, how, count)
        assert generate(model, [ids], how, count) == [expected]
        assert generate(model, [ids], how, count, cached=False) == [expected]
    model.explicit = False


@pytest.mark.parametrize("cached", [True, False])
def test_prompts_of_different_lengths_in_one_batch_are_each_alone(model, cached):
    """In any order, with the same seed; the prompt that stands there three times draws with the next seeds."""
    again = prompt(7, 7)
    prompts = [again, *(prompt(n, n) for n in (1, 15)), again, *(prompt(n, n) for n in (16, 3)), again]
    together = generate(model, prompts, WARM, 12, cached=cached)
    seeds = [11, 11, 11, 12, 11, 11, 13]
    assert together == [generate(model, [ids], replace(WARM, seed=seed), 12, cached=cached)[0]
                        for ids, seed in zip(prompts, seeds, strict=True)]
    assert len({tuple(row) for row in together}) == len(prompts)


def test_more_new_ids_than_memory_was_taken_for(model, monkeypatch):
    expected = generate(model, [prompt(3), prompt(4)], WARM, 40)
    monkeypatch.setattr("tracer.library.generate.ROOM", 1)
    assert generate(model, [prompt(3), prompt(4)], WARM, 40) == expected
    first = next(rounds(model, [prompt(3)], WARM, 10**15))  # of as many there is no tensor
    assert first.tolist() == generate(model, [prompt(3)], WARM, 1)[0]


def test_greedy_ids_are_those_of_transformers(model, tmp_path):
    save_pretrained(model, tmp_path)
    reference = transformers.GPT2LMHeadModel.from_pretrained(tmp_path).eval()
    for length in (1, 5, 15):
        ids = torch.tensor([prompt(length)])
        expected = reference.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=0,
                                      max_new_tokens=CONFIG.context - length)
        assert generate(model, ids.tolist(), GREEDY, CONFIG.context - length) == expected[:, length:].tolist()


def test_a_stop_id_ends_its_own_row(model):
    prompts = [prompt(n, n) for n in (4, 5)]
    full = generate(model, prompts, WARM, 30)
    first = full[0][6]
    ended = generate(model, prompts, WARM, 30, stop=[first])
    assert ended[0] == full[0][:full[0].index(first) + 1]
    until = full[1].index(first) + 1 if first in full[1] else 30
    assert ended[1] == full[1][:until]


def test_generation_ends_once_every_row_has_stopped(model):
    passes = []
    handle = model.register_forward_hook(lambda *_: passes.append(1))
    first = generate(model, [prompt(4)], GREEDY, 1)[0]
    passes.clear()
    assert generate(model, [prompt(4)], GREEDY, 30, stop=first) == [first]
    handle.remove()
    assert len(passes) == 1


def test_a_cache_forwards_each_position_once(model):
    """375,250 positions against 1,000 for a prompt of 500 and 500 new ones; here 5 + 5."""
    seen = []
    handle = model.token_embedding.register_forward_hook(lambda module, args, result: seen.append(args[0].size(1)))
    generate(model, [prompt(5)], GREEDY, 6)
    with_cache = seen.copy()
    seen.clear()
    generate(model, [prompt(5)], GREEDY, 6, cached=False)
    handle.remove()
    assert with_cache == [5, 1, 1, 1, 1, 1]
    assert seen == [5, 6, 7, 8, 9, 10]


def test_a_model_in_training_mode_generates_without_dropout_and_stays_in_it(model):
    expected = generate(model, [prompt(5)], GREEDY, 8)
    model.train()
    assert generate(model, [prompt(5)], GREEDY, 8) == expected
    assert model.training
    model.eval()


# Choosing --------------------------------------------------------------------------------------------

LOGITS = torch.randn(6, 50, generator=torch.Generator().manual_seed(0)) * 3


@pytest.mark.parametrize("how", [GREEDY, Sampling(), Sampling(0.5), Sampling(2.0, top_k=7), Sampling(1.0, top_k=1),
                                 Sampling(1.0, top_k=999), Sampling(1.0, top_p=0.5), Sampling(1.0, top_p=1.0),
                                 Sampling(1.0, top_p=1e-9), Sampling(1.0, top_p=1e-50),
                                 Sampling(1.3, top_k=10, top_p=0.7)], ids=str)
def test_choices_are_those_by_hand(how):
    rows = LOGITS.double()
    for uniform in (0.0, 0.1, 0.35, 0.6, 0.85, 0.999):
        chosen = choose(rows, torch.full((6,), uniform, dtype=torch.float64), how)
        assert chosen.tolist() == [choice_by_hand(row, uniform, how) for row in rows.tolist()]


def test_the_draw_is_the_recorded_one():
    for k in (1, 3, 50):
        sampler, how = Sampler(0.8, k, 50), Sampling(0.8, top_k=k)
        for uniform in torch.rand(20, generator=torch.Generator().manual_seed(1)):
            drawn = [int(sampler(row[None], uniform)) for row in LOGITS]
            assert choose(LOGITS, uniform.expand(6), how).tolist() == drawn


@pytest.mark.parametrize("k", [1, 2, 3, 10, 40])
def test_ties_go_to_the_lower_id(k):
    tied = torch.tensor([[0.0, 2.0, 1.0] + [1.0] * 60 + [2.0], [3.0] * 64])
    expected = [[sorted(range(64), key=lambda id: (-row[id], id))[min(int(u * k), k - 1)] for u in (0.0, 0.999)]
                for row in tied.tolist()]
    how = Sampling(temperature=1e6, top_k=k)  # all kept candidates about as probable
    for column, uniform in enumerate((0.0, 0.999)):
        assert choose(tied, torch.full((2,), uniform), how).tolist() == [row[column] for row in expected]


def test_frequencies_follow_the_probabilities():
    """A chi-squared statistic of 20,000 draws over 8 classes: beyond 30 once in ten thousand seeds."""
    logits = torch.linspace(0, 3, 8)
    uniforms = torch.rand(20_000, generator=torch.Generator().manual_seed(5))
    counts = torch.bincount(choose(logits.expand(20_000, 8), uniforms, Sampling()), minlength=8)
    expected = 20_000 * logits.softmax(0)
    assert ((counts - expected) ** 2 / expected).sum() < 30


# Text ------------------------------------------------------------------------------------------------

class Emitting:
    """Stands for a model: says the given ids one after the other."""

    def __new__(cls, ids: list[int], vocabulary: int) -> GPT:
        torch.manual_seed(0)
        model = GPT(Config(vocabulary=vocabulary, context=64, width=4, heads=1, blocks=1, dropout=0.0), explicit=False)
        following = iter(ids)

        def answer(module, args, kwargs, result):
            logits = torch.zeros(1, 1, vocabulary)
            logits[..., next(following)] = 1
            return logits, None

        model.register_forward_hook(answer, with_kwargs=True)
        return model


def test_streamed_text_shows_whole_characters(tokenizer):
    text = "Hi 你好! 🙂"
    ids = tokenizer.encode(text)
    pieces = list(stream(Emitting([*ids, tokenizer.eos, 0], 50257), tokenizer, "x", GREEDY, 50, [tokenizer.eos]))
    assert "".join(pieces) == text
    assert "" in pieces
    assert not any("�" in piece for piece in pieces)


class Letters:
    """A tokenizer of single characters, with nothing but what generation asks for."""

    def encode(self, text):
        return ["abc".index(character) for character in text]

    def decode(self, ids):
        return "".join("abc"[id] for id in ids)


def test_streaming_with_characters_as_tokens():
    assert list(stream(Emitting([2, 1, 0], 3), Letters(), "ab", GREEDY, 3)) == ["c", "b", "a"]


@pytest.mark.parametrize(("prompts", "message"), [
    ([[]], "a prompt is empty"), ([], "a prompt is empty"), ([[1], []], "a prompt is empty"),
    ([[31]], "token id 31 is outside the model's vocabulary of 31"), ([[-1]], "token id -1 is outside"),
    ([[1, 1.0]], "token id must be a whole number, not 1.0"), (["ab"], "token id must be a whole number, not 'a'"),
    ([torch.tensor([0.5])], "token id must be a whole number, not tensor")])
def test_wrong_prompts_are_refused(model, prompts, message):
    with pytest.raises(UserError, match=message):
        next(rounds(model, prompts, GREEDY, 1))
    with pytest.raises(UserError, match="at least 1, not 0"):
        generate(model, [[1]], GREEDY, 0)
    with pytest.raises(UserError, match="new tokens must be a whole number"):
        generate(model, [[1]], GREEDY, 2.5)


@pytest.mark.parametrize("wrong", [{"temperature": -1}, {"temperature": math.nan}, {"temperature": math.inf},
                                   {"temperature": 1e-9}, {"temperature": 1e31}, {"temperature": "1"}, {"top_k": 0},
                                   {"top_k": 2.5}, {"top_p": 0}, {"top_p": 1.1}, {"top_p": math.nan}, {"top_p": "1"}])
def test_wrong_ways_to_choose_are_refused(wrong):
    with pytest.raises(UserError, match=next(iter(wrong)).replace("_", "-")):
        Sampling(**wrong)


def test_logits_of_16_bits_are_drawn_from_as_finely_as_those_of_32():
    """In bfloat16 the cumulative probabilities of a thousand equal candidates would be some two hundred numbers."""
    uniforms = (torch.arange(1000) + 0.5) / 1000
    chosen = choose(torch.zeros(1000, 1000, dtype=torch.bfloat16), uniforms, Sampling())
    assert chosen.tolist() == list(range(1000))


def test_the_seeds_of_a_batch_begin_again_after_the_largest(model):
    last = Sampling(seed=2**64 - 1)
    both = generate(model, [prompt(3), prompt(3)], last, 5)
    assert both == [generate(model, [prompt(3)], how, 5)[0] for how in (last, Sampling(seed=0))]
