"""Record everything a model computes, by hooks, without changing a bit of it.

`Recorder` works on any `nn.Module`.  It keeps, in the order of the calls, what every module returned,
the gradient of each of those values, and the part of a gradient that flows back through each single
use of a value (a value that two modules read receives two parts).
"""

import functools
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from tracer.errors import UserError

LARGE = 1 << 16  # numbers; from here on a copy costs more than a call of Python


@dataclass(slots=True)
class Call:
    """One call of one module, inside the call `caller`.

    `path`: the module's path, with ``#2`` … from the second call on; `within`: how the paths of modules
    inside it begin.  `inputs`, `outputs`: names of
    the recorded values by argument name and by output name (``out`` for a single tensor); `made`: names
    of the values that the call itself made.  `is_step`: the module computes something itself, rather than
    only calling others.
    """

    path: str
    module: nn.Module
    within: str
    caller: "Call | None"
    is_step: bool
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    attributes: dict[str, float] = field(default_factory=dict)
    begun: int = 0  # of the graph's nodes, those numbered from here up to `ended` were made in this call
    ended: int = 0

    @property
    def parents(self) -> tuple[str, ...]:
        """Paths of the calls that this one is part of, the outermost first."""
        return (*self.caller.parents, self.caller.path) if self.caller else ()


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
    * `use_gradients`: (call path, argument) → the part of a gradient that came back through that use

    A module may leave more than it returns in an attribute `details` (a dict, name → tensor): a mask, a
    mean.  These are its own, made for this call, and are not copied.

    All hooks are removed when the block ends, also by an exception; hooks of others stay.  They add
    nothing to the computation, except that a step which returns its own input returns a view of it,
    so that the two are different values; who then uses both adds the parts of the gradient in another
    order.  A value changed in place is another value from then on, and has another name; one that is
    changed after the outermost call, and that this call did not return, has no gradient here.  What a
    step is given twice is one use of it, under the name of the first argument.
    Raises `UserError` for a model that is compiled, as a whole or in part: hooks do not see its calls.
    """

    def __init__(self, model: nn.Module):
        self._places = _places(model)
        if any(_is_compiled(place.path, module) for module, place in self._places.items()):
            raise UserError("a compiled model runs past its hooks: record the model before torch.compile")
        self.model = model
        self.calls: list[Call] = []
        self.values: dict[str, Tensor] = {}
        self._gradients: dict = {}
        self._use_gradients: dict = {}
        # id → (tensor, version, name).  Holding the tensor keeps its id from being used again.
        self._named: dict[int, tuple[Tensor, int, str]] = {}
        self._watched: dict[str, _Watched] = {}
        self._uses: list[_Use] = []  # of the outermost call that runs
        self._nodes_in_steps = 0  # how many nodes of the graph its steps have made
        self._sole_uses: list[tuple[tuple[str, str], str]] = []  # and the names of the values
        self._nodes: dict[str, tuple] = {}  # name → the node of the graph that made the value, and which of its outputs
        self._open: list[Call] = []
        self._handles: list = []  # of hooks on leaf tensors
        self._recording = False

    @property
    def gradients(self) -> dict[str, Tensor]:
        """Name → gradient of the loss by that value, as far as `backward` has run in the block."""
        self._collect()
        return self._gradients

    @property
    def use_gradients(self) -> dict[tuple[str, str], Tensor]:
        """(call path, argument) → the part of a gradient that came back through that use."""
        self._collect()
        return self._use_gradients

    def __enter__(self) -> "Recorder":
        self._recording = True
        try:
            before, after = self._before, self._after
            for module, place in self._places.items():
                self._name_parameters(module, place)
                _add_hooks(module, self, before, after)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *exception) -> None:
        self._remove()

    def _remove(self) -> None:
        self._recording = False
        for module in self._places:
            _remove_hooks(module, self)
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._collect()
        for watched in self._watched.values():
            if not watched.asked_before:
                watched.tensor.grad = None
        self._watched.clear()
        self._sole_uses.clear()
        self._uses.clear()
        self._nodes.clear()
        self._open.clear()
        self._named.clear()

    def _name_parameters(self, module: nn.Module, place: "_Place") -> None:
        for name, parameter in module._parameters.items():
            if parameter is not None and id(parameter) not in self._named:  # a tied one has the name of its first place
                self._named[id(parameter)] = (parameter, _version(parameter), place.within + name)

    def name_input(self, tensor: Tensor, name: str) -> None:
        """Give a tensor that comes from outside (ids, targets) a name before the model is called."""
        self._named[id(tensor)] = (tensor, _version(tensor), name)
        self.values[name] = tensor.detach().clone()

    def _known(self, tensor: Tensor) -> str | None:
        """The name of this very tensor; None when it has none, or was changed in place since it got it."""
        named = self._named.get(id(tensor))
        if named is None or named[1] != _version(tensor):
            return None
        if named[1] == _NO_VERSION and named[2] in self.values and not torch.equal(tensor, self.values[named[2]]):
            return None
        return named[2]

    def _before(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        if _graph_task() != _NO_TASK:
            return
        place = self._places.get(module)
        if place is None:  # a copy of a module, which has copied the hooks too
            return
        if self._open and self._open[0].module is module and not _is_inside_itself(module):
            self._open.clear()  # the outermost call before raised, and somebody caught it
        place.times += 1
        path = place.path if place.times == 1 else f"{place.path}#{place.times}"
        call = Call(path, module, place.within, self._caller(place.path), place.is_step)
        self.calls.append(call)
        self._open.append(call)
        watch = place.is_step and torch.is_grad_enabled()
        for arg, name in zip(args, place.argument_names(len(args)), strict=False):
            self._note_inputs(call, watch, arg, name)
        for name, value in kwargs.items():
            self._note_inputs(call, watch, value, name)
        call.begun = _nodes_made()

    def _caller(self, path: str) -> Call | None:
        """The innermost open call that contains a module.

        A module that raised leaves its call open until the one around it ends: it contains nothing.
        """
        for call in reversed(self._open):
            if path.startswith(call.within):
                return call
        return None

    def _note_inputs(self, call: Call, watch: bool, value, name: str) -> None:
        if isinstance(value, Tensor):
            self._note_input(call, watch, value, name)
        elif value is not None:
            map_tensors(value, lambda tensor, where: self._note_input(call, watch, tensor, ".".join(where)), (name,))

    def _note_input(self, call: Call, watch: bool, tensor: Tensor, argument: str) -> Tensor:
        """Note what the call reads, and where in the graph a gradient will come back."""
        name = self._known(tensor)
        if name is None:
            self.name_input(tensor, name := f"{call.path}:{argument}")
        again = name in call.inputs.values()
        call.inputs[argument] = name
        if watch and tensor.requires_grad and not again:
            node = self._nodes.get(name) or (tensor.grad_fn, tensor.output_nr)
            self._uses.append(_Use(call, argument, name, tensor, node))
        return tensor

    def _watch(self, tensor: Tensor, name: str) -> None:
        """Keep the gradient of a tensor as it is now.

        `retain_grad` costs no Python while gradients flow.  But it follows a tensor that is changed in
        place; `_look_for_changes` then goes back to the version that was meant.  And it copies, which a
        large gradient can be spared.
        """
        node, output = self._nodes[name] = tensor.grad_fn, tensor.output_nr
        if node is None or tensor.numel() > LARGE or not self._open:
            self._hook(tensor, node, output, name)
            return
        self._watched[name] = _Watched(tensor, tensor._version, tensor.retains_grad)
        tensor.retain_grad()

    def _find_uses(self, root: Call) -> None:
        """At the end of the outermost call: how the gradient through each single use will be known.

        A value that only one step reads gets its whole gradient through that use.  Whether others read it
        is known when steps alone have made nodes of the graph, and nobody holds the value.  Otherwise the
        nodes that the step made tell which parts of the gradient they send back.
        """
        closed = root.is_step or self._nodes_in_steps == root.ended - root.begun
        times = Counter([use.node for use in self._uses]) if closed else {}
        for use in self._uses:
            if closed and times[use.node] == 1 and self._is_ours(use):
                self._sole_uses.append(((use.call.path, use.argument), use.name))
            else:
                self._hook_use(use)
        self._uses.clear()
        self._nodes_in_steps = 0

    def _is_ours(self, use: "_Use") -> bool:
        """Whether nobody but the recorder holds the value, so that nobody else can use it."""
        watched = self._watched.get(use.name)
        if watched is None or watched.tensor is not use.tensor:
            return False
        by_graph = _HELD_BY_GRAPH if use.tensor._use_count() > 1 else 0
        # Beside the graph: its use, what is watched, the table of names, and the argument of the call below.
        return sys.getrefcount(use.tensor) == by_graph + 4

    def _hook_use(self, use: "_Use") -> None:
        """Keep the parts of the gradient that the nodes of one call send to the value."""
        call, store, key = use.call, self._use_gradients, (use.call.path, use.argument)
        target = use.node if use.node[0] else tuple(torch.autograd.graph.get_gradient_edge(use.tensor)[:2])
        todo = [self._nodes[name][0] for name in call.made if name in self._nodes]
        seen = set(todo)
        while todo:
            node = todo.pop()
            if node is None or not call.begun <= node._sequence_nr() < call.ended:
                continue
            edges = node.next_functions
            self._keep_sent(node, [i for i, edge in enumerate(edges) if edge == target], store, key)
            new = {before for before, _ in edges} - seen
            seen |= new
            todo += new

    def _keep_sent(self, node, places: list[int], store: dict, key) -> None:
        """Keep what a node sends back along its edges at `places`."""
        def keep(sent: tuple, _) -> None:
            for place in places:
                self._keep(store, key, sent[place])
        if places:
            node.register_hook(keep)

    def _hook(self, tensor: Tensor, node, output: int, name: str) -> None:
        if node is None:
            self._handles.append(tensor.register_hook(partial(self._keep, self._gradients, name)))
        else:
            node.register_prehook(lambda gradients: self._keep(self._gradients, name, gradients[output]))

    def _expect_change(self, tensor: Tensor, where: tuple[str, ...]) -> Tensor:
        """What the outermost call returns may be changed before `backward`: keep the gradient of it as it is now."""
        name = self._known(tensor)
        watched = self._watched.get(name) if name is not None else None
        if watched is not None and not watched.changed:
            watched.changed = True
            self._hook(tensor, *self._nodes[name], name)
        return tensor

    def _look_for_changes(self) -> None:
        """Of tensors changed in place meanwhile: the gradient of the version that was recorded."""
        for name, watched in self._watched.items():
            if not watched.changed and watched.tensor._version != watched.version:
                watched.changed = True
                self._hook(watched.tensor, *self._nodes[name], name)

    def _collect(self) -> None:
        for name, watched in self._watched.items():
            gradient = None if watched.changed else watched.tensor.grad
            if gradient is not None and watched.tensor._version == watched.version:
                self._gradients[name] = gradient.detach() if gradient.requires_grad else gradient
        for key, name in self._sole_uses:
            if name in self._gradients:
                self._use_gradients[key] = self._gradients[name]

    def _keep(self, store: dict, key, gradient: Tensor | None) -> None:
        """Keep one gradient as it flows.

        A large one is held, not copied: autograd adds in place, and gives to a parameter, only tensors that
        nobody else holds.
        """
        if gradient is None or not self._recording:  # the block has ended, the graph lives on
            return
        if key in store:
            store[key] = store[key] + gradient.detach()
        elif gradient.numel() > LARGE and not gradient.requires_grad:
            store[key] = gradient
        else:
            store[key] = gradient.detach().clone()

    def _after(self, module: nn.Module, args: tuple, result):
        call = self._close(module)
        if call is None:
            return None
        if isinstance(result, Tensor):
            new = self._note_output(call, result, ())
        else:
            new = map_tensors(result, partial(self._note_output, call))
        call.ended = _nodes_made()
        if call.is_step:
            self._nodes_in_steps += call.ended - call.begun
            call.attributes = dict(_told(module, "attributes"))
            for output, tensor in _told(module, "details").items():
                if isinstance(tensor, Tensor):
                    self._note_detail(call, output, tensor)
        if not self._open:
            map_tensors(result, self._expect_change)
            self._look_for_changes()
            self._find_uses(call)
        return None if new is result else new

    def _note_detail(self, call: Call, output: str, tensor: Tensor) -> None:
        name = f"{call.path}.{output}"
        call.outputs[output] = name
        call.made.append(name)
        self._named[id(tensor)] = (tensor, _version(tensor), name)
        self.values[name] = tensor.detach()

    def _close(self, module: nn.Module) -> Call | None:
        """The open call of `module`, no longer open; None when it was not noted (a pre-hook before ours raised)."""
        if _graph_task() != _NO_TASK:
            return None
        if self._open and self._open[-1].module is module:
            return self._open.pop()
        if not any(call.module is module for call in self._open):
            return None
        while (call := self._open.pop()).module is not module:
            pass
        return call

    def _note_output(self, call: Call, tensor: Tensor, where: tuple[str, ...]) -> Tensor:
        output = _output_name(call.module, where) if where else "out"
        known = None if call.is_step else self._known(tensor)
        if known is not None:
            call.outputs[output] = known  # a container hands on what a step inside it made
            return tensor
        name = call.path if output == "out" else f"{call.path}.{output}"
        if name in self.values:  # a module inside has that path, and has returned something else
            name = f"{call.path}/{output}"
        needs_gradient = tensor.requires_grad
        if needs_gradient and id(tensor) in self._named and self._known(tensor) in call.inputs.values():
            tensor = tensor.view_as(tensor)  # a step that returns what it was given
        call.outputs[output] = name
        call.made.append(name)
        self.name_input(tensor, name)
        if needs_gradient:
            self._watch(tensor, name)
        return tensor


@dataclass(slots=True)
class _Place:
    """Where a module stands in the model.

    `within`: how the paths of what is inside it begin.  `is_step`: it contains no modules.  `times`: how
    often it has been called.
    """

    path: str
    within: str
    is_step: bool
    names: tuple[str, ...]  # of the positional arguments
    times: int = 0

    def argument_names(self, count: int) -> tuple[str, ...]:
        """Names of so many positional arguments; what ``*args`` takes is numbered."""
        return self.names if count <= len(self.names) else (*self.names, *map(str, range(len(self.names), count)))


def _places(model: nn.Module) -> dict[nn.Module, _Place]:
    """Every module once, in the order of `named_modules`."""
    places = {}

    def visit(module: nn.Module, path: str) -> None:
        if module in places:
            return
        within = path and f"{path}."
        places[module] = _Place(path, within, not module._modules, _argument_names(module))
        for name, child in module._modules.items():
            if child is not None:
                visit(child, within + name)

    visit(model, "")
    return places


@dataclass(slots=True)
class _Use:
    """One argument of one step: the value; the node of the graph that made it (none: a leaf), and its output."""

    call: Call
    argument: str
    name: str
    tensor: Tensor
    node: tuple


@dataclass(slots=True)
class _Watched:
    """A tensor whose gradient is kept, as it was in this version."""

    tensor: Tensor
    version: int
    asked_before: bool  # somebody else wants this gradient too
    changed: bool = False


def _add_hooks(module: nn.Module, key: object, before: Callable, after: Callable) -> None:
    """What `register_forward_pre_hook` (with keyword arguments) and `register_forward_hook` do.

    Without their handles, which cost as much as all else that a short recording does before it begins.
    """
    module._forward_pre_hooks[key] = before
    module._forward_pre_hooks_with_kwargs[key] = True
    module._forward_hooks[key] = after


def _remove_hooks(module: nn.Module, key: object) -> None:
    module._forward_pre_hooks.pop(key, None)
    module._forward_pre_hooks_with_kwargs.pop(key, None)
    module._forward_hooks.pop(key, None)


def _is_inside_itself(module: nn.Module) -> bool:
    """Whether two calls of the module are under way, as of one that calls itself."""
    frame, calls = sys._getframe(), 0
    while frame and calls < 2:
        calls += frame.f_code is _CALL and frame.f_locals.get("self") is module
        frame = frame.f_back
    return calls > 1


_CALL = nn.Module._call_impl.__code__


def _is_compiled(path: str, module: nn.Module) -> bool:
    return path.endswith("_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def _held_by_graph() -> int:
    """How often a tensor that the graph has saved counts as held: it depends on the version of torch."""
    tensor = torch.ones(1, requires_grad=True) * 1
    before = sys.getrefcount(tensor)
    saved = tensor.sin()
    return sys.getrefcount(tensor) - before if saved.requires_grad else 0


# While autograd runs there is a graph task: a module called then only repeats, for checkpointing, what is recorded.
_graph_task, _NO_TASK = torch._C._current_graph_task_id, -1
_NO_VERSION = -1
_HELD_BY_GRAPH = _held_by_graph()
_nodes_made = torch.autograd._get_sequence_nr  # how many nodes of graphs this thread has made


def _version(tensor: Tensor) -> int:
    """A number that every change in place raises, also one through a view."""
    try:
        return tensor._version
    except RuntimeError:  # tensors made in inference mode have none
        return _NO_VERSION


def _told(module: nn.Module, name: str) -> dict:
    """The dict in which the module speaks of itself; other modules may have something else of that name.

    (A miss through `nn.Module.__getattr__` would be slow.)
    """
    told = module.__dict__.get(name)
    if told is None:
        told = getattr(type(module), name, None)
    return told if isinstance(told, dict) else {}


def _argument_names(module: nn.Module) -> tuple[str, ...]:
    """Names of the positional arguments of `module.forward`."""
    forward = module.forward
    function = getattr(forward, "__func__", forward)
    return _positional(function)[function is not forward:]  # a bound method has its `self` already


@functools.lru_cache(maxsize=256)
def _positional(function: Callable) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


def _output_name(module: nn.Module, where: tuple[str, ...]) -> str:
    names = list(_told(module, "outputs"))
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
