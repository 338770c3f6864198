"""Models and ids that the tests of the model share, and the model of transformers beside ours."""

import numpy as np
import torch
import transformers

from tracer.model.config import Config
from tracer.model.gpt import GPT

SMALL = Config(vocabulary=31, context=8, width=8, heads=2, blocks=2, dropout=0.0)
SHAPES = [SMALL,
          Config(vocabulary=17, context=6, width=12, heads=3, blocks=1, dropout=0.0),
          Config(vocabulary=11, context=5, width=4, heads=1, blocks=3, dropout=0.0),
          Config(vocabulary=50257, context=16, width=16, heads=2, blocks=2, dropout=0.0)]


def seeded_model(config: Config, seed: int = 5) -> GPT:
    torch.manual_seed(seed)
    return GPT(config)


def random_ids(config: Config, batch: int = 2, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(config.vocabulary, (batch, config.context + 1), generator=torch.Generator().manual_seed(seed))
    return ids[:, :-1], ids[:, 1:]


BLOCK_NAMES = {"norm_1": "ln_1", "attention.qkv": "attn.c_attn", "attention.projection": "attn.c_proj",
               "norm_2": "ln_2", "mlp.up": "mlp.c_fc", "mlp.down": "mlp.c_proj"}
NAMES = {"token_embedding.weight": "transformer.wte.weight", "position_embedding.weight": "transformer.wpe.weight",
         "final_norm.weight": "transformer.ln_f.weight", "final_norm.bias": "transformer.ln_f.bias"}


def reference_name(name: str) -> str:
    """Ours → theirs: ``blocks.0.mlp.up.weight`` → ``transformer.h.0.mlp.c_fc.weight``."""
    if name in NAMES:
        return NAMES[name]
    _, number, rest = name.split(".", 2)
    module, kind = rest.rsplit(".", 1)
    return f"transformer.h.{number}.{BLOCK_NAMES[module]}.{kind}"


def turned(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Their Conv1D keeps weights input × output."""
    linear = name.startswith("blocks.") and "norm" not in name and tensor.dim() == 2
    return tensor.T if linear else tensor


def pair(config: Config, activation: str = "gelu") -> "tuple[GPT, transformers.GPT2LMHeadModel]":
    """Our model and theirs with the same weights, in float64, ten times as large as at the start.

    With the small weights of the start both forms of GELU, and a square matrix and its transpose, give
    nearly the same logits.
    """
    model = seeded_model(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10).add_(0.1 * torch.randn_like(parameter))  # biases and gains of layer norm move too
    reference = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=config.vocabulary, n_positions=config.context, n_embd=config.width, n_head=config.heads,
        n_layer=config.blocks, activation_function=activation, attn_implementation="eager", layer_norm_epsilon=1e-5,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)).double().eval()
    theirs = dict(reference.named_parameters())
    assert {reference_name(name) for name, _ in model.named_parameters()} == theirs.keys()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            theirs[reference_name(name)].copy_(turned(name, parameter))
    return model, reference


def mersenne_twister(seed: int, count: int) -> list[int]:
    """The same generator in NumPy: its 32-bit words."""
    return np.random.RandomState(seed)._bit_generator.random_raw(count).tolist()
