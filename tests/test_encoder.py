"""A model without a causal mask, an encoder: against `torch.nn`, by differences, and recorded."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from passes import model, recorded_pass
from torch import nn

from tracer.errors import UserError
from tracer.format.verify import verify
from tracer.library.generate import generate
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.kv_cache import KVCache
from tracer.model.pretrained import save_pretrained
from tracer.model.sampling import Sampling

CONFIG = Config(vocabulary=7, context=5, width=12, heads=3, blocks=2, dropout=0.0, causal=False)
IDS = torch.tensor([[1, 2, 3, 4], [6, 0, 2, 2]])


def drawn(explicit: bool = True) -> GPT:
    torch.manual_seed(4)
    made = GPT(CONFIG, explicit).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(5).add_(0.1 * torch.randn_like(parameter))
    return made


def theirs(ours: GPT) -> nn.TransformerEncoder:
    """`torch.nn.TransformerEncoder` with the same weights."""
    config = ours.config
    layer = nn.TransformerEncoderLayer(config.width, config.heads, 4 * config.width, 0.0, "gelu", batch_first=True,
                                       norm_first=True)
    encoder = nn.TransformerEncoder(layer, config.blocks, nn.LayerNorm(config.width), enable_nested_tensor=False)
    names = {"attention.qkv.weight": "self_attn.in_proj_weight", "attention.qkv.bias": "self_attn.in_proj_bias",
             "attention.projection": "self_attn.out_proj", "mlp.up": "linear1", "mlp.down": "linear2",
             "norm_1": "norm1", "norm_2": "norm2", "blocks": "layers", "final_norm": "norm"}
    state = {}
    for name, parameter in ours.named_parameters():
        for own, other in names.items():
            name = name.replace(own, other)
        if "embedding" not in name:
            state[name] = parameter.detach()
    encoder.load_state_dict(state)
    return encoder.eval()


@pytest.mark.parametrize("explicit", [True, False], ids=["explicit", "fused"])
@torch.no_grad()
def test_logits_are_those_of_torch(explicit):
    ours = drawn(explicit)
    x = ours.token_embedding.weight[IDS] + ours.position_embedding.weight[:4]
    wanted = theirs(ours)(x) @ ours.token_embedding.weight.T
    torch.testing.assert_close(ours(IDS, IDS)[0], wanted, atol=1e-5, rtol=1e-5)


def test_gradients_are_slopes():
    ours = drawn().double()
    ours(IDS, IDS)[1].backward()
    draw, step = np.random.default_rng(5), 1e-6
    for name, parameter in ours.named_parameters():
        place, values = int(draw.integers(parameter.numel())), parameter.data.view(-1)
        losses = []
        for by in (step, -2 * step):
            values[place] += by
            losses.append(ours(IDS, IDS)[1].item())
        values[place] += step
        slope = (losses[0] - losses[1]) / (2 * step)
        assert parameter.grad.view(-1)[place].item() == pytest.approx(slope, rel=1e-5, abs=1e-7), name


def test_a_later_word_changes_what_an_earlier_position_says():
    both = {causal: GPT(replace(CONFIG, causal=causal)).eval() for causal in (True, False)}
    for causal, ours in both.items():
        other = IDS.clone()
        other[:, -1] = 5
        same = torch.equal(ours(IDS, IDS)[0][:, 0], ours(other, IDS)[0][:, 0])
        assert same is causal


def test_it_is_recorded_and_verified():
    made = model(causal=False)
    trace = recorded_pass(made)
    assert [check for check in verify(trace) if check.problem and check.name != "outline"] == []
    weights = trace.values("blocks.0.attention.softmax")
    assert (weights > 0).all()  # each looks at all
    trace.make["config"].pop("causal")
    assert "a causal mask, which is not so" in "".join(check.problem for check in verify(trace))


def test_it_has_no_cache_no_padding_and_is_no_gpt2(tmp_path):
    with pytest.raises(UserError, match="it has no cache"):
        generate(drawn(explicit=False), [[1, 2]], Sampling(), 2)
    with pytest.raises(UserError, match="it has no cache"):
        drawn()(IDS, cache=KVCache(CONFIG, 2, 5))
    with pytest.raises(UserError, match="has no padding"):
        drawn()(IDS, padding=torch.tensor([0, 1]))
    with pytest.raises(UserError, match="causal False cannot be said in the format of GPT-2"):
        save_pretrained(drawn(), tmp_path / "theirs")
