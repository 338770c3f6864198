"""The encoder and the encoder–decoder: against torch.nn's layers with the same weights, and finite differences."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tracer.model.config import Config
from tracer.model.families import Encoder, EncoderDecoder, draw_weights

CONFIG = Config(vocabulary=11, context=6, width=8, heads=2, blocks=1, dropout=0.0)
SOURCE, IDS = torch.tensor([[5, 3, 9, 2, 0, 0], [4, 4, 7, 8, 6, 2]]), torch.tensor([[1, 9, 3, 5], [1, 6, 8, 7]])


def drawn(model: nn.Module) -> nn.Module:
    torch.manual_seed(3)
    draw_weights(model, 0.4)
    for parameter in model.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=0.5, std=0.5)
    return model.eval()


@pytest.fixture
def model() -> EncoderDecoder:
    return drawn(EncoderDecoder(CONFIG, fill=0))


def copied(to, **modules) -> None:
    for name, module in modules.items():
        getattr(to, name).load_state_dict(module.state_dict())


def attention_of(to: nn.MultiheadAttention, weights: list, biases: list, projection) -> None:
    with torch.no_grad():
        to.in_proj_weight.copy_(torch.cat(weights))
        to.in_proj_bias.copy_(torch.cat(biases))
    to.out_proj.load_state_dict(projection.state_dict())


def torch_encoder(encoder: Encoder, source: torch.Tensor, **masks) -> torch.Tensor:
    block = encoder.blocks[0]
    layer = nn.TransformerEncoderLayer(8, 2, 32, 0.0, F.gelu, batch_first=True, norm_first=True).train()
    attention_of(layer.self_attn, [block.attention.qkv.weight], [block.attention.qkv.bias], block.attention.projection)
    copied(layer, norm1=block.norm_1, norm2=block.norm_2, linear1=block.mlp.up, linear2=block.mlp.down)
    x = F.embedding(source, encoder.token_embedding.weight) + encoder.position_embedding.weight
    norm = encoder.final_norm
    return F.layer_norm(layer(x, **masks), (8,), norm.weight, norm.bias)


@torch.no_grad()
def test_logits_are_those_of_torch_s_encoder_and_decoder_layers(model):
    filled = SOURCE == 0
    memory = torch_encoder(model.encoder, SOURCE, src_key_padding_mask=filled)
    block, cross = model.blocks[0], model.blocks[0].cross_attention
    layer = nn.TransformerDecoderLayer(8, 2, 32, 0.0, F.gelu, batch_first=True, norm_first=True)
    attention_of(layer.self_attn, [block.attention.qkv.weight], [block.attention.qkv.bias], block.attention.projection)
    attention_of(layer.multihead_attn, [cross.query.weight, cross.key_value.weight],
                 [cross.query.bias, cross.key_value.bias], cross.projection)
    copied(layer, norm1=block.norm_1, norm2=block.norm_cross, norm3=block.norm_2, linear1=block.mlp.up,
           linear2=block.mlp.down)
    table = model.encoder.token_embedding.weight
    x = layer(table[IDS] + model.position_embedding.weight[:4], memory, memory_key_padding_mask=filled,
              tgt_mask=nn.Transformer.generate_square_subsequent_mask(4))
    wanted = F.layer_norm(x, (8,), model.final_norm.weight, model.final_norm.bias) @ table.T
    assert (model(SOURCE, IDS) - wanted).abs().max() < 1e-5
    assert wanted.abs().max() > 1


@torch.no_grad()
def test_cross_attention_is_torch_s(model):
    cross, random = model.blocks[0].cross_attention, torch.Generator().manual_seed(1)
    x, memory = torch.randn(2, 4, 8, generator=random), torch.randn(2, 6, 8, generator=random)
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    attention_of(theirs, [cross.query.weight, cross.key_value.weight], [cross.query.bias, cross.key_value.bias],
                 cross.projection)
    kept = []
    cross.softmax.register_forward_hook(lambda _module, _given, weights: kept.append(weights))
    out, weights = theirs(x, memory, memory, key_padding_mask=SOURCE == 0, average_attn_weights=False)
    assert (cross(x, memory, (SOURCE != 0)[:, None, None]) - out).abs().max() < 1e-5
    assert (kept[0] - weights).abs().max() < 1e-6 and not kept[0][0, :, :, 4:].any()


@torch.no_grad()
@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("left", [False, True])
def test_an_encoder_is_torch_s_whichever_sides_it_sees(left, explicit):
    model = drawn(Encoder(CONFIG))
    model.blocks[0].explicit = explicit
    allowed = torch.ones(6, 6, dtype=torch.bool)
    allowed = allowed.tril() if left else allowed
    wanted = torch_encoder(model, SOURCE, src_mask=~allowed) @ model.token_embedding.weight.T
    assert (model(SOURCE, allowed) - wanted).abs().max() < 1e-5
    changed = SOURCE.clone()
    changed[:, -1] = 10  # the last word reaches the first position unless it may look to the left alone
    assert torch.equal(model(changed, allowed)[:, 0], model(SOURCE, allowed)[:, 0]) is left


def test_gradients_are_finite_differences(model):
    model.double()

    def loss() -> torch.Tensor:
        return F.cross_entropy(model(SOURCE, IDS).flatten(0, 1), torch.tensor([9, 3, 5, 2, 6, 8, 7, 2]))

    loss().backward()
    parameters, step = dict(model.named_parameters()), 1e-6
    for name in ("blocks.0.cross_attention.query.weight", "blocks.0.cross_attention.key_value.weight",
                 "blocks.0.cross_attention.projection.bias", "blocks.0.norm_cross.weight",
                 "encoder.blocks.0.attention.qkv.weight", "encoder.token_embedding.weight",
                 "position_embedding.weight"):
        values, gradient = parameters[name].data.view(-1), parameters[name].grad.view(-1)
        place = int(gradient.abs().argmax())
        before, losses = float(values[place]), []
        for moved in (before + step, before - step):
            values[place] = moved
            losses.append(float(loss().detach()))
        values[place] = before
        assert float(gradient[place]) == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-5), name
        assert abs(float(gradient[place])) > 1e-3
