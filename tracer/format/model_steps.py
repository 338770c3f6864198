"""Whether the steps of a recording of a route are those of one model, wherever it runs: in order, block by block.

A step says of itself what it is for.  So it could say what it is not: another block, pass or role, each of which there
is.  What holds it is the model: it computes the same in every pass, its blocks are alike, and each of its parameters
is read by one step of them.  Raises `UserError` for the first step that is not where the model has it.
"""

from collections.abc import Iterable
from itertools import groupby

from tracer.errors import UserError
from tracer.format import roles
from tracer.format.trace import Operation, Parameter, Step, Trace
from tracer.ops import KINDS

Place = tuple[str, str, int | None]  # kind, role and block of a step
Reader = tuple[str, str, int | None, str]  # and the operand
_ORDER = {place: n for n, place in enumerate(roles.MODEL_STEPS | roles.SAMPLER_STEPS)}
_STANDS_FOR = {"norm": "layer_norm", "activation": "gelu"}  # where kinds that a setting chooses may be
_PARAMETER_READERS = {
    "token_table": ("embedding", "token", "table"), "position_table": ("embedding", "position", "table"),
    "query_key_value_bias": ("linear", "query_key_value", "bias")}
_ADAMW = {"m": {"gradient": "gradient"}, "v": {"gradient": "gradient"}, "updated": {"before": "initial", "m": "m",
                                                                                   "v": "v"}}
_READ_AS = {"first": "initial", "again": "updated", "evaluation": "trained", "round": "trained",
            "single": "trained"}  # kind of a pass → the values of a parameter that it reads
_CHANGE = {"change": {"before": "initial", "after": "trained"}}


def check_model_steps(trace: Trace) -> None:
    """Raises `UserError` for the first step that says of its place what cannot be."""
    forward = {one.name: _model_steps(trace, one.kind, one.split, one.round) for one in trace.passes
               if one.kind != "cached"}
    first = next(iter(forward.values()))
    for name, steps in forward.items():
        _check_blocks(trace, f"pass {name}", steps)
        _check_order(steps)
        _check_alike(name, steps, first)
    for one in trace.passes:
        if one.kind == "cached":
            steps = [step for step in trace.steps() if step.pass_ == "cached" and step.round == one.round]
            _check_blocks(trace, f"pass {one.name}", [step for step in steps if step.direction], ("", "block"))
    if trace.route in ("training", roles.PASS):
        _check_backward(trace, first)
    _check_parameters(trace)


def place_of(step: Step) -> Place:
    """Where a step of the model is in it: the same in every pass."""
    return step.kind, step.role, step.block


def _model_steps(trace: Trace, kind: str, split: str, round: int | None) -> list[Step]:
    return [step for step in trace.steps() if (step.pass_, step.split, step.round) == (kind, split, round)
            and step.direction == "forward" and (step.kind, step.role) not in roles.ROUND_STEPS]


def _check_blocks(trace: Trace, where: str, steps: list[Step], once: tuple[str, str] | None = None) -> None:
    """Blocks in order and alike, and steps of no block before and after.  `once`: the one step that a block has."""
    found = [(block, [(step.kind, step.role) for step in group]) for block, group in groupby(steps, lambda s: s.block)]
    wanted = [None, *range(trace.make["config"]["blocks"]), None]
    if [block for block, _ in found] != wanted:
        raise UserError(f"the steps of {where} do not go through its blocks one after the other")
    for block, places in found[1:-1]:
        if places != ([once] if once else found[1][1]):
            raise UserError(f"the steps of {where} in block {block} are not those of {'a' if once else 'another'} "
                            "block")


def _check_order(steps: Iterable[Step]) -> None:
    """Each block, and what is before and after, in the order that the model has."""
    for _, group in groupby(steps, lambda step: step.block):
        last = -1
        for step in group:
            place = (_STANDS_FOR.get(KINDS[step.kind].place, step.kind), step.role)
            # A kind that is not listed may stand wherever its role may.
            numbers = [_ORDER[place]] if place in _ORDER else [
                n for (_, role), n in _ORDER.items() if step.role and role == step.role]
            later = [n for n in numbers if n >= last]  # two of a place may follow one another
            if numbers and not later:
                raise UserError(f"step {step.id} is not where a step {'/'.join(filter(None, place))} can be")
            last = later[0] if later else last


def _check_alike(name: str, steps: list[Step], first: list[Step]) -> None:
    """Where an evaluation differs: it has no dropout."""
    wanted = [place_of(step) for step in first if step.kind != "dropout" or not name.startswith("evaluation")]
    if [place_of(step) for step in steps] != wanted:
        raise UserError(f"the steps of pass {name} are not those of the model in pass {first[0].pass_}")


def _check_backward(trace: Trace, first: list[Step]) -> None:
    """The way back, from the last step to the first, each at most once."""
    number = {step.id: n for n, step in enumerate(first)}
    last = len(first)
    for step in trace.steps():
        if step.direction == "backward":
            if step.of not in number or number[step.of] >= last:
                raise UserError(f"step {step.id} goes back through {step.of}, which is not before the last one")
            last = number[step.of]


# Parameters ------------------------------------------------------------------------------------------

def _check_parameters(trace: Trace) -> None:
    """Each is read where its block and its role say, in every pass at the same place; its steps show its own."""
    homes = {name: step for step in trace.steps() for name in step.operations}
    shown: dict[str, Step] = {}
    for step in trace.steps():
        if step.of and step.direction != "backward":
            if step.of in shown:
                raise UserError(f"step {step.id} is the second one of parameter {step.of}")
            shown[step.of] = step
    for parameter in trace.parameters:
        _check_readers(trace, parameter, homes)
        for role, operands in (_ADAMW if trace.route == "training" else _CHANGE).items():
            if role in parameter.arrays:
                _check_made(trace, parameter, role, operands, shown)
        gradient = homes.get(parameter.arrays.get("gradient", ""))
        read = parameter.arrays[_READ_AS[trace.passes[0].kind]]
        if gradient and (gradient.direction != "backward" or read not in _read_in(
                trace, next(step for step in trace.steps() if step.id == gradient.of))):
            raise UserError(f"the gradient of parameter {parameter.name} is of a step that does not read it")


def _check_readers(trace: Trace, parameter: Parameter, homes: dict[str, Step]) -> None:
    found = [_readers(trace, parameter.arrays[_READ_AS[one.kind]], homes, one.name) for one in trace.passes
             if one.kind in _READ_AS]
    blocks = {block for readers in found for _, _, block, _ in readers}
    if not found[0] or any(readers != found[0] for readers in found) or blocks != {parameter.block}:
        raise UserError(f"parameter {parameter.name} is not read at one place of its block in every pass")
    places = {(kind, role, operand) for kind, role, _, operand in found[0]}
    for role, place in _PARAMETER_READERS.items():
        if (place in places) != (parameter.role == role):
            raise UserError(f"parameter {parameter.name} is read as a {role} or has that role, and not both")


def _readers(trace: Trace, name: str, homes: dict[str, Step], pass_name: str) -> set[Reader]:
    """Which operands of which steps of a pass the array is, on the way forward."""
    found = set()
    for operation in trace.uses.get(name, ()):
        step = homes[operation.id]
        run = trace.pass_of(step)
        if run is not None and run.name == pass_name and step.direction == "forward":
            found |= {(*place_of(step), operand) for operand, read in operation.operands.items() if read == name}
    return found


def _read_in(trace: Trace, step: Step) -> set[str]:
    return {name for operation in step.operations for name in trace.operations[operation].operands.values()}


def _check_made(trace: Trace, parameter: Parameter, role: str, operands: dict[str, str],
                shown: dict[str, Step]) -> None:
    """An array of the parameter follows from others of it, in the step of the parameter."""
    name = parameter.arrays[role]
    operation: Operation = trace.operations[name]
    wrong = [operand for operand, of in operands.items() if operation.operands[operand] != parameter.arrays[of]]
    if wrong or parameter.name not in shown or name not in shown[parameter.name].operations:
        raise UserError(f"{role} of parameter {parameter.name}, {name}, "
                        + (f"has another {wrong[0]}" if wrong else "is not shown in a step of it"))
