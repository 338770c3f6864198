"""The recorder watches any model without changing it: on models made for this, and on the GPT."""

import copy
import dataclasses
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.optimizer import TrainingSettings, make_optimizer, update
from tracer.recording.modules import find_tensors
from tracer.recording.recorder import Recorder, snapshot
from tracer.recording.trace_builder import to_numpy

SMALL = Config(vocabulary=31, context=8, width=8, heads=2, blocks=2, dropout=0.2)
X, Y = torch.tensor([[3, 1, 4, 1, 5]]), torch.tensor([[1, 4, 1, 5, 9]])


class Call(nn.Module):
    """A module of its own for any function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Scale(nn.Module):
    def __init__(self, factor: float):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, x):
        return x * self.factor


class ThreeUses(nn.Module):
    """One value read by three modules: the order in which its gradients are added matters to the last bit."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.a, self.b, self.c = nn.Tanh(), nn.Linear(6, 6), Scale(0.3)
        self.join = Call(lambda a, b, c: a * b + c)

    def forward(self, x):
        h = self.first(x)
        return self.join(self.a(h), self.b(h), self.c(h))


class Chain(nn.Module):
    """Modules one after the other, by name."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x):
        for module in self.children():
            x = module(x)
        return x


def inputs(*shape: int, seed: int = 0, requires_grad: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, requires_grad=requires_grad)


def seeded(make) -> nn.Module:
    torch.manual_seed(7)
    return make()


def hook_count(model: nn.Module) -> int:
    stores = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
              "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called")
    tensors = [p._backward_hooks or () for p in model.parameters()]
    return sum(len(getattr(m, store)) for m in model.modules() for store in stores) + sum(map(len, tensors))


# Nothing is changed ----------------------------------------------------------------------------------

def gpt_loss(model):
    return model(X, Y)[1]


def three_uses_loss(model):
    return model(inputs(5, 6)).square().mean()


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


class Residual(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner, self.add = inner, Call(lambda a, b: a + b)

    def forward(self, x):
        return self.add(x, self.inner(x))


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


# Values that change after they were returned ---------------------------------------------------------

class ChangedInPlace(nn.Module):
    """What `first` returns is changed in place afterwards, in the way that `change` says."""

    def __init__(self, change):
        super().__init__()
        self.first, self.change, self.last = Scale(2.0), change, Scale(3.0)

    def forward(self, x):
        h = self.first(x)
        return self.last(self.change(h))


def add_five(h):
    h.add_(5)
    return h


def clear_first_through_view(h):
    h[0].zero_()
    return h


@pytest.mark.parametrize(("change", "read"), [
    (nn.ReLU(inplace=True), [0, 2]), (add_five, [3, 7]), (clear_first_through_view, [0, 2])],
    ids=["inplace module", "in place", "through a view"])
@pytest.mark.parametrize("gradients", [True, False])
def test_changes_in_place_do_not_reach_recorded_values(change, read, gradients):
    with torch.set_grad_enabled(gradients), Recorder(ChangedInPlace(change)) as recorder:
        recorder.model(torch.tensor([-1.0, 1.0]))
    assert recorder.values["first"].tolist() == [-2, 2]
    last = next(c for c in recorder.calls if c.path == "last")
    assert last.inputs["x"] != "first"  # another value by now, so another name
    assert recorder.values[last.inputs["x"]].tolist() == read
    assert recorder.values["last"].tolist() == [3 * value for value in read]


def test_gradient_of_a_value_changed_in_place_is_that_of_the_value_recorded():
    """y = 3·relu(2x): ∂Σy/∂(2x) is 0 where relu cut, 3 elsewhere."""
    with Recorder(ChangedInPlace(nn.ReLU(inplace=True))) as recorder:
        recorder.model(torch.tensor([-1.0, 1.0])).sum().backward()
    assert recorder.gradients["first"].tolist() == [0, 3]
    assert recorder.gradients["change"].tolist() == [3, 3]


def test_changes_of_the_input_after_the_call_do_not_reach_it():
    x = torch.ones(2)
    with Recorder(Scale(2.0)) as recorder:
        recorder.name_input(x, "x")
        recorder.model(x)
        x.zero_()
    assert recorder.values["x"].tolist() == [1, 1]


# Calls and their names -------------------------------------------------------------------------------

class CalledTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale(3.0)

    def forward(self, x):
        return self.scale(self.scale(x))


def test_a_module_called_twice():
    """y = 3·(3·x): ∂y/∂y = 1, ∂y/∂(3x) = 3, ∂y/∂w = x·w + w·x = 12."""
    with Recorder(CalledTwice()) as recorder:
        recorder.model(torch.tensor(2.0)).backward()
    assert [c.path for c in recorder.calls] == ["", "scale", "scale#2"]
    assert [c.inputs.get("x") for c in recorder.calls] == [":x", ":x", "scale"]
    assert (recorder.values["scale"], recorder.values["scale#2"]) == (6, 18)
    assert (recorder.gradients["scale"], recorder.gradients["scale#2"]) == (3, 1)
    assert recorder.use_gradients == {("scale#2", "x"): 3}  # the input of the first call needs no gradient
    assert recorder.model.scale.factor.grad == 12


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(("result", "names"), [
    (lambda x: {"logits": x + 1, "more": {"deep": x + 2}}, {"logits": 1, "more.deep": 2}),
    (lambda x: OrderedDict(b=x + 1, a=None), {"b": 1}),
    (lambda x: (x + 1, x + 2), {"0": 1, "1": 2}),
    (lambda x: [x + 1, "text", 7], {"0": 1}),
    (lambda x: Pair(x + 1, (x + 2, x + 3)), {"0": 1, "1.0": 2, "1.1": 3}),
    (lambda x: None, {}), (lambda x: 3.5, {}), (lambda x: "text", {}),
])
def test_outputs_of_any_form(result, names):
    model = Chain(step=Call(result))
    plain = model(torch.ones(1))
    with Recorder(model) as recorder:
        returned = model(torch.ones(1))
    assert returned == plain
    assert type(returned) is type(plain)
    call = next(c for c in recorder.calls if c.path == "step")
    assert call.outputs == {name: f"step.{name}" for name in names}
    assert {n: recorder.values[f"step.{n}"].item() - 1 for n in names} == names


def test_gradients_of_nested_outputs():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = Call(lambda x: {"a": x * 2, "b": (x * 3, x * 5)})
            self.join = Call(lambda parts: parts["a"] * 10 + parts["b"][1] * 100)

        def forward(self, x):
            return self.join(self.parts(x))

    x = torch.tensor(1.0, requires_grad=True)
    with Recorder(Last()) as recorder:
        recorder.model(x).backward()
    assert recorder.gradients == {"parts.a": 10, "parts.b.1": 100, "join": 1}
    assert recorder.use_gradients == {("parts", "0"): 520, ("join", "0.a"): 10, ("join", "0.b.1"): 100}
    assert x.grad == 520
    join = recorder.calls[-1]
    assert join.inputs == {"0.a": "parts.a", "0.b.0": "parts.b.0", "0.b.1": "parts.b.1"}


def test_tuples_as_arguments_keep_their_type_and_get_their_gradients():
    seen = []
    model = Chain(scale=Scale(2.0), pair=Call(lambda x: Pair(x, x * 3)),
                  last=Call(lambda pair: seen.append(pair) or pair.left * pair.right))
    with Recorder(model) as recorder:
        model(torch.tensor(1.0)).backward()
    assert isinstance(seen[0], Pair)
    # a = 2, b = 6: ∂ab/∂a = 6, ∂ab/∂b = 2.
    assert (recorder.use_gradients["last", "0.0"], recorder.use_gradients["last", "0.1"]) == (6, 2)


def test_keyword_arguments_and_arguments_by_position_have_the_same_names():
    class Weighted(nn.Module):
        def forward(self, value, *, weight, note="none"):
            return value * weight

    value, weight = torch.tensor(3.0, requires_grad=True), torch.tensor(4.0)
    with Recorder(Weighted()) as recorder:
        recorder.name_input(value, "v")
        recorder.model(value, weight=weight, note="kept")
        recorder.model(weight=weight, value=value).backward()
    assert [c.inputs for c in recorder.calls] == [{"value": "v", "weight": ":weight"}] * 2
    assert recorder.use_gradients == {("#2", "value"): 4}


def test_a_container_hands_on_what_a_step_made_and_records_what_it_makes_itself():
    class Doubling(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = Scale(3.0)

        def forward(self, x):
            return self.step(x) * 2

    model = Chain(plain=Chain(step=Scale(2.0)), own=Doubling())
    with Recorder(model) as recorder:
        model(torch.tensor(1.0)).backward()
    outputs = {c.path: c.outputs for c in recorder.calls}
    assert outputs["plain"] == outputs["plain.step"] == {"out": "plain.step"}
    assert outputs[""] == outputs["own"] == {"out": "own"}
    assert recorder.values["own"] == 12
    assert recorder.gradients == {"plain.step": 6, "own.step": 2, "own": 1}


def test_ids_of_freed_tensors_are_not_taken_for_others():
    """Tensors that nobody keeps get the ids of earlier ones; each input is still the value it was."""
    model = Chain(**{f"step{i}": Call(lambda x: x + 1) for i in range(50)})
    with torch.no_grad(), Recorder(model) as recorder:
        model(torch.zeros(1))
    steps = [c for c in recorder.calls if c.is_step]
    assert [recorder.values[c.inputs["0"]].item() for c in steps] == list(range(50))
    assert [c.inputs["0"] for c in steps[1:]] == [f"step{i}" for i in range(49)]


# The same tensor returned ----------------------------------------------------------------------------

@pytest.mark.parametrize("same", [nn.Identity(), nn.Dropout(0.5).eval(), Call(lambda x: x)],
                         ids=["identity", "dropout off", "function"])
def test_what_a_module_returns_as_it_got_it_keeps_its_name(same):
    """h = 2x, y = h + same(h): one value, which `add` reads twice, so that 2 comes back to it."""
    model = Chain(scale=Scale(2.0), residual=Residual(same))
    with Recorder(model) as recorder:
        model(torch.tensor([1.0, 4.0])).sum().backward()
    calls = {call.path: call for call in recorder.calls}
    assert recorder.values["scale"].tolist() == [2, 8]
    assert calls["residual.inner"].outputs == {"out": "scale"}
    assert calls["residual.inner"].made == []
    assert calls["residual.add"].inputs == {"0": "scale", "1": "scale"}
    assert recorder.gradients["scale"].tolist() == recorder.use_gradients["residual.add", "0"].tolist() == [2, 2]
    assert recorder.notices == []


def test_identity_hands_on_the_very_tensor_of_any_layout():
    for x in (inputs(3, requires_grad=True) * 2, (inputs(3, 3, requires_grad=True) * 2).to_sparse(),
              torch.ones(2, dtype=torch.complex64, requires_grad=True) * 2):
        with Recorder(nn.Identity()) as recorder:
            assert recorder.model(x) is x
        assert recorder.calls[0].inputs == {"input": ":input"} and recorder.calls[0].outputs == {"out": ":input"}


# Gradients of uses -----------------------------------------------------------------------------------

def test_gradients_of_two_uses_add_up():
    model = seeded(lambda: Chain(first=nn.Linear(4, 4), residual=Residual(nn.Tanh())))
    x = inputs(3, 4)
    with Recorder(model) as recorder:
        model(x).square().sum().backward()
    h = model.first(x).detach().requires_grad_()
    through_tanh, direct = h.detach().clone().requires_grad_(), h.detach().clone().requires_grad_()
    parts = torch.autograd.grad((direct + through_tanh.tanh()).square().sum(), [direct, through_tanh])
    total, = torch.autograd.grad((h + h.tanh()).square().sum(), h)
    uses = recorder.use_gradients["residual.add", "0"], recorder.use_gradients["residual.inner", "input"]
    for use, part in zip(uses, parts, strict=True):
        torch.testing.assert_close(use, part)
    assert torch.equal(uses[0] + uses[1], recorder.gradients["first"])
    torch.testing.assert_close(recorder.gradients["first"], total)


class Leaks(nn.Module):
    """h = 2x; returns 3h.  `keep(h, self)` uses h once more, outside of every step."""

    def __init__(self, keep):
        super().__init__()
        self.first, self.last, self.keep = Scale(2.0), Scale(3.0), keep

    def forward(self, x):
        h = self.first(x)
        self.keep(h, self)
        return self.last(h)


@pytest.mark.parametrize("keep", [
    lambda h, model: setattr(model, "kept", h),
    lambda h, model: setattr(model, "kept", h[0:1]),
    lambda h, model: setattr(model, "kept", [h * 1.0]),
    lambda h, model: model.first.__dict__.update(kept=(h,)),
])
def test_a_value_that_others_use_behind_the_models_back_has_its_parts_apart(keep):
    """Loss = 3h + 7·(kept h): the part through `last` is 3, the whole gradient 10."""
    model, x = Leaks(keep), torch.ones(1, requires_grad=True)
    with Recorder(model) as recorder:
        out = model(x)
        kept = model.__dict__.get("kept", model.first.__dict__.get("kept"))
        (out + 7 * (kept if isinstance(kept, torch.Tensor) else kept[0])).sum().backward()
    assert recorder.gradients["first"] == 10
    assert recorder.use_gradients["last", "x"] == 3
    assert recorder.use_gradients["first", "x"] == x.grad == 20


def test_a_value_that_the_model_also_returns_has_its_parts_apart():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = Scale(2.0), Scale(3.0)

        def forward(self, x):
            h = self.first(x)
            return {"hidden": h, "out": self.last(h)}

    x = torch.ones(1, requires_grad=True)
    with Recorder(Both()) as recorder:
        result = recorder.model(x)
        (result["out"] + 7 * result["hidden"]).sum().backward()
    assert recorder.gradients["first"] == 10
    assert recorder.use_gradients["last", "x"] == 3


def test_a_value_that_a_container_reads_beside_a_step_has_its_parts_apart():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.inner, self.last = Scale(2.0), Scale(3.0), Scale(5.0)

        def forward(self, x):
            h = self.first(x)
            return self.last(h * 7 + self.inner(h))

    x = torch.ones(1, requires_grad=True)
    with Recorder(Residual()) as recorder:
        recorder.model(x).sum().backward()
    assert recorder.gradients["first"] == 5 * (7 + 3)
    assert recorder.use_gradients["inner", "x"] == 5 * 3
    assert recorder.use_gradients["last", "x"] == 5


def test_a_tied_weight_gets_a_gradient_from_each_use():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(5, 3)
            self.head = Call(lambda x, table: x @ table.T)

        def forward(self, ids):
            return self.head(self.table(ids), self.table.weight)

    model = seeded(Tied)
    with Recorder(model) as recorder:
        model(torch.tensor([1, 1, 4])).square().sum().backward()
    head = next(c for c in recorder.calls if c.path == "head")
    assert head.inputs == {"0": "table", "1": "table.weight"}
    lookup = torch.zeros(5, 3).index_add_(0, torch.tensor([1, 1, 4]), recorder.gradients["table"])
    torch.testing.assert_close(lookup + recorder.use_gradients["head", "1"], model.table.weight.grad)


def test_a_frozen_parameter_gets_no_gradient_and_the_rest_does():
    model = seeded(ThreeUses)
    model.first.weight.requires_grad_(False)
    with Recorder(model) as recorder:
        three_uses_loss(model).backward()
    taken = snapshot(model)
    assert "first.weight" in taken.parameters
    assert taken.gradients.keys() == taken.parameters.keys() - {"first.weight"}
    assert recorder.gradients["first"].abs().max() > 0


def test_two_backward_passes_add_up_as_in_torch():
    model = Chain(scale=Scale(2.0), more=Scale(5.0))
    with Recorder(model) as recorder:
        out = model(torch.tensor(1.0))
        out.backward(retain_graph=True)
        out.backward()
    assert recorder.gradients == {"scale": 10, "more": 2}
    assert recorder.use_gradients == {("more", "x"): 10}


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


# Snapshots -------------------------------------------------------------------------------------------

def test_a_snapshot_before_the_first_step_has_no_state_and_later_ones_do():
    model = seeded(ThreeUses)
    optimizer = make_optimizer(model, TrainingSettings())
    empty = snapshot(model, optimizer)
    assert empty.gradients == {}
    assert empty.state == {name: {} for name, _ in model.named_parameters()}
    three_uses_loss(model).backward()
    optimizer.step()
    full = snapshot(model, optimizer)
    for name, parameter in model.named_parameters():
        assert not torch.equal(empty.parameters[name], full.parameters[name])
        assert torch.equal(full.gradients[name], parameter.grad)
        torch.testing.assert_close(full.state[name]["exp_avg"], parameter.grad * 0.1)
        assert full.state[name]["step"] == 1


def test_a_snapshot_is_a_copy():
    model = Scale(2.0)
    taken = snapshot(model)
    with torch.no_grad():
        model.factor.fill_(9)
    assert taken.parameters["factor"] == 2


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    more: tuple = ()


class Custom(Mapping):
    def __init__(self, **items):
        self.items_ = items

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


def test_tensors_are_found_in_nested_values():
    loop = [torch.tensor(5)]
    loop.append(loop)
    other = object()
    value = {"list": [torch.tensor(1)], "pair": Pair(torch.tensor(2), 3), "data": Output(torch.tensor(3), ("a", None)),
             "map": Custom(deep=Custom(er=torch.tensor(4))), "loop": loop, "other": other}
    found = {".".join(where): item for where, item in find_tensors(value)}
    assert found.pop("other") is other
    assert {where: item.item() for where, item in found.items()} == {
        "list.0": 1, "pair.0": 2, "data.logits": 3, "map.deep.er": 4, "loop.0": 5}


def test_large_gradients_are_held_safely():
    """A large gradient is not copied: what is done to `.grad` afterwards must not reach what was recorded."""
    torch.manual_seed(3)
    rows = 20_000

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.randn(rows, 4))
            self.look_up = Call(lambda table, ids: table[ids])
            self.head = Call(lambda x, table: x @ table.T)

        def forward(self, ids):
            return self.head(self.look_up(self.table, ids), self.table)

    model, ids = Tied(), torch.tensor([1, 2, 2])
    with Recorder(model) as recorder:
        for _ in range(2):  # the second backward adds to what is there
            (model(ids) ** 2).sum().backward()
    uses = {key: value.clone() for key, value in recorder.use_gradients.items()}
    whole = model.table.grad.clone()
    model.table.grad.mul_(7)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    model.zero_grad(set_to_none=False)

    table, n = model.table.detach().double().numpy(), len(ids)
    x = table[ids.numpy()]
    logits_gradient = 2 * (x @ table.T)  # (n, rows)
    head = logits_gradient.T @ x
    look_up = np.zeros_like(table)
    np.add.at(look_up, ids.numpy(), logits_gradient @ table)
    assert n == 3
    np.testing.assert_allclose(whole.numpy(), 2 * (head + look_up), rtol=1e-4, atol=1e-2)
    for call in ("", "#2"):
        for path, expected in (("head", head), ("look_up", look_up)):
            (key,) = [k for k in uses if k[0] == path + call and k[1] in ("table", "1", "0", "args.1", "args.0")
                      and uses[k].shape == table.shape]
            np.testing.assert_array_equal(recorder.use_gradients[key].numpy(), uses[key].numpy())
            np.testing.assert_allclose(uses[key].numpy(), expected, rtol=1e-4, atol=1e-2, err_msg=str(key))


# Odd models ------------------------------------------------------------------------------------------

def test_what_the_outermost_call_returned_is_changed_afterwards():
    """o = 2·(5·3·x): ∂Σo/∂(15x) = 2, though the tensor holds 30x by then."""
    with Recorder(Chain(three=Scale(3.0), five=Scale(5.0))) as recorder:
        out = recorder.model(inputs(2, requires_grad=True))
        out.mul_(2)
        out.sum().backward()
    assert recorder.gradients["five"].tolist() == [2, 2]
    assert recorder.use_gradients["five", "x"].tolist() == [10, 10]
    assert recorder.gradients["three"].tolist() == [10, 10]


def test_the_gradient_of_a_value_that_is_changed_afterwards_is_that_of_the_value_recorded():
    """loss = Σk + Σ7k: ∂loss/∂k = 8, the 7 of which came outside of the model."""
    kept = []
    model = Chain(three=Scale(3.0), keep=Call(lambda x: kept.append(x * 2) or kept[0]), five=Call(lambda x: x.sum()))
    with Recorder(model) as recorder:
        loss = model(inputs(2, requires_grad=True))
        kept[0].mul_(7)
        (loss + kept[0].sum()).backward()
    assert recorder.gradients["keep"].tolist() == [8, 8]
    assert recorder.use_gradients["five", "0"].tolist() == [1, 1]
    assert [notice.about for notice in recorder.notices] == ["keep"]


class Doubled(nn.Sequential):
    def forward(self, x):
        return tuple(module(x) * 2 for module in self)


def test_an_output_of_a_container_does_not_take_the_name_of_a_module_in_it():
    with Recorder(Chain(heads=Doubled(Scale(3.0), Scale(5.0)), join=Call(lambda pair: pair[0] + pair[1]))) as recorder:
        recorder.model(torch.ones(1, requires_grad=True)).sum().backward()
    values = {name: recorder.values[name].item() for name in ("heads.0", "heads.1", "heads/0", "heads/1", "join")}
    assert values == {"heads.0": 3, "heads.1": 5, "heads/0": 6, "heads/1": 10, "join": 16}
    assert recorder.gradients["heads.0"] == 2
    (join,) = (call for call in recorder.calls if call.path == "join")
    assert list(join.inputs.values()) == ["heads/0", "heads/1"]


@pytest.mark.parametrize("attribute", ["outputs", "details", "attributes"])
@pytest.mark.parametrize("own", [3, "x", [1, 2], torch.ones(3), {"a": 1}, len],
                         ids=["number", "text", "list", "tensor", "dict", "function"])
def test_a_module_may_have_something_of_its_own_under_our_names(attribute, own):
    model = Chain(one=Call(lambda x: (x + 1, x + 2)), two=Call(lambda pair: pair[0] * pair[1]))
    for module in model.children():
        setattr(module, attribute, own)
    with Recorder(model) as recorder:
        assert model(torch.ones(1)).item() == 6
    assert recorder.values["two"].item() == 6


def test_after_a_failure_of_the_model_that_was_caught_the_next_call_is_recorded_whole():
    model = Chain(first=nn.Linear(3, 3), last=nn.Tanh())
    with Recorder(model) as recorder:
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            model(inputs(2, 4))
        model(inputs(2, 3)).sum().backward()
    paths = [(call.path, call.parents) for call in recorder.calls[2:]]
    assert paths == [("#2", ()), ("first#2", ("#2",)), ("last", ("#2",))]
    assert torch.equal(recorder.use_gradients["last", "input"], recorder.gradients["first#2"])


class Countdown(nn.Module):
    """Calls itself, which is not a failure."""

    def __init__(self):
        super().__init__()
        self.step = Call(lambda x: x * 2)

    def forward(self, x, n):
        return self.step(x) if n == 0 else self(self.step(x), n - 1)


def test_a_model_that_calls_itself():
    with Recorder(Countdown()) as recorder:
        recorder.model(torch.ones(1, requires_grad=True), 2).sum().backward()
    assert [call.parents for call in recorder.calls if call.is_step] == [("",), ("", "#2"), ("", "#2", "#3")]
    assert [recorder.gradients[name].item() for name in ("step", "step#2", "step#3")] == [4, 2, 1]


def test_what_a_step_is_given_twice_is_one_use():
    """add(h, h) = h + 3h: the part that comes back through it is the whole gradient, 4."""
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.add = Scale(2.0), Call(lambda a, b: a + 3 * b)

        def forward(self, x):
            h = self.first(x)
            return self.add(h, h)

    with Recorder(Twice()) as recorder:
        recorder.model(torch.ones(1)).sum().backward()
    assert recorder.gradients["first"] == 4
    uses = {key: part.item() for key, part in recorder.use_gradients.items() if key[0] == "add"}
    assert list(uses.values()) == [4]
    assert list(recorder.calls[-1].inputs.values()) == ["first", "first"]


def test_a_change_in_place_in_inference_mode():
    with torch.inference_mode(), Recorder(Chain(a=Scale(2.0), b=Call(lambda x: x.add_(5)), c=Scale(3.0))) as recorder:
        recorder.model(torch.ones(1))
    assert recorder.values["a"].item() == 2
    c = recorder.calls[-1]
    assert recorder.values[c.inputs["x"]].item() == 7
    assert recorder.values["c"].item() == 21


def test_a_copy_of_a_module_that_is_made_and_called_in_the_block():
    model = Chain(inner=nn.Linear(3, 3))
    model.outer = Call(lambda x: copy.copy(model.inner)(x))
    with Recorder(model) as recorder:
        out = model(inputs(2, 3))
    assert torch.equal(recorder.values["outer"], out)
