"""Recompute every recorded array from its recorded operands, in NumPy alone.

For each operation the target is computed in float64 and compared, number by number, with what PyTorch
recorded in float32.  A number passes when it agrees

* to `RELATIVE` of itself, and
* within `SAFETY` times the float32 error bound of that very number (see `tracer.ops.rounded`).

Where terms cancel, float32 keeps few digits and the first rule cannot hold.  Such numbers are listed
in the trace with the rounding they carry (`Operation.rounding`).  The recomputation must then find that
very rounding again, to what float64 can tell (`FLOAT64` of the bound), and the second rule holds too,
so that the list excuses nothing but rounding.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracer.format import origin
from tracer.format.files import labels_are_as_written
from tracer.format.roles import KNOWN
from tracer.format.said import wrongly_said
from tracer.format.summary import summarise
from tracer.format.trace import AXES, Operation, Trace, content_hash, outline_hash
from tracer.ops.functions import Numbers
from tracer.ops.replay import Replay
from tracer.ops.rounded import Rounded

RELATIVE = 2.5e-4
SAFETY = 4.0
FLOAT64 = 2.0**-26  # float64 rounds 2²⁹ times finer than float32; 2³ of it allow for other libraries


@dataclass(frozen=True)
class Check:
    """The outcome for what bears the `name`, mostly an operation: its largest errors, and what is wrong (or "")."""

    name: str
    kind: str
    count: int
    absolute: float = 0.0
    relative: float = 0.0
    problem: str = ""


def verify(trace: Trace, *, hashes: bool = True) -> Iterator[Check]:
    """Yield a `Check` for every operation in order, then for the summary and (with `hashes`) what none makes."""
    replay = Replay(trace, AXES)
    for operation in trace.operations.values():
        if not trace.arrays[operation.id].derived:
            yield check_operation(replay, operation)
        replay.forget_after(operation.id)
    yield check_summary(trace)
    if hashes:
        yield from check_hashes(trace)


def check_operation(replay: Replay, operation: Operation) -> Check:
    """Compare what `operation` recorded with its recomputation."""
    recorded = np.asarray(replay.values(operation.id)).reshape(-1)
    try:
        return compare(operation, recorded, replay.compute(operation))
    except Exception as error:  # operands that do not fit the operation fail in NumPy in many ways
        return Check(operation.id, f"{operation.kind}.{operation.target}", recorded.size, np.inf, np.inf,
                     f"cannot be recomputed ({type(error).__name__}: {error})")


def compare(operation: Operation, recorded: np.ndarray, computed: Rounded) -> Check:
    """The outcome for the recorded values (flat).  Raises `IndexError` for a listed rounding of no value."""
    wrong = wrong_values(operation, recorded, computed)
    exact = _as_recorded(computed.value, recorded.dtype)
    error = _error(recorded, exact)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.divide(np.abs(error), _size(recorded), out=np.zeros_like(error), where=error != 0)
    return Check(operation.id, f"{operation.kind}.{operation.target}", recorded.size,
                 float(np.abs(error).max(initial=0)), float(relative.max(initial=0)),
                 _first_wrong(wrong, recorded, exact))


def wrong_values(operation: Operation, recorded: np.ndarray, computed: Rounded) -> np.ndarray:
    """Which of the recorded values (flat) do not follow.  Raises `IndexError` for a rounding of no value."""
    error = _error(recorded, _as_recorded(computed.value, recorded.dtype))
    if recorded.dtype.kind == "i":
        return np.asarray(error != 0)
    far = np.abs(error) > RELATIVE * _size(recorded)
    bound = computed.error.reshape(-1)
    for index, rounding in operation.rounding.items():
        if not 0 <= index < recorded.size:
            raise IndexError(f"a rounding is listed for value {index} of {recorded.size}")
        far[index] = not abs(error[index] - rounding) <= FLOAT64 * bound[index]
    return np.asarray(far | beyond_float32(recorded, computed))


def beyond_float32(recorded: np.ndarray, computed: Rounded) -> np.ndarray:
    """Which of the recorded values (flat) are farther off than float32 explains."""
    error = _error(recorded, _as_recorded(computed.value, recorded.dtype))
    return np.asarray(~(np.abs(error) <= np.nan_to_num(SAFETY * computed.error.reshape(-1))))


def find_rounding(recorded: np.ndarray, computed: Rounded) -> dict[int, float]:
    """The values (flat) that rounding has moved by more than `RELATIVE` of themselves, with by how much."""
    if recorded.dtype.kind == "i":
        return {}
    error = _error(recorded, _as_recorded(computed.value, recorded.dtype))
    listed = np.isfinite(error) & (np.abs(error) > RELATIVE * _size(recorded))
    return {int(i): float(error[i]) for i in np.flatnonzero(listed)}


def _as_recorded(values: Numbers, dtype: np.dtype) -> np.ndarray:
    """Flat, in float64; what is beyond the range of a float32 is infinite there."""
    flat = values.reshape(-1)
    if dtype != np.float32:
        return flat
    return np.where(np.abs(flat) > np.finfo(np.float32).max, np.copysign(np.inf, flat), flat)


def _error(recorded: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Recorded − exact.  Where one of them is no finite number: 0 when both are the same, else ∞."""
    finite = np.isfinite(exact) & np.isfinite(recorded)
    same = (recorded == exact) | (np.isnan(recorded) & np.isnan(exact))
    difference = np.where(finite, recorded, 0.0) - np.where(finite, exact, 0.0)
    return np.where(finite, difference, np.where(same, 0.0, np.inf))


def _size(recorded: np.ndarray) -> np.ndarray:
    return np.abs(recorded.astype(np.float64))


def _first_wrong(wrong: np.ndarray, recorded: np.ndarray, exact: np.ndarray) -> str:
    if not wrong.any():
        return ""
    index = int(np.flatnonzero(wrong)[0])
    return (f"{int(wrong.sum())} of {wrong.size} wrong, first value {index}: "
            f"recorded {recorded[index]!s}, recomputed {exact[index]!s}")


def check_summary(trace: Trace) -> Check:
    """Compare the headline figures, and what is said of texts, settings and labels, with what the arrays give."""
    try:
        problem = difference(trace.summary, summarise(trace), "") or wrongly_said(trace)
    except (LookupError, TypeError, ValueError) as error:
        problem = f"the arrays do not give it ({type(error).__name__}: {error})"
    return Check("summary", "summary", len(trace.summary), problem=problem)


def difference(said: object, given: object, key: str,
               source: str = "the summary says {said}, the arrays give {given}") -> str:
    """The first place where two nested JSON values differ; empty where none does.  `source`: how that is said."""
    if isinstance(said, dict) and isinstance(given, dict):
        places = [(k, said.get(k, "nothing"), given.get(k, "nothing")) for k in sorted({*said, *given})]
    elif isinstance(said, list) and isinstance(given, list) and len(said) == len(given):
        places = [(str(i), a, b) for i, (a, b) in enumerate(zip(said, given, strict=True))]
    elif said == given and type(said) is type(given):
        return ""
    else:
        return f"{key}: " * bool(key) + source.format(said=repr(said), given=repr(given))
    found = (difference(a, b, f"{key}.{k}" if key else k, source) for k, a, b in places)
    return next(filter(None, found), "")


def check_hashes(trace: Trace) -> Iterator[Check]:
    """Yield a `Check` for every array that no operation makes, labels in files, the outline and the checkpoint."""
    for array in trace.arrays.values():
        if array.sha256:
            same = content_hash(trace.values(array.name)) == array.sha256
            yield Check(array.name, "sha256", array.size, problem="" if same else
                        "its content is not what was recorded (sha256 differs)")
    for name in trace.labels:
        if not labels_are_as_written(trace, name):
            yield Check(f"labels {name}", "sha256", 1, problem="the labels in their file were changed (sha256 differs)")
    same = outline_hash(trace) == trace.outline_sha256
    yield Check("outline", "sha256", len(trace.operations), problem="" if same else
                "how it was made, its labels or its list of operations was changed (sha256 differs)")
    if trace.route in KNOWN:
        yield Check("checkpoint", "sha256", 1, problem=origin.origin_problem(trace))
