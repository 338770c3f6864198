"""Recompute every recorded array from its recorded operands, in NumPy alone.

For each step the target is computed in float64 and compared, number by number, with what PyTorch
recorded in float32.  A number passes when it agrees

* to `RELATIVE` of itself, and
* within `SAFETY` times the float32 error bound of that very number (see `tracer.ops.rounded`).

Where terms cancel, float32 keeps few digits and the first rule cannot hold.  Such numbers are listed
in the trace with the rounding they carry (`Step.rounding`), which must then agree to `ROUNDING` of
itself and obey the second rule too, so that the list excuses nothing but rounding.
"""

from dataclasses import dataclass

import numpy as np

from tracer import schema
from tracer.ops.replay import Replay
from tracer.schema import Step, Trace
from tracer.summary import summarise

RELATIVE = 2.5e-4
SAFETY = 4.0
ROUNDING = 1e-5


@dataclass(frozen=True)
class Check:
    """The outcome of one step: its largest errors, and what is wrong with it (empty when nothing is)."""

    step: str
    kind: str
    count: int
    absolute: float = 0.0
    relative: float = 0.0
    problem: str = ""


def verify(trace: Trace, *, hashes: bool = True):
    """Yield a `Check` for every step in order, then for the summary and (with `hashes`) what no step makes."""
    replay = Replay(trace, schema.AXES)
    for step in trace.steps.values():
        if not trace.arrays[step.id].derived:
            yield check_step(replay, step)
    yield _check_summary(trace)
    if hashes:
        yield from _check_hashes(trace)


def check_step(replay: Replay, step: Step) -> Check:
    """Compare what `step` recorded with its recomputation."""
    recorded = np.asarray(replay.values(step.id)).reshape(-1)
    computed = replay.compute(step)
    exact, bound = computed.value.reshape(-1), computed.error.reshape(-1)
    name = f"{step.kind}.{step.target}"
    odd = ~np.isfinite(exact) | ~np.isfinite(recorded)
    if not np.array_equal(recorded[odd].astype(np.float64), exact[odd], equal_nan=True):
        where = int(np.flatnonzero(odd)[np.flatnonzero(~_same(recorded[odd], exact[odd]))[0]])
        return Check(step.id, name, recorded.size, np.inf, np.inf,
                     f"value {where}: recorded {recorded[where]}, recomputed {exact[where]}")
    error = np.where(odd, 0.0, recorded.astype(np.float64) - np.where(odd, 0.0, exact))
    size = np.abs(np.where(odd, 1.0, recorded.astype(np.float64)))
    relative = np.divide(np.abs(error), size, out=np.zeros_like(error), where=error != 0)
    problem = _problem(step, recorded, exact, error, size, bound)
    return Check(step.id, name, recorded.size, float(np.abs(error).max(initial=0)),
                 float(relative.max(initial=0)), problem)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _problem(step: Step, recorded, exact, error, size, bound) -> str:
    if recorded.dtype.kind == "i":
        return _first_wrong(error != 0, recorded, exact)
    limit = np.minimum(RELATIVE * size, SAFETY * bound)
    wrong = np.abs(error) > limit
    for index, rounding in step.rounding.items():
        if not 0 <= index < recorded.size:
            return f"rounding is listed for value {index} of {recorded.size}"
        agrees = abs(error[index] - rounding) <= ROUNDING * abs(rounding)
        wrong[index] = not agrees or abs(error[index]) > SAFETY * bound[index]
    return _first_wrong(wrong, recorded, exact)


def _first_wrong(wrong: np.ndarray, recorded, exact) -> str:
    if not wrong.any():
        return ""
    index = int(np.flatnonzero(wrong)[0])
    return (f"{int(wrong.sum())} of {wrong.size} wrong, first value {index}: "
            f"recorded {recorded[index]!s}, recomputed {exact[index]!s}")


def find_rounding(replay: Replay, step: Step) -> dict[int, float]:
    """The values of `step` that rounding has moved by more than `RELATIVE` of themselves, with by how much."""
    recorded = np.asarray(replay.values(step.id)).reshape(-1)
    if recorded.dtype.kind == "i":
        return {}
    with np.errstate(invalid="ignore"):  # −∞ − −∞
        error = recorded.astype(np.float64) - replay.compute(step).value.reshape(-1)
        listed = np.isfinite(error) & (np.abs(error) > RELATIVE * np.abs(recorded))
    return {int(i): float(error[i]) for i in np.flatnonzero(listed)}


def _check_summary(trace: Trace) -> Check:
    fresh = summarise(trace)
    for key in sorted({*fresh, *trace.summary}):
        if fresh.get(key) != trace.summary.get(key):
            return Check("summary", "summary", len(fresh), problem=(
                f"{key}: the summary says {trace.summary.get(key)!r}, the arrays give {fresh.get(key)!r}"))
    return Check("summary", "summary", len(fresh))


def _check_hashes(trace: Trace):
    for array in trace.arrays.values():
        if array.sha256:
            same = schema.content_hash(trace.values(array.name)) == array.sha256
            yield Check(array.name, "sha256", array.size, problem="" if same else
                        "its content is not what was recorded (sha256 differs)")
    same = schema.outline_hash(trace) == trace.outline_sha256
    yield Check("outline", "sha256", len(trace.steps), problem="" if same else
                "how it was made, its labels or its list of steps was changed (sha256 differs)")
