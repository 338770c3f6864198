"""Checkpoints that transformers wrote, read by us; ours, read by transformers; what is wrong is named.

Weights are ten times as large as at the start: with small ones a wrong GELU stays below 1e-5, and the
attention output matrix is square, so that a forgotten transpose has the right shape.
"""

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tracer.errors import UserError
from tracer.format.shapes import GPT2_SHAPES
from tracer.model import pretrained, pretrained_config
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.pretrained import from_pretrained, save_pretrained

IDS = torch.randint(31, (2, 8), generator=torch.Generator().manual_seed(0))
SHAPE = {"vocab_size": 31, "n_positions": 8, "n_embd": 24, "n_head": 3, "n_layer": 2,
         "bos_token_id": None, "eos_token_id": None}


def theirs(**options) -> "transformers.GPT2LMHeadModel":
    torch.manual_seed(2)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**SHAPE, **options})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10).add_(0.1 * torch.randn_like(parameter))
    return model


@torch.no_grad()
def difference(ours: GPT, reference: "transformers.GPT2LMHeadModel") -> float:
    """Largest difference of the logits of all positions, relative to the largest logit."""
    expected = reference(IDS).logits
    return ((ours(IDS, IDS)[0] - expected).abs().max() / expected.abs().max()).item()


@pytest.fixture
def folder(tmp_path) -> Path:
    theirs().save_pretrained(tmp_path)
    return tmp_path


KINDS = {"tied": {}, "untied": {"tie_word_embeddings": False}, "erf": {"activation_function": "gelu"},
         "eps": {"layer_norm_epsilon": 1e-3}, "one head": {"n_head": 1}, "deeper": {"n_layer": 5},
         "narrow": {"n_inner": 40}}


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_transformers(tmp_path, kind):
    reference = theirs(**KINDS[kind])
    reference.save_pretrained(tmp_path)
    model = from_pretrained(tmp_path)
    assert difference(model, reference) < 1e-5
    assert (model.head_table is None) == (kind != "untied")
    assert sum(p.numel() for p in reference.parameters()) == model.parameter_count()
    assert not model.training and not model.explicit


def test_the_comparison_sees_a_wrong_gelu_and_a_forgotten_transpose(folder, monkeypatch):
    reference = theirs()
    monkeypatch.setitem(pretrained_config.GELU_NAMES, "gelu_new", "gelu")
    assert difference(from_pretrained(folder), reference) > 2e-5
    monkeypatch.undo()
    model = from_pretrained(folder)
    with torch.no_grad():
        square = model.blocks[0].attention.projection.weight
        square.copy_(square.T.clone())
    assert difference(model, reference) > 1e-2


@pytest.mark.parametrize("kind", ["tied", "untied"])
def test_older_files_with_masks_and_without_the_prefix(tmp_path, kind):
    reference = theirs(**KINDS[kind])
    reference.config.save_pretrained(tmp_path)
    state = {name.removeprefix("transformer."): tensor for name, tensor in reference.state_dict().items()}
    for block in range(2):
        state[f"h.{block}.attn.bias"] = torch.ones(1, 1, 8, 8).tril()
        state[f"h.{block}.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(state, tmp_path / "pytorch_model.bin")
    assert difference(from_pretrained(tmp_path), reference) < 1e-5


@pytest.mark.parametrize("format", ["safetensors", "bin"])
def test_a_checkpoint_in_parts(tmp_path, format):
    reference = theirs()
    if format == "safetensors":
        reference.save_pretrained(tmp_path, max_shard_size="20KB")
        assert len(list(tmp_path.glob("*.safetensors"))) > 2
    else:
        reference.config.save_pretrained(tmp_path)
        parts: dict[str, dict] = {"a.bin": {}, "b.bin": {}}
        for number, (name, tensor) in enumerate(reference.state_dict().items()):
            parts["ab"[number % 2] + ".bin"][name] = tensor
        for part, state in parts.items():
            torch.save(state, tmp_path / part)
        index = {"weight_map": {name: part for part, state in parts.items() for name in state}}
        (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert difference(from_pretrained(tmp_path), reference) < 1e-5
    next(iter(tmp_path.glob("*-of-*" if format == "safetensors" else "a.bin"))).unlink()
    refused(tmp_path, "is missing: download the checkpoint again")


def test_half_precision_becomes_float32(tmp_path):
    reference = theirs().to(torch.bfloat16)
    reference.save_pretrained(tmp_path)
    model = from_pretrained(tmp_path)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert difference(model, reference.float()) < 1e-5


@pytest.mark.parametrize("kind", ["tied", "untied", "erf", "eps"])
def test_what_we_save_transformers_loads(tmp_path, kind):
    theirs(**KINDS[kind]).save_pretrained(tmp_path / "theirs")
    model = from_pretrained(tmp_path / "theirs")
    save_pretrained(model, str(tmp_path / "ours"))
    reference, loading = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(loading[what] for what in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert difference(model, reference.eval()) < 1e-5
    again = from_pretrained(tmp_path / "ours")
    assert again.config == model.config
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True))
    assert {path.name for path in (tmp_path / "ours").iterdir()} == {"config.json", "model.safetensors"}


@pytest.mark.parametrize("name", GPT2_SHAPES)
def test_the_shapes_of_all_four_sizes(name):
    """Every parameter's name and shape against transformers' own, without memory for their values."""
    shape = GPT2_SHAPES[name]
    with torch.device("meta"):
        reference = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_embd=shape["width"], n_head=shape["heads"], n_layer=shape["blocks"]))
        model = GPT(Config(**shape))
    expected = {name.removeprefix("transformer."): p.shape for name, p in reference.named_parameters()}
    parameters = dict(model.named_parameters())
    assert {their: pretrained.turn(parameters[our], turned).shape
            for our, (their,), turned in pretrained.names(model)} == expected


def test_it_can_be_trained_further(folder):
    model = from_pretrained(folder, dropout=0.0).train()
    assert model.config.dropout == 0
    model(IDS, IDS)[1].backward()
    assert all(p.grad is not None for p in model.parameters())


# What is wrong ---------------------------------------------------------------------------------------

def refused(name, message: str) -> None:
    with pytest.raises(UserError) as error:
        from_pretrained(name)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def rewrite(folder: Path, change) -> None:
    state = load_file(folder / "model.safetensors")
    change(state)
    save_file(state, folder / "model.safetensors")


def test_a_missing_parameter_is_named(folder):
    rewrite(folder, lambda state: state.pop("transformer.h.1.mlp.c_fc.bias"))
    refused(folder, "parameter h.1.mlp.c_fc.bias is missing")


def test_an_unknown_parameter_is_named(folder):
    rewrite(folder, lambda state: state.update({"transformer.h.2.ln_1.weight": torch.zeros(24)}))
    refused(folder, "parameter h.2.ln_1.weight is none of GPT-2's")


def test_a_wrong_shape_is_named(folder):
    name = "transformer.h.0.attn.c_attn.weight"
    rewrite(folder, lambda state: state.update({name: state[name].T.contiguous()}))
    refused(folder, "parameter h.0.attn.c_attn.weight has shape (72, 24), by config.json it must be (24, 72)")


def test_a_head_of_its_own_in_a_tied_checkpoint_is_refused(folder):
    rewrite(folder, lambda state: state.update({"lm_head.weight": torch.zeros(31, 24)}))
    refused(folder, "parameter lm_head.weight differs from wte.weight")


def test_an_untied_checkpoint_without_a_head_is_refused(tmp_path):
    theirs(tie_word_embeddings=False).save_pretrained(tmp_path)
    rewrite(tmp_path, lambda state: state.pop("lm_head.weight"))
    refused(tmp_path, "parameter lm_head.weight is missing")


@pytest.mark.parametrize(("change", "message"), [
    ({"model_type": "mamba"}, "model_type is 'mamba'"), ({"activation_function": "relu"}, "is 'relu'"),
    ({"n_inner": "wide"}, "n_inner must be a whole number"),
    ({"scale_attn_weights": False}, "scale_attn_weights is False"),
    ({"n_embd": "wide"}, "n_embd must be a whole number"), ({"n_head": 5}, "width 24 cannot be cut into 5 heads"),
    ({"layer_norm_epsilon": None}, "layer_norm_epsilon must be a number, not None"),
    ({"layer_norm_epsilon": "x"}, "layer_norm_epsilon must be a number, not 'x'"),
    ({"layer_norm_epsilon": 10**400}, "layer_norm_epsilon must be a number"),
    ({"resid_pdrop": None}, "resid_pdrop must be a number, not None"),
    (dict.fromkeys(("embd_pdrop", "attn_pdrop", "resid_pdrop"), "x"), "embd_pdrop must be a number, not 'x'"),
    ({"attn_pdrop": []}, "attn_pdrop must be a number, not []"),
    ({"activation_function": []}, "activation_function is []"),
    ({"vocab_size": 10**30}, "vocabulary must be at most 2,147,483,647"),
    ({"vocab_size": 2**31 - 1, "n_embd": 3 * 2**29}, "no computer holds a model of the sizes"),
    ({"n_layer": 2**31 - 1}, "parameter h.2147483646.ln_1.weight is missing"),
    ({"tie_word_embeddings": "false"}, "tie_word_embeddings must be true or false, not 'false'")])
def test_a_config_that_this_model_does_not_compute_is_refused(folder, change, message):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    refused(folder, message)


def test_a_config_that_is_nested_too_deep_is_refused(folder):
    (folder / "config.json").write_text("[" * 100_000)
    refused(folder, "is no JSON object")


@pytest.mark.parametrize("state", [
    [torch.ones(2)], torch.ones(2), {"wte.weight": 5}, {5: torch.ones(2)},
    {"wte.weight": torch.ones(31, 24).to_sparse()}], ids=["list", "tensor", "number", "key", "sparse"])
def test_a_file_of_something_else_than_named_tensors_is_refused(folder, state):
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    refused(folder, "pytorch_model.bin holds something else than tensors by name")


@pytest.mark.parametrize("dtype", [torch.int8, torch.complex64])
def test_parameters_that_are_no_floating_point_numbers_are_refused(folder, dtype):
    name = "transformer.h.0.ln_1.weight"
    rewrite(folder, lambda state: state.update({name: state[name].to(dtype)}))
    refused(folder, f"parameter h.0.ln_1.weight holds {str(dtype).removeprefix('torch.')}, a parameter must be of")


def test_a_parameter_with_the_prefix_and_without_is_refused(folder):
    rewrite(folder, lambda state: state.update({"wte.weight": torch.zeros(31, 24)}))
    refused(folder, "parameter wte.weight is there twice")


@pytest.mark.parametrize("said", [{"weight_map": {"a": 5}}, {"weight_map": []}, {}])
def test_an_index_that_names_no_files_is_refused(folder, said):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(said))
    refused(folder, "weight_map must name a file for each parameter")


def test_a_folder_without_a_checkpoint_and_damaged_files(folder):
    refused(folder.parent, "config.json is missing")
    (folder / "model.safetensors").write_bytes(b"no tensors")
    refused(folder, "model.safetensors is damaged")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(folder, "pytorch_model.bin is damaged")
    (folder / "pytorch_model.bin").unlink()
    refused(folder, "holds neither model.safetensors nor pytorch_model.bin")
    (folder / "config.json").write_text("[]")
    refused(folder, "is no JSON object")


def test_a_name_is_looked_up_in_the_local_cache(tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    refused("gpt2", "gpt2 is neither a folder nor in the local Hugging Face cache: download it with "
                    "`hf download openai-community/gpt2`")
    refused("no/such", "`hf download no/such`")
    refused("no/such/name", "there is no file or folder no/such/name: name a checkpoint, or the folder of one")
    repository = tmp_path / "models--openai-community--gpt2"
    reference = theirs()
    reference.save_pretrained(repository / "snapshots" / "0123abc")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abc")
    assert difference(from_pretrained("gpt2"), reference) < 1e-5
