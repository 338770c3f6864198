"""Training memory, counted without torch: what is said to be kept is what autograd keeps."""

from dataclasses import replace

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

from tracer.format.memory import KEPT, training_memory
from tracer.library.counting import measured
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.ops.registry import kinds_for

CONFIG = Config(vocabulary=61, context=12, width=24, heads=4, blocks=3, dropout=0.0)
FUSED = {"layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]), "gelu": F.gelu,
         "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}


def kept(compute, apart=()) -> int:
    """Numbers of all storages that autograd keeps, but for those of `apart`."""
    apart, held = {one.untyped_storage().data_ptr() for one in apart}, {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if tensor.is_floating_point() and storage.data_ptr() not in apart:
            held[storage.data_ptr()] = storage.nbytes() // 4
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        made = compute()  # held until here: no memory is used twice
    del made
    return sum(held.values())


def test_every_norm_and_activation_keeps_what_is_said():
    assert set(KEPT) == {*kinds_for("norm"), *kinds_for("activation")}
    for kind, (feature, beside) in KEPT.items():
        if kind in FUSED:
            x = torch.randn(7, 10, requires_grad=True)
            assert kept(lambda kind=kind, x=x: FUSED[kind](x)) == 7 * (10 * feature + beside), kind
        else:
            assert measured(kind) == (feature, beside)


@pytest.mark.parametrize("choice", [{}, {"norm": "rms_norm"}, {"activation": "swiglu"}, {"position": "rotary"},
                                    {"kv_heads": 2}, {"bias": False}, {"tied": False}, {"activation": "gelu_tanh"}],
                         ids=str)
def test_activations_are_those_that_the_fused_model_keeps(choice):
    config = replace(CONFIG, **choice)
    model, ids = GPT(config, explicit=False), torch.randint(61, (5, 12))
    found = kept(lambda: model(ids, ids), model.parameters())
    assert found == training_memory(config, 5).activations / 4 + 1  # the weight by which the loss was divided
