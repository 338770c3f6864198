"""What a recording is told of calls: their names, values that change later, models that are odd."""

import copy
from collections import OrderedDict

import pytest
import torch
from recorder_models import Call, Chain, Pair, Residual, Scale, inputs
from torch import nn

from tracer.recording.recorder import Recorder

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
