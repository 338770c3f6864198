"""GPT-2 folders as they are found, damaged ones too: each gives the logits of transformers or is refused in a line."""

import json
import math
import random
import re
import resource
import shutil
import time
from copy import deepcopy
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from test_pretrained import IDS, SHAPE, difference, refused, rewrite, theirs
from trials import TRIALS

from tracer.cli.open_model import load_model, tokenizer_of
from tracer.errors import UserError
from tracer.library.generate import generate
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.pretrained import drop_padding, from_pretrained, save_pretrained
from tracer.model.pretrained_config import DROPOUTS, GELU_NAMES, read_config
from tracer.model.sampling import Sampling
from tracer.trainer import corpus as data
from tracer.trainer.fit import Fit
from tracer.trainer.processes import Processes
from tracer.trainer.settings import FitSettings


def configure(folder: Path, drop: tuple = (), **change) -> None:
    path = folder / "config.json"
    said = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps({key: value for key, value in said.items() if key not in drop}))


@pytest.fixture
def folder(tmp_path) -> Path:
    theirs().save_pretrained(tmp_path)
    return tmp_path


def as_transformers_loads(folder: Path) -> GPT:
    """Our model of the folder, after its logits were compared with those of transformers' own loading."""
    model = from_pretrained(folder)
    assert difference(model, transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()) < 1e-5
    return model


# Files -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("before", ["", "transformer.", "_orig_mod.transformer.", "module.transformer.", "module.",
                                    "module._orig_mod.transformer.", "_orig_mod.module.transformer."])
@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_names_with_what_stands_before_them(folder, before, kind):
    reference, head = theirs(), before.removesuffix("transformer.") + "lm_head.weight"
    state = {before + name.removeprefix("transformer."): tensor.contiguous()
             for name, tensor in load_file(folder / "model.safetensors").items()}
    (folder / "model.safetensors").unlink()
    for more in ({}, {head: state[before + "wte.weight"].clone()}):  # a tied head may be there too
        if kind == "bin":
            torch.save(state | more, folder / "pytorch_model.bin")
        else:
            save_file(state | more, folder / "model.safetensors")
        assert difference(from_pretrained(folder), reference) < 1e-5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("legacy", [False, True])
def test_weights_of_every_type_in_every_format_of_torch(folder, dtype, legacy):
    """With the masks of old files, and the tied head in the memory of the table, as torch saves it."""
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).to(dtype)
    state = {**model.state_dict(), "transformer.h.0.attn.bias": torch.ones(1, 1, 8, 8).tril().bool(),
             "transformer.h.1.attn.masked_bias": torch.tensor(-1e4)}
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=not legacy)
    assert difference(from_pretrained(folder), model.float()) < 1e-5


def test_two_parameters_that_are_one_tensor_of_the_file_are_two_here(folder):
    reference = theirs(tie_word_embeddings=False)
    reference.lm_head.weight = reference.transformer.wte.weight
    torch.save(reference.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    configure(folder, tie_word_embeddings=False)
    model = from_pretrained(folder)
    assert difference(model, reference) < 1e-5
    assert model.head_table.data_ptr() != model.token_embedding.weight.data_ptr()


@pytest.mark.parametrize("part", ["../model.safetensors", "/etc/passwd", "..", ".", "", "a/b.safetensors",
                                  "a\0b", "\ud800", "x" * 5000, "a\nb", "C:\\x", "..\\x"])
def test_an_index_may_name_files_of_its_folder_alone(folder, part):
    inside = folder / "inside"
    inside.mkdir()
    shutil.copy(folder / "config.json", inside)
    (inside / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"wte.weight": part}}))
    refused(inside, "which is no file of this folder")


def test_tensors_that_are_larger_than_their_file_are_refused(folder):
    """A tensor of which every row is the same memory: a small file, and as large as one likes when it is copied."""
    (folder / "model.safetensors").unlink()
    state = {f"h.{n}.ln_1.weight": torch.ones(24) for n in range(2)}
    torch.save({**state, "wte.weight": torch.ones(1).expand(2**30, 2**20)}, folder / "pytorch_model.bin")
    refused(folder, "its tensors are larger than its files")


def test_far_more_blocks_than_the_files_have_are_refused(folder):
    rewrite(folder, lambda state: state.update({"transformer.h.2147483646.ln_1.weight": torch.ones(24)}))
    configure(folder, n_layer=2**31 - 1)
    refused(folder, "too few for the 2147483647 blocks of config.json")


# Heads -----------------------------------------------------------------------------------------------

def test_the_language_model_of_one_with_two_heads_is_read(tmp_path):
    torch.manual_seed(5)
    both = transformers.GPT2DoubleHeadsModel(transformers.GPT2Config(**SHAPE, num_labels=1)).eval()
    both.save_pretrained(tmp_path)
    assert any("multiple_choice_head" in name for name in load_file(tmp_path / "model.safetensors"))
    with torch.no_grad():
        expected = both(IDS).logits
        assert (from_pretrained(tmp_path)(IDS, IDS)[0] - expected).abs().max() < 1e-5 * expected.abs().max()


@pytest.mark.parametrize(("kind", "name"), [("GPT2ForSequenceClassification", "score.weight"),
                                            ("GPT2ForTokenClassification", "classifier.bias"),
                                            ("GPT2ForQuestionAnswering", "qa_outputs.bias")])
def test_a_model_that_is_no_language_model_is_refused(tmp_path, kind, name):
    getattr(transformers, kind)(transformers.GPT2Config(**SHAPE)).save_pretrained(tmp_path)
    refused(tmp_path, "is none of GPT-2's by config.json")
    refused(tmp_path, "use the checkpoint of a language model alone")


# Config ----------------------------------------------------------------------------------------------

def test_what_is_not_said_is_as_gpt2_has_it(folder):
    configure(folder, drop=("activation_function", "layer_norm_epsilon", "tie_word_embeddings", "n_inner", *DROPOUTS))
    as_transformers_loads(folder)
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    ours, reference = read_config(folder), transformers.GPT2Config()
    assert (ours.vocabulary, ours.context, ours.width, ours.heads, ours.blocks, ours.norm_eps, ours.dropout) == (
        reference.vocab_size, reference.n_positions, reference.n_embd, reference.n_head, reference.n_layer,
        reference.layer_norm_epsilon, reference.resid_pdrop)


def test_sizes_under_other_names(folder):
    """Those that transformers takes for the same; `n_ctx` of old configs says nothing."""
    configure(folder, drop=("n_positions", "n_embd", "n_head", "n_layer"), max_position_embeddings=8, hidden_size=24,
              num_attention_heads=3, num_hidden_layers=2)
    as_transformers_loads(folder)
    for n_ctx in (8, 1024, None):
        configure(folder, n_ctx=n_ctx, n_inner=96)
        as_transformers_loads(folder)


def test_every_activation_is_transformers_own_or_refused(folder):
    read = []
    for name in transformers.activations.ACT2FN:
        configure(folder, activation_function=name)
        try:
            as_transformers_loads(folder)
        except UserError as error:
            assert f"activation_function is {name!r}, known are" in str(error)
        else:
            read.append(name)
    assert set(read) == set(GELU_NAMES)


def test_different_dropouts_are_no_matter_until_training(folder):
    """Then each of them is named, and what is advised works."""
    configure(folder, embd_pdrop=0.0, attn_pdrop=0.3, resid_pdrop=0.2)
    model = as_transformers_loads(folder)
    assert generate(model, [[1, 2]], Sampling(), 3) == generate(from_pretrained(folder, 0.2), [[1, 2]], Sampling(), 3)
    for one in (model, deepcopy(model)):
        with pytest.raises(UserError) as error:
            one.train()(IDS, IDS)
        assert str(error.value).endswith("embd_pdrop is 0.0, attn_pdrop is 0.3, resid_pdrop is 0.2, this model has one "
                                         "dropout: choose it with from_pretrained(…, dropout=…)")
    chosen = from_pretrained(folder, dropout=0.2).train()
    assert chosen.config.dropout == 0.2 and math.isfinite(chosen(IDS, IDS)[1].item())
    configure(folder, embd_pdrop=0.2, attn_pdrop=0.2)
    assert from_pretrained(folder).train().config.dropout == 0.2


# Padded vocabularies ---------------------------------------------------------------------------------

@pytest.fixture(scope="module", params=["tied", "untied"])
def padded(request, tmp_path_factory) -> Path:
    """nanoGPT's 50,304 rows.  The padding would be taken before every token."""
    folder = tmp_path_factory.mktemp("padded")
    torch.manual_seed(3)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=50_304, n_positions=32, n_embd=8, n_layer=1, n_head=2, attn_pdrop=0,
        tie_word_embeddings=request.param == "tied"))
    with torch.no_grad():
        model.lm_head.weight *= 20
        model.lm_head.weight[50_257:] = 20 * model.lm_head.weight[40]
        model.transformer.ln_f.bias.copy_(model.lm_head.weight[40])
    model.save_pretrained(folder)
    return folder


def test_the_logits_of_a_padded_vocabulary_are_those_of_its_tokens(padded):
    reference = transformers.GPT2LMHeadModel.from_pretrained(padded).eval()
    expected = reference(IDS).logits.detach()
    whole = from_pretrained(padded)
    assert (whole(IDS, IDS)[0] - expected).abs().max() < 1e-5 * expected.abs().max()
    assert any(id >= 50_257 for id in generate(whole, [[1]], Sampling(), 20)[0])
    model = load_model(str(padded))
    assert model.config.vocabulary == model.output_table.size(0) == 50_257
    assert (model(IDS, IDS)[0] - expected[..., :50_257]).abs().max() < 1e-5 * expected.abs().max()
    tokenizer = tokenizer_of(str(padded), model)
    for how in (Sampling(), Sampling(temperature=0), Sampling(3.0, top_k=50_304), Sampling(top_p=0.9)):
        tokenizer.decode(generate(model, [[1], [2, 3]], how, 20)[0])


def test_a_padded_vocabulary_is_trained_further_and_saved(padded, tmp_path):
    data.prepare(data.DEFAULT_TEXT, tmp_path / "bpe", "gpt2")
    run = Fit(FitSettings(data=str(tmp_path / "bpe"), output=str(tmp_path / "run"), pretrained=str(padded), context=16,
                          batch=1, updates=1), Processes(0, 1, torch.device("cpu")))
    assert run.model.config.vocabulary == 50_257
    assert math.isfinite(run.update(1).loss)
    save_pretrained(run.model.eval(), tmp_path / "saved")
    assert difference(run.model, transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "saved").eval()) < 1e-5


@pytest.mark.parametrize(("vocabulary", "kept"), [(50_257, 50_257), (50_258, 50_257), (51_200, 50_257),
                                                  (51_201, 51_201), (31, 31), (50_256, 50_256)])
def test_which_vocabularies_are_taken_for_gpt2s(vocabulary, kept):
    with torch.device("meta"):
        model = drop_padding(GPT(Config(vocabulary=vocabulary), explicit=False))
    table = model.token_embedding
    assert model.config.vocabulary == table.weight.size(0) == table.num_embeddings == kept
    assert all(parameter.requires_grad for parameter in model.parameters())


# Damage ----------------------------------------------------------------------------------------------

def damaged(content: bytes, draw: random.Random) -> bytes:
    """The content with a bit turned, a byte changed, a part missing, zero, doubled or strange, or cut off."""
    found, at = bytearray(content), draw.randrange(len(content))
    match draw.randrange(7):
        case 0:
            for _ in range(draw.choice([1, 1, 2, 8])):
                found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
        case 1:
            found[at] = draw.randrange(256)
        case 2:
            del found[at:]
        case 3:
            del found[at:at + draw.randrange(1, 50)]
        case 4:
            found[at:at] = draw.randbytes(draw.randrange(1, 30))
        case 5:
            end = min(at + draw.choice([1, 10, 1000]), len(found))
            found[at:end] = bytes(end - at)
        case _:
            other = draw.randrange(len(found))
            found[at:at + 16] = found[other:other + 16]
    return bytes(found)


def damaged_file(folder: Path, kind: str) -> Path:
    """The file of a whole checkpoint that is damaged next."""
    reference = theirs()
    reference.save_pretrained(folder, max_shard_size="20KB" if kind == "index" else "1GB")
    if kind in ("bin", "legacy"):
        (folder / "model.safetensors").unlink()
        path = folder / "pytorch_model.bin"
        torch.save(reference.state_dict(), path, _use_new_zipfile_serialization=kind == "bin")
        return path
    return folder / {"safetensors": "model.safetensors", "config": "config.json",
                     "index": "model.safetensors.index.json"}[kind]


@pytest.mark.parametrize("kind", ["bin", "legacy", "safetensors", "index", "config"])
def test_a_damaged_checkpoint_is_read_or_refused_in_one_line(tmp_path, kind, capfd):
    """No other error, nothing printed, no more than 1 GB or 20 s; an archive has checksums: its numbers are whole."""
    path = damaged_file(tmp_path, kind)
    content, draw, refusals = path.read_bytes(), random.Random(kind), 0
    whole = dict(from_pretrained(tmp_path).named_parameters())
    memory, count = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 40 * TRIALS
    capfd.readouterr()
    for number in range(count):
        path.write_bytes(damaged(content, draw))
        start = time.monotonic()
        try:
            model = from_pretrained(tmp_path)
        except UserError as error:
            refusals += 1
            assert "\n" not in str(error) and str(tmp_path) in str(error), (number, str(error))
        else:
            if kind in ("bin", "index"):
                assert all(torch.equal(parameter, whole[name]) for name, parameter in model.named_parameters()), number
        assert time.monotonic() - start < 20, number
    assert capfd.readouterr() == ("", "")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 2**20  # KiB
    assert refusals > count / 5


def test_a_record_that_is_marked_as_a_folder_is_refused(tmp_path):
    """torch reads nothing of it: its numbers would be whatever the memory holds.  One bit, under no checksum."""
    path = damaged_file(tmp_path, "bin")
    content, records = path.read_bytes(), 0
    for found in re.finditer(rb"PK\x01\x02", content):
        changed = bytearray(content)
        changed[found.start() + 38] ^= 0x10  # external file attributes, the low byte
        path.write_bytes(changed)
        refused(tmp_path, f"{path} is damaged")
        records += 1
    assert records > len(dict(from_whole(path, content).named_parameters()))


def from_whole(path: Path, content: bytes) -> GPT:
    path.write_bytes(content)
    return from_pretrained(path.parent)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e300])
def test_parameters_that_are_not_finite_are_refused(folder, dtype, wrong):
    path = folder / "model.safetensors"
    weights = {name: tensor.to(dtype) for name, tensor in load_file(path).items()}
    weights["transformer.ln_f.bias"][1] = wrong if dtype == torch.float64 else float(torch.tensor(wrong).to(dtype))
    save_file(weights, path, metadata={"format": "pt"})
    refused(folder, "parameter ln_f.bias holds numbers that are not finite")
