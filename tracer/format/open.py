"""`load` and `verify` as the package offers them: one recording or a folder of them, and what checking it found."""

from pathlib import Path

from tracer.format import load as reading
from tracer.format.origin import check_set, origin_of
from tracer.format.trace import Trace
from tracer.format.verify import Check
from tracer.format.verify import verify as checks


def load(path: str | Path) -> Trace | dict[str, Trace]:
    """The recording in the file `path`, or every recording in the folder `path`, by file stem.

    Shapes, axes and names are checked as they are read; whether the numbers follow from one another, `verify` says.
    `Trace.values` gives the numbers of an array (NumPy).  Raises `UserError` for what is no recording of this format,
    for one that would take too much memory or time to recompute, for a folder that holds none, and for recordings in
    one folder that are not of one training.
    """
    path = Path(path)
    if path.is_file():
        return reading.load(path)
    traces = reading.load_all(path)
    check_set(path, {stem: origin_of(trace) for stem, trace in traces.items()})
    return traces


def verify(recording: Trace, *, hashes: bool = True) -> list[Check]:
    """Recompute every number of a recording from its operands, in float64, with NumPy alone.

    One `Check` for each operation in order, then for the summary and, with `hashes`, for what no operation makes.
    `Check.problem` says what is wrong and is empty where all is right; `Check.absolute` and `Check.relative` are the
    largest differences between recorded (float32) and recomputed.  Nothing is raised for what is wrong.
    """
    return list(checks(recording, hashes=hashes))
