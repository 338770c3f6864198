"""Which trained model a recording is of, by hash; and whether recordings beside one another are of the same one.

A checkpoint is known by one hash over all that a generation follows from: shape, settings, text, number of
updates, every parameter.  The training recording holds the hash of the checkpoint that it ended in, a generation
that of the checkpoint it was made from, and a checkpoint file its own.  Each also holds what was hashed, so that
the hash can be computed again from any of them.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tracer.errors import UserError
from tracer.format.load import load, record_again
from tracer.format.roles import ROUTES
from tracer.format.trace import Trace, content_hash
from tracer.storage.together import newest

KEY = "checkpoint_sha256"  # in `make`
EARLY_KEY = "early_checkpoint_sha256"  # in `make` of a training: of the moment that the route `early` continues from


def checkpoint_hash(config: dict[str, Any], settings: dict[str, Any], text: str, updates: int,
                    parameters: dict[str, str]) -> str:
    """SHA-256 of a trained model.  `parameters`: name → `content_hash`."""
    body = {"config": config, "settings": settings, "text": text, "updates": updates, "parameters": parameters}
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def recomputed_hash(trace: Trace) -> str:
    """The hash of the checkpoint, from what the recording holds of it.  Raises `LookupError` where that is not all."""
    make = trace.make
    text, updates = ((make["text"], make["settings"]["updates"]) if trace.route == "training" else
                     (make["trained_on"], make["updates"]))
    parameters = {one.name: content_hash(trace.values(one.arrays["trained"])) for one in trace.parameters}
    return checkpoint_hash(make["config"], make["settings"], text, updates, parameters)


def origin_problem(trace: Trace) -> str:
    """What is wrong with the checkpoint that a recording of a known route names; empty where nothing is."""
    try:
        same = trace.make[KEY] == recomputed_hash(trace)
    except (LookupError, TypeError) as error:
        return f"which checkpoint it is of is not said ({error} is missing)"
    return "" if same else "the parameters or settings are not those of the checkpoint that it names (sha256 differs)"


@dataclass(frozen=True)
class Origin:
    """The checkpoint that a recording is of, and the hashes of the parameters that were drawn at first, by name.

    `early`: of a training, the checkpoint of its early moment.
    """

    route: str
    checkpoint: str
    initial: dict[str, str | None]
    early: str = ""


def origin_of(trace: Trace) -> Origin | None:
    """None for a recording of another kind than ours."""
    if trace.route not in ROUTES:
        return None
    return Origin(trace.route, str(trace.make.get(KEY)),
                  {one.name: trace.arrays[one.arrays["initial"]].sha256
                   for one in trace.parameters if "initial" in one.arrays}, str(trace.make.get(EARLY_KEY, "")))


def check_set(folder: Path, origins: dict[str, Origin | None]) -> None:
    """Raises `UserError` when recordings in `folder`, by file stem, are not of one training."""
    ours = [(stem, origin) for stem, origin in origins.items() if origin]
    if not ours:
        return
    known = dict(sorted(ours, key=lambda one: ROUTES.index(one[1].route)))  # the training first, which knows most
    first = next(iter(known))
    for stem, origin in known.items():
        if not _of_one_training(known[first], origin):
            raise UserError(f"{folder / stem}.json was made from another training than {first}.json: {_again(folder)}")
        for name, digest in origin.initial.items():
            if known[first].initial.get(name, digest) != digest:
                raise UserError(f"{folder / stem}.json holds other initial values of {name} than {first}.json: "
                                f"{_again(folder)}")


def _of_one_training(first: Origin, other: Origin) -> bool:
    """As far as they say: only the training knows the checkpoint of its early moment."""
    if (first.route == "early") == (other.route == "early"):
        return first.checkpoint == other.checkpoint
    return first.route != "training" or first.early == other.checkpoint


def check_training(folder: Path, checkpoint: Path, sha256: str) -> None:
    """Raises `UserError` when `folder` holds another training than the one that ended in `checkpoint`."""
    path = folder / "training.json"
    if newest(path).exists() and str(load(path).make.get(KEY)) != sha256:
        raise UserError(f"{checkpoint} is not the checkpoint that {path} ended in: choose another --output, or train "
                        f"again with `python -m tracer train --output {folder}`")


def _again(folder: Path) -> str:
    return (f"run `python -m tracer generate --output {folder}` with the checkpoint of that training, or "
            f"{record_again(folder)}")
