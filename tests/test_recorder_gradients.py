"""Gradients of values and of each of their uses, and copies of values as they were at a moment."""

import numpy as np
import pytest
import torch
from recorder_models import (
    Call,
    Chain,
    Custom,
    Output,
    Pair,
    Residual,
    Scale,
    ThreeUses,
    inputs,
    seeded,
    three_uses_loss,
)
from torch import nn

from tracer.model.optimizer import TrainingSettings, make_optimizer
from tracer.recording.modules import find_tensors
from tracer.recording.recorder import Recorder, snapshot

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
