"""Recordings in which something was changed, and what verifying says of them."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from tracer.format.trace import AXES, Operation, Trace
from tracer.format.verify import (
    Check,
    check_operation,
)
from tracer.ops.replay import Replay
from tracer.ops.rounded import Rounded

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT / "traces"
ROUTES = ("training", "generation")
THOUSANDTH = 1e-3


@pytest.fixture(scope="module")
def traces(training_trace, generation_trace) -> dict[str, Trace]:
    return {"training": training_trace, "generation": generation_trace}


@pytest.fixture(scope="module")
def replays(traces) -> dict[str, Replay]:
    return {route: Replay(trace, AXES) for route, trace in traces.items()}


def stored_steps(trace: Trace) -> list[Operation]:
    return [step for step in trace.operations.values() if not trace.arrays[step.id].derived]


def with_values(trace: Trace, changes: dict[str, np.ndarray]) -> Trace:
    """A copy of `trace` in which only these arrays hold other numbers: what shared theirs keeps the old."""
    arrays = dict(trace.arrays)
    for array in trace.arrays.values():
        if array.same_as in changes:
            arrays[array.name] = dataclasses.replace(array, same_as=None, data=trace.values(array.name))
    for name, data in changes.items():
        arrays[name] = dataclasses.replace(arrays[name], same_as=None, file=None, data=data)
    return dataclasses.replace(trace, arrays=arrays)


def with_step(trace: Trace, step_id: str, **changes) -> Trace:
    return dataclasses.replace(trace, operations={
        **trace.operations, step_id: dataclasses.replace(trace.operations[step_id], **changes)})


def changed(value: np.generic, direction: int) -> np.generic:
    """`value` a thousandth larger or smaller; a whole number by one."""
    if value.dtype.kind == "i":
        return value + np.int64(direction)
    return value.dtype.type(np.float64(value) * (1 + direction * THOUSANDTH))


def problems(checks) -> list[Check]:
    return [check for check in checks if check.problem]


def fresh_check(trace: Trace, step_id: str) -> Check:
    return check_operation(Replay(trace, AXES), trace.operations[step_id])


def listed_alone(trace: Trace, replay: Replay, step: Operation) -> tuple[Operation, np.ndarray, Rounded]:
    """`step` as if it had made only the numbers whose rounding it lists: what it recorded, what is computed."""
    indices = list(step.rounding)
    computed = replay.compute(step)
    small = Rounded(computed.value.reshape(-1)[indices], computed.error.reshape(-1)[indices])
    return (dataclasses.replace(step, rounding=dict(enumerate(step.rounding.values()))),
            trace.values(step.id).reshape(-1)[indices], small)


def copy_of_traces(folder: Path) -> Path:
    shutil.copytree(TRACES, folder / "traces", ignore=shutil.ignore_patterns("*.pt"))
    return folder / "traces"
