"""A recording made here beside the committed one: which bits are others, and whether rounding explains them.

Run as a script, with the file of the spreads: the first update, in a process with kernels of its own.
"""

import pickle
import sys
from pathlib import Path

import numpy as np
from rounding import spreads

from tracer.format.load import load
from tracer.format.trace import Trace
from tracer.format.verify import verify
from tracer.model.kernel_probe import described, kernels_used
from tracer.model.optimizer import TrainingSettings
from tracer.model.tokenizer import gpt2
from tracer.ops.rounded import UNIT
from tracer.recording.first_update import TABLE
from tracer.recording.training import TrainingJob, record_training

TRACES = Path(__file__).resolve().parent.parent / "traces"


def pinned(trace: Trace) -> bool:
    return trace.make["kernels"]["pinned"]


def first_update_arrays(trace: Trace) -> list[str]:
    """Everything recorded of the first update and of the same text once more."""
    later = ("series.", "trained.", "evaluation.", "validation")
    return [name for name, array in trace.arrays.items() if not array.derived and not name.startswith(later)]


def allowed(trace: Trace, spread: dict[str, float], name: str) -> np.ndarray | float:
    """How far two recordings may be apart: each as far from exact arithmetic as rounding carries a number of the array.

    AdamW's first step moves a parameter by lr·g/(|g| + eps).  Where g is more than its error δ, that changes the
    step by at most lr·eps·δ/(|g| − δ)²; a gradient that is nothing but rounding (of a key's bias: exactly it is 0)
    gives any step up to lr.
    """
    whole = 2 * spread[name]
    if not name.startswith("adamw.") or ".after" not in name:
        return whole
    parameter = name.removeprefix("adamw.").removesuffix(".used").removesuffix(".after")
    g = trace.values("grad." + parameter)
    g = np.abs(g[trace.values("used_ids")] if name.endswith(".used") else g).astype(float)
    settings, delta = trace.make["settings"], 2 * spread["grad." + parameter]
    step = settings["lr"] * settings["eps"] * delta / np.maximum(g - delta, 1e-30) ** 2
    rounded = 16 * UNIT * (settings["lr"] + np.abs(trace.values(name)))
    return np.minimum(whole, step + 2 * spread[parameter] + rounded)


def differences(ours: Trace, theirs: Trace, spread: dict[str, float], off: float = 0.0) -> dict[str, float]:
    """Arrays of the first update that are farther apart than rounding explains, and by how much.

    `off`: added to one number of ours, as a part of the array's largest.
    """
    names = first_update_arrays(theirs)
    assert names == first_update_arrays(ours)
    assert len(names) > 350
    found = {}
    for name in names:
        a, b = ours.values(name), theirs.values(name)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), name
        if a.dtype.kind == "i" or not np.isfinite(b).any():
            assert np.array_equal(a, b), name
            continue
        finite = np.isfinite(b)
        assert np.array_equal(a[~finite], b[~finite]), name  # −∞ in masked scores
        error = np.where(finite, np.abs(np.where(finite, a, 0).astype(float) - np.where(finite, b, 0)), 0)
        size = np.where(finite, np.abs(b), 0)
        error.reshape(-1)[size.argmax()] += off * size.max()
        beyond = error - allowed(theirs, spread, name)
        if beyond.max() > 0:
            found[name] = float(beyond.max())
    return found


def same_bits(ours: Trace, theirs: Trace, name: str) -> bool:
    if name not in ours.arrays or name not in theirs.arrays:  # another token was drawn
        return False
    if theirs.arrays[name].derived:
        return ours.arrays[name].derived
    a, b = ours.values(name), theirs.values(name)
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def spread_of(trace: Trace) -> dict[str, float]:
    """How far rounding may move a number of each array of the first update."""
    return spreads(trace, [*first_update_arrays(trace), f"grad.{TABLE}"])


def check_first_update(spread: dict[str, float]) -> None:
    """Recorded with this process's kernels it verifies, and is as near to the committed one as rounding allows."""
    ours, _ = record_training(TrainingJob(settings=TrainingSettings(updates=1)), gpt2())
    theirs = load(TRACES / "training.json")
    wrong = [check for check in verify(ours, hashes=False) if check.problem]
    assert wrong == [], wrong
    far = differences(ours, theirs, spread)
    assert far == {}, far
    different = any(not same_bits(ours, theirs, name) for name in first_update_arrays(theirs))
    assert different != pinned(ours)


if __name__ == "__main__":
    print(f"kernels: {described(kernels_used())}")
    check_first_update(pickle.loads(Path(sys.argv[1]).read_bytes()))
