"""Checkpoints of GPT-2 and Llama of the Hugging Face kind: ``config.json`` and weights, read and written.

GPT-2's linear layers (Conv1D) keep weights as (input, output), torch's as (output, input): those are
turned.  Names and layout: Radford et al. 2019's own checkpoints, as Hugging Face converted them.  Llama keeps queries,
keys and values in three matrices, which are one here.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from tracer.errors import UserError
from tracer.format.shapes import GPT2_SHAPES
from tracer.model.config import Config
from tracer.model.finite import all_finite
from tracer.model.gpt import GPT
from tracer.model.pretrained_config import CONFIG, dropouts, read_config, their_config
from tracer.model.pretrained_files import WEIGHTS, installed, read_json, read_tensors, weight_files
from tracer.storage.atomic import write_atomically

# What stands before a name: of a model with a head, of one that was compiled, of one that was trained in parallel.
PREFIXES = re.compile(r"^(?:(?:transformer|model|_orig_mod|module)\.)*")
HEAD = "lm_head.weight"
# Old files hold the causal mask or the angles too; a model with two heads has the one of the language model as well.
IGNORED = re.compile(r".*\.attn\.(?:masked_)?bias|.*\.rotary_emb\.inv_freq|multiple_choice_head\..*")
VOCABULARY = GPT2_SHAPES["gpt2"]["vocabulary"]
LARGEST_PADDED = 51_200  # 50,257 rounded up to a multiple of 1,024, the largest that is in use


@dataclass(frozen=True)
class Format:
    """Their names of our modules.  `blocks`: what stands before the number of a block; `turned`: see above."""

    family: str
    prefix: str
    blocks: str
    outside: dict[str, str]
    in_block: dict[str, tuple[str, ...]]
    turned: bool


GPT2 = Format("GPT-2", "transformer.", "h", {
    "token_embedding": "wte", "position_embedding": "wpe", "final_norm": "ln_f",
}, {
    "norm_1": ("ln_1",), "attention.qkv": ("attn.c_attn",), "attention.projection": ("attn.c_proj",),
    "norm_2": ("ln_2",), "mlp.up": ("mlp.c_fc",), "mlp.down": ("mlp.c_proj",),
}, turned=True)
LLAMA = Format("Llama", "model.", "layers", {"token_embedding": "embed_tokens", "final_norm": "norm"}, {
    "norm_1": ("input_layernorm",),
    "attention.qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention.projection": ("self_attn.o_proj",), "norm_2": ("post_attention_layernorm",),
    "mlp.gate": ("mlp.gate_proj",), "mlp.up": ("mlp.up_proj",), "mlp.down": ("mlp.down_proj",),
}, turned=False)


def format_of(config: Config) -> Format:
    """The format that has words for the model, if one has."""
    return LLAMA if config.position == "rotary" else GPT2


def from_pretrained(name: str | Path, dropout: float | None = None) -> GPT:
    """A GPT-2 or a Llama from a folder, or by name from the local Hugging Face cache; nothing is downloaded.

    float32, in eval mode, not explicit.  `dropout`: for further training; by default the checkpoint's.  Where it
    has three different ones, which this model cannot, it is 0, and training without having chosen is refused.
    Raises `UserError` when nothing is there, for a config of another model, and for a parameter that is
    missing, unknown, there twice, of another shape or not of finite floating-point numbers.
    """
    folder = find_folder(name)
    config = read_config(folder, dropout)
    stored = _Stored(folder, config)
    stored.check_blocks(config.blocks)
    model = _shapes_alone(config, folder)
    state = {ours: stored.take_all(pieces(model, ours, theirs), parameter.shape, turned)
             for (ours, theirs, turned), parameter in zip(names(model), model.parameters(), strict=True)}
    stored.check_nothing_is_left(state)
    model.load_state_dict(state, assign=True)
    theirs = dropouts(read_json(folder / CONFIG), folder / CONFIG)
    if dropout is None and len(set(theirs.values())) > 1:
        said = ", ".join(f"{key} is {value}" for key, value in theirs.items())
        model.register_forward_pre_hook(partial(_refuse_training, f"{folder / CONFIG}: {said}"))
    return model.requires_grad_(True).eval()


def _refuse_training(said: str, model: nn.Module, _: object) -> None:
    if model.training:
        raise UserError(f"{said}, this model has one dropout: choose it with from_pretrained(…, dropout=…)")


def drop_padding(model: GPT) -> GPT:
    """Keep GPT-2's 50,257 tokens of a vocabulary of at most 51,200; the model itself, changed in place.

    Such a table was padded for speed (nanoGPT: 50,304), or has tokens added behind GPT-2's own, which its
    tokenizer does not know.  Their logits are left out of every softmax from then on.
    """
    if VOCABULARY < model.config.vocabulary <= LARGEST_PADDED:
        model.config = replace(model.config, vocabulary=VOCABULARY)
        table = model.token_embedding
        table.weight, table.num_embeddings = _first_rows(table.weight), VOCABULARY
        if model.head_table is not None:
            model.head_table = _first_rows(model.head_table)
    return model


def _first_rows(table: Tensor) -> nn.Parameter:
    return nn.Parameter(table.detach()[:VOCABULARY].clone(), requires_grad=table.requires_grad)


def _shapes_alone(config: Config, folder: Path) -> GPT:
    """The model without memory for its values, which all come from the file."""
    try:
        with torch.device("meta"):
            return GPT(config, explicit=False)
    except RuntimeError:  # more bytes than 64 bits can count
        raise UserError(f"{folder}: no computer holds a model of the sizes in config.json: download the checkpoint "
                        "again") from None


def save_pretrained(model: GPT, folder: str | Path) -> None:
    """Write `model` so that `transformers` loads it: ``config.json`` and ``model.safetensors``."""
    safetensors = installed("safetensors.torch", "writing a checkpoint")
    said = their_config(model.config)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    parameters = dict(model.named_parameters())
    prefix = format_of(model.config).prefix
    weights = {name if name == HEAD else prefix + name: turn(part, turned).contiguous()
               for ours, theirs, turned in names(model)
               for name, part in _cut(parameters[ours].detach(), pieces(model, ours, theirs))}
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".model.", suffix=".tmp")
    os.close(handle)
    try:
        safetensors.save_file(weights, temporary, metadata={"format": "pt"})
        os.chmod(temporary, 0o644)
        os.replace(temporary, folder / WEIGHTS[0])
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    write_atomically(folder / CONFIG, (json.dumps(said, indent=2) + "\n").encode())


def names(model: GPT) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """Of every parameter: our name, theirs without the prefix, several where it is cut, and whether it is turned."""
    own = format_of(model.config)
    for ours, parameter in model.named_parameters():
        module, _, kind = ours.rpartition(".")
        if ours == "head_table":
            yield ours, (HEAD,), False
        elif module in own.outside:
            yield ours, (f"{own.outside[module]}.{kind}",), False
        else:
            _, number, module = module.split(".", 2)
            yield (ours, tuple(f"{own.blocks}.{number}.{name}.{kind}" for name in own.in_block[module]),
                   own.turned and parameter.dim() == 2)


def pieces(model: GPT, ours: str, theirs: tuple[str, ...]) -> dict[str, int]:
    """Their names of a parameter → how many of its rows each has: queries, keys, values, or all."""
    shape = model.get_parameter(ours).shape
    kept = model.config.key_value_heads * model.config.head_width
    return dict(zip(theirs, (model.config.width, kept, kept) if len(theirs) > 1 else (shape[0],), strict=True))


def _cut(tensor: Tensor, into: dict[str, int]) -> Iterator[tuple[str, Tensor]]:
    return zip(into, tensor.split([*into.values()]), strict=True)


def turn(tensor: Tensor, turned: bool) -> Tensor:
    """(out, in) ↔ (in, out) where it is stored turned; the same tensor otherwise."""
    return tensor.T if turned else tensor


def find_folder(name: str | Path) -> Path:
    """The folder that `name` is, or the newest of that name in the local Hugging Face cache.

    Raises `UserError` that says how to get it when it is neither.
    """
    if Path(name).is_dir():
        return Path(name)
    if _is_path(str(name)):
        raise UserError(f"there is no file or folder {name}: name a checkpoint, or the folder of one")
    repository = f"openai-community/{name}" if str(name) in GPT2_SHAPES else str(name)
    hub = installed("huggingface_hub", f"finding {name}, which is no folder, by name")
    try:
        return Path(hub.snapshot_download(repository, local_files_only=True))
    except (OSError, ValueError):  # not in the cache; no name that a repository can have
        raise UserError(f"{name} is neither a folder nor in the local Hugging Face cache: download it with "
                        f"`hf download {repository}`, or name the folder of a checkpoint") from None


def _is_path(name: str) -> bool:
    """Whether this can only be meant as a path: the names of the cache are ``name`` or ``owner/name``."""
    return name.startswith((".", "~", os.sep)) or name.count("/") > 1 or name.endswith((".pt", ".bin", ".safetensors"))


class _Stored:
    """The tensors of a checkpoint's files, under their names without the prefix, each taken once."""

    def __init__(self, folder: Path, config: Config):
        self.folder, self.tied, self.own = folder, config.tied, format_of(config)
        self.tensors: dict[str, Tensor] = {}
        self.taken: set[int] = set()  # where in memory the parameters begin
        files = weight_files(folder)
        for path in files:
            for key, tensor in read_tensors(path).items():
                name = PREFIXES.sub("", key)
                if name in self.tensors:
                    raise UserError(f"{path}: parameter {_shown(name)} is there twice: download the checkpoint again")
                if not IGNORED.fullmatch(name):
                    self.tensors[name] = tensor
        # A tied head may be the embedding's own memory; beyond that, tensors that share theirs could be of any size.
        if sum(tensor.nbytes for tensor in self.tensors.values()) > 2 * sum(path.stat().st_size for path in files):
            raise UserError(f"{folder}: its tensors are larger than its files: download the checkpoint again")

    def check_blocks(self, blocks: int) -> None:
        """Raises `UserError` before a model is made with far more blocks than the files have."""
        if (name := f"{self.own.blocks}.{blocks - 1}.{self.own.in_block['norm_1'][0]}.weight") not in self.tensors:
            raise self._missing(name)
        if blocks > len(self.tensors):
            raise UserError(f"{self.folder} holds {len(self.tensors)} parameters, too few for the {blocks} blocks of "
                            "config.json: download the checkpoint again")

    def _missing(self, name: str) -> UserError:
        return UserError(f"{self.folder}: parameter {name} is missing: is the checkpoint whole, and its config?")

    def take_all(self, names: dict[str, int], shape: torch.Size, turned: bool) -> Tensor:
        """The tensor of `shape` of which each name has so many rows."""
        parts = [self.take(name, torch.Size((rows, *shape[1:])), turned) for name, rows in names.items()]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def take(self, name: str, shape: torch.Size, turned: bool) -> Tensor:
        """The tensor `name` as a contiguous float32 one of `shape`, turned when that is how it is stored."""
        tensor = self.tensors.pop(name, None)
        if tensor is None:
            raise self._missing(name)
        if not tensor.is_floating_point():
            raise UserError(f"{self.folder}: parameter {name} holds {str(tensor.dtype).removeprefix('torch.')}, a "
                            "parameter must be of floating-point numbers: use a checkpoint that is not quantised")
        stored = tuple(reversed(shape)) if turned else tuple(shape)
        if tuple(tensor.shape) != stored:
            raise UserError(f"{self.folder}: parameter {name} has shape {tuple(tensor.shape)}, by config.json it "
                            f"must be {stored}")
        result = turn(tensor, turned).to(torch.float32).contiguous()
        if not all_finite([result]):
            raise UserError(f"{self.folder}: parameter {name} holds numbers that are not finite in float32: use a "
                            "checkpoint from before the training diverged, or one that is not damaged")
        if result.data_ptr() in self.taken:  # two tensors of the file that are one, but two parameters here
            result = result.clone()
        self.taken.add(result.data_ptr())
        return result

    def check_nothing_is_left(self, state: dict[str, Tensor]) -> None:
        """Raises `UserError` for a tensor that no parameter took, and for a head that a tied model must not have."""
        table = state["token_embedding.weight"]
        own_head = self.tied and HEAD in self.tensors
        if own_head and not torch.equal(self.take(HEAD, table.shape, False), table):
            table_name = f"{self.own.outside['token_embedding']}.weight"
            raise UserError(f"{self.folder}: parameter {HEAD} differs from {table_name}, though config.json says that "
                            "they are tied: set tie_word_embeddings to false")
        if left := list(self.tensors):
            raise UserError(f"{self.folder}: parameter {_shown(left[0])} is none of {self.own.family}'s by config.json"
                            + (f", nor are {len(left) - 1} others" if left[1:] else "")
                            + ": use the checkpoint of a language model alone")


def _shown(name: str) -> str:
    """A name that a file has, in one line."""
    return name if name.isprintable() and len(name) <= 200 else repr(name)[:200]
