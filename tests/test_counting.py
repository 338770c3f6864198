"""Counts made from a config against the models themselves, and against the figures of the articles."""

from dataclasses import replace

import pytest
import torch
import transformers

from tracer.errors import UserError
from tracer.library.counting import (
    cache_bytes,
    flops_per_token,
    mfu,
    parameter_count,
    parameter_parts,
    training_memory,
)
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.kv_cache import KVCache

SMALL = Config(vocabulary=65, context=32, width=32, heads=4, blocks=2, dropout=0.0)
GPT2 = Config(vocabulary=50257, context=1024, width=768, heads=12, blocks=12)
QUIZ = Config(vocabulary=1000, context=512, width=256, heads=4, blocks=8)


@pytest.mark.parametrize("config", [Config(), GPT2, QUIZ, replace(QUIZ, tied=False), SMALL], ids=str)
def test_parts_are_those_of_the_model(config):
    with torch.device("meta"):
        model = GPT(config)
    assert parameter_count(config) == sum(p.numel() for p in model.parameters())
    modules = {"token table": model.token_embedding, "position table": model.position_embedding,
               "block: norm 1": model.blocks[0].norm_1, "block: norm 2": model.blocks[0].norm_2,
               "block: attention, Q K V": model.blocks[0].attention.qkv, "block: MLP, up": model.blocks[0].mlp.up,
               "block: attention, output": model.blocks[0].attention.projection,
               "block: MLP, down": model.blocks[0].mlp.down, "final norm": model.final_norm}
    parts = {part.name: part for part in parameter_parts(config)}
    assert parts.keys() - {"head"} == modules.keys()
    for name, module in modules.items():
        assert parts[name].count == sum(p.numel() for p in module.parameters()), name
        assert parts[name].times == (config.blocks if name.startswith("block") else 1)


def test_figures_of_the_articles():
    assert parameter_count(GPT2) == 124_439_808
    assert parameter_count(GPT2, positions=False) == 123_653_376
    assert parameter_count(Config()) == 810_960
    shares = {part.name: part.total / parameter_count(GPT2) for part in parameter_parts(GPT2)}
    assert shares["token table"] + shares["position table"] == pytest.approx(0.316, abs=5e-4)


def test_the_quiz_of_the_second_article():
    """It prints 790,016 and 6,707,712, for it adds its attention wrongly: that is 263,168 numbers, not 263,424."""
    parts = {part.name: part.count for part in parameter_parts(QUIZ)}
    attention = parts["block: attention, Q K V"] + parts["block: attention, output"]
    assert attention == 256 * 768 + 768 + 256 * 256 + 256 == 263_168
    assert parts["block: MLP, up"] + parts["block: MLP, down"] == 525_568
    assert sum(n for name, n in parts.items() if name.startswith("block")) == 790_016 - 256
    assert parameter_count(QUIZ) == 6_707_712 - 8 * 256
    with torch.device("meta"):
        reference = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=1000, n_positions=512, n_embd=256, n_head=4, n_layer=8))
    assert parameter_count(QUIZ) == sum(p.numel() for p in reference.parameters())


def test_arithmetic_by_hand():
    # 6 · 123,653,376 + 12 · 12 · 12 · 64 · 1024
    assert flops_per_token(GPT2) == 741_920_256 + 113_246_208
    assert flops_per_token(GPT2, length=1) == 741_920_256 + 110_592
    assert mfu(GPT2, 100_000, 312e12) == pytest.approx(855_166_464 * 1e5 / 312e12)
    with pytest.raises(UserError, match="above 0"):
        mfu(GPT2, 1, 0)


def test_the_cache_of_a_token():
    assert cache_bytes(SMALL) * 3 * 20 == KVCache(SMALL, 3, 20).bytes
    llama_like = Config(vocabulary=128_256, context=8192, width=1024, heads=8, blocks=32)  # 8 heads of 128
    assert cache_bytes(llama_like, number_bytes=2) == 128 * 1024


def kept_by_autograd(config: Config, batch: int, length: int) -> int:
    """Bytes of all memory that autograd holds on to after a forward, parameters and ids apart."""
    model = GPT(config, explicit=False)
    ids = torch.randint(config.vocabulary, (batch, length))
    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), ids)}
    held = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            held[storage.data_ptr()] = storage  # kept, so that its address is not used again
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model(ids, ids)
    return sum(storage.nbytes() for storage in held.values())


@pytest.mark.parametrize("config", [SMALL, replace(SMALL, dropout=0.1), replace(SMALL, blocks=5, heads=2),
                                    replace(SMALL, vocabulary=999, tied=False), replace(SMALL, activation="gelu_tanh"),
                                    replace(SMALL, norm="rms_norm"), replace(SMALL, norm="rms_norm", dropout=0.1)],
                         ids=str)
@pytest.mark.parametrize(("batch", "length"), [(3, 32), (2, 16), (1, 32)])
def test_activations_are_what_autograd_keeps(config, batch, length):
    one_number = 4  # the number of targets, which the loss divides by
    if config.dropout and batch == 1:  # then Q, K and V are kept as they came, with 2 widths a block more
        one_number += 4 * 2 * config.width * config.blocks * length
    assert training_memory(config, batch, length).activations == kept_by_autograd(config, batch, length) - one_number


def test_a_batch_that_does_not_fit_is_refused():
    for batch, length in ((0, 8), (1, 33), (1, -1)):
        with pytest.raises(UserError, match="does not fit a context of 32"):
            training_memory(SMALL, batch, length)
