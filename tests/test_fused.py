"""The fused form of the model against the explicit one, with a cache and without; shapes and cropping."""

import itertools
from dataclasses import replace

import pytest
import torch

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.fused import LogisticGELU
from tracer.model.gpt import GPT
from tracer.model.kv_cache import KVCache

CONFIG = Config(vocabulary=31, context=12, width=24, heads=3, blocks=2, dropout=0.0)
CONFIGS = [CONFIG, replace(CONFIG, activation="gelu_tanh"), replace(CONFIG, tied=False),
           replace(CONFIG, heads=1, blocks=3, norm_eps=1e-3), replace(CONFIG, heads=24)]


def models(config: Config) -> tuple[GPT, GPT]:
    """The explicit and the fused form with the same weights, ten times as large as at the start, in float64."""
    torch.manual_seed(3)
    explicit = GPT(config)
    with torch.no_grad():
        for parameter in explicit.parameters():
            parameter.mul_(10).add_(0.1 * torch.randn_like(parameter))
    return explicit.double(), twin(explicit).double()


def twin(explicit: GPT) -> GPT:
    fused = GPT(explicit.config, explicit=False)
    fused.load_state_dict(explicit.state_dict())
    return fused


def random_ids(config: Config, batch: int = 3, length: int | None = None) -> torch.Tensor:
    return torch.randint(config.vocabulary, (batch, length or config.context),
                         generator=torch.Generator().manual_seed(1))


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return ((a - b).abs().max() / b.abs().max()).item()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_forward_and_gradients_of_both_forms_agree(config):
    explicit, fused = models(config)
    ids, targets = random_ids(config), random_ids(config).roll(1, 0)
    for model in (explicit, fused):
        model.loss_value = model(ids, targets)[1]
        model.loss_value.backward()
    torch.testing.assert_close(fused(ids, targets)[0], explicit(ids, targets)[0], rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(fused.loss_value, explicit.loss_value, rtol=1e-12, atol=0)
    for (name, ours), theirs in zip(fused.named_parameters(), explicit.parameters(), strict=True):
        assert relative(ours.grad, theirs.grad) < 1e-11, name


def test_both_forms_agree_to_1e_6_in_float32():
    """Both at the weights of the start, the forward with a cache and without, and the gradients."""
    torch.manual_seed(0)
    explicit = GPT(CONFIG)
    fused = twin(explicit)
    ids, targets = random_ids(CONFIG), random_ids(CONFIG).roll(1, 0)
    for model in (explicit, fused):
        model(ids, targets)[1].backward()
    for (name, ours), theirs in zip(fused.named_parameters(), explicit.parameters(), strict=True):
        assert relative(ours.grad, theirs.grad) < 1e-6, name
    with torch.no_grad():
        expected = explicit(ids, targets)[0]
        assert relative(fused(ids, targets)[0], expected) < 1e-6
        for model in (explicit, fused):
            cache = KVCache(CONFIG, 3, 12)
            for position in range(12):
                logits = model(ids[:, position:position + 1], cache=cache)[0]
                assert relative(logits[:, 0], expected[:, position]) < 1e-6


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("config", CONFIGS[:3], ids=str)
@torch.no_grad()
def test_a_cache_changes_no_logits_however_the_ids_are_cut(config, explicit):
    model = models(config)[not explicit].eval()
    ids = random_ids(config)
    whole = [model(ids[:, :n])[0] for n in range(1, config.context + 1)]
    for pieces in ([1] * config.context, [5, 1, 1, 3, 2], [config.context], [11, 1]):
        cache = KVCache(config, len(ids), config.context, torch.float64)
        for end, size in zip(itertools.accumulate(pieces), pieces, strict=True):
            logits = model(ids[:, end - size:end], cache=cache)[0]
            assert relative(logits, whole[end - 1]) < 1e-11
            assert cache.length == end


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("cached", [True, False])
@torch.no_grad()
def test_padding_at_the_start_changes_nothing(explicit, cached):
    model = models(CONFIG)[not explicit].eval()
    ids, lengths = random_ids(CONFIG, length=9), [9, 4, 1]
    padding = torch.tensor([9 - length for length in lengths])
    cache = KVCache(CONFIG, 3, 12, torch.float64) if cached else None
    logits = model(ids, cache=cache, padding=padding)[0]
    alone = torch.cat([model(row[9 - length:].unsqueeze(0))[0]
                       for row, length in zip(ids, lengths, strict=True)])
    assert relative(logits, alone) < 1e-11
    if cached:
        logits = model(ids[:, :2], cache=cache, padding=padding)[0]
        alone = torch.cat([model(torch.cat([row[9 - length:], row[:2]]).unsqueeze(0))[0]
                           for row, length in zip(ids, lengths, strict=True)])
        assert relative(logits, alone) < 1e-11


def test_the_logistic_gelu_and_its_gradient_are_those_of_torch():
    for dtype, tolerance in ((torch.float64, 1e-13), (torch.float32, 2e-6)):
        x = torch.linspace(-12, 12, 4801, dtype=dtype, requires_grad=True)
        ours, theirs = LogisticGELU.apply(x), torch.nn.functional.gelu(x, approximate="tanh")
        weights = torch.linspace(1, 2, 4801, dtype=dtype)
        gradients = [torch.autograd.grad((y * weights).sum(), x)[0] for y in (ours, theirs)]
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(*gradients, rtol=tolerance, atol=tolerance)
    few = torch.linspace(-4, 4, 20, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(LogisticGELU.apply, few)  # finite differences


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_the_logistic_gelu_in_torch_func():
    fused = models(replace(CONFIG, activation="gelu_tanh"))[1]
    ids, names = random_ids(CONFIG), dict(fused.named_parameters())
    gradients = torch.func.grad(lambda p: torch.func.functional_call(fused, p, (ids, ids))[1])(names)
    fused(ids, ids)[1].backward()
    for name, parameter in names.items():
        assert relative(gradients[name], parameter.grad) < 1e-12, name
    x = torch.linspace(-3, 3, 12, dtype=torch.float64).view(3, 4)
    slopes = torch.func.vmap(torch.func.grad(lambda row: LogisticGELU.apply(row).sum()))(x)
    rows = x.clone().requires_grad_()
    torch.nn.functional.gelu(rows, approximate="tanh").sum().backward()
    torch.testing.assert_close(slopes, rows.grad)


def test_a_token_that_pads_reaches_no_logits():
    model = models(CONFIG)[1].eval()
    ids, padding = random_ids(CONFIG, batch=1), torch.tensor([4])
    other = ids.clone()
    other[0, :4] = 0
    assert torch.equal(model(ids, padding=padding)[0], model(other, padding=padding)[0])
    assert not torch.equal(model(ids)[0], model(other)[0])


def test_the_fused_form_has_no_steps_to_record_and_can_be_made_explicit():
    model = models(replace(CONFIG, dropout=0.5))[1]
    calls = []
    for name, module in model.named_modules():
        module.register_forward_hook(lambda *_, name=name: calls.append(name))
    ids = random_ids(CONFIG)
    model(ids, ids)
    assert "blocks.0.attention.softmax" not in calls
    assert "blocks.0" in calls and "blocks.0.attention.qkv" not in calls
    model.explicit = True
    model(ids, ids)
    assert "blocks.0.attention.softmax" in calls
    assert model.blocks[0].attention.weights_dropout.details["mask"].mean().item() == pytest.approx(0.5, abs=0.15)


def test_dropout_of_the_fused_form_drops_in_training_alone():
    model = models(replace(CONFIG, dropout=0.2))[1]
    ids = random_ids(CONFIG)
    torch.manual_seed(0)
    losses = torch.stack([model(ids, ids)[1] for _ in range(3)])
    assert losses.std() > 1e-4
    torch.manual_seed(0)
    assert torch.equal(model(ids, ids)[1], losses[0])
    model.eval()
    assert torch.equal(model(ids, ids)[1], model(ids, ids)[1])


def test_the_size_of_a_cache():
    config = Config(vocabulary=65, context=512, width=128, heads=4, blocks=4)
    cache = KVCache(config, batch=3, capacity=500)
    assert cache.bytes == 3 * 500 * (2 * 4 * 4 * 32 * 4)
    assert KVCache(config, 1, 512, dtype=torch.bfloat16).bytes == 512 * 2 * 4 * 4 * 32 * 2


def test_a_cache_that_is_too_small_is_refused():
    model = models(CONFIG)[1]
    with pytest.raises(UserError, match="from 1 to the context's 12 tokens, not 13"):
        KVCache(CONFIG, 1, 13)
    with pytest.raises(UserError, match="12 tokens do not fit a cache of 11"):
        model(random_ids(CONFIG), cache=KVCache(CONFIG, 3, 11))
    with pytest.raises(UserError, match="14 tokens do not fit the context of 12"):
        cache = KVCache(CONFIG, 3, 12, torch.float64)
        model(random_ids(CONFIG), cache=cache)
        model(random_ids(CONFIG)[:, :2], cache=cache)


def test_a_cropped_context():
    model = models(CONFIG)[1].eval()
    ids = random_ids(CONFIG, length=5)
    before, count = model(ids)[0], model.parameter_count()
    model.crop_context(5)
    assert torch.equal(model(ids)[0], before)
    assert model.config.context == 5
    assert count - model.parameter_count() == 7 * 24
    with pytest.raises(UserError, match="6 tokens do not fit the context of 5"):
        model(random_ids(CONFIG, length=6))
    with pytest.raises(UserError, match="cropped to 1 … 5"):
        model.crop_context(6)
    model(ids, ids)[1].backward()
    assert model.position_embedding.weight.grad.shape == (5, 24)


def test_an_untied_head_is_a_table_of_its_own():
    model = models(replace(CONFIG, tied=False))[1]
    names = dict(model.named_parameters())
    assert names["head_table"].shape == (31, 24)
    ids = random_ids(CONFIG)
    model(ids, ids)[1].backward()
    unused = [i for i in range(31) if i not in ids]
    assert unused
    assert not names["token_embedding.weight"].grad[unused].any()
    assert names["head_table"].grad[unused].all()


def test_the_config_says_only_what_is_not_common():
    sizes = {"vocabulary": 31, "context": 12, "width": 24, "heads": 3, "blocks": 2, "dropout": 0.0}
    assert CONFIG.to_json() == sizes
    other = replace(CONFIG, activation="gelu_tanh", tied=False)
    assert other.to_json() == {**sizes, "activation": "gelu_tanh", "tied": False}
    assert Config(**other.to_json()) == other


@pytest.mark.parametrize("wrong", [{"activation": "relu"}, {"norm_eps": 0.0}])
def test_a_wrong_config_is_refused(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        replace(CONFIG, **wrong)
