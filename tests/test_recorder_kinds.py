"""What the recorder is given that is no plain dense model in one thread: recorded, said or refused in one line."""

import threading

import pytest
import torch
from test_recorder_limits import Call, said
from torch import nn

from tracer.errors import UserError
from tracer.recording.recorder import Recorder
from tracer.recording.trace_builder import to_numpy

HIDDEN: list[torch.Tensor] = []


def test_a_sparse_leaf_is_recorded():
    """torch's own way to the node of a leaf takes a view, which a sparse tensor has not."""
    x = torch.eye(2).to_sparse().requires_grad_()
    with Recorder(Call(lambda self, x: self.b(self.a(x)), a=nn.Identity(), b=Call(lambda self, x: x * 3))) as recorder:
        recorder.model(x).to_dense().sum().backward()
    assert torch.equal(recorder.values["b"].to_dense(), torch.eye(2) * 3)
    assert torch.equal(x.grad.to_dense(), torch.eye(2) * 3)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_value_of_whose_gradient_no_part_was_seen_is_said(elsewhere):
    """The step reads h = 3x and sends nothing back through what it returns; what else uses h has its gradient."""
    HIDDEN.clear()

    def step(self, h):
        HIDDEN.append((h ** 2).sum())
        return h.detach()

    model = Call(lambda self, x: [h := self.a(x), self.b(h)][0], a=Call(lambda self, x: x * 3), b=Call(step))
    with Recorder(model) as recorder:
        out = model(torch.ones(2, requires_grad=True))
        (HIDDEN[0] if elsewhere else out.sum()).backward()
    assert ("b", "0") not in recorder.use_gradients and "a" in recorder.gradients
    assert "something else used it" in said(recorder)["a"]


def test_a_backward_within_the_forward_is_said():
    """Its parts are not found: the graph is looked through when the outermost call ends."""
    def forward(self, x):
        h = self.a(x)
        self.b(h).sum().backward(retain_graph=True)
        return self.b(h)

    model = Call(forward, a=Call(lambda self, x: x * 3), b=nn.Tanh())
    with Recorder(model) as recorder:
        model(torch.ones(2, requires_grad=True)).sum().backward()
    assert "something else used it" in said(recorder)["a"]


def test_gradients_of_many_backwards_at_once_are_refused():
    """`torch.autograd` runs them under vmap: what a hook is handed stands for all of them."""
    with Recorder(nn.Sequential(nn.Linear(2, 2), nn.Tanh())) as recorder, pytest.raises(UserError, match="vmap"):
        torch.autograd.functional.jacobian(recorder.model, torch.ones(2), vectorize=True)
    assert recorder.notices is not None and recorder.gradients == {}


def test_a_nested_tensor_keeps_its_link_in_inference_mode():
    with torch.inference_mode(), Recorder(nn.Sequential(nn.Linear(3, 2), nn.ReLU())) as recorder:
        recorder.model(torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)]))
    assert recorder.calls[2].inputs == {"input": "0"} and recorder.notices == []


def test_a_model_without_shapes_is_refused():
    model = nn.Sequential(nn.LazyLinear(2))
    with pytest.raises(UserError, match=r"0\.weight has no shape yet"), Recorder(model):
        pass
    model(torch.ones(1, 3))
    with Recorder(model) as recorder:
        model(torch.ones(1, 3))
    assert list(recorder.values) == [":input", "0"]


def test_a_second_thread_is_refused_and_the_first_recorded():
    inside, done = threading.Event(), threading.Event()
    refused = []

    def forward(self, x):
        h = self.a(x)
        inside.set()
        assert done.wait(60)
        return self.b(h)

    def second():
        assert inside.wait(60)
        try:
            with pytest.raises(UserError, match="two threads") as caught:
                model.a(torch.zeros(2))
            refused.append(caught.value)
        finally:
            done.set()

    model = Call(forward, a=nn.Tanh(), b=nn.ReLU())
    with Recorder(model) as recorder:
        thread = threading.Thread(target=second)
        thread.start()
        model(torch.ones(2))
        thread.join()
        assert len(refused) == 1
        thread = threading.Thread(target=lambda: model(torch.ones(2)))  # one after the other is no matter
        thread.start()
        thread.join()
    assert [(call.path, call.parents) for call in recorder.calls] == [
        ("", ()), ("a", ("",)), ("b", ("",)), ("#2", ()), ("a#2", ("#2",)), ("b#2", ("#2",))]


@pytest.mark.parametrize(("tensor", "kind"), [
    (torch.nested.nested_tensor([torch.ones(2)]), "nested"),
    (torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged), "nested"),
    (torch.ones(2, device="meta"), "meta"), (torch.eye(2).to_sparse_csr(), "sparse_csr")])
def test_tensors_that_are_no_plain_numbers_are_refused_in_one_line(tensor, kind):
    with pytest.raises(UserError, match=f"^{kind} numbers cannot be recorded"):
        to_numpy(tensor)


def test_numbers_that_torch_has_yet_to_negate_are_negated():
    """The imaginary part of a conjugate is a view with a mark; NumPy knows no such mark."""
    number = torch.tensor([1 + 2j]).conj().imag
    assert number.is_neg() and to_numpy(number).tolist() == [-2]


@pytest.mark.parametrize("change", [lambda x: x * 2, lambda x: x[:1], lambda x: x.half(), None])
@pytest.mark.filterwarnings("ignore")
def test_a_hook_that_replaces_what_a_step_is_given_is_said(change):
    """In the block it comes after the recorder's own.  A full backward hook gives a view of the same numbers."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    with Recorder(model) as recorder:
        if change:
            model[1].register_forward_pre_hook(lambda module, args: (change(args[0]),))
        else:
            model[1].register_full_backward_hook(lambda module, before, after: None)
        model(torch.ones(2, 2)).sum().backward()
    assert ("a hook has replaced" in said(recorder).get("1", "")) is (change is not None)
