"""What the recorder cannot see is said or refused; it keeps nothing, and is in nobody's way."""

import copy
import gc
import io
import weakref

import numpy as np
import pytest
import torch
from recorder_models import Custom, Output
from torch import nn
from torch.utils.checkpoint import checkpoint

from tracer.errors import UserError
from tracer.recording.recorder import Recorder
from tracer.recording.trace_builder import to_numpy


class Call(nn.Module):
    """A module of its own for any function; `modules` stand in it by name."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, *args, **kwargs):
        return self.function(self, *args, **kwargs)


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.Tanh())


def said(recorder: Recorder) -> dict[str, str]:
    return {notice.about: notice.why for notice in recorder.notices}


# Refused ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("thing", [torch.tanh, lambda x: x, None, 3, [small()]])
def test_what_is_no_module_is_refused(thing):
    with pytest.raises(UserError, match="can be recorded, not a"):
        Recorder(thing)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_scripted_model_is_refused():
    with pytest.raises(UserError, match="record the model that it was made from"):
        Recorder(torch.jit.script(small()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("around", [
    lambda model: torch.jit.trace(model, torch.ones(1, 2)),
    lambda model: torch.func.grad(lambda x: model(x).sum())(torch.ones(2)),
    lambda model: torch.func.vmap(model)(torch.ones(3, 2)),
    lambda model: torch.func.jacrev(model)(torch.ones(2)),
    lambda model: torch.func.jvp(model, (torch.ones(2),), (torch.ones(2),)),
    lambda model: torch.func.grad(lambda p: torch.func.functional_call(model, p, torch.ones(2)).sum())(
        {name: p.detach() for name, p in model.named_parameters()}),
], ids=["jit.trace", "grad", "vmap", "jacrev", "jvp", "grad by parameters"])
def test_what_turns_a_model_into_something_else_is_refused_in_one_line(around):
    model = small()
    with pytest.raises(UserError) as error, Recorder(model):
        around(model)
    assert "\n" not in str(error.value)
    with Recorder(model) as recorder:  # nothing is left half done
        model(torch.ones(2)).sum().backward()
    assert recorder.gradients.keys() == {"0", "1"} and not recorder.notices


@pytest.mark.parametrize(("tensor", "why"), [
    (torch.tensor([1 + 2j]), "complex64"), (torch.eye(2).to_sparse(), "sparse_coo"),
    (torch.tensor([1e300], dtype=torch.float64), "beyond the range of float32"),
    (torch.tensor([2**63], dtype=torch.uint64), "beyond the range of int64"),
    (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "qint8")])
@pytest.mark.filterwarnings("ignore")
def test_numbers_that_a_recording_does_not_hold_are_refused(tensor, why):
    with pytest.raises(UserError, match=why):
        to_numpy(tensor)


def test_numbers_at_the_edge_are_held():
    for value, dtype in ((3.4e38, torch.float64), (2**63 - 1, torch.uint64), (-(2**63), torch.int64),
                         (float("inf"), torch.float64), (255, torch.uint8), (1.5, torch.float8_e4m3fn)):
        assert to_numpy(torch.tensor([value], dtype=dtype)).tolist() == [np.float32(value) if dtype in (
            torch.float64, torch.float8_e4m3fn) else value]
    assert np.isnan(to_numpy(torch.tensor([float("nan")], dtype=torch.float64))).all()


# Said ------------------------------------------------------------------------------------------------

class HandedAlong:
    def __init__(self, tensor):
        self.tensor = tensor


def test_an_object_that_is_not_looked_into_is_said():
    model = Call(lambda self, x: self.b(self.a(x)), a=Call(lambda self, x: HandedAlong(x * 2)),
                 b=Call(lambda self, box: box.tensor + 1))
    with torch.no_grad(), Recorder(model) as recorder:
        model(torch.ones(1))
    assert "returned a HandedAlong" in said(recorder)["a"]
    assert "given a HandedAlong" in said(recorder)["b"]


def test_a_forward_that_is_called_directly_is_said():
    model = Call(lambda self, x: self.act.forward(self.b(self.a.forward(x))), a=nn.Linear(2, 2), b=nn.Linear(2, 2),
                 act=nn.ReLU())
    for grad in (True, False):
        with torch.set_grad_enabled(grad), Recorder(model) as recorder:
            out = model(torch.ones(1, 2)).sum()
            out.backward() if grad else None
        assert "not called" in said(recorder)["a"]
        assert "made by code of the model" in said(recorder)["b:input"]
        assert "contains others" in said(recorder)[""]


def test_a_compiled_function_around_the_model_is_recorded_whole_or_said():
    """Compiled before the block, it runs past the hooks; in the block torch gives up where it meets them."""
    model, x = nn.Tanh(), torch.ones(1, requires_grad=True)
    compiled = torch.compile(lambda x: model(x), backend="eager")
    for before in (False, True):
        torch.compiler.reset()
        if before:
            compiled(x)
        with Recorder(model) as recorder:
            compiled(x).sum().backward()
        whole = recorder.gradients.keys() == {""} and not recorder.notices
        assert whole or "not called in the block" in said(recorder)[""]


def test_a_layer_of_which_torch_chooses_the_kernel_by_the_hooks_is_said():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(1, 3, 8)
    with torch.no_grad(), Recorder(layer) as recorder:
        layer(x)
    assert any("one kernel" in notice.why for notice in recorder.notices)
    with Recorder(layer) as recorder:  # with gradients it has no kernel of its own
        layer(x).sum().backward()
    assert not any("one kernel" in notice.why for notice in recorder.notices)


@pytest.mark.filterwarnings("ignore:None of the inputs")
@pytest.mark.parametrize("reentrant", [True, False])
def test_gradients_inside_a_reentrant_checkpoint_are_said_to_be_missing(reentrant):
    model = Call(lambda self, x: self.last(checkpoint(self.inner, x, use_reentrant=reentrant)), inner=small(),
                 last=nn.Linear(2, 2))
    with Recorder(model) as recorder:
        model(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert {"inner.0", "inner.1"} <= recorder.values.keys()
    assert ("inner.0" in recorder.gradients) is not reentrant
    assert {about for about, why in said(recorder).items() if "reentrant" in why} == (
        {"inner", "inner.0", "inner.1"} if reentrant else set())


def test_a_block_without_backward_says_so_and_a_later_one_is_as_if_nothing_had_been_recorded():
    kept = []
    model = nn.Sequential(nn.Linear(2, 2), Call(lambda self, x: kept.append(x) or x.tanh()))
    with Recorder(model) as recorder:
        loss = model(torch.ones(1, 2)).sum()
    assert "no backward" in said(recorder)[""]
    loss.backward()
    assert recorder.gradients == recorder.use_gradients == {}
    assert not kept[0].retains_grad
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize(("beside", "whole"), [
    (lambda module, x, out: None, True),
    (lambda module, x, out: setattr(module, "penalty", (x ** 2).sum()), True),       # kept: found from the module
    (lambda module, x, out: setattr(module, "penalty", [{"a": (out ** 2).sum()}]), True),
    (lambda module, x, out: HIDDEN.append((x ** 2).sum()), False),                    # kept where nobody looks
])
def test_a_use_that_the_recorder_does_not_find_is_said(beside, whole):
    """Loss = Σ tanh(h) + Σ h + penalties of h or of tanh(h), h = 3x."""
    HIDDEN.clear()

    def step(self, x):
        out = x.tanh()
        beside(self, x, out)
        return out

    model = Call(lambda self, x: self.add(h := self.a(x), self.b(h)), a=Call(lambda self, x: x * 3), b=Call(step),
                 add=Call(lambda self, a, b: (a + b).sum()))
    x = torch.tensor([0.2, 0.4], dtype=torch.float64, requires_grad=True)
    with Recorder(model) as recorder:
        loss = model(x)
        penalty = getattr(model.b, "penalty", None)
        penalties = [penalty[0]["a"] if isinstance(penalty, list) else penalty] if penalty is not None else []
        sum([*penalties, *HIDDEN], loss).backward()
    h = (x.detach() * 3).requires_grad_()
    of_h = sum([(h ** 2).sum() if penalties and not isinstance(penalty, list) else 0,
                (h.tanh() ** 2).sum() if isinstance(penalty, list) else 0], h.tanh().sum())
    (expected,) = torch.autograd.grad(of_h, h)
    torch.testing.assert_close(recorder.use_gradients["b", "0"], expected)
    assert ("a" in said(recorder)) is not whole
    parts = recorder.use_gradients["b", "0"] + recorder.use_gradients["add", "0"]
    assert torch.allclose(parts, recorder.gradients["a"]) is whole


HIDDEN = []


@pytest.mark.parametrize("size", [3, 70_000])
def test_a_hook_that_changes_a_gradient_is_said_and_does_the_same_at_any_size(size):
    def times_three(self, x):
        out = x * 2
        out.register_hook(lambda gradient: gradient * 3)
        return out

    model = nn.Sequential(Call(times_three), Call(lambda self, x: x.sum()))
    with Recorder(model) as recorder:
        model(torch.ones(size, requires_grad=True)).backward()
    assert recorder.gradients["0"].unique().tolist() == [3]
    assert recorder.use_gradients["1", "0"].unique().tolist() == [1]
    assert recorder.use_gradients["0", "0"].unique().tolist() == [6]
    assert "hook changed" in said(recorder)["0"]


@pytest.mark.parametrize("size", [3, 70_000])
@pytest.mark.parametrize("change", [lambda g: g.mul_(5), lambda g: g.data.mul_(5)])
def test_a_hook_that_changes_a_gradient_in_place_does_not_reach_what_was_recorded(size, change):
    model = nn.Sequential(Call(lambda self, x: x * 2), Call(lambda self, x: x * 3), Call(lambda self, x: x.sum()))
    made = []
    model[0].register_forward_hook(lambda module, args, out: made.append(out))
    with Recorder(model) as recorder:
        loss = model(torch.ones(size, requires_grad=True))
        made[0].register_hook(lambda g: (change(g), None)[1])
        loss.backward()
    assert recorder.use_gradients["1", "0"].unique().tolist() == [3]
    assert recorder.gradients["1"].unique().tolist() == [1]


# Recorded --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("make", [lambda **parts: Output(parts["logits"], (parts["b"],)), Custom])
def test_data_classes_and_mappings_are_outputs_and_inputs(make):
    first = Call(lambda self, x: make(logits=x * 2, b=x * 3))
    second = Call(lambda self, out: (out.logits if isinstance(out, Output) else out["logits"]) * 5)
    model = nn.Sequential(first, second)
    with Recorder(model) as recorder:
        model(torch.ones(1, requires_grad=True)).backward()
    assert recorder.calls[1].outputs.keys() == ({"logits", "b"} if make is Custom else {"logits", "more.0"})
    assert recorder.gradients["0.logits"] == 5
    assert recorder.use_gradients["1", "0.logits"] == 5
    assert not recorder.notices


def test_a_module_that_computes_and_contains_modules_has_the_part_through_itself():
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(1, 3, 8, requires_grad=True)
    query, key, value = (x.detach().clone().requires_grad_() for _ in range(3))
    attention(query, key, value, need_weights=False)[0].square().sum().backward()
    given = (x * 1, x * 2, x * 3)
    with Recorder(attention) as recorder:
        attention(*given, need_weights=False)[0].square().sum().backward()
    attention(query2 := given[0].detach().requires_grad_(), *[g.detach() for g in given[1:]],
              need_weights=False)[0].square().sum().backward()
    torch.testing.assert_close(recorder.use_gradients["", "query"], query2.grad)
    assert {argument for _, argument in recorder.use_gradients} == {"query", "key", "value"}
    assert "not called" in said(recorder)["out_proj"]


def test_a_module_that_two_others_share_is_called_by_the_one_that_calls_it():
    shared = nn.Linear(2, 2)
    model = nn.Sequential(nn.Sequential(shared), nn.Sequential(shared))
    with Recorder(model) as recorder:
        model(torch.ones(1, 2))
    assert [(call.path, call.parents) for call in recorder.calls if call.is_step] == [
        ("0.0", ("", "0")), ("0.0#2", ("", "1"))]


@pytest.mark.parametrize("names", [
    ["a", "a#2"], ["a#2", "a"], ["a", "a/out", "a#2", "a#2#2"], ["a:x", "a"], ["x", "a"], ["x", "x/out", "x#2"]])
def test_no_two_values_and_no_two_calls_have_one_name(names):
    modules = {name: Call(lambda self, x: (x * 2, x * 3)[0]) for name in names}
    model = Call(lambda self, x: [m(m(x + i)) for i, m in enumerate(self.children())][-1], **modules)
    x = torch.ones(1, requires_grad=True)
    with Recorder(model) as recorder:
        recorder.name_input(x, "x")
        model(x)
        recorder.name_input(x + 5, "x")
        model(x).backward()
    paths = [call.path for call in recorder.calls]
    assert len(paths) == len(set(paths)) == 2 + 4 * len(names)
    made = [name for call in recorder.calls for name in call.made]
    assert len(made) == len(set(made)) == 4 * len(names)
    for call in recorder.calls:
        if call.is_step:
            assert recorder.values[call.outputs["out"]] == 2 * recorder.values[next(iter(call.inputs.values()))]
    assert recorder.values["x"] == 1


def test_arguments_with_one_name_are_kept_apart():
    model = Call(lambda self, parts: parts["a"]["b"] * 2 + parts["a.b"] * 3)
    parts = {"a": {"b": torch.ones(1, requires_grad=True)}, "a.b": torch.ones(1, requires_grad=True)}
    with Recorder(model) as recorder:
        model(parts).backward()
    assert sorted(part.item() for part in recorder.use_gradients.values()) == [2, 3]


def test_values_that_are_not_numbers_keep_their_link_in_inference_mode():
    model = nn.Sequential(nn.Tanh(), nn.Tanh())
    with torch.inference_mode(), Recorder(model) as recorder:
        model(torch.tensor([float("nan"), 1.0]))
    assert recorder.calls[-1].inputs == {"input": "0"}


# Nothing is left, nobody is in the way ---------------------------------------------------------------

def test_the_model_can_be_copied_and_saved_while_it_is_recorded():
    model, x = small(), torch.ones(1, 2)
    with Recorder(model) as recorder:
        first = model(x)
        twin, file = copy.deepcopy(model), io.BytesIO()
        torch.save(model, file)
        assert torch.equal(twin(x), first)
        first.sum().backward()
    assert len(recorder.calls) == 3
    assert b"tracer" not in file.getvalue()
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x), first)
    assert recorder.gradients.keys() == {"0", "1"}


def test_losses_that_are_kept_keep_nothing_of_the_recorder():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(8)))
    losses, watches = [], []
    for _ in range(150):
        with Recorder(model) as recorder:
            loss = model(torch.ones(4, 8)).sum()
            loss.backward(retain_graph=True)
        losses.append(loss)
        recorded = [*recorder.values.values(), *recorder.gradients.values(), *recorder.use_gradients.values()]
        watches += map(weakref.ref, [recorder, *recorded])
    del recorder, recorded
    gc.collect()
    assert len(watches) > 150 * 40
    assert not any(watch() is not None for watch in watches)
    losses[0].backward()  # the graphs live
