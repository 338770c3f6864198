"""``config.json`` of a GPT-2 or a Llama of the Hugging Face kind, to and from our config."""

import sys
from pathlib import Path
from typing import Any

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.pretrained_files import read_json

CONFIG = "config.json"
GELU_NAMES = {"gelu": "gelu", "gelu_python": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
              "gelu_python_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh", "gelu_accurate": "gelu_tanh"}
# Of each choice, what the two formats can say; of GPT-2's activation, how.
GPT2_SAYS: dict[str, Any] = {"causal": (True,),
    "activation": {"gelu": "gelu", "gelu_tanh": "gelu_new"}, "norm": ("layer_norm",), "bias": (True,), "kv_heads": (0,),
    "position": ("learned",)}
LLAMA_SAYS: dict[str, Any] = {"causal": (True,), "activation": ("swiglu",), "norm": ("rms_norm",),
                              "position": ("rotary",)}
DROPOUTS = ("embd_pdrop", "attn_pdrop", "resid_pdrop")
# Of each size of ours their name, the name that `transformers` takes for the same, and what it is when it is not said.
SIZES = {"vocabulary": ("vocab_size", None, 50257), "context": ("n_positions", "max_position_embeddings", 1024),
         "width": ("n_embd", "hidden_size", 768), "heads": ("n_head", "num_attention_heads", 12),
         "blocks": ("n_layer", "num_hidden_layers", 12)}
LLAMA_SIZES = {"vocabulary": ("vocab_size", None, 32000), "context": ("max_position_embeddings", None, 2048),
               "width": ("hidden_size", None, 4096), "heads": ("num_attention_heads", None, 32),
               "blocks": ("num_hidden_layers", None, 32), "hidden": ("intermediate_size", None, 11008)}
# What a config may say beyond shape, and the only value of it that this model computes.
FIXED = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False,
         "is_encoder_decoder": False}
LLAMA_FIXED = {"hidden_act": "silu", "is_encoder_decoder": False, "pretraining_tp": 1}


def read_config(folder: Path, dropout: float | None = None) -> Config:
    """Our config from their ``config.json``.  `dropout`: instead of theirs; 0 where a GPT-2's three differ.

    Raises `UserError` for one that this model does not compute.
    """
    path = folder / CONFIG
    said = read_json(path)
    if said.get("model_type") not in _READERS:
        raise UserError(f"{path}: model_type is {said.get('model_type')!r}, only 'gpt2' and 'llama' can be read")
    try:
        return Config(**_READERS[said["model_type"]](said, path, dropout))
    except UserError as error:
        raise UserError(str(error) if str(path) in str(error) else f"{path}: {error}") from None


def _gpt2(said: dict[str, Any], path: Path, dropout: float | None) -> dict[str, Any]:
    _check_fixed(said, FIXED, path)
    activation = said.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in GELU_NAMES:
        raise UserError(f"{path}: activation_function is {activation!r}, known are {', '.join(GELU_NAMES)}")
    sizes = {ours: _size(said, *names, path) for ours, names in SIZES.items()}
    hidden = 0 if said.get("n_inner") is None else _size(said, "n_inner", None, 0, path)
    theirs = set(dropouts(said, path).values())
    return {**sizes, "dropout": (theirs.pop() if len(theirs) == 1 else 0.0) if dropout is None else dropout,
            "activation": GELU_NAMES[activation], "tied": _flag(said, "tie_word_embeddings", True, path),
            "norm_eps": _number(said, "layer_norm_epsilon", 1e-5, path), "norm": "layer_norm",
            "hidden": 0 if hidden == 4 * sizes["width"] else hidden}


def _llama(said: dict[str, Any], path: Path, dropout: float | None) -> dict[str, Any]:
    _check_fixed(said, LLAMA_FIXED, path)
    sizes = {ours: _size(said, *names, path) for ours, names in LLAMA_SIZES.items()}
    biases = [_flag(said, key, False, path) for key in ("attention_bias", "mlp_bias")]
    if biases[0] != biases[1]:
        raise UserError(f"{path}: attention_bias is {biases[0]}, mlp_bias {biases[1]}: this model has both or neither")
    groups = sizes["heads"] if said.get("num_key_value_heads") is None else _size(said, "num_key_value_heads", None, 0,
                                                                                 path)
    if said.get("head_dim") not in (None, sizes["width"] // max(sizes["heads"], 1)):
        raise UserError(f"{path}: head_dim is {said['head_dim']!r}, this model computes only hidden_size divided by "
                        "num_attention_heads")
    theirs = _number(said, "attention_dropout", 0.0, path)
    if theirs and dropout is None:
        raise UserError(f"{path}: attention_dropout is {theirs}, this model has one dropout for all: choose it with "
                        "from_pretrained(…, dropout=…)")
    return {**sizes, "dropout": 0.0 if dropout is None else dropout, "activation": "swiglu", "norm": "rms_norm",
            "position": "rotary", "bias": biases[0], "tied": _flag(said, "tie_word_embeddings", False, path),
            "kv_heads": 0 if groups == sizes["heads"] else groups, "rope_base": _rope_base(said, path),
            "norm_eps": _number(said, "rms_norm_eps", 1e-6, path)}


_READERS = {"gpt2": _gpt2, "llama": _llama}


def _rope_base(said: dict[str, Any], path: Path) -> float:
    """Base of the angles, which older files say by itself.  Raises `UserError` for angles that are stretched."""
    rope = said.get("rope_parameters") or said.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        raise UserError(f"{path}: rope_parameters must be an object, not {rope!r:.40}")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise UserError(f"{path}: rope_type is {kind!r:.40}, this model computes only 'default' (Llama 3.1 and later "
                        "stretch their angles)")
    return _number(said | rope, "rope_theta", 10000.0, path)


def _check_fixed(said: dict[str, Any], fixed: dict[str, Any], path: Path) -> None:
    for key, value in fixed.items():
        if said.get(key, value) != value:
            raise UserError(f"{path}: {key} is {said[key]!r}, this model computes only {value!r}")


def dropouts(said: dict[str, Any], path: Path) -> dict[str, float]:
    """A GPT-2's three dropouts by name.  Raises `UserError` for one that is no number."""
    return {key: _number(said, key, 0.1, path) for key in DROPOUTS if said.get("model_type") == "gpt2"}


def their_config(config: Config) -> dict[str, Any]:
    """What their ``config.json`` says of a model of the shape `config`: a Llama's where positions are rotary.

    Raises `UserError` for a choice that the format has no word for.
    """
    if config.position == "rotary":
        return _their_llama(config)
    _check_said(config, GPT2_SAYS, "GPT-2")
    end = 50256 if config.vocabulary == 50257 else None
    return {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
        **{theirs: getattr(config, ours) for ours, (theirs, _, _) in SIZES.items()},
        "activation_function": GPT2_SAYS["activation"][config.activation], "n_inner": config.hidden or None,
        "layer_norm_epsilon": config.norm_eps, "tie_word_embeddings": config.tied,
        **dict.fromkeys(DROPOUTS, config.dropout), "bos_token_id": end, "eos_token_id": end,
    }


def _their_llama(config: Config) -> dict[str, Any]:
    _check_said(config, LLAMA_SAYS, "Llama")
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        **{theirs: getattr(config, ours) for ours, (theirs, _, _) in LLAMA_SIZES.items()},
        "intermediate_size": config.hidden_width, "num_key_value_heads": config.key_value_heads, "hidden_act": "silu",
        "rms_norm_eps": config.norm_eps, "tie_word_embeddings": config.tied, "attention_bias": config.bias,
        "mlp_bias": config.bias, "rope_theta": config.rope_base, "bos_token_id": None, "eos_token_id": None,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_base},
    }


def _check_said(config: Config, says: dict[str, Any], format: str) -> None:
    for choice, words in says.items():
        if getattr(config, choice) not in words:
            raise UserError(f"{choice} {getattr(config, choice)} cannot be said in the format of {format}, which has "
                            f"{', '.join(map(str, words))}: keep the model as a checkpoint of ours")


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
