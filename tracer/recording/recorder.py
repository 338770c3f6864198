"""Record everything a model computes, by hooks, without changing a bit of it.

`Recorder` works on any `nn.Module`.  It keeps, in the order of the calls, what every module returned,
the gradient of each of those values, and the part of a gradient that flows back through each single
use of a value (a value that two modules read receives two parts).  What it could not see, it says.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils.hooks import RemovableHandle

from tracer.errors import UserError
from tracer.recording.gradients import NO_PASS, Gradients, Span, backward_pass, check_numbers, same_numbers
from tracer.recording.modules import find_places, find_tensors, kept_tensors, output_name, told


@dataclass(slots=True)
class Call:
    """One call of one module, inside the call `caller`.

    `path`: the module's path, with ``#2`` … from the second call on.  `inputs`, `outputs`: names of the
    recorded values by argument name and by output name (``out`` for a single tensor); `made`: names of
    the values that the call itself made.  `is_step`: the module contains no others.
    """

    path: str
    module: nn.Module
    caller: "Call | None"
    is_step: bool
    span: Span
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    settings: dict[str, float] = field(default_factory=dict)

    @property
    def parents(self) -> tuple[str, ...]:
        """Paths of the calls that this one is part of, the outermost first."""
        return (*self.caller.parents, self.caller.path) if self.caller else ()


@dataclass(frozen=True)
class Notice:
    """What the recording does not hold: `about` a value or a call, by name, and why."""

    about: str
    why: str

    def __str__(self) -> str:
        return f"{self.about or 'the model'}: {self.why}"


class _Hook(partial[None]):
    """A hook whose copies do nothing: a model may be copied and saved while it is recorded."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return getattr, (nullcontext(), "__exit__")  # takes anything, does nothing, and is everywhere


class Recorder:
    """Hooks on every module of `model` for the length of a ``with`` block.

    * `calls`: every module call, in the order in which they began
    * `values`: name → what was returned (a copy: later changes in place do not reach it)
    * `gradients`: name → gradient of the loss by that value (a copy), once `backward` has run in the block;
      of several runs, the sum
    * `use_gradients`: (call path, argument) → the part of a gradient that came back through that use
    * `pieces`: (call path, argument) → in how many pieces autograd got that part
    * `notices`: what of all this is missing

    A module may leave more than it returns in an attribute `details` (a dict, name → tensor): a mask, a
    mean.  These are its own, made for this call, and are not copied.

    Hooks only look: they change no bit, and all are gone when the block ends, also by an exception; a
    `backward` that runs later is not recorded.  What a step returns as it got it keeps its name.  A value
    changed in place is another value from then on, and has another name.  The part of a use is what comes
    back from all that the call computed with the value itself, the calls inside it apart; what a call is
    given twice is one use, under the name of the first argument.  A gradient is what goes on into the
    step that made the value: where somebody's own hook changes it, the changed one.
    What torch itself does not notice is not seen: a value changed through `.data` or NumPy keeps its name.
    Raises `UserError` for what is no module, and for a model that is compiled, traced or transformed:
    hooks do not see its calls, or there are no numbers to see; also for parameters without a shape (lazy
    modules) and for two threads in the model at once.
    """

    def __init__(self, model: nn.Module):
        self._places = find_places(model)
        self.model = model
        self.calls: list[Call] = []
        self.values: dict[str, Tensor] = {}
        self._graph = Gradients()
        self.gradients, self.use_gradients, self.pieces = self._graph.totals, self._graph.parts, self._graph.pieces
        self._paths = {place.path for place in self._places.values()}
        # id → (tensor, version, name).  Holding the tensor keeps its id from being used again.
        self._named: dict[int, tuple[Tensor, int | None, str]] = {}
        self._open: list[Call] = []
        self._thread: int | None = None  # in which the outermost call runs
        self._handles: list[RemovableHandle] = []
        self._kept: list[Tensor] = []  # by modules, with a history
        self._without_graph: set[str] = set()  # paths of modules that ran without gradients
        self._missed: dict[Notice, None] = {}  # in order

    def __enter__(self) -> "Recorder":
        for name, parameter in self.model.named_parameters():
            if is_lazy(parameter):
                raise UserError(f"parameter {name} has no shape yet: call the model once before it is recorded")
            self._name(parameter, name)
        before, after = _Hook(self._before), _Hook(self._after)
        try:
            for module in self._places:
                self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
                self._handles.append(module.register_forward_hook(after, always_call=True))
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def _close(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._graph.close()
        for call in self.calls:
            call.span.reads.clear()  # they hold the graph
        for store in (self._handles, self._open, self._named, self._kept):
            store.clear()

    def name_input(self, tensor: Tensor, name: str) -> None:
        """Give a tensor that comes from outside (ids, targets) a name before the model is called.

        Where another value has that name already, it gets a number: ``x#2``.  Raises `UserError` for a
        tensor without numbers of its own.
        """
        if self._known(tensor) != name:
            self._add_value(tensor, next(n for n in _numbered(name) if n not in self.values))

    def _add_value(self, tensor: Tensor, name: str) -> None:
        check_numbers(tensor, name)
        self._name(tensor, name)
        self.values[name] = tensor.detach().clone()

    def _name(self, tensor: Tensor, name: str) -> None:
        # Every change in place raises the version, also one through a view; inference tensors have none.
        self._named[id(tensor)] = tensor, None if tensor.is_inference() else tensor._version, name

    def _known(self, tensor: Tensor) -> str | None:
        """The name of this very tensor; None when it has none, or was changed in place since it got it."""
        _, version, name = self._named.get(id(tensor), (None, None, None))
        if name is None:
            return None
        if tensor.is_inference():
            return name if name not in self.values or same_numbers(tensor, self.values[name]) else None
        return name if version == tensor._version else None

    def _unused(self, call: Call, *names: str) -> str:
        """The first of the names, or of the last one with a number, that no other value or module has."""
        wanted = chain(names[:-1], _numbered(names[-1]))
        return next(n for n in wanted if n not in self.values and (n == call.path or n not in self._paths))

    def _before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        place = self._places.get(module)
        if place is None:  # a shallow copy of a module, which shares its hooks
            return
        if not self._open:
            _check_surroundings()
            self._thread = get_ident()
        if backward_pass() != NO_PASS:  # for checkpointing, it repeats what is recorded
            if torch.is_grad_enabled() and place.path in self._without_graph:
                self._miss(place.path, "a reentrant checkpoint runs it again in backward: no gradients inside it")
            return
        if self._thread != get_ident():
            raise UserError("two threads call the model at once, whose calls cannot be told apart: call it in one")
        caller = self._open[-1] if self._open else None
        place.times += 1
        path = place.path
        while place.times > 1 and (path := f"{place.path}#{place.times}") in self._paths:
            place.times += 1
        call = Call(path, module, caller, place.is_step, self._graph.begin(path, caller.span if caller else None))
        self.calls.append(call)
        self._open.append(call)
        for name, value in chain(zip(place.argument_names(len(args)), args, strict=False), kwargs.items()):
            if isinstance(value, Tensor):
                self._note_input(call, value, name)
            else:
                for where, tensor in find_tensors(value, (name,)):
                    self._note_input(call, tensor, ".".join(where))
        if not torch.is_grad_enabled():
            self._without_graph.add(place.path)

    def _note_input(self, call: Call, tensor: object, argument: str) -> None:
        if not isinstance(tensor, Tensor):
            if call.is_step:
                self._miss(call.path, f"it was given a {type(tensor).__name__}, into which the recorder does not look")
            return
        while argument in call.inputs:
            argument += "'"
        name = self._known(tensor)
        if name is None:
            self._add_value(tensor, name := self._unused(call, f"{call.path}:{argument}"))
            if call.caller:
                self._miss(name, f"made by code of {call.caller.path or 'the model'} outside of the modules in it")
        call.inputs[argument] = name
        if tensor.requires_grad:
            self._graph.read(call.span, tensor, argument, name)

    def _after(self, module: nn.Module, args: tuple[Any, ...], result: object) -> None:
        """Also runs when the call raised: then the result is None."""
        call = self._end_call(module)
        if call is None:
            return
        if call.is_step:
            self._check_inputs(call, args)
        if isinstance(result, Tensor):
            self._note_output(call, result, "out")
        else:
            for where, tensor in find_tensors(result):
                self._note_output(call, tensor, output_name(module, where))
        self._graph.end(call.span, call.outputs.values())
        if call.is_step and result is not None:
            call.settings = dict(told(module, "settings"))
            for output, tensor in told(module, "details").items():
                if isinstance(tensor, Tensor):
                    self._note_detail(call, output, tensor)
        if torch.is_grad_enabled():
            self._kept += kept_tensors(module)
        if not self._open:
            self._graph.watch_uses(self._kept)
            self._kept.clear()

    def _check_inputs(self, call: Call, args: tuple[Any, ...]) -> None:
        """Somebody's own hook, registered in the block, may have replaced what a step was given."""
        for argument, value in zip(self._places[call.module].argument_names(len(args)), args, strict=False):
            name = self._named.get(id(value), (None, None, None))[2]
            if isinstance(value, Tensor) and name not in call.inputs.values():
                given = self.values.get(call.inputs.get(argument, ""))
                if given is None or given.dtype != value.dtype or not same_numbers(given, value):
                    self._miss(call.path, "a hook has replaced what it was given after that was recorded")

    def _end_call(self, module: nn.Module) -> Call | None:
        """The call of `module` that is open; None for one that was not noted."""
        if (backward_pass() != NO_PASS or self._thread != get_ident()
                or not any(call.module is module for call in reversed(self._open))):
            return None
        while (call := self._open.pop()).module is not module:
            pass
        return call

    def _note_output(self, call: Call, tensor: object, output: str) -> None:
        if not isinstance(tensor, Tensor):
            self._miss(call.path, f"it returned a {type(tensor).__name__}, into which the recorder does not look")
            return
        known = self._known(tensor)
        if known is not None and (not call.is_step or known in call.inputs.values()):
            call.outputs[output] = known  # handed on as it is
            return
        name = call.path if output == "out" else f"{call.path}.{output}"
        # A module inside may have that path, and have returned something else.
        name = self._unused(call, name, f"{call.path}/{output}")
        call.outputs[output] = name
        call.made.append(name)
        self._add_value(tensor, name)
        if not call.is_step:
            self._miss(name, "computed by a module that contains others: what it does between them is not seen")
        if tensor.requires_grad:
            self._graph.watch(tensor, name)

    def _note_detail(self, call: Call, output: str, tensor: Tensor) -> None:
        name = self._unused(call, f"{call.path}.{output}")
        call.outputs[output] = name
        call.made.append(name)
        self._name(tensor, name)
        self.values[name] = tensor.detach()

    def _miss(self, about: str, why: str) -> None:
        self._missed[Notice(about, why)] = None

    @property
    def notices(self) -> list[Notice]:
        """What the recording does not hold, in the order in which it was met."""
        return [*self._missed, *self._find_uncalled(), *self._find_changed_kernels(), *self._find_other_uses()]

    def _find_uncalled(self) -> Iterator[Notice]:
        """Modules that were passed by: as a whole, or by a call of their `forward`."""
        called = {call.module for call in self.calls}
        if self.model not in called:
            yield Notice("", "it was not called in the block, unless by something that was compiled before")
        for module, place in self._places.items():
            inside_called = self.model in called and place.path
            if (inside_called and module not in called and type(module).forward is not nn.Module.forward
                    and next(module.parameters(recurse=False), None) is not None):
                yield Notice(place.path, "it was not called: if others used its forward or its parameters, "
                                         "that is not seen")

    def _find_changed_kernels(self) -> Iterator[Notice]:
        for call in self.calls:
            if isinstance(call.module, nn.TransformerEncoderLayer) and call.path in self._without_graph:
                yield Notice(call.path, "torch computes it by one kernel when nobody watches: "
                                        "the last digits may differ from those")

    def _find_other_uses(self) -> Iterator[Notice]:
        if self._graph.watches and not self.gradients:
            yield Notice("", "no backward ran in the block: there are no gradients")
        for name in self._graph.incomplete():
            yield Notice(name, "its gradient is not the sum of the recorded parts: something else used it as well, "
                               "or a hook changed the gradient")


def _numbered(name: str) -> Iterator[str]:
    return chain([name], (f"{name}#{i}" for i in count(2)))


def _check_surroundings() -> None:
    """Raises `UserError` where modules are called with something else than tensors of numbers."""
    if torch.compiler.is_compiling():
        raise UserError("a compiled function runs past the hooks of the model in it: record it uncompiled")
    if torch._C._get_tracing_state() is not None:  # what `torch.jit.is_tracing` asks, without its types
        raise UserError("torch.jit.trace calls the model in its own way: trace it after it is recorded")


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
