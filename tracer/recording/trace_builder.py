"""Turn what the recorder saw into a trace: named arrays and the operations that made them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from tracer.errors import UserError
from tracer.format.files import INLINE_LIMIT
from tracer.format.summary import summarise
from tracer.format.trace import AXES, Array, Chapter, Operation, Step, Trace, content_hash
from tracer.format.validation import validate
from tracer.format.verify import Check, beyond_float32, compare, find_rounding
from tracer.ops import KINDS
from tracer.ops.replay import Replay
from tracer.recording.recorder import Call, Recorder


def to_numpy(tensor: Tensor) -> np.ndarray:
    """float32 for every floating dtype (bfloat16 has no NumPy twin), int64 for whole numbers.

    Raises `UserError` for numbers that these do not hold.
    """
    tensor = tensor.detach()
    if kind := _not_held(tensor):
        raise UserError(f"{kind} numbers cannot be recorded: a recording holds dense float32 and int64")
    tensor = tensor.cpu().resolve_neg()
    if tensor.dtype == torch.uint64:
        return _as_int64(tensor.numpy())
    if not tensor.is_floating_point():
        return tensor.to(torch.int64).numpy()
    numbers = tensor.to(torch.float32)
    if tensor.dtype == torch.float64 and bool((numbers.isinf() & tensor.isfinite()).any()):
        raise UserError("float64 numbers beyond the range of float32 cannot be recorded")
    return numbers.numpy()


def _not_held(tensor: Tensor) -> str | None:
    """What kind of tensor it is, when a recording has none of that kind."""
    for kind in ("nested", "meta"):
        if getattr(tensor, f"is_{kind}"):
            return kind
    if tensor.layout != torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    return str(tensor.dtype).removeprefix("torch.") if tensor.is_complex() or tensor.is_quantized else None


def _as_int64(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.uint64 and array.max(initial=0) > np.iinfo(np.int64).max:
        raise UserError("whole numbers beyond the range of int64 cannot be recorded")
    return array.astype(np.int64)


class TraceBuilder:
    """Collects arrays, operations and steps in the order in which a learner meets them."""

    def __init__(self, route: str, make: dict):
        self.trace = Trace(route, make, {}, {}, [], {}, {})
        self._kept: dict[str, np.ndarray] = {}  # numbers of derived arrays: checked, not written

    def chapter(self, chapter_id: str) -> None:
        self.trace.chapters.append(Chapter(chapter_id, []))

    def step(self, step_id: str) -> Step:
        """The step of that name in the open chapter; made when it is not there."""
        steps = self.trace.chapters[-1].steps
        found = next((step for step in steps if step.id == step_id), None)
        if found is None:
            found = Step(step_id)
            steps.append(found)
        return found

    def label(self, name: str, labels: list[str]) -> str:
        self.trace.labels[name] = labels
        return name

    def source(self, name: str, values, axes: tuple[str, ...] = (), labels: dict | None = None) -> str:
        """An array at the start of a computation: nothing recorded made it, its hash holds it."""
        data = _as_array(values)
        self._add(Array(name, data.shape, data.dtype.name, axes, labels or {}, data,
                        sha256=content_hash(data)))
        return name

    def operation(self, name: str, kind: str, operands: dict[str, str], values, axes: tuple[str, ...] = (), *,
             target: str = "out", settings: dict | None = None, labels: dict | None = None,
             derived: bool = False, shape: tuple[int, ...] = ()) -> str:
        """An array that `kind` made from `operands`.

        Of `attributes` those are kept that the equations read.  A derived one keeps its numbers only to be
        checked; where PyTorch gives none (`values` None, with the `shape`), what is made from it is checked
        instead.
        """
        data = None if values is None else _as_array(values)
        if data is not None:
            shape = data.shape
        self._add(Array(name, shape, "float32" if data is None else data.dtype.name, axes, labels or {},
                        None if derived else data, derived=derived))
        if derived and data is not None:
            self._kept[name] = data
        needed = {setting: (settings or {})[setting] for setting in KINDS[kind].settings(target)}
        self.trace.operations[name] = Operation(name, kind, target, operands, needed)
        return name

    def _add(self, array: Array) -> None:
        if array.name in self.trace.arrays:
            raise ValueError(f"array {array.name} is recorded twice")
        self.trace.arrays[array.name] = array

    def finish(self) -> Trace:
        """The whole trace, checked: what is written has been recomputed once already.

        Raises `UserError` for one that `load` would refuse.
        """
        trace = self.trace
        validate(trace)
        replay = Replay(trace, AXES)
        for operation in trace.operations.values():
            if trace.arrays[operation.id].derived:
                self._check_derived(replay, operation)
            elif self._check_held(replay, operation):
                replay = Replay(trace, AXES)
            replay.forget_after(operation.id)
        trace.summary = summarise(trace)
        return trace

    def _check_held(self, replay: Replay, operation: Operation) -> bool:
        """Whether operands had to be held for it.  Raises `ArithmeticError` for what does not follow all the same."""
        check = self._settle(replay, operation)
        held = bool(check.problem) and self._hold_operands(operation)
        if held:
            check = self._settle(Replay(self.trace, AXES), operation)
        if check.problem:
            raise ArithmeticError(f"operation {operation.id} ({check.kind}) does not follow from its operands: "
                                  f"{check.problem}")
        return held

    def _settle(self, replay: Replay, operation: Operation) -> Check:
        """Note the rounding that the step's numbers carry, and check them."""
        recorded, computed = self.trace.values(operation.id).reshape(-1), replay.compute(operation)
        operation.rounding = find_rounding(recorded, computed)
        return compare(operation, recorded, computed)

    def _hold_operands(self, operation: Operation) -> bool:
        """Write the derived numbers that an order follows from after all; whether there were any.

        Numbers that are nearly equal may stand the other way round when they are computed again.
        """
        trace = self.trace
        origins = self._derived_origins(operation) if trace.arrays[operation.id].dtype == "int64" else []
        for name in origins:
            trace.arrays[name] = replace(trace.arrays[name], data=self._kept[name], derived=False)
            self._settle(Replay(trace, AXES), trace.operations[name])
        return bool(origins)

    def _derived_origins(self, operation: Operation) -> list[str]:
        """The derived arrays that the operation follows from and that follow from held ones alone."""
        derived = [name for name in operation.operands.values()
                   if self.trace.arrays[name].derived and name in self._kept]
        return [origin for name in derived for origin in self._derived_origins(self.trace.operations[name]) or [name]]

    def _check_derived(self, replay: Replay, operation: Operation) -> None:
        if operation.id not in self._kept:
            return
        wrong = beyond_float32(self._kept[operation.id].reshape(-1), replay.derive(operation.id))
        if wrong.any():
            raise ArithmeticError(f"derived array {operation.id}: {int(wrong.sum())} values differ from PyTorch's")


def _as_array(values) -> np.ndarray:
    if isinstance(values, Tensor):
        return to_numpy(values)
    array = np.asarray(values)
    return _as_int64(array) if array.dtype.kind in "iub" else to_numpy(torch.from_numpy(array))


@dataclass
class Pass:
    """One recorded pass through a model, and how its arrays are named in the trace.

    `prefix` stands before every array made in this pass; `parameters` says under which name the trace has
    a parameter that the pass read.
    `inputs`: names that the trace already has for tensors that came from outside.  `tokens`: name of
    the labels of its positions.  `step_of`: path of a call → the step that shows it; each its own unless said.
    """

    recorder: Recorder
    model: nn.Module
    prefix: str = ""
    parameters: str = "{}"
    inputs: dict[str, str] = field(default_factory=dict)
    tokens: str = "tokens"
    vocabulary: str = "vocabulary"
    derived: frozenset[str] = frozenset()
    step_of: Callable[[str], str] = lambda path: path

    def __post_init__(self):
        self.parameter_names = {name for name, _ in self.model.named_parameters()}

    def array_name(self, name: str) -> str:
        if name in self.inputs:
            return self.inputs[name]
        return self.parameters.format(name) if name in self.parameter_names else self.prefix + name

    def gradient_name(self, name: str) -> str:
        return f"grad.{self.array_name(name)}"

    def operand(self, call: Call, operand: str) -> str:
        """The recorded name of what `call` read, or made, under the kind's name for it."""
        if operand in call.inputs:
            return call.inputs[operand]
        if operand in call.outputs:
            return call.outputs[operand]
        return own_parameter(call, operand)

    def axes(self, call: Call, output: str) -> tuple[str, ...]:
        return getattr(call.module, "outputs", {}).get(output, getattr(call.module, "axes", ()))

    def unbatched(self, tensor: Tensor, axes: tuple[str, ...]) -> np.ndarray:
        """Without the batch axis of length 1 that stands before the named axes."""
        values = to_numpy(tensor)
        if values.ndim == len(axes) + 1 and values.shape[0] == 1:
            values = values[0]
        if values.ndim != len(axes):
            raise ValueError(f"shape {values.shape} does not fit axes {axes}: record a batch of one text")
        return values

    def labels(self, shape: tuple[int, ...], axes: tuple[str, ...], builder: TraceBuilder) -> dict[str, str]:
        """Token labels for positions, vocabulary labels for ids, where the lengths agree."""
        wanted = {"position": self.tokens, "query_position": self.tokens, "key_position": self.tokens,
                  "vocabulary": self.vocabulary, "row": self.vocabulary}
        found = {}
        for axis, length in zip(axes, shape, strict=True):
            name = wanted.get(axis)
            if name and len(builder.trace.labels.get(name, ())) == length:
                found[axis] = name
            elif axis in ("position", "query_position") and length == 1:
                found[axis] = builder.label(f"{self.tokens}.last", builder.trace.labels[self.tokens][-1:])
        return found


def own_parameter(call: Call, operand: str) -> str:
    """The full name of the parameter that the called module itself holds as `operand`."""
    local = {kind_name: own for own, kind_name in getattr(call.module, "names", {}).items()}
    return f"{call.path}.{local.get(operand, operand)}"


def parameter_axes(model: nn.Module) -> dict[str, tuple[str, ...]]:
    """Parameter name → names of its axes, as the modules state them."""
    found = {}
    for path, module in model.named_modules():
        for name, axes in getattr(module, "parameter_axes", {}).items():
            found[f"{path}.{name}" if path else name] = axes
    return found


def add_parameters(builder: TraceBuilder, model: nn.Module, values: dict[str, Tensor], prefix: str = "") -> None:
    """Parameters as sources, with vocabulary labels on the rows of the token table."""
    axes = parameter_axes(model)
    vocabulary = builder.trace.labels.get("vocabulary", ())
    for name, tensor in values.items():
        labels = {"row": "vocabulary"} if "row" in axes[name] and len(tensor) == len(vocabulary) else {}
        builder.source(prefix + name, tensor, axes[name], labels)


def check_complete(run: Pass) -> None:
    """Raises `UserError` where the recorder missed something that the trace has no other name for."""
    missed = next((notice for notice in run.recorder.notices if notice.about not in run.inputs), None)
    if missed:
        raise UserError(f"the recording would not be whole: {missed}")


def add_forward(builder: TraceBuilder, run: Pass, chapter_of=None) -> None:
    """Every operation of a recorded forward pass.  `chapter_of`: path → chapter, when it opens chapters."""
    check_complete(run)
    opened = None
    for call in run.recorder.calls:
        if not call.is_step or not call.made:
            continue  # of a step: it returned what it was given (dropout in eval mode)
        if chapter_of and (chapter := chapter_of(call.path)) != opened:
            builder.chapter(chapter)
            opened = chapter
        _add_call(builder, run, call, builder.step(run.prefix + run.step_of(call.path)))


def _add_call(builder: TraceBuilder, run: Pass, call: Call, step: Step) -> None:
    kind = call.module.kind
    targets = KINDS[kind].targets
    for output in [*(o for o in call.outputs if o not in targets), *(t for t in targets if t in call.outputs)]:
        made = call.outputs[output]
        axes = run.axes(call, output)
        values = run.unbatched(run.recorder.values[made], axes)
        labels = run.labels(values.shape, axes, builder)
        name = run.array_name(made)
        if output not in targets:  # a random word: nothing recorded made it
            builder.source(name, values, axes, labels)
            step.arrays.append(name)
            continue
        operands = {o: run.array_name(run.operand(call, o)) for o in KINDS[kind].operands(output)}
        builder.operation(name, kind, operands, values, axes, target=output, settings=call.settings,
                     labels=labels, derived=made in run.derived)
        step.operations.append(name)


def add_backward(builder: TraceBuilder, run: Pass, gradients: dict[str, Tensor]) -> None:
    """Every gradient, from the loss back: of activations, and (`gradients`) of parameters."""
    operations = [call for call in run.recorder.calls if call.is_step and call.made]
    backward = _Backward(builder, run, gradients, operations)
    for call in reversed(operations):
        if any(backward.has_gradient(name) for name in call.outputs.values()):
            backward.add_call(call, builder.step(f"grad.{call.path}"))


class _Backward:
    """Gradients arrive use by use; a value that was used twice gets the sum when both are there."""

    def __init__(self, builder: TraceBuilder, run: Pass, gradients: dict[str, Tensor], operations: list[Call]):
        self.builder, self.run = builder, run
        self.total = {**run.recorder.gradients, **gradients}
        self.uses: dict[str, list[str]] = {}
        for call in operations:
            for operand in self.differentiable(call):
                self.uses.setdefault(run.operand(call, operand), []).append(call.path)
        self.sums: dict[str, _Sum] = {}
        self.seeded = False

    def has_gradient(self, name: str) -> bool:
        return name in self.total

    def differentiable(self, call: Call) -> list[str]:
        """Operands of the call that received a gradient through it."""
        targets = [t[2:] for t in KINDS[call.module.kind].targets if t.startswith("d_")]
        own = {own_parameter(call, o) for o in targets}
        return [o for o in targets if (call.path, o) in self.run.recorder.use_gradients
                or (o not in call.inputs and own_parameter(call, o) in own & self.total.keys())]

    def add_call(self, call: Call, step: Step) -> None:
        if not self.seeded:
            self.seed(call, step)
        for operand in self.differentiable(call):
            self.add_use(call, operand, step)

    def seed(self, call: Call, step: Step) -> None:
        """∂L/∂L = 1: the one gradient that comes from nowhere."""
        loss = call.outputs["out"]
        name = self.builder.operation(self.run.gradient_name(loss), "loss_seed", {},
                                 self.run.unbatched(self.total[loss], ()))
        step.operations.append(name)
        self.seeded = True

    def add_use(self, call: Call, operand: str, step: Step) -> None:
        value = self.run.operand(call, operand)
        if len(self.uses[value]) == 1:
            self.add_operation(self.run.gradient_name(value), call, operand, value, self.total[value], step)
            return
        name = f"{self.run.gradient_name(value)}@{call.path}"
        # A parameter that a module holds itself has no watched use: PyTorch gives its total alone.
        part = self.run.recorder.use_gradients.get((call.path, operand))
        # What came in pieces was never one number for PyTorch: it added each to the total by itself.
        pieces = self.run.recorder.pieces[call.path, operand]
        self.add_operation(name, call, operand, value, part, step, derived=pieces > 1)
        self.add_part(value, name, part, step)

    def add_operation(self, name: str, call: Call, operand: str, value: str, numbers: Tensor | None, step: Step,
                 derived: bool = False) -> None:
        target = f"d_{operand}"
        operands = {o: self.gradient_operand(call, o) for o in KINDS[call.module.kind].operands(target)}
        of = self.builder.trace.arrays[self.run.array_name(value)]
        data = None if numbers is None else self.run.unbatched(numbers, of.axes)
        derived = derived or data is None or ("@" in name and data.size > INLINE_LIMIT)
        self.builder.operation(name, call.module.kind, operands, data, of.axes, target=target, shape=of.shape,
                          settings=call.settings, derived=derived, labels=of.labels)
        step.operations.append(name)

    def gradient_operand(self, call: Call, operand: str) -> str:
        if operand.startswith("d_"):
            return self.run.gradient_name(call.outputs[operand[2:]])
        return self.run.array_name(self.run.operand(call, operand))

    def add_part(self, value: str, name: str, part: Tensor | None, step: Step) -> None:
        """Add a part to those that came before, in autograd's own order; the sum with the last one is the total."""
        before = self.sums.get(value)
        if before is None:
            self.sums[value] = _Sum(1, name, part)
            return
        count, total = before.count + 1, self.run.gradient_name(value)
        last = count == len(self.uses[value])
        known = before.numbers is not None and part is not None
        numbers = self.total[value] if last else before.numbers + part if known else None
        made = total if last else f"{total}@{count}"
        of = self.builder.trace.arrays[self.run.array_name(value)]
        self.builder.operation(made, "gradient_sum", {"first": before.name, "second": name},
                          None if numbers is None else self.run.unbatched(numbers, of.axes), of.axes,
                          labels=of.labels, derived=not last, shape=of.shape)
        step.operations.append(made)
        self.sums[value] = _Sum(count, made, numbers)


@dataclass
class _Sum:
    """The sum of so many parts of one gradient: its name, and its numbers where PyTorch gives all parts."""

    count: int
    name: str
    numbers: Tensor | None
