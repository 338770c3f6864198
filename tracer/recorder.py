"""Record everything a model computes, by hooks, without changing a bit of it.

`Recorder` works on any `nn.Module`.  It keeps, in the order of the calls, what every module returned,
the gradient of each of those values, and the part of a gradient that flows back through each single
use of a value (a value that two modules read receives two parts).
"""

import inspect
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from tracer.errors import UserError


@dataclass
class Call:
    """One call of one module.

    `path`: the module's path, with ``#2`` … from the second call on.  `inputs`, `outputs`: names of
    the recorded values by argument name and by output name (``out`` for a single tensor).
    """

    path: str
    module: nn.Module
    parents: tuple[str, ...]
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    attributes: dict[str, float] = field(default_factory=dict)

    @property
    def is_step(self) -> bool:
        """Whether the module itself computes something, rather than only calling others."""
        return next(self.module.children(), None) is None


def map_tensors(value, change, path=()):
    """`value` with every tensor in nested tuples replaced by ``change(tensor, path)``.

    Tensors in lists and dicts are visited too, but the list or dict is handed on as it is: whoever is
    given one may write into it (a cache), and must not write into a copy.
    """
    if isinstance(value, Tensor):
        return change(value, path)
    if isinstance(value, dict):
        for key, item in value.items():
            map_tensors(item, change, (*path, str(key)))
    elif isinstance(value, tuple | list):
        items = [map_tensors(item, change, (*path, str(i))) for i, item in enumerate(value)]
        if isinstance(value, tuple) and any(new is not old for new, old in zip(items, value, strict=True)):
            # A named tuple takes its fields one by one.
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


class Recorder:
    """Hooks on every module of `model` for the length of a ``with`` block.

    * `calls`: every module call, in the order in which they began
    * `values`: name → what was returned (a copy: later changes in place do not reach it)
    * `gradients`: name → gradient of the loss by that value, once `backward` has run in the block
    * `use_gradients`: (call path, argument) → the part that came back through that use

    All hooks are removed when the block ends, also by an exception; hooks of others stay.  The only
    thing that hooks add to the computation is a view of each input of a step, which changes no bit.
    (One exception: where a step reads one argument several times and another step reads the same
    value, the parts of the gradient are added in another order, and the last bit may differ.)  A value
    changed in place is another value from then on, and has another name.
    Raises `UserError` for a model that is compiled, as a whole or in part: hooks do not see its calls.
    """

    def __init__(self, model: nn.Module):
        if any(map(_is_compiled, model.modules())):
            raise UserError("a compiled model runs past its hooks: record the model before torch.compile")
        self.model = model
        self.calls: list[Call] = []
        self.values: dict[str, Tensor] = {}
        self.gradients: dict[str, Tensor] = {}
        self.use_gradients: dict[tuple[str, str], Tensor] = {}
        # id → (tensor, version, name).  Holding the tensor keeps its id from reuse.
        self._names: dict[int, tuple[Tensor, int, str]] = {}
        self._open: list[Call] = []
        self._times_called: dict[str, int] = {}
        self._handles: list = []

    def __enter__(self) -> "Recorder":
        try:
            for name, parameter in self.model.named_parameters():
                self._remember(parameter, name)
            for path, module in self.model.named_modules():
                self._handles.append(module.register_forward_pre_hook(
                    lambda m, args, kwargs, path=path: self._before(path, m, args, kwargs), with_kwargs=True))
                # Called also when the module raises: its call must not stay open if that is caught.
                self._handles.append(module.register_forward_hook(self._after, with_kwargs=True, always_call=True))
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *exception) -> None:
        self._remove()

    def _remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._open.clear()
        self._names.clear()

    def name_input(self, tensor: Tensor, name: str) -> None:
        """Give a tensor that comes from outside (ids, targets) a name before the model is called."""
        self._remember(tensor, name)
        self.values[name] = tensor.detach().clone()

    def _remember(self, tensor: Tensor, name: str) -> None:
        self._names[id(tensor)] = (tensor, _version(tensor), name)

    def _known(self, tensor: Tensor) -> str | None:
        """The name of this very tensor; None when it has none, or was changed in place since it got it."""
        _, version, name = self._names.get(id(tensor), (None, None, None))
        return name if version == _version(tensor) else None

    def _before(self, path: str, module: nn.Module, args: tuple, kwargs: dict):
        if _in_backward():
            return None
        times = self._times_called[path] = self._times_called.get(path, 0) + 1
        call = Call(path if times == 1 else f"{path}#{times}", module, tuple(c.path for c in self._open))
        self.calls.append(call)
        self._open.append(call)
        names = _argument_names(module, len(args), kwargs)
        watch = call.is_step and torch.is_grad_enabled()

        def note(tensor: Tensor, where: tuple[str, ...]) -> Tensor:
            argument = ".".join(where)
            call.inputs[argument] = self._name_of(tensor, f"{call.path}:{argument}")
            return self._watch_use(call, argument, tensor) if watch and tensor.requires_grad else tensor

        new_args = tuple(map_tensors(a, note, (n,)) for n, a in zip(names, args, strict=False))
        new_kwargs = {k: map_tensors(v, note, (k,)) for k, v in kwargs.items()}
        return new_args, new_kwargs

    def _name_of(self, tensor: Tensor, fallback: str) -> str:
        known = self._known(tensor)
        if known is None:
            self.name_input(tensor, fallback)
            return fallback
        return known

    def _watch_use(self, call: Call, argument: str, tensor: Tensor) -> Tensor:
        """A view of the tensor: gradients that come back through it came through this use alone."""
        view = tensor.view_as(tensor)
        self._remember(view, call.inputs[argument])
        self._keep_gradient(view, self.use_gradients, (call.path, argument))
        return view

    def _keep_gradient(self, tensor: Tensor, store: dict, key) -> None:
        self._handles.append(tensor.register_hook(lambda gradient: self._keep(store, key, gradient)))

    @staticmethod
    def _keep(store: dict, key, gradient: Tensor) -> None:
        gradient = gradient.detach()
        store[key] = store[key] + gradient if key in store else gradient.clone()

    def _after(self, module: nn.Module, args: tuple, kwargs: dict, result):
        if _in_backward() or all(call.module is not module for call in self._open):
            return  # the call was not noted (a pre-hook before ours raised)
        while (call := self._open.pop()).module is not module:
            pass
        call.attributes = dict(getattr(module, "attributes", {}))
        map_tensors(result, lambda tensor, where: self._note_output(call, tensor, where))

    def _note_output(self, call: Call, tensor: Tensor, where: tuple[str, ...]) -> Tensor:
        output = _output_name(call.module, where)
        known = self._known(tensor)
        if known is not None and not call.is_step:
            call.outputs[output] = known  # a container hands on what a step inside it made
            return tensor
        name = call.path if output == "out" else f"{call.path}.{output}"
        call.outputs[output] = name
        call.made.append(name)
        self.name_input(tensor, name)
        if tensor.requires_grad:
            self._keep_gradient(tensor, self.gradients, name)
        return tensor


def _is_compiled(module: nn.Module) -> bool:
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def _in_backward() -> bool:
    """Whether autograd runs now: a module called then only repeats, for checkpointing, what is recorded."""
    return torch._C._current_graph_task_id() != -1


def _version(tensor: Tensor) -> int:
    """A number that every change in place raises, also one through a view."""
    return 0 if tensor.is_inference() else tensor._version


def _argument_names(module: nn.Module, count: int, kwargs: dict) -> list[str]:
    """Names of the positional arguments of `module.forward`, numbered where it takes ``*args``."""
    parameters = inspect.signature(module.forward).parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[i] if i < len(names) else str(i) for i in range(count)]


def _output_name(module: nn.Module, where: tuple[str, ...]) -> str:
    if not where:
        return "out"
    names = list(getattr(module, "outputs", {}))
    if len(where) == 1 and where[0].isdigit() and int(where[0]) < len(names):
        return names[int(where[0])]
    return ".".join(where)


@dataclass
class Snapshot:
    """Copies of every parameter, its gradient and its optimizer state at one moment, by name."""

    parameters: dict[str, Tensor]
    gradients: dict[str, Tensor]
    state: dict[str, dict[str, Tensor]]


def snapshot(model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> Snapshot:
    """What the model and the optimizer hold now; before the first step the state is empty."""
    named = dict(model.named_parameters())
    state = optimizer.state if optimizer else {}
    return Snapshot(
        {name: p.detach().clone() for name, p in named.items()},
        {name: p.grad.detach().clone() for name, p in named.items() if p.grad is not None},
        {name: {key: torch.as_tensor(value).detach().clone() for key, value in state.get(p, {}).items()}
         for name, p in named.items()},
    )
