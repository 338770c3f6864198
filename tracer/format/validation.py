"""Whether the parts of a recording fit together.  Raises `UserError` for the first that does not."""

from collections.abc import Container, Iterable

from tracer.errors import UserError
from tracer.format.budget import check_budget
from tracer.format.routes import check_route
from tracer.format.trace import AXES, Array, Operation, Trace
from tracer.ops import KINDS
from tracer.ops.replay import Replay

MOST_DERIVED = 32  # arrays in a row of which none is held: whoever wants the last one computes them all
LARGEST_SETTING = 2**31  # of a setting that counts or places something
# Settings that are whole numbers; of all others only the equations know what may be.
WHOLE = {"count", "head_width", "heads", "length", "merged", "offset", "position", "shift", "start", "update"}


def validate(trace: Trace) -> None:
    """Raises `UserError` for the first thing that does not fit: names, shapes, order, the structure of its route."""
    lengths = {name: len(trace.label_list(name)) for name in trace.labels}
    for array in trace.arrays.values():
        _validate_array(trace, array, lengths)
    replay = Replay(trace, AXES)
    _validate_operations(trace, replay)
    _validate_chapters(trace)
    check_route(trace)
    check_budget(trace, replay)


def _validate_operations(trace: Trace, replay: Replay) -> None:
    made = {name for name in trace.arrays if name not in trace.operations}
    derived: dict[str, int] = {}  # array → how many in a row, up to it, are derived
    for operation in trace.operations.values():
        _validate_operation(trace, operation, made)
        _validate_shapes(operation, replay)
        _validate_rounding(trace, operation)
        made.add(operation.id)
        if trace.arrays[operation.id].derived:
            derived[operation.id] = 1 + max((derived.get(name, 0) for name in operation.operands.values()), default=0)
            if derived[operation.id] > MOST_DERIVED:
                raise UserError(f"operation {operation.id} follows from more than {MOST_DERIVED} derived arrays "
                                "in a row")


def _validate_chapters(trace: Trace) -> None:
    once: set[tuple[str, str]] = set()

    def note(what: str, name: str) -> None:
        if (what, name) in once:
            raise UserError(f"{what} {name} stands twice")
        once.add((what, name))

    for chapter in trace.chapters:
        note("chapter", chapter.id)
        if not chapter.steps:
            raise UserError(f"chapter {chapter.id} has no step")
        for step in chapter.steps:
            note("step", step.id)
            _need(f"step {step.id}", "operation", step.operations, trace.operations)
            _need(f"step {step.id}", "array", step.arrays, trace.arrays)
            if not step.operations and not step.arrays:
                raise UserError(f"step {step.id} shows nothing")
            for operation in step.operations:
                note("operation", operation)
    _validate_structure(trace)


def _validate_structure(trace: Trace) -> None:
    """Whatever is named by its role is there; a step is of a kind that it shows, and of a pass and a step there are."""
    groups = [*trace.texts.values(), trace.roles, *(one.arrays for one in trace.passes),
              *(one.arrays for one in trace.parameters)]
    for arrays in groups:
        _need("its structure", "array", arrays.values(), trace.arrays)
    names = [one.name for one in trace.passes]
    if len({*names}) < len(names):
        raise UserError("two passes are the same")
    steps = {step.id: step for step in trace.steps()}
    parameters = dict.fromkeys(parameter.name for parameter in trace.parameters)
    for step in steps.values():
        if step.kind and step.kind not in {trace.operations[name].kind for name in step.operations}:
            raise UserError(f"step {step.id} shows no operation of its kind {step.kind!r:.40}")
        if step.pass_ and trace.pass_of(step) is None:
            raise UserError(f"step {step.id} is of a pass that there is not")
        if step.of:
            backward = step.direction == "backward"
            _need(f"step {step.id}", "step" if backward else "parameter", [step.of], steps if backward else parameters)


def _need(where: str, what: str, names: Iterable[str], known: Container[str]) -> None:
    for name in names:
        if name not in known:
            raise UserError(f"{where} names {what} {name!r}, which the trace does not hold")


def _validate_array(trace: Trace, array: Array, lengths: dict[str, int]) -> None:
    if len(array.axes) != len(array.shape) or any(axis not in AXES for axis in array.axes):
        raise UserError(f"array {array.name} has shape {list(array.shape)} but axes {list(array.axes)}")
    for axis, labels in array.labels.items():
        _need(f"array {array.name}", "labels", [labels], lengths)
        _need(f"array {array.name}", "axis", [axis], dict.fromkeys(array.axes))
        length = array.shape[array.axes.index(axis)]
        if lengths[labels] != length:
            raise UserError(f"array {array.name} has {length} along {axis}, its labels {labels} "
                            f"are {lengths[labels]}")
    if array.same_as is not None:
        _need(f"array {array.name}", "array", [array.same_as], trace.arrays)
        other = trace.arrays[array.same_as]
        if other.data is None or (other.shape, other.dtype) != (array.shape, array.dtype):
            raise UserError(f"array {array.name} cannot be the same as {array.same_as}: that one has another "
                            "shape or dtype, or holds no numbers itself")
    if array.name not in trace.operations and (array.derived or not array.sha256):
        raise UserError(f"array {array.name} comes from no operation and has no sha256")
    if array.name in trace.operations and array.sha256:
        raise UserError(f"array {array.name} comes from an operation and has a sha256 all the same")


def _validate_operation(trace: Trace, operation: Operation, made: set[str]) -> None:
    """`made`: the arrays that are there before this operation."""
    if operation.kind not in KINDS or operation.target not in KINDS[operation.kind].targets:
        raise UserError(f"operation {operation.id} has unknown kind {operation.kind}.{operation.target}")
    _need(f"operation {operation.id}", "array", [operation.id, *operation.operands.values()], trace.arrays)
    late = [name for name in operation.operands.values() if name not in made]
    if late:
        raise UserError(f"operation {operation.id} reads {late[0]}, which no operation before it makes")
    kind = KINDS[operation.kind]
    _need_exactly(operation, "operand", operation.operands, kind.operands(operation.target))
    _need_exactly(operation, "setting", operation.settings, kind.settings(operation.target))
    for name, value in operation.settings.items():
        if name in WHOLE and not (type(value) is int and 0 <= value < LARGEST_SETTING):
            raise UserError(f"setting {name} of operation {operation.id} is no whole number from 0 on")


def _need_exactly(operation: Operation, what: str, given: Iterable[str], read: list[str]) -> None:
    """What an operation states and no equation reads would be held by nothing."""
    if missing := [name for name in read if name not in given]:
        raise UserError(f"operation {operation.id} lacks its {what} {missing[0]}")
    if unread := [name for name in given if name not in read]:
        raise UserError(f"operation {operation.id} has the {what} {unread[0]}, which "
                        f"{operation.kind}.{operation.target} does not read")


def _validate_rounding(trace: Trace, operation: Operation) -> None:
    array = trace.arrays[operation.id]
    if operation.rounding and (array.derived or array.dtype == "int64"):
        raise UserError(f"operation {operation.id} lists a rounding, but its numbers are "
                        f"{'not held' if array.derived else 'whole and never rounded'}")
    if outside := [index for index in operation.rounding if index >= array.size]:
        raise UserError(f"operation {operation.id} lists a rounding for value {outside[0]} of {array.size}")


def _validate_shapes(operation: Operation, replay: Replay) -> None:
    try:
        replay.sizes(operation)
    except ValueError as error:
        raise UserError(f"operation {operation.id} does not fit its arrays: {error}") from None
