"""What a model draws, and whole trainings and generations of it."""

import itertools
import math

import numpy as np
import pytest
import torch
from model_cases import SMALL, mersenne_twister, random_ids, seeded_model

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.layers import Dropout
from tracer.model.optimizer import TrainingSettings, make_optimizer, train
from tracer.model.random_words import next_word
from tracer.model.sampling import Sampler, multinomial_choices, uniform_numbers
from tracer.model.text_tokenizer import IncrementalDecoder
from tracer.recording.checkpoint import Checkpoint
from tracer.recording.generation import MOST_CANDIDATES, GenerationJob, past_context_job, record_generation
from tracer.recording.training import TrainingJob, record_training

# Random numbers --------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", [0, 7, 20261012])
def test_next_word_is_the_generators_next_word(seed):
    torch.manual_seed(seed)
    assert [next_word() for _ in range(700)] == mersenne_twister(seed, 700)  # 624 words a block


def test_next_word_advances_by_exactly_one_word_between_other_draws():
    torch.manual_seed(3)
    words = mersenne_twister(3, 4)
    drawn = [next_word(), torch.rand(1).item(), next_word(), torch.rand(1).item()]
    assert [drawn[0], drawn[2]] == [words[0], words[2]]
    assert [drawn[1], drawn[3]] == [(word & 0xFFFFFF) / 2**24 for word in (words[1], words[3])]


def mask_by_hand(word: int, count: int, p: float) -> list[bool]:
    x, kept = word % (2**31 - 1) or 1, []
    for _ in range(count):
        kept.append(x / (2**31 - 1) < 1 - p)
        x = 1132489760 * x % (2**31 - 1)
    return kept


def test_dropout_draws_one_word_and_scales_what_it_keeps():
    torch.manual_seed(11)
    x = torch.linspace(1, 2, 60).view(3, 4, 5)
    dropped = Dropout(0.4, ("position", "feature"))(x)
    word, following = mersenne_twister(11, 2)
    kept = torch.tensor(mask_by_hand(word, 60, 0.4)).view(3, 4, 5)
    assert 20 < kept.sum() < 50
    torch.testing.assert_close(dropped, torch.where(kept, x / 0.6, torch.zeros(())))
    assert next_word() == following


def test_dropout_is_off_in_eval_and_on_in_training():
    model = seeded_model(Config(vocabulary=31, context=8, width=8, dropout=0.5))
    x, y = random_ids(SMALL)
    first, second = (model.train()(x, y)[0] for _ in range(2))
    assert not torch.equal(first, second)
    state = torch.get_rng_state()
    first, second = (model.eval()(x, y)[0] for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)
    plain = GPT(SMALL)
    plain.load_state_dict(model.state_dict())
    assert torch.equal(plain.train()(x, y)[0], first)


def test_a_training_forward_draws_one_word_for_each_dropout():
    """Embedding, then attention weights, attention output and MLP output of each block."""
    model = seeded_model(Config(vocabulary=31, context=8, width=8, blocks=3, dropout=0.1)).train()
    x, y = random_ids(SMALL)
    torch.manual_seed(2)
    model(x, y)
    assert next_word() == mersenne_twister(2, 1 + 3 * 3 + 1)[-1]


# Sampling --------------------------------------------------------------------------------------------

def test_uniform_numbers_are_the_mersenne_twisters_and_leave_the_global_generator_alone():
    state = torch.get_rng_state()
    drawn = [float(u) for u in itertools.islice(uniform_numbers(7), 10)]
    assert drawn == [float(u) for u in itertools.islice(uniform_numbers(7), 10)]
    assert drawn == [(word & 0xFFFFFF) / 2**24 for word in mersenne_twister(7, 10)]
    assert torch.equal(torch.get_rng_state(), state)


def sample_by_hand(logits: np.ndarray, temperature: float, k: int, uniform: float) -> int:
    """In NumPy, float64: the first candidate whose cumulative probability exceeds `uniform`."""
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))[:k]
    weights = np.exp((logits[order] - logits[order[0]]) / temperature)
    cumulative = np.cumsum(weights / weights.sum())
    return order[min(int(np.searchsorted(cumulative, uniform, side="right")), k - 1)]


@pytest.mark.parametrize(("temperature", "k"), [(0.8, 5), (1.0, 40), (3.0, 17), (0.1, 40), (1.0, 1)])
def test_sampling_agrees_with_numpy(temperature, k):
    logits = torch.randn(1, 40, generator=torch.Generator().manual_seed(1))
    sampler = Sampler(temperature, k, 40)
    uniforms = list(itertools.islice(uniform_numbers(9), 500))
    drawn = [int(sampler(logits, uniform)) for uniform in uniforms]
    assert drawn == [sample_by_hand(logits[0].double().numpy(), temperature, k, float(u)) for u in uniforms]
    assert (len(set(drawn)) > 1) == (k > 1)


def test_frequencies_are_the_probabilities():
    """χ² over 4,000 seeds against 4 degrees of freedom: above 18.47 with probability 0.001."""
    logits = torch.tensor([[0.3, -0.5, 1.0, 0.0, 0.7, -3.0]])
    sampler = Sampler(1.5, 5, 6)
    counts = np.zeros(6)
    for seed in range(4000):
        counts[int(sampler(logits, next(uniform_numbers(seed))))] += 1
    weights = np.exp(np.array([0.3, -0.5, 1.0, 0.0, 0.7]) / 1.5)
    expected = 4000 * weights / weights.sum()
    assert counts[5] == 0  # the sixth is not among the five
    assert ((counts[:5] - expected) ** 2 / expected).sum() < 18.47
    assert ((counts[:5] - 800) ** 2 / 800).sum() > 100  # a uniform choice would be seen


def test_ties_go_to_the_lower_id():
    logits = torch.tensor([[1.0, 2.0, 2.0, 5.0, 2.0, 2.0]])
    ids, kept = Sampler(1.0, 3, 6).top_k(logits, logits)
    assert (ids.tolist(), kept.tolist()) == ([3, 1, 2], [5, 2, 2])


def test_two_logits_that_division_makes_equal_keep_their_order():
    logit = torch.tensor(1.9)
    logits = torch.stack([logit, logit.nextafter(torch.tensor(2.0)), torch.tensor(0.0)]).unsqueeze(0)
    equal = 0
    for temperature in np.linspace(1.1, 1.9, 50).tolist():
        scaled = logits / temperature
        equal += int(scaled[0, 0] == scaled[0, 1])
        assert Sampler(temperature, 2, 3).top_k(scaled, logits)[0].tolist() == [1, 0]
    assert equal > 5  # so that it matters


@pytest.mark.parametrize(("temperature", "k", "message"), [
    (0.0, 5, "temperature"), (-1.0, 5, "temperature"), (math.nan, 5, "temperature"), (math.inf, 5, "temperature"),
    (1e-40, 5, "temperature"), (0.8, 0, "top-k"), (0.8, -1, "top-k"), (0.8, 32, "top-k")])
def test_wrong_sampling_is_refused(temperature, k, message):
    with pytest.raises(UserError, match=message):
        Sampler(temperature, k, 31)


@pytest.mark.parametrize("wrong", [{"max_new_tokens": 0}, {"top_k": MOST_CANDIDATES + 1}, {"seed": -1},
                                   {"seed": 2**64}])
def test_a_wrong_generation_is_refused(wrong):
    with pytest.raises(UserError, match=next(iter(wrong)).replace("_", "-")):
        GenerationJob(**wrong)


# Whole trainings -------------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "shape", "settings"), [
    ("你", {}, {"updates": 2}),                                  # long sums with two positions
    ("\n\n", {"dropout": 0.0}, {"updates": 2, "seed": 880899}),  # one position, x − mean much smaller than x
    ("Hi 你!", {"width": 4}, {"updates": 3, "lr": 10.0}),        # probabilities that float32 cannot hold
    ("Hi 你!", {}, {"updates": 30, "seed": 1}),                  # 50,257 small terms beside one large one
])
def test_any_training_can_be_recorded_and_is_the_unrecorded_one(text, shape, settings, tokenizer):
    """Recording raises when a number does not follow from its operands within float32's rounding."""
    job = TrainingJob(text, "a", Config(**shape), TrainingSettings(**settings))
    trace, checkpoint = record_training(job, tokenizer)
    torch.manual_seed(job.settings.seed)
    model, losses = GPT(job.config), []
    ids = torch.tensor([[*tokenizer.encode(text), tokenizer.eos]])
    train(model, make_optimizer(model, job.settings), ids[:, :-1], ids[:, 1:], job.settings.updates,
          lambda number, loss: losses.append(loss))
    assert trace.values("series.loss").tolist() == losses
    recorded = checkpoint.model.state_dict()
    assert all(torch.equal(recorded[name], values) for name, values in model.state_dict().items())


# Whole generations -----------------------------------------------------------------------------------

def untrained(**shape) -> Checkpoint:
    model, settings = seeded_model(Config(**{"width": 4, "heads": 1, "blocks": 1, **shape})), TrainingSettings()
    return Checkpoint(model, settings, 0, "", make_optimizer(model, settings), torch.get_rng_state())


def emitting(ids: list[int]) -> Checkpoint:
    """A model whose next token is any of `ids`, each as probable: its last norm gives (1, 0, 0, 0)."""
    checkpoint = untrained()
    with torch.no_grad():
        checkpoint.model.final_norm.weight.zero_()
        checkpoint.model.final_norm.bias.copy_(torch.tensor([1.0, 0, 0, 0]))
        checkpoint.model.token_embedding.weight[:, 0] = -30
        checkpoint.model.token_embedding.weight[ids, 0] = 30
    return checkpoint


def check_generation(job: GenerationJob, checkpoint: Checkpoint, tokenizer) -> list[dict]:
    """Record, which recomputes every number; check what was shown against the decoder; the rounds."""
    shown = []
    trace = record_generation(job, checkpoint, tokenizer, lambda number, token, text: shown.append((token, text)))
    rounds = trace.summary["rounds"]
    assert shown == [(r["id"], r["new_text"]) for r in rounds]
    decoder = IncrementalDecoder(tokenizer)
    expected = [decoder.feed(r["id"]) if r["id"] != tokenizer.eos else "" for r in rounds]
    assert [r["new_text"] for r in rounds] == expected
    assert trace.summary["text"] == job.prompt + "".join(expected)
    return rounds


def test_generation_stops_at_the_end_token(tokenizer):
    rounds = check_generation(GenerationJob("Hi", top_k=1), emitting([tokenizer.eos]), tokenizer)
    assert [(r["id"], r["new_text"], r["probability"]) for r in rounds] == [(tokenizer.eos, "", 1.0)]


def test_generation_stops_at_the_largest_number_of_tokens(tokenizer):
    rounds = check_generation(GenerationJob("Hi", top_k=1, max_new_tokens=3), emitting([0]), tokenizer)
    assert [r["new_text"] for r in rounds] == ["!", "!", "!"]


def test_generation_goes_on_past_the_context_with_the_last_ids(tokenizer):
    """A context of 4 and a prompt of 3 ids: from the third round on, the oldest ids are left out."""
    checkpoint, job = untrained(context=4), GenerationJob("a b c", top_k=1, max_new_tokens=5)
    checkpoint.model.token_embedding.weight.data.mul_(50)  # so that what is chosen depends on what was read
    rounds = check_generation(job, checkpoint, tokenizer)
    ids = tokenizer.encode(job.prompt)
    for _ in rounds:
        with torch.no_grad():
            ids.append(int(checkpoint.model(torch.tensor([ids[-4:]]))[0][0, -1].argmax()))
    assert [r["id"] for r in rounds] == ids[3:]


def test_with_a_cache_a_round_computes_one_position(tokenizer):
    """What the cached pass holds is what the full pass has of its last position, until the context is full."""
    checkpoint, job = untrained(context=4, heads=2), GenerationJob("a b", top_k=1, max_new_tokens=4)
    trace = record_generation(job, checkpoint, tokenizer)
    same = {}
    for number in range(2, 5):
        for name in (name for name in trace.operations if name.startswith(f"round{number}.cached.blocks")):
            twin = name.replace(".cached", "")
            if twin in trace.arrays and trace.arrays[twin].axes[0] == "position":
                assert trace.arrays[name].shape == (1, *trace.arrays[twin].shape[1:])
                last = trace.values(twin)[-1:]
                same.setdefault(number, []).append(np.allclose(trace.values(name), last, rtol=1e-5, atol=1e-6))
        keys = trace.values(f"round{number}.cached.blocks.0.attention.key_cache")
        full = trace.values(f"round{number}.blocks.0.attention.split.key")
        assert keys.shape == full.shape
        assert np.allclose(keys, full, rtol=1e-5, atol=1e-6) == (number < 4)
    assert all(same[2]) and all(same[3]) and len(same[2]) > 10
    assert not all(same[4])  # five ids: rows that were dropped from the cache still count in those that stayed
    assert trace.values("round3.cached.difference") < 1e-5 < 1e-4 < trace.values("round4.cached.difference")


def test_a_prompt_that_runs_past_the_context(tokenizer):
    job = past_context_job(GenerationJob("Hi"), "Hi 你!", tokenizer, Config())
    assert (job.prompt, job.max_new_tokens) == ("Hi 你!Hi 你!Hi 你!Hi", 2)
    assert len(tokenizer.encode(job.prompt)) == 16
    longer = past_context_job(GenerationJob("Hi"), "long " * 20, tokenizer, Config())  # than the context: its end
    assert ("long " * 20 + "Hi").endswith(longer.prompt) and longer.max_new_tokens == 2
    assert len(tokenizer.encode(longer.prompt)) == Config().context


def test_torch_multinomial_draws_otherwise_but_as_often():
    probabilities, draws = torch.tensor([0.5, 0.3, 0.2]), multinomial_choices(7)
    next(draws)
    theirs = [draws.send(probabilities) for _ in range(2000)]
    generator = torch.Generator().manual_seed(7)
    assert theirs == [int(torch.multinomial(probabilities, 1, generator=generator)) for _ in range(2000)]
    edges = probabilities.cumsum(0)[:-1]
    ours = [int((u >= edges).sum()) for u in itertools.islice(uniform_numbers(7), 2000)]
    assert ours != theirs
    np.testing.assert_allclose(np.bincount(ours) / 2000, np.bincount(theirs) / 2000, atol=0.04)


def test_a_prompt_may_fill_the_context_but_not_more(tokenizer):
    checkpoint = untrained(context=8)
    job = GenerationJob("a a a a a a a a", top_k=1, max_new_tokens=1)
    assert len(check_generation(job, checkpoint, tokenizer)) == 1
    with pytest.raises(UserError, match="9 tokens, the context holds 8"):
        record_generation(GenerationJob("a a a a a a a a a"), checkpoint, tokenizer)
    with pytest.raises(UserError, match="empty"):
        record_generation(GenerationJob(""), checkpoint, tokenizer)


@pytest.mark.parametrize("seed", range(2))
def test_bytes_that_are_no_utf8(tokenizer, seed):
    """Any byte is as probable: lead bytes without their rest, rests without a lead."""
    checkpoint = emitting(tokenizer.byte_to_id)
    job = GenerationJob("Hi", temperature=1.0, top_k=256, seed=seed, max_new_tokens=14)
    rounds = check_generation(job, checkpoint, tokenizer)
    assert len(rounds) == 14
    assert len({r["id"] for r in rounds}) > 8
    assert any("�" in r["new_text"] for r in rounds)


@pytest.mark.parametrize("raw", [b"\xe4\xbd!", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xf4\x90"])
def test_characters_begun_finished_and_broken(tokenizer, raw):
    """Few different bytes, so that begun characters are often finished, broken off, or left at the end."""
    ids = [tokenizer.byte_to_id[byte] for byte in raw]
    job = GenerationJob("Hi", temperature=1.0, top_k=len(ids), seed=5, max_new_tokens=12)
    rounds = check_generation(job, emitting(ids), tokenizer)
    assert {r["id"] for r in rounds} == set(ids)


def test_an_untrained_model_at_a_high_temperature(tokenizer):
    job = GenerationJob("Hi 你", temperature=100.0, top_k=200, seed=1, max_new_tokens=6)
    rounds = check_generation(job, untrained(width=16, heads=2, blocks=2), tokenizer)
    assert len({r["id"] for r in rounds}) == 6
    assert all(r["probability"] == pytest.approx(1 / 200, rel=0.02) for r in rounds)


def test_the_coldest_temperature(tokenizer):
    rounds = check_generation(GenerationJob("Hi", temperature=1e-6, max_new_tokens=2), untrained(), tokenizer)
    assert [r["probability"] for r in rounds] == [1.0, 1.0]
