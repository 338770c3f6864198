"""Verify all that stands in a folder: recordings, whether they are one set, and experiments."""

from collections.abc import Iterator
from pathlib import Path

from tracer.format.experiment_figures import verify_experiment
from tracer.format.experiments import FOLDER, load_experiment, load_experiments
from tracer.format.load import load, load_all
from tracer.format.origin import check_set, origin_of
from tracer.format.passes import FOLDER as PASSES
from tracer.format.passes import pass_files
from tracer.format.verify import Check, verify


def checks_of_all(path: Path, hashes: bool = True) -> Iterator[tuple[str, list[Check]]]:
    """Name and checks of every recording and experiment in the folder `path`, or of the one in the file `path`.

    Raises `UserError` for what cannot be read, and for recordings that are not of one training.
    """
    if path.is_file() and path.parent.name == FOLDER:
        yield path.stem, list(verify_experiment(load_experiment(path), hashed=hashes))
        return
    traces = load_all(path)
    experiments = load_experiments(path)
    check_set(path, {name: origin_of(trace) for name, trace in traces.items()})
    for name, trace in traces.items():
        yield name, list(verify(trace, hashes=hashes))
    for one in pass_files(path):
        yield f"{PASSES}/{one.stem}", list(verify(load(one), hashes=hashes))
    for name, body in experiments.items():
        yield f"{FOLDER}/{name}", list(verify_experiment(body, hashed=hashes))
