"""The model against Hugging Face's GPT-2; its random numbers against NumPy; sampling; checkpoints."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch.nn import functional as F

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.layers import Dropout
from tracer.model.optimizer import TrainingSettings, decays, make_optimizer, train
from tracer.model.random_words import next_word
from tracer.model.sampling import Sampler, multinomial_choices, uniform_numbers
from tracer.model.text_tokenizer import IncrementalDecoder
from tracer.recording.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from tracer.recording.generation import MOST_CANDIDATES, GenerationJob, past_context_job, record_generation
from tracer.recording.training import TrainingJob, record_training

SMALL = Config(vocabulary=31, context=8, width=8, heads=2, blocks=2, dropout=0.0)
SHAPES = [SMALL,
          Config(vocabulary=17, context=6, width=12, heads=3, blocks=1, dropout=0.0),
          Config(vocabulary=11, context=5, width=4, heads=1, blocks=3, dropout=0.0),
          Config(vocabulary=50257, context=16, width=16, heads=2, blocks=2, dropout=0.0)]


def seeded_model(config: Config, seed: int = 5) -> GPT:
    torch.manual_seed(seed)
    return GPT(config)


def random_ids(config: Config, batch: int = 2, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(config.vocabulary, (batch, config.context + 1), generator=torch.Generator().manual_seed(seed))
    return ids[:, :-1], ids[:, 1:]


# Hugging Face's GPT-2 --------------------------------------------------------------------------------

BLOCK_NAMES = {"norm_1": "ln_1", "attention.qkv": "attn.c_attn", "attention.projection": "attn.c_proj",
               "norm_2": "ln_2", "mlp.up": "mlp.c_fc", "mlp.down": "mlp.c_proj"}
NAMES = {"token_embedding.weight": "transformer.wte.weight", "position_embedding.weight": "transformer.wpe.weight",
         "final_norm.weight": "transformer.ln_f.weight", "final_norm.bias": "transformer.ln_f.bias"}


def reference_name(name: str) -> str:
    """Ours → theirs: ``blocks.0.mlp.up.weight`` → ``transformer.h.0.mlp.c_fc.weight``."""
    if name in NAMES:
        return NAMES[name]
    _, number, rest = name.split(".", 2)
    module, kind = rest.rsplit(".", 1)
    return f"transformer.h.{number}.{BLOCK_NAMES[module]}.{kind}"


def turned(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Their Conv1D keeps weights input × output."""
    linear = name.startswith("blocks.") and "norm" not in name and tensor.dim() == 2
    return tensor.T if linear else tensor


def pair(config: Config, activation: str = "gelu") -> "tuple[GPT, transformers.GPT2LMHeadModel]":
    """Our model and theirs with the same weights, in float64, ten times as large as at the start.

    With the small weights of the start both forms of GELU, and a square matrix and its transpose, give
    nearly the same logits.
    """
    model = seeded_model(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10).add_(0.1 * torch.randn_like(parameter))  # biases and gains of layer norm move too
    reference = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=config.vocabulary, n_positions=config.context, n_embd=config.width, n_head=config.heads,
        n_layer=config.blocks, activation_function=activation, attn_implementation="eager", layer_norm_epsilon=1e-5,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)).double().eval()
    theirs = dict(reference.named_parameters())
    assert {reference_name(name) for name, _ in model.named_parameters()} == theirs.keys()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            theirs[reference_name(name)].copy_(turned(name, parameter))
    return model, reference


def reference_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@pytest.mark.parametrize("config", SHAPES, ids=lambda c: f"V{c.vocabulary}D{c.width}H{c.heads}L{c.blocks}")
def test_logits_loss_and_gradients_are_those_of_hugging_face(config):
    model, reference = pair(config)
    x, y = random_ids(config)
    logits, loss = model(x, y)
    expected = reference(x).logits
    expected_loss = reference_loss(expected, y)
    loss.backward()
    expected_loss.backward()
    torch.testing.assert_close(logits, expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(loss, expected_loss, rtol=1e-11, atol=0)
    theirs = dict(reference.named_parameters())
    for name, parameter in model.named_parameters():
        wanted = turned(name, theirs[reference_name(name)].grad)
        torch.testing.assert_close(parameter.grad, wanted, rtol=1e-8, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}")


def test_the_comparison_sees_a_wrong_gelu_and_a_forgotten_transpose():
    x, _ = random_ids(SMALL)
    model, reference = pair(SMALL, "gelu_new")  # the tanh form
    logits = model(x, x)[0]
    assert (logits - reference(x).logits).abs().max() > 1e-5
    model, reference = pair(SMALL)
    with torch.no_grad():
        square = model.blocks[0].attention.projection.weight
        square.copy_(square.T.clone())
    assert (model(x, x)[0] - reference(x).logits).abs().max() > 1e-2


def test_float32_agrees_with_hugging_face_to_float32():
    model, reference = pair(SMALL)
    x, y = random_ids(SMALL)
    expected = reference(x).logits
    logits = model.float()(x, y)[0]
    assert (logits - expected).abs().max() / expected.abs().max() < 9e-5  # what the second article found
    assert torch.equal(logits.argmax(-1), expected.argmax(-1))


# Shapes and sizes ------------------------------------------------------------------------------------

def parameters_by_hand(V: int, C: int, D: int, L: int) -> int:
    norm = 2 * D
    block = 2 * norm + (3 * D * D + 3 * D) + (D * D + D) + (4 * D * D + 4 * D) + (4 * D * D + D)
    return V * D + C * D + L * block + norm


@pytest.mark.parametrize("config", SHAPES)
def test_parameter_count(config):
    expected = parameters_by_hand(config.vocabulary, config.context, config.width, config.blocks)
    assert GPT(config).parameter_count() == expected


def test_parameter_counts_of_both_articles():
    assert GPT(Config()).parameter_count() == 810_960
    with torch.device("meta"):  # shapes alone
        gpt2_small = GPT(Config(vocabulary=50257, context=1024, width=768, heads=12, blocks=12))
    assert gpt2_small.parameter_count() == 124_439_808
    assert gpt2_small.blocks[0].mlp.up.weight.numel() * 2 / 7_087_872 == pytest.approx(0.666, abs=1e-3)


@pytest.mark.parametrize("config", SHAPES)
def test_loss_at_the_start_is_that_of_a_guess(config):
    x, y = random_ids(config, batch=4)
    _, loss = seeded_model(config).eval()(x, y)
    assert loss.item() == pytest.approx(math.log(config.vocabulary), abs=0.05)


def test_initial_weights_have_the_stated_spread():
    model = seeded_model(Config(vocabulary=500, width=64, heads=2, blocks=2))
    weights = dict(model.named_parameters())
    for name, weight in weights.items():
        if weight.dim() == 2:
            residual = name.endswith(("projection.weight", "down.weight"))
            expected = 0.02 / math.sqrt(4) if residual else 0.02
            assert weight.std().item() == pytest.approx(expected, rel=0.06), name
        else:
            assert torch.equal(weight, torch.full_like(weight, float("norm" in name and "weight" in name))), name


@pytest.mark.parametrize("wrong", [
    {"vocabulary": 0}, {"context": 0}, {"width": 0}, {"heads": 0}, {"blocks": 0}, {"width": 10, "heads": 3},
    {"dropout": 1.0}, {"dropout": -0.1}, {"dropout": math.nan}])
def test_a_wrong_config_is_refused(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        Config(**wrong)


@pytest.mark.parametrize("wrong", [{"updates": 0}, {"lr": -0.1}, {"lr": math.inf}, {"lr": math.nan},
                                   {"seed": -1}, {"seed": 2**64}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        TrainingSettings(**wrong)


def test_a_text_longer_than_the_context_is_refused_and_the_longest_is_not():
    model = seeded_model(SMALL)
    x, _ = random_ids(SMALL)
    assert model(x)[0].shape == (2, 1, 31)
    with pytest.raises(UserError, match="9 tokens do not fit the context of 8"):
        model(torch.zeros(1, 9, dtype=torch.long))


def test_logits_without_targets_are_those_of_the_last_position():
    model = seeded_model(SMALL).eval()
    x, y = random_ids(SMALL)
    last, loss = model(x)
    assert loss is None
    torch.testing.assert_close(last, model(x, y)[0][:, -1:], rtol=1e-5, atol=1e-7)


def test_a_token_reaches_no_earlier_position_and_every_later_one():
    model = pair(SMALL)[0]
    x, y = random_ids(SMALL, batch=1)
    before = model(x, y)[0]
    for changed in range(SMALL.context):
        other = x.clone()
        other[0, changed] = (x[0, changed] + 1) % SMALL.vocabulary
        after = model(other, y)[0]
        differs = (after != before).any(dim=-1)[0]
        assert differs.tolist() == [position >= changed for position in range(SMALL.context)]


def test_a_batch_is_its_rows():
    model = pair(SMALL)[0]
    x, y = random_ids(SMALL, batch=3)
    logits, loss = model(x, y)
    rows = [model(x[i:i + 1], y[i:i + 1]) for i in range(3)]
    torch.testing.assert_close(logits, torch.cat([row[0] for row in rows]))
    torch.testing.assert_close(loss, torch.stack([row[1] for row in rows]).mean())


def test_which_parameters_decay():
    model = seeded_model(SMALL)
    with_decay = {name for name, parameter in model.named_parameters() if decays(parameter)}
    assert with_decay == {n for n in dict(model.named_parameters()) if n.endswith("weight") and "norm" not in n}
    decaying, others = make_optimizer(model, TrainingSettings()).param_groups
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.01, 0.0)
    assert len(decaying["params"]) == len(with_decay)
    assert len(others["params"]) == len(list(model.parameters())) - len(with_decay)


# Random numbers --------------------------------------------------------------------------------------

def mersenne_twister(seed: int, count: int) -> list[int]:
    """The same generator in NumPy: its 32-bit words."""
    return np.random.RandomState(seed)._bit_generator.random_raw(count).tolist()


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


# Checkpoints -----------------------------------------------------------------------------------------

def trained(updates: int) -> Checkpoint:
    model, settings = seeded_model(Config(vocabulary=31, context=8, width=8)), TrainingSettings(updates=120)
    optimizer = make_optimizer(model, settings)
    x, y = random_ids(SMALL)
    train(model, optimizer, x, y, updates)
    return Checkpoint(model, optimizer, settings, updates, "Hi", torch.get_rng_state())


@pytest.fixture(scope="module")
def whole() -> Checkpoint:
    return trained(120)


@pytest.fixture(scope="module")
def half_path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("checkpoints") / "half.pt"
    save_checkpoint(trained(60), path)
    return path


def test_training_goes_on_exactly_from_a_checkpoint(whole, half_path):
    torch.manual_seed(999)  # whatever happens between
    half = load_checkpoint(half_path)
    assert half.step == 60
    torch.set_rng_state(half.random_state)
    x, y = random_ids(SMALL)
    train(half.model, half.optimizer, x, y, 60)
    ours, theirs = half.model.state_dict(), whole.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    states = half.optimizer.state_dict()["state"], whole.optimizer.state_dict()["state"]
    assert states[0].keys() == states[1].keys() == set(range(len(theirs)))
    assert all(torch.equal(states[0][i][key], states[1][i][key]) for i in states[1] for key in states[1][i])
    assert states[0][0]["step"] == 120
    assert torch.equal(torch.get_rng_state(), whole.random_state)


@pytest.mark.parametrize("forget", ["optimizer", "random state"])
def test_without_the_optimizer_or_the_random_state_it_would_not(forget, whole, half_path):
    half = load_checkpoint(half_path)
    torch.set_rng_state(half.random_state if forget == "optimizer" else torch.Generator().get_state())
    optimizer = make_optimizer(half.model, half.settings) if forget == "optimizer" else half.optimizer
    train(half.model, optimizer, *random_ids(SMALL), 60)
    ours, theirs = half.model.state_dict(), whole.model.state_dict()
    assert not any(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_loading_a_checkpoint_leaves_the_random_state_alone(tmp_path):
    save_checkpoint(trained(1), tmp_path / "c.pt")
    torch.manual_seed(4)
    state = torch.get_rng_state()
    loaded = load_checkpoint(tmp_path / "c.pt")
    assert torch.equal(torch.get_rng_state(), state)
    assert (loaded.text, loaded.settings, loaded.model.config.width) == ("Hi", TrainingSettings(), 8)


@pytest.mark.parametrize("damage", [
    lambda raw: raw[: len(raw) // 2], lambda raw: b"", lambda raw: b"not a checkpoint",
    lambda raw: raw[:2000] + bytes(200) + raw[2200:]], ids=["cut", "empty", "text", "overwritten"])
def test_a_damaged_checkpoint_is_refused(damage, tmp_path):
    path = tmp_path / "c.pt"
    save_checkpoint(trained(1), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=r"c\.pt is damaged or no checkpoint .*train again"):
        load_checkpoint(path)


def test_other_files_are_no_checkpoints(tmp_path):
    with pytest.raises(UserError, match=r"there is no checkpoint .*train one"):
        load_checkpoint(tmp_path / "none.pt")
    with pytest.raises(UserError, match="is a folder: name the checkpoint in it"):
        load_checkpoint(tmp_path)
    torch.save({"format": "two-routes/checkpoint/0"}, tmp_path / "old.pt")
    with pytest.raises(UserError, match="without the seal of this version"):
        load_checkpoint(tmp_path / "old.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(UserError, match="damaged"):
        load_checkpoint(tmp_path / "list.pt")


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
    return Checkpoint(model, make_optimizer(model, settings), settings, 0, "", torch.get_rng_state())


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
