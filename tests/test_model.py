"""The model against Hugging Face's GPT-2; its random numbers against NumPy; sampling; checkpoints."""

import math
from pathlib import Path

import pytest
import torch
from model_cases import SHAPES, SMALL, pair, random_ids, reference_name, seeded_model, turned
from torch.nn import functional as F

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.optimizer import TrainingSettings, decays, make_optimizer, train
from tracer.recording.checkpoint import Checkpoint, load_checkpoint, save_checkpoint

# Hugging Face's GPT-2 --------------------------------------------------------------------------------

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


# Checkpoints -----------------------------------------------------------------------------------------

def trained(updates: int) -> Checkpoint:
    model, settings = seeded_model(Config(vocabulary=31, context=8, width=8)), TrainingSettings(updates=120)
    optimizer = make_optimizer(model, settings)
    x, y = random_ids(SMALL)
    train(model, optimizer, x, y, updates)
    return Checkpoint(model, settings, updates, "Hi", optimizer, torch.get_rng_state())


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
