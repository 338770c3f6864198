"""Every gradient of a recorded pass as an operation, from the loss back."""

from dataclasses import dataclass

from torch import Tensor

from tracer.format.files import INLINE_LIMIT
from tracer.format.trace import Step
from tracer.ops import KINDS
from tracer.recording.forward import RecordedPass, kind_of, own_parameter, place_of
from tracer.recording.recorder import Call
from tracer.recording.trace_builder import TraceBuilder


def add_backward(builder: TraceBuilder, run: RecordedPass, gradients: dict[str, Tensor]) -> None:
    """Every gradient, from the loss back: of activations, and (`gradients`) of parameters."""
    operations = [call for call in run.recorder.calls if call.is_step and call.made]
    backward = _Backward(builder, run, gradients, operations)
    for call in reversed(operations):
        if any(backward.has_gradient(name) for name in call.outputs.values()):
            backward.add_call(call, builder.step(f"grad.{call.path}", direction="backward", of_pass=run.of,
                                                 of=run.prefix + call.path, **place_of(call)))
    for parameter in builder.trace.parameters:
        if parameter.name in gradients:
            parameter.arrays["gradient"] = run.gradient_name(parameter.name)
    run.of.arrays["logits_gradient"] = f"grad.{run.of.arrays['logits']}"


class _Backward:
    """Gradients arrive use by use; a value that was used twice gets the sum when both are there."""

    def __init__(self, builder: TraceBuilder, run: RecordedPass, gradients: dict[str, Tensor], operations: list[Call]):
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
        targets = [t[2:] for t in KINDS[kind_of(call)].targets if t.startswith("d_")]
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
        operands = {o: self.gradient_operand(call, o) for o in KINDS[kind_of(call)].operands(target)}
        of = self.builder.trace.arrays[self.run.array_name(value)]
        data = None if numbers is None else self.run.unbatched(numbers, of.axes)
        derived = derived or data is None or ("@" in name and data.size > INLINE_LIMIT)
        self.builder.operation(name, kind_of(call), operands, data, of.axes, target=target, shape=of.shape,
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
        known = None if before.numbers is None or part is None else before.numbers + part
        numbers = self.total[value] if last else known
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
