"""Write the recordings of one training into a folder, all at one moment."""

from collections.abc import Callable
from pathlib import Path

from tracer.errors import UserError
from tracer.format.files import files_of, unused_files
from tracer.format.load import left_alone, load_all
from tracer.format.origin import check_set, origin_of
from tracer.format.trace import Trace
from tracer.recording.checkpoint import Checkpoint, checkpoint_bytes
from tracer.storage.together import CHECKPOINT, replace_together

Say = Callable[[str], None]


def write_set(folder: Path, traces: dict[str, Trace], checkpoint: Checkpoint | None, say: Say, warn: Say) -> None:
    """Write `traces`, by route, and the checkpoint; then array files that nothing in the folder needs any more go.

    Raises `OSError` as writing does; the folder is as it was then.
    """
    files = {name: content for route, trace in traces.items()
             for name, content in files_of(trace, folder / f"{route}.json").items()}
    if checkpoint:
        files[CHECKPOINT] = checkpoint_bytes(checkpoint)
    replace_together(folder, files)
    for route, trace in traces.items():
        of = (f"{trace.summary['parameters']:,} parameters" if route == "training" else
              f"text {trace.summary['text']!r}")
        say(f"wrote {folder / route}.json: {len(trace.operations)} operations, {of}")
    _tidy(folder, warn)


def _tidy(folder: Path, warn: Say) -> None:
    """What the recordings before needed goes; says when those in the folder are no set."""
    try:
        traces = load_all(folder)
    except UserError as error:
        warn(f"old array files are kept, for not every recording in the folder can be read: {error}")
        return
    if others := left_alone(folder):
        warn(f"old array files are kept, for {others[0]} does not say that it is a recording, and may need some")
        return
    for path in unused_files(folder, traces.values()):
        path.unlink()
    try:
        check_set(folder, {name: origin_of(trace) for name, trace in traces.items()})
    except UserError as error:
        warn(f"not yet a set: {error}")
