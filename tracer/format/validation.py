"""Whether the parts of a recording fit together.  Raises `UserError` for the first that does not."""

from collections.abc import Iterable

from tracer.errors import UserError
from tracer.format.budget import check_budget
from tracer.format.routes import check_route
from tracer.format.trace import AXES, Array, Step, Trace
from tracer.ops import KINDS, Computation
from tracer.ops.replay import Replay

MOST_DERIVED = 32  # arrays in a row of which none is held: whoever wants the last one computes them all
LARGEST_SETTING = 2**31  # of a setting that counts or places something
# Settings that are whole numbers; of all others only the equations know what may be.
WHOLE = {"count", "head_width", "heads", "length", "merged", "offset", "position", "shift", "start", "step"}


def validate(trace: Trace) -> None:
    lengths = {name: len(trace.label_list(name)) for name in trace.labels}
    for array in trace.arrays.values():
        _validate_array(trace, array, lengths)
    replay = Replay(trace, AXES)
    _validate_steps(trace, replay)
    _validate_chapters(trace)
    check_route(trace)
    check_budget(trace, replay)


def _validate_steps(trace: Trace, replay: Replay) -> None:
    made = {name for name in trace.arrays if name not in trace.steps}
    derived: dict[str, int] = {}  # array → how many in a row, up to it, are derived
    for step in trace.steps.values():
        _validate_step(trace, step, made)
        _validate_shapes(trace, step, replay)
        _validate_rounding(trace, step)
        made.add(step.id)
        if trace.arrays[step.id].derived:
            derived[step.id] = 1 + max((derived.get(name, 0) for name in step.operands.values()), default=0)
            if derived[step.id] > MOST_DERIVED:
                raise UserError(f"step {step.id} follows from more than {MOST_DERIVED} derived arrays in a row")


def _validate_chapters(trace: Trace) -> None:
    once: set[tuple[str, str]] = set()

    def note(what: str, name: str) -> None:
        if (what, name) in once:
            raise UserError(f"{what} {name} stands twice")
        once.add((what, name))

    for chapter in trace.chapters:
        note("chapter", chapter.id)
        if not chapter.views:
            raise UserError(f"chapter {chapter.id} has no view")
        for view in chapter.views:
            note("view", view.id)
            _need(f"view {view.id}", "step", view.steps, trace.steps)
            _need(f"view {view.id}", "array", view.arrays, trace.arrays)
            if not view.steps and not view.arrays:
                raise UserError(f"view {view.id} shows nothing")
            for step in view.steps:
                note("step", step)


def _need(where: str, what: str, names: Iterable[str], known: dict) -> None:
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
    if array.name not in trace.steps and (array.derived or not array.sha256):
        raise UserError(f"array {array.name} comes from no step and has no sha256")
    if array.name in trace.steps and array.sha256:
        raise UserError(f"array {array.name} comes from a step and has a sha256 all the same")


def _validate_step(trace: Trace, step: Step, made: set[str]) -> None:
    """`made`: the arrays that are there before this step."""
    if step.kind not in KINDS or step.target not in KINDS[step.kind].targets:
        raise UserError(f"step {step.id} has unknown kind {step.kind}.{step.target}")
    _need(f"step {step.id}", "array", [step.id, *step.operands.values()], trace.arrays)
    late = [name for name in step.operands.values() if name not in made]
    if late:
        raise UserError(f"step {step.id} reads {late[0]}, which no step before it makes")
    kind = KINDS[step.kind]
    _need_exactly(step, "operand", step.operands, kind.operands(step.target))
    _need_exactly(step, "attribute", step.attributes, kind.settings(step.target))
    for name, value in step.attributes.items():
        if name in WHOLE and not (type(value) is int and 0 <= value < LARGEST_SETTING):
            raise UserError(f"attribute {name} of step {step.id} is no whole number from 0 on")


def _need_exactly(step: Step, what: str, given: Iterable[str], read: list[str]) -> None:
    """What a step states and no equation reads would be held by nothing."""
    if missing := [name for name in read if name not in given]:
        raise UserError(f"step {step.id} lacks its {what} {missing[0]}")
    if unread := [name for name in given if name not in read]:
        raise UserError(f"step {step.id} has the {what} {unread[0]}, which {step.kind}.{step.target} does not read")


def _validate_rounding(trace: Trace, step: Step) -> None:
    array = trace.arrays[step.id]
    if step.rounding and (array.derived or array.dtype == "int64"):
        raise UserError(f"step {step.id} lists a rounding, but its numbers are "
                        f"{'not held' if array.derived else 'whole and never rounded'}")
    if outside := [index for index in step.rounding if index >= array.size]:
        raise UserError(f"step {step.id} lists a rounding for value {outside[0]} of {array.size}")


def _validate_shapes(trace: Trace, step: Step, replay: Replay) -> None:
    operands = {operand: trace.arrays[name] for operand, name in step.operands.items()}
    try:
        Computation(replay.equations(step), operands, step.attributes, trace.arrays[step.id].shape).sizes()
    except ValueError as error:
        raise UserError(f"step {step.id} does not fit its arrays: {error}") from None
