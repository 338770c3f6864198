"""A recorded pass through a model as operations of a trace, and its parameters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor, nn

from tracer.errors import UserError
from tracer.format.roles import PASS_OUTPUTS
from tracer.format.trace import Parameter, Pass, Step
from tracer.ops import KINDS
from tracer.recording.recorder import Call, Recorder
from tracer.recording.trace_builder import TraceBuilder, to_numpy

BLOCKS = "blocks"  # the path of the model's list of blocks


@dataclass
class RecordedPass:
    """One recorded pass through a model, and how its arrays are named in the trace.

    `of`: the pass of the trace, whose arrays by role it fills.  `prefix` stands before every array made in this
    pass; `parameters` says under which name the trace has a parameter that the pass read.  `inputs`: names that the
    trace already has for tensors that came from outside.  `tokens`: name of the labels of its positions.
    `shown_in`: path of a call → name and role of the step that shows it with others; each has its own unless said.
    """

    recorder: Recorder
    model: nn.Module
    of: Pass
    prefix: str = ""
    parameters: str = "{}"
    inputs: dict[str, str] = field(default_factory=dict)
    tokens: str = "tokens"
    vocabulary: str = "vocabulary"
    derived: frozenset[str] = frozenset()
    shown_in: Callable[[str], tuple[str, str]] | None = None

    def __post_init__(self) -> None:
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
            if name in builder.trace.labels and len(builder.trace.label_list(name)) == length:
                found[axis] = name
            elif axis in ("position", "query_position") and length == 1:
                found[axis] = builder.label(f"{self.tokens}.last", builder.trace.label_list(self.tokens)[-1:])
        return found


def block_of(path: str) -> int | None:
    """The number of the block that a module stands in, or a parameter; None outside of the blocks."""
    parts = path.split(".")
    return int(parts[1]) if parts[0] == BLOCKS and len(parts) > 1 else None


def place_of(call: Call) -> dict[str, Any]:
    """Kind, role and block of the called module."""
    return {"kind": kind_of(call), "role": getattr(call.module, "role", ""), "block": block_of(call.path)}


def kind_of(call: Call) -> str:
    """The kind of operation that the called module says it is."""
    return str(getattr(call.module, "kind", ""))


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


def parameter_role(model: nn.Module, name: str, axes: tuple[str, ...]) -> str:
    """What a parameter is for, by the kind and role of the module that holds it."""
    path, _, own = name.rpartition(".")
    module = model.get_submodule(path)
    match getattr(module, "kind", ""), getattr(module, "role", ""), own:
        case "embedding", ("token" | "position") as table, _:
            return f"{table}_table"
        case "linear", "query_key_value", "bias":
            return "query_key_value_bias"
    return "matrix" if len(axes) > 1 else "vector"


def add_parameters(builder: TraceBuilder, model: nn.Module, values: dict[str, Tensor], moment: str,
                   prefix: str = "") -> None:
    """Parameters as sources, at one `moment` ("initial" or "trained"), with vocabulary labels on the token table."""
    axes = parameter_axes(model)
    if not builder.trace.parameters:
        builder.trace.parameters = [Parameter(name, parameter_role(model, name, axes[name]), block_of(name))
                                    for name in values]
    vocabulary = builder.trace.labels.get("vocabulary", ())
    for name, tensor in values.items():
        labels = {"row": "vocabulary"} if "row" in axes[name] and len(tensor) == len(vocabulary) else {}
        builder.source(prefix + name, tensor, axes[name], labels)
        parameter_of(builder, name).arrays[moment] = prefix + name


def parameter_of(builder: TraceBuilder, name: str) -> Parameter:
    """The parameter of that name in the model."""
    return next(parameter for parameter in builder.trace.parameters if parameter.name == name)


def check_complete(run: RecordedPass) -> None:
    """Raises `UserError` where the recorder missed something that the trace has no other name for."""
    missed = next((notice for notice in run.recorder.notices if notice.about not in run.inputs), None)
    if missed:
        raise UserError(f"the recording would not be whole: {missed}")


def add_forward(builder: TraceBuilder, run: RecordedPass,
                chapter_of: Callable[[str], tuple[str, str, int | None]] | None = None) -> None:
    """Every operation of a recorded forward pass.

    `chapter_of`: path → name, kind and block of its chapter, when it opens chapters.
    """
    check_complete(run)
    opened = None
    for call in run.recorder.calls:
        if not call.is_step or not call.made:
            continue  # of a step: it returned what it was given (dropout in eval mode)
        if chapter_of and (chapter := chapter_of(call.path)) != opened:
            builder.chapter(*chapter)
            opened = chapter
        name, place = call.path, place_of(call)
        if run.shown_in:
            name, role = run.shown_in(call.path)
            place |= {"kind": "", "role": role}
        _add_call(builder, run, call, builder.step(run.prefix + name, direction="forward", of_pass=run.of, **place))


def _add_call(builder: TraceBuilder, run: RecordedPass, call: Call, step: Step) -> None:
    kind = kind_of(call)
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
        if role := PASS_OUTPUTS.get((kind, place_of(call)["role"], output)):
            run.of.arrays[role] = name
