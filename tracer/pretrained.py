"""GPT-2 checkpoints of the Hugging Face kind: a folder with ``config.json`` and weights, read and written.

Their linear layers (Conv1D) keep weights as (input, output), torch's as (output, input): those are
turned.  Names and layout: Radford et al. 2019's own checkpoints, as Hugging Face converted them.
"""

import importlib
import json
import os
import pickle
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from tracer.errors import UserError
from tracer.model import GPT, Config
from tracer.schema import write_atomically
from tracer.shapes import GPT2_SHAPES

GELU_NAMES = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
DROPOUTS = ("embd_pdrop", "attn_pdrop", "resid_pdrop")
# What a GPT-2 config may say beyond shape, and the only value of it that this model computes.
FIXED = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False}
WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # each also in parts, with an index of them
PREFIX = "transformer."
HEAD = "lm_head.weight"
MASKS = (".attn.bias", ".attn.masked_bias")  # old files hold the causal mask too

OUTSIDE = {"token_embedding.weight": "wte.weight", "position_embedding.weight": "wpe.weight",
           "final_norm.weight": "ln_f.weight", "final_norm.bias": "ln_f.bias"}
IN_BLOCK = {"norm_1": "ln_1", "attention.qkv": "attn.c_attn", "attention.projection": "attn.c_proj",
            "norm_2": "ln_2", "mlp.up": "mlp.c_fc", "mlp.down": "mlp.c_proj"}


def from_pretrained(name: str | Path, dropout: float | None = None) -> GPT:
    """A GPT-2 from a folder, or by name from the local Hugging Face cache; nothing is downloaded.

    float32, in eval mode, not explicit.  `dropout`: for further training; by default the checkpoint's.
    Raises `UserError` when nothing is there, for a config that is no GPT-2's, and for a parameter that is
    missing, unknown, there twice, of another shape or not of floating-point numbers.
    """
    folder = find_folder(name)
    config = read_config(folder, dropout)
    stored = _Stored(folder, config)
    stored.check_last_block(config.blocks)
    model = _shapes_alone(config, folder)
    state = {ours: stored.take(theirs, parameter.shape, turned)
             for (ours, theirs, turned), parameter in zip(names(model), model.parameters(), strict=True)}
    stored.check_nothing_is_left(state)
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(True).eval()


def _shapes_alone(config: Config, folder: Path) -> GPT:
    """The model without memory for its values, which all come from the file."""
    try:
        with torch.device("meta"):
            return GPT(config, explicit=False)
    except RuntimeError:  # more bytes than 64 bits can count
        raise UserError(f"{folder}: no computer holds a model of the sizes in config.json: download the checkpoint "
                        "again") from None


def save_pretrained(model: GPT, folder: Path) -> None:
    """Write `model` so that `transformers` loads it: ``config.json`` and ``model.safetensors``."""
    safetensors = _installed("safetensors.torch", "writing a checkpoint")
    folder.mkdir(parents=True, exist_ok=True)
    parameters = dict(model.named_parameters())
    weights = {theirs if theirs == HEAD else PREFIX + theirs: turn(parameters[ours].detach(), turned).contiguous()
               for ours, theirs, turned in names(model)}
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".model.", suffix=".tmp")
    os.close(handle)
    try:
        safetensors.save_file(weights, temporary, metadata={"format": "pt"})
        os.chmod(temporary, 0o644)
        os.replace(temporary, folder / WEIGHTS[0])
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    write_atomically(folder / "config.json", (json.dumps(_their_config(model.config), indent=2) + "\n").encode())


def names(model: GPT) -> Iterator[tuple[str, str, bool]]:
    """Of every parameter: our name, theirs without the prefix, and whether it is stored turned."""
    for ours, parameter in model.named_parameters():
        if ours == "head_table":
            yield ours, HEAD, False
        elif ours in OUTSIDE:
            yield ours, OUTSIDE[ours], False
        else:
            _, number, rest = ours.split(".", 2)
            module, kind = rest.rsplit(".", 1)
            yield ours, f"h.{number}.{IN_BLOCK[module]}.{kind}", parameter.dim() == 2


def turn(tensor: Tensor, turned: bool) -> Tensor:
    return tensor.T if turned else tensor


def find_folder(name: str | Path) -> Path:
    """The folder that `name` is, or the newest of that name in the local Hugging Face cache.

    Raises `UserError` that says how to get it when it is neither.
    """
    if Path(name).is_dir():
        return Path(name)
    repository = f"openai-community/{name}" if str(name) in GPT2_SHAPES else str(name)
    hub = _installed("huggingface_hub", f"finding {name}, which is no folder, by name")
    try:
        return Path(hub.snapshot_download(repository, local_files_only=True))
    except (OSError, ValueError):  # not in the cache; no name that a repository can have
        raise UserError(f"{name} is neither a folder nor in the local Hugging Face cache: download it with "
                        f"`hf download {repository}`, or name the folder of a checkpoint") from None


def _installed(package: str, purpose: str):
    try:
        return importlib.import_module(package)
    except ImportError:
        raise UserError(f"{purpose} needs {package.partition('.')[0]}, which is not installed: run "
                        "`pip install '.[pretrained]'`") from None


def read_config(folder: Path, dropout: float | None = None) -> Config:
    """Our config from their ``config.json``.  Raises `UserError` for one that this model does not compute."""
    path = folder / "config.json"
    said = _read_json(path)
    if said.get("model_type") != "gpt2":
        raise UserError(f"{path}: model_type is {said.get('model_type')!r}, only 'gpt2' can be read")
    for key, value in FIXED.items():
        if said.get(key, value) != value:
            raise UserError(f"{path}: {key} is {said[key]!r}, this model computes only {value!r}")
    activation = said.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in GELU_NAMES:
        raise UserError(f"{path}: activation_function is {activation!r}, known are {', '.join(GELU_NAMES)}")
    width = _whole(said, "n_embd", 768, path)
    if said.get("n_inner") not in (None, 4 * width):
        raise UserError(f"{path}: n_inner is {said['n_inner']}, this model computes only 4 · n_embd = {4 * width}")
    sizes = {ours: _whole(said, theirs, default, path) for ours, theirs, default in (
        ("vocabulary", "vocab_size", 50257), ("context", "n_positions", 1024), ("heads", "n_head", 12),
        ("blocks", "n_layer", 12))}
    return Config(**sizes, width=width, dropout=_dropout(said, path) if dropout is None else dropout,
                  activation=GELU_NAMES[activation], tied=_flag(said, "tie_word_embeddings", True, path),
                  norm_eps=_number(said, "layer_norm_epsilon", 1e-5, path))


def _whole(said: dict, key: str, default: int, path: Path) -> int:
    value = said.get(key, default)
    if type(value) is not int:
        raise UserError(f"{path}: {key} must be a whole number, not {value!r}")
    return value


def _flag(said: dict, key: str, default: bool, path: Path) -> bool:
    value = said.get(key, default)
    if type(value) is not bool:
        raise UserError(f"{path}: {key} must be true or false, not {value!r}")
    return value


def _number(said: dict, key: str, default: float, path: Path) -> float:
    value = said.get(key, default)
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise UserError(f"{path}: {key} must be a number, not {value!r}")
    return float(value)


def _dropout(said: dict, path: Path) -> float:
    found = {key: _number(said, key, 0.1, path) for key in DROPOUTS}
    if len(set(found.values())) > 1:
        raise UserError(f"{path}: {', '.join(f'{k} is {v}' for k, v in found.items())}, this model has one dropout: "
                        "choose it with dropout=")
    return found["embd_pdrop"]


def _their_config(config: Config) -> dict:
    end = 50256 if config.vocabulary == 50257 else None
    return {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": config.vocabulary,
        "n_positions": config.context, "n_embd": config.width, "n_head": config.heads, "n_layer": config.blocks,
        "activation_function": {"gelu": "gelu", "gelu_tanh": "gelu_new"}[config.activation],
        "layer_norm_epsilon": config.norm_eps, "tie_word_embeddings": config.tied,
        **dict.fromkeys(DROPOUTS, config.dropout), "bos_token_id": end, "eos_token_id": end,
    }


class _Stored:
    """The tensors of a checkpoint's files, under their names without the prefix, each taken once."""

    def __init__(self, folder: Path, config: Config):
        self.folder, self.tied = folder, config.tied
        self.tensors: dict[str, Tensor] = {}
        for path in _weight_files(folder):
            for key, tensor in _read_tensors(path).items():
                name = key.removeprefix(PREFIX)
                if name in self.tensors:
                    raise UserError(f"{path}: parameter {name} is there twice: download the checkpoint again")
                if not name.endswith(MASKS):
                    self.tensors[name] = tensor

    def check_last_block(self, blocks: int) -> None:
        """Raises `UserError` before a model is made with far more blocks than the files have."""
        if (name := f"h.{blocks - 1}.ln_1.weight") not in self.tensors:
            raise self._missing(name)

    def _missing(self, name: str) -> UserError:
        return UserError(f"{self.folder}: parameter {name} is missing: is the checkpoint whole, and its config?")

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
        return turn(tensor, turned).to(torch.float32).contiguous()

    def check_nothing_is_left(self, state: dict[str, Tensor]) -> None:
        """Raises `UserError` for a tensor that no parameter took, and for a head that a tied model must not have."""
        head = self.tensors.pop(HEAD, None) if self.tied else None
        if head is not None and not torch.equal(head.to(torch.float32), state["token_embedding.weight"]):
            raise UserError(f"{self.folder}: parameter {HEAD} differs from wte.weight, though config.json says that "
                            "they are tied: set tie_word_embeddings to false")
        if left := list(self.tensors):
            raise UserError(f"{self.folder}: parameter {left[0]} is none of GPT-2's by config.json"
                            + (f", nor are {len(left) - 1} others" if left[1:] else ""))


def _weight_files(folder: Path) -> list[Path]:
    for name in WEIGHTS:
        index = folder / f"{name}.index.json"
        if (folder / name).is_file():
            return [folder / name]
        if index.is_file():
            parts = _read_json(index).get("weight_map")
            if not isinstance(parts, dict) or not all(isinstance(part, str) for part in parts.values()):
                raise UserError(f"{index}: weight_map must name a file for each parameter: download the checkpoint "
                                "again")
            return [folder / part for part in dict.fromkeys(parts.values())]
    raise UserError(f"{folder} holds neither {WEIGHTS[0]} nor {WEIGHTS[1]}: name the folder of a GPT-2 checkpoint")


def _read_tensors(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise UserError(f"{path} is missing: download the checkpoint again")
    wrong: tuple = (RuntimeError, EOFError, ValueError, pickle.UnpicklingError, struct.error)
    try:
        if path.suffix == ".safetensors":
            safetensors = _installed("safetensors.torch", f"reading {path}")
            wrong = (*wrong, importlib.import_module("safetensors").SafetensorError)
            return safetensors.load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except wrong as error:
        raise UserError(f"{path} is damaged ({type(error).__name__}): download the checkpoint again") from None
    if not isinstance(found, dict) or not all(map(_is_entry, found, found.values())):
        raise UserError(f"{path} holds something else than tensors by name: name a checkpoint of weights alone")
    return found


def _is_entry(name: object, value: object) -> bool:
    """Whether both are what a file of weights holds: a name, and a tensor with all its numbers."""
    return (isinstance(name, str) and isinstance(value, Tensor) and value.layout == torch.strided
            and not value.is_nested and value.device.type == "cpu")


def _read_json(path: Path) -> dict:
    try:
        said = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path} is missing: name the folder of a GPT-2 checkpoint") from None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise UserError(f"{path} is no JSON object: download the checkpoint again")
    return said
