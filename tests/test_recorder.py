"""The recorder watches any model without changing it: on models made for this, and on the GPT."""

import numpy as np
import pytest
import torch
from recorder_models import (
    SMALL,
    Call,
    Chain,
    Residual,
    Scale,
    ThreeUses,
    X,
    Y,
    gpt_loss,
    inputs,
    seeded,
    three_uses_loss,
)
from torch import nn
from torch.utils.checkpoint import checkpoint

from tracer.errors import UserError
from tracer.model.gpt import GPT
from tracer.model.optimizer import TrainingSettings, make_optimizer, update
from tracer.recording.recorder import Recorder, snapshot
from tracer.recording.trace_builder import to_numpy


def hook_count(model: nn.Module) -> int:
    stores = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
              "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called")
    tensors = [p._backward_hooks or () for p in model.parameters()]
    return sum(len(getattr(m, store)) for m in model.modules() for store in stores) + sum(map(len, tensors))


# Nothing is changed ----------------------------------------------------------------------------------

MODELS = {"gpt": (lambda: GPT(SMALL), gpt_loss), "three uses": (ThreeUses, three_uses_loss)}


@pytest.mark.parametrize("name", MODELS)
def test_recording_changes_no_bit_of_outputs_and_gradients(name):
    make, loss_of = MODELS[name]
    results = []
    for recorded in (False, True):
        model = seeded(make).train()
        with Recorder(model) if recorded else torch.enable_grad():
            loss = loss_of(model)
            loss.backward()
        results.append((loss.detach(), {n: p.grad for n, p in model.named_parameters()}))
    (plain_loss, plain), (loss, gradients) = results
    assert torch.equal(plain_loss, loss)
    assert plain.keys() == gradients.keys()
    assert all(torch.equal(plain[n], gradients[n]) for n in plain)
    assert all(g.abs().max() > 0 for n, g in gradients.items() if "bias" not in n)


def test_three_uses_added_in_another_order_would_show():
    """What the test above rests on, for the model with three uses of one value."""
    with Recorder(seeded(ThreeUses)) as recorder:
        three_uses_loss(recorder.model).backward()
    a, b, c = (recorder.use_gradients[use] for use in (("a", "input"), ("b", "input"), ("c", "x")))
    orders = [(a + b) + c, (c + b) + a, (a + c) + b]
    assert [torch.equal(order, recorder.gradients["first"]) for order in orders].count(True) == 1


def test_twenty_recorded_updates_are_those_of_an_unrecorded_run():
    parameters = []
    for recorded in (False, True):
        model = seeded(lambda: GPT(SMALL)).train()
        start = snapshot(model).parameters
        optimizer = make_optimizer(model, TrainingSettings())
        for _ in range(20):
            with Recorder(model) if recorded else torch.enable_grad():
                update(model, optimizer, X, Y)
        parameters.append(snapshot(model).parameters)
        assert not any(torch.equal(start[n], p) for n, p in parameters[-1].items())
    plain, watched = parameters
    assert all(torch.equal(plain[n], watched[n]) for n in plain)


def test_a_step_that_reads_an_argument_twice_keeps_its_gradient():
    def gradient(recorded: bool):
        model = seeded(lambda: Chain(first=nn.Linear(50, 50), residual=Residual(Call(lambda x: x * x * x))))
        with Recorder(model) if recorded else torch.enable_grad():
            model(inputs(40, 50)).square().mean().backward()
        return model.first.weight.grad

    torch.testing.assert_close(gradient(True), gradient(False), rtol=1e-5, atol=1e-7)


def test_random_state_is_untouched():
    model = seeded(lambda: GPT(SMALL)).train()
    states = []
    for recorded in (False, True):
        torch.manual_seed(3)
        with Recorder(model) if recorded else torch.enable_grad():
            model(X, Y)
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_a_list_that_a_module_writes_into_stays_the_callers():
    """A cache is such a list: a copy in its place would lose what is written."""
    cache, settings = [], {}
    model = Call(lambda x, cache, settings: (cache.append(x), settings.update(seen=True)) and x)
    with Recorder(model):
        model(inputs(2, requires_grad=True), cache, settings=settings)
    assert len(cache) == 1
    assert settings == {"seen": True}


# Hooks -----------------------------------------------------------------------------------------------

def test_hooks_are_removed_after_the_block():
    model = GPT(SMALL)
    with Recorder(model) as recorder:
        assert hook_count(model) > 0
        gpt_loss(model).backward()
    assert hook_count(model) == 0
    seen = len(recorder.calls), len(recorder.values), {n: g.clone() for n, g in recorder.gradients.items()}
    gpt_loss(model).backward()
    assert (len(recorder.calls), len(recorder.values)) == seen[:2]
    assert all(torch.equal(recorder.gradients[n], g) for n, g in seen[2].items())


def test_hooks_are_removed_after_an_exception_in_forward():
    model = Chain(first=nn.Linear(3, 3), broken=Call(lambda x: x @ x[:2]))
    with pytest.raises(RuntimeError, match="cannot be multiplied"), Recorder(model):
        model(inputs(4, 3))
    assert hook_count(model) == 0


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ZeroDivisionError("broken on purpose")


def test_hooks_are_removed_after_an_exception_in_backward():
    model = Chain(first=nn.Linear(3, 3), broken=Call(Broken.apply))
    with pytest.raises(ZeroDivisionError, match="broken on purpose"), Recorder(model) as recorder:
        model(inputs(4, 3)).sum().backward()
    assert hook_count(model) == 0
    assert recorder.values.keys() >= {"first", "broken"}
    assert recorder.gradients.keys() == {"broken"}


def test_a_module_that_returns_its_own_parameter_keeps_no_hook_on_it():
    model = Chain(table=nn.Module())
    model.table.weight = nn.Parameter(torch.ones(3))
    model.table.forward = lambda x: model.table.weight
    with Recorder(model) as recorder:
        model(inputs(3)).sum().backward()
    assert recorder.gradients["table"].tolist() == [1, 1, 1]
    assert hook_count(model) == 0


def test_a_caught_exception_leaves_no_call_open():
    class Careful(nn.Module):
        def __init__(self):
            super().__init__()
            self.broken = Chain(inner=Call(lambda x: x @ x[:2]))
            self.spare = Chain(inner=nn.Identity())

        def forward(self, x):
            try:
                return self.broken(x)
            except RuntimeError:
                return self.spare(x)

    with Recorder(Careful()) as recorder:
        recorder.model(inputs(4, 3))
    assert {c.path: c.parents for c in recorder.calls} == {
        "": (), "broken": ("",), "broken.inner": ("", "broken"), "spare": ("",), "spare.inner": ("", "spare")}
    assert {c.path for c in recorder.calls if c.outputs} == {"", "spare", "spare.inner"}


def test_hooks_of_others_survive_and_fire():
    model, fired = Chain(a=nn.Linear(3, 3), b=nn.Tanh()), []
    model.a.register_forward_pre_hook(lambda m, args: fired.append("before"))
    model.a.register_forward_hook(lambda m, args, result: fired.append("after"))
    model.b.register_full_backward_hook(lambda m, gi, go: fired.append("backward"))
    model.a.weight.register_hook(lambda g: fired.append("weight"))
    own = hook_count(model)
    with Recorder(model) as recorder:
        model(inputs(2, 3)).sum().backward()
    assert fired == ["before", "after", "backward", "weight"]
    assert hook_count(model) == own == 4
    model(inputs(2, 3)).sum().backward()
    assert fired == ["before", "after", "backward", "weight"] * 2
    # torch hands on what a module with a full backward hook returned as a new tensor: it has a new name.
    assert recorder.gradients.keys() == {"a", "b", ""}
    assert torch.equal(recorder.values["b"], recorder.values[""])
    assert torch.equal(recorder.gradients["b"], recorder.gradients[""])


@pytest.mark.parametrize("asked", [True, False])
def test_only_a_user_who_asked_for_a_gradient_finds_one_on_the_tensor(asked):
    """y = 5·(2·3·x): ∂y/∂(3x) = 10."""
    kept = []

    def keep(h):
        kept.append(h * 2)
        if asked:
            kept[0].retain_grad()
        return kept[0]

    with Recorder(Chain(inner=Chain(first=Scale(3.0), keep=Call(keep), last=Scale(5.0)))) as recorder:
        recorder.model(torch.tensor(1.0)).backward()
    assert recorder.gradients["inner.keep"] == 5
    assert recorder.gradients["inner.first"] == 10
    assert kept[0].grad == (5 if asked else None)


def test_a_users_hook_that_replaces_the_output_is_what_is_recorded():
    model = Chain(a=nn.Identity(), b=Call(lambda x: x + 1))
    model.a.register_forward_hook(lambda m, args, result: result * 10)
    with Recorder(model) as recorder:
        model(torch.ones(2))
    assert recorder.values["a"].tolist() == [10, 10]
    assert recorder.values["b"].tolist() == [11, 11]


# Modes -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients_the_values_are_recorded_alone(mode):
    model = seeded(lambda: GPT(SMALL)).eval()
    with mode(), Recorder(model) as recorder:
        _, loss = model(X, Y)
    assert torch.equal(recorder.values["loss"], loss)
    assert len(recorder.values) > 40
    assert recorder.gradients == recorder.use_gradients == {}
    embedding = next(c for c in recorder.calls if c.path == "token_embedding")
    assert torch.equal(recorder.values["token_embedding"], model.token_embedding.weight[X])
    assert embedding.outputs == {"out": "token_embedding"}


class Checkpointed(nn.Module):
    def __init__(self, on: bool):
        super().__init__()
        self.on = on
        self.inner = Chain(linear=nn.Linear(4, 4), tanh=nn.Tanh(), dropout=nn.Dropout(0.5))
        self.last = nn.Linear(4, 4)

    def forward(self, x):
        h = checkpoint(self.inner, x, use_reentrant=False) if self.on else self.inner(x)
        return self.last(h)


def test_activation_checkpointing_records_each_call_once():
    """Backward runs the checkpointed part again: that repeats what is recorded, and is no second call."""
    recorders = []
    for on in (False, True):
        model = seeded(lambda on=on: Checkpointed(on))
        with Recorder(model) as recorder:
            model(inputs(3, 4, requires_grad=True)).square().sum().backward()
            model(inputs(3, 4, requires_grad=True))  # after the repetition, which torch breaks off midway
        recorders.append(recorder)
    plain, repeated = recorders
    assert [(c.path, c.parents) for c in repeated.calls] == [(c.path, c.parents) for c in plain.calls]
    assert repeated.values.keys() == plain.values.keys()
    for store in ("values", "gradients", "use_gradients"):
        expected = getattr(plain, store)
        assert all(torch.equal(getattr(repeated, store)[key], expected[key]) for key in expected), store
    assert plain.gradients.keys() == {"inner.linear", "inner.tanh", "inner.dropout", "last"}


def test_a_compiled_model_is_refused():
    model = Chain(a=nn.Linear(2, 2))
    with pytest.raises(UserError, match="compiled model"):
        Recorder(torch.compile(model))
    with pytest.raises(UserError, match="compiled model"):
        Recorder(Chain(part=torch.compile(nn.Linear(2, 2))))
    model.compile()
    with pytest.raises(UserError, match="compiled model"):
        Recorder(model)


def test_buffers_change_exactly_as_without_recording():
    buffers = []
    for recorded in (False, True):
        model = Chain(norm=nn.BatchNorm1d(3), last=nn.Linear(3, 3)).train()
        with Recorder(model) if recorded else torch.enable_grad() as recorder:
            model(inputs(8, 3) + 4)
        buffers.append(dict(model.named_buffers()))
        if recorded:
            assert recorder.values["norm"].mean(dim=0).abs().max() < 1e-6  # normalised by the batch itself
    plain, watched = buffers
    assert plain["norm.num_batches_tracked"] == 1
    assert (plain["norm.running_mean"] > 0.3).all()
    assert all(torch.equal(plain[n], watched[n]) for n in plain)


def test_a_buffer_as_an_argument_is_recorded_as_it_was_when_read():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.read = Call(lambda count: count * 1)

        def forward(self):
            self.count += 1
            return self.read(self.count)

    with Recorder(Counting()) as recorder:
        recorder.model()
        recorder.model()
    reads = [c for c in recorder.calls if c.is_step]
    assert [recorder.values[c.inputs["0"]].item() for c in reads] == [1, 2]


def test_bfloat16_values_become_numpy():
    model = Chain(scale=Scale(0.5)).bfloat16()
    with Recorder(model) as recorder:
        model(torch.tensor([1.0, 3.0], dtype=torch.bfloat16)).sum().backward()
    values = to_numpy(recorder.values["scale"])
    assert recorder.values["scale"].dtype == torch.bfloat16
    assert values.dtype == np.float32
    assert values.tolist() == [0.5, 1.5]
    assert to_numpy(recorder.gradients["scale"]).tolist() == [1, 1]


@pytest.mark.parametrize(("tensor", "dtype", "values"), [
    (torch.tensor([True, False]), np.int64, [1, 0]), (torch.tensor([1, 2], dtype=torch.int32), np.int64, [1, 2]),
    (torch.tensor([0.5], dtype=torch.float64), np.float32, [0.5]), (torch.tensor(7), np.int64, 7)])
def test_every_dtype_becomes_float32_or_int64(tensor, dtype, values):
    assert to_numpy(tensor).dtype == dtype
    assert to_numpy(tensor).tolist() == values
