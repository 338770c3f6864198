"""What recomputing a recording will take, found from its equations and shapes before anything is computed."""

from collections.abc import Hashable
from dataclasses import dataclass

from tracer.errors import UserError
from tracer.format.trace import Operation, Trace
from tracer.ops.cost import PAIR, Cost, evaluation_cost
from tracer.ops.replay import Replay

MOST_WORK = 15e9  # ns, by the estimate of `tracer.ops.cost`, which is for a slow computer
MOST_MEMORY = 700 * 2**20  # bytes, beside some 100 MiB of the program itself
AN_OPERATION = 200_000  # ns around every evaluation
COMPARING = 80  # ns a number


@dataclass
class Forecast:
    """`work` in nanoseconds, `memory` in bytes at once; `operation`: where the memory is needed."""

    work: float
    memory: int
    operation: str


def forecast(trace: Trace, replay: Replay) -> Forecast:
    """What `verify` takes: every operation that is held is computed, and what it follows from, once."""
    held = sum(array.data.nbytes for array in trace.arrays.values() if array.data is not None)
    found, alive = Forecast(0.0, held, ""), 0
    known: dict[Hashable, Cost] = {}
    for operation in trace.operations.values():
        array = trace.arrays[operation.id]
        if not array.derived or operation.id in replay.wanted:
            cost = _cost(trace, replay, operation, known)
            found.work += cost.work + AN_OPERATION + COMPARING * array.size
            memory = held + alive + cost.memory + (0 if array.derived else 64 * array.size)
            if memory > found.memory:
                found.memory, found.operation = memory, operation.id
            alive += PAIR * array.size if array.derived else 0
        alive -= sum(PAIR * trace.arrays[name].size for name in replay.done_after.get(operation.id, ()))
    return found


def _cost(trace: Trace, replay: Replay, operation: Operation, known: dict[Hashable, Cost]) -> Cost:
    """Operations of the same equations and lengths cost the same."""
    equations, sizes = replay.equations(operation), replay.sizes(operation)
    key = (id(equations), *sizes.items())
    if key not in known:
        operands = [trace.arrays[name] for name in operation.operands.values()]
        known[key] = evaluation_cost(equations, sizes, sum(a.size for a in operands if not a.derived))
    return known[key]


def check_budget(trace: Trace, replay: Replay) -> None:
    """Raises `UserError` for a recording that takes too long, or more memory than is safe, to recompute."""
    found = forecast(trace, replay)
    if found.memory > MOST_MEMORY:
        raise UserError(f"recomputing operation {found.operation} would take some {found.memory / 2**30:.1f} GiB of "
                        f"memory, more than the {MOST_MEMORY / 2**30:.1f} GiB that are allowed")
    if found.work > MOST_WORK:
        raise UserError(f"recomputing it would take some {found.work / 1e9:,.0f} seconds, "
                        f"more than the {MOST_WORK / 1e9:.0f} that are allowed")
