"""``config.json`` of a GPT-2 checkpoint of the Hugging Face kind, to and from our config."""

import sys
from pathlib import Path
from typing import Any

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.pretrained_files import read_json

CONFIG = "config.json"
GELU_NAMES = {"gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
              "gelu_python_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh", "gelu_accurate": "gelu_tanh"}
# Of each place in the model, the kinds that their config can say, and how.
OUR_NAMES = {"activation": {"gelu": "gelu", "gelu_tanh": "gelu_new"}, "norm": {"layer_norm": ""}}
DROPOUTS = ("embd_pdrop", "attn_pdrop", "resid_pdrop")
# Of each size of ours their name, the name that `transformers` takes for the same, and what it is when it is not said.
SIZES = {"vocabulary": ("vocab_size", None, 50257), "context": ("n_positions", "max_position_embeddings", 1024),
         "width": ("n_embd", "hidden_size", 768), "heads": ("n_head", "num_attention_heads", 12),
         "blocks": ("n_layer", "num_hidden_layers", 12)}
# What a GPT-2 config may say beyond shape, and the only value of it that this model computes.
FIXED = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False,
         "is_encoder_decoder": False}


def read_config(folder: Path, dropout: float | None = None) -> Config:
    """Our config from their ``config.json``.  `dropout`: instead of theirs; 0 where their three differ.

    Raises `UserError` for one that this model does not compute.
    """
    path = folder / CONFIG
    said = read_json(path)
    if said.get("model_type") != "gpt2":
        raise UserError(f"{path}: model_type is {said.get('model_type')!r}, only 'gpt2' can be read")
    for key, value in FIXED.items():
        if said.get(key, value) != value:
            raise UserError(f"{path}: {key} is {said[key]!r}, this model computes only {value!r}")
    activation = said.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in GELU_NAMES:
        raise UserError(f"{path}: activation_function is {activation!r}, known are {', '.join(GELU_NAMES)}")
    sizes = {ours: _size(said, *names, path) for ours, names in SIZES.items()}
    if said.get("n_inner") not in (None, 4 * sizes["width"]):
        raise UserError(f"{path}: n_inner is {said['n_inner']!r}, this model computes only "
                        f"4 · n_embd = {4 * sizes['width']}")
    theirs = set(dropouts(said, path).values())
    try:
        return Config(**sizes, dropout=(theirs.pop() if len(theirs) == 1 else 0.0) if dropout is None else dropout,
                      activation=GELU_NAMES[activation], tied=_flag(said, "tie_word_embeddings", True, path),
                      norm_eps=_number(said, "layer_norm_epsilon", 1e-5, path), norm="layer_norm")
    except UserError as error:
        raise UserError(str(error) if str(path) in str(error) else f"{path}: {error}") from None


def dropouts(said: dict[str, Any], path: Path) -> dict[str, float]:
    """Their three dropouts by name.  Raises `UserError` for one that is no number."""
    return {key: _number(said, key, 0.1, path) for key in DROPOUTS}


def their_config(config: Config) -> dict[str, Any]:
    """What their ``config.json`` says of a model of the shape `config`.

    Raises `UserError` for a norm or an activation that GPT-2 has no word for.
    """
    for place, words in OUR_NAMES.items():
        if getattr(config, place) not in words:
            raise UserError(f"{place} {getattr(config, place)} cannot be said in the format of GPT-2, which has "
                            f"{', '.join(words)}: keep the model as a checkpoint of ours")
    end = 50256 if config.vocabulary == 50257 else None
    return {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
        **{theirs: getattr(config, ours) for ours, (theirs, _, _) in SIZES.items()},
        "activation_function": OUR_NAMES["activation"][config.activation],
        "layer_norm_epsilon": config.norm_eps, "tie_word_embeddings": config.tied,
        **dict.fromkeys(DROPOUTS, config.dropout), "bos_token_id": end, "eos_token_id": end,
    }


def _size(said: dict[str, Any], key: str, other: str | None, default: int, path: Path) -> int:
    if key not in said and other is not None and other in said:
        key = other
    value = said.get(key, default)
    if type(value) is not int:
        raise UserError(f"{path}: {key} must be a whole number, not {value!r}")
    return value


def _flag(said: dict[str, Any], key: str, default: bool, path: Path) -> bool:
    value = said.get(key, default)
    if type(value) is not bool:
        raise UserError(f"{path}: {key} must be true or false, not {value!r}")
    return value


def _number(said: dict[str, Any], key: str, default: float, path: Path) -> float:
    value = said.get(key, default)
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise UserError(f"{path}: {key} must be a number, not {value!r}")
    return float(value)
