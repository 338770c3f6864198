"""Llama checkpoints that transformers wrote, read by us; ours, read by transformers; what is wrong is named.

Weights are four times as large as at the start, so that a wrong turn or gate shows.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tracer.errors import UserError
from tracer.format.shapes import SHAPES
from tracer.library.generate import generate
from tracer.model import pretrained
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.pretrained import from_pretrained, save_pretrained
from tracer.model.sampling import Sampling

IDS = torch.randint(31, (2, 8), generator=torch.Generator().manual_seed(0))
SHAPE = {"vocab_size": 31, "max_position_embeddings": 8, "hidden_size": 24, "num_attention_heads": 6,
         "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 40, "bos_token_id": None,
         "eos_token_id": None, "pad_token_id": None}
KINDS = {"grouped": {}, "one group": {"num_key_value_heads": 1}, "as many": {"num_key_value_heads": 6},
         "tied": {"tie_word_embeddings": True}, "biases": {"attention_bias": True, "mlp_bias": True},
         "base": {"rope_parameters": {"rope_type": "default", "rope_theta": 300.0}}, "eps": {"rms_norm_eps": 1e-2},
         "deeper": {"num_hidden_layers": 3, "intermediate_size": 96}}


def theirs(**options) -> "transformers.LlamaForCausalLM":
    torch.manual_seed(2)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**SHAPE, **options})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4).add_(0.1 * torch.randn_like(parameter))
    return model


@torch.no_grad()
def difference(ours: GPT, reference: "transformers.LlamaForCausalLM") -> float:
    """Largest difference of the logits of all positions, relative to the largest logit."""
    expected = reference(IDS).logits
    return ((ours(IDS, IDS)[0] - expected).abs().max() / expected.abs().max()).item()


@pytest.fixture
def folder(tmp_path) -> Path:
    theirs().save_pretrained(tmp_path)
    return tmp_path


def say(folder: Path, drop: tuple[str, ...] = (), **said: object) -> None:
    path = folder / "config.json"
    config = {name: value for name, value in json.loads(path.read_text()).items() if name not in drop}
    path.write_text(json.dumps(config | said))


def refused(folder: Path, told: str) -> None:
    with pytest.raises(UserError) as error:
        from_pretrained(folder)
    assert told in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_and_gradients_are_those_of_transformers(tmp_path, kind):
    reference = theirs(**KINDS[kind])
    reference.save_pretrained(tmp_path)
    model = from_pretrained(tmp_path)
    assert difference(model, reference) < 1e-5
    assert sum(p.numel() for p in reference.parameters()) == model.parameter_count()
    explicit = GPT(model.config).eval()
    explicit.load_state_dict(model.state_dict())
    assert difference(explicit, reference) < 1e-5
    reference.double()
    expected = torch.nn.functional.cross_entropy(reference(IDS).logits.flatten(0, 1), IDS.roll(-1, 1).flatten())
    expected.backward()
    wanted = {name.removeprefix("model."): p.grad for name, p in reference.named_parameters()}
    for one in (model.double(), explicit.double()):
        one(IDS, IDS.roll(-1, 1))[1].backward()
        for ours, names, _ in pretrained.names(one):
            grad = torch.cat([wanted[name] for name in names])
            assert (one.get_parameter(ours).grad - grad).abs().max() <= 1e-5 * grad.abs().max(), ours


def test_it_continues_as_transformers_does(folder):
    model, reference = from_pretrained(folder), transformers.LlamaForCausalLM.from_pretrained(folder).eval()
    continued = reference.generate(IDS[:1, :3], max_new_tokens=5, do_sample=False, attention_mask=torch.ones(1, 3))
    assert generate(model, [IDS[0, :3].tolist()], Sampling(0.0), 5) == [continued[0, 3:].tolist()]


@pytest.mark.parametrize("kind", KINDS)
def test_what_we_write_transformers_reads(tmp_path, kind):
    theirs(**KINDS[kind]).save_pretrained(tmp_path / "theirs")
    model = from_pretrained(tmp_path / "theirs")
    save_pretrained(model, tmp_path / "ours")
    reference, loading = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(loading[what] for what in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert difference(model, reference.eval()) < 1e-5
    again = from_pretrained(tmp_path / "ours")
    assert again.config == model.config
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True))


def test_the_shapes_of_llama_3_8b():
    """Every parameter's name and shape against transformers' own, without memory for their values."""
    shape = SHAPES["llama-3-8b"]
    with torch.device("meta"):
        reference = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=shape["vocabulary"], hidden_size=shape["width"], intermediate_size=shape["hidden"],
            num_hidden_layers=shape["blocks"], num_attention_heads=shape["heads"],
            num_key_value_heads=shape["kv_heads"], max_position_embeddings=shape["context"]))
        model = GPT(Config(**shape), explicit=False)
    rows = {name: count for ours, names, _ in pretrained.names(model)
            for name, count in pretrained.pieces(model, ours, names).items()}
    assert rows == {name.removeprefix("model."): p.size(0) for name, p in reference.named_parameters()}


def test_an_older_config_says_the_base_by_itself(folder):
    before = from_pretrained(folder).config
    say(folder, drop=("rope_parameters",), rope_theta=300.0, rope_scaling=None)
    assert from_pretrained(folder).config == replace(before, rope_base=300.0)


@pytest.mark.parametrize(("said", "told"), [
    ({"hidden_act": "gelu"}, "hidden_act is 'gelu', this model computes only 'silu'"),
    ({"head_dim": 8}, "head_dim is 8, this model computes only hidden_size divided by num_attention_heads"),
    ({"attention_bias": True}, "attention_bias is True, mlp_bias False: this model has both or neither"),
    ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5}}, "rope_type is 'llama3', this model"),
    ({"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2}}, "rope_type is 'linear'"),
    ({"rope_parameters": "none"}, "rope_parameters must be an object"),
    ({"rope_parameters": {"rope_theta": "far"}}, "rope_theta must be a number, not 'far'"),
    ({"num_key_value_heads": 4}, "6 heads cannot share 4 heads of keys and values"),
    ({"num_key_value_heads": "few"}, "num_key_value_heads must be a whole number"),
    ({"num_attention_heads": 0}, "heads must be at least 1"), ({"num_attention_heads": 8}, "an even part"),
    ({"attention_dropout": 0.1}, "attention_dropout is 0.1, this model has one dropout for all"),
    ({"num_hidden_layers": 3}, "parameter layers.2.input_layernorm.weight is missing"),
    ({"intermediate_size": 44}, "parameter layers.0.mlp.gate_proj.weight has shape (40, 24), by config.json it must"),
    ({"num_key_value_heads": 3}, "parameter layers.0.self_attn.k_proj.weight has shape (8, 24), by config.json it"),
    ({"tie_word_embeddings": True}, "parameter lm_head.weight differs from embed_tokens.weight, though"),
])
def test_what_this_model_does_not_compute_is_refused(folder, said, told):
    say(folder, **said, **({"head_dim": None} if "head_dim" not in said else {}))
    refused(folder, told)


def test_a_parameter_of_another_model_is_refused(folder):
    path = folder / "model.safetensors"
    state = load_file(path)
    save_file(state | {"model.layers.0.self_attn.q_norm.weight": torch.ones(4)}, path, metadata={"format": "pt"})
    refused(folder, "parameter layers.0.self_attn.q_norm.weight is none of Llama's by config.json")


@pytest.mark.parametrize(("choice", "told"), [
    ({"norm": "layer_norm"}, "norm layer_norm cannot be said in the format of Llama, which has rms_norm"),
    ({"position": "learned"}, "activation swiglu cannot be said in the format of GPT-2, which has gelu, gelu_tanh"),
])
def test_what_lies_between_is_not_exported(tmp_path, choice, told):
    config = Config(31, 8, 24, 6, 1, 0.0, activation="swiglu", norm="rms_norm", position="rotary")
    with pytest.raises(UserError, match=told):
        save_pretrained(GPT(replace(config, **choice), explicit=False), tmp_path / "out")
    assert not (tmp_path / "out").exists()
