"""The format of a recorded experiment, in ``traces/experiments/``: one JSON file each, torch not needed.

They stand in a folder of their own because every ``*.json`` beside a recording is taken for a recording.

Every experiment has a ``summary``, its headline figures, which follow from the rest, and ``sha256``, a hash of every
part that was measured or given (`tracer.format.experiment_figures`).

``depth.json``: ``make`` says how it was made (text by name, length and hash; settings); ``runs`` holds for each
depth, shallowest first: ``blocks``, ``parameters``, ``seconds_per_update`` (median, the depths measured in turn),
``training_seconds`` (all updates of the run, evaluations apart), ``curve`` (training loss, each point the mean of
the updates since the point before), ``evaluations`` (loss over every window of the validation split and over a
quarter as many of the training split) and ``samples``, the continuation of one prompt at each evaluation.  Losses
are in nats a token, rounded to 4 decimals.  ``seconds`` of the curve (of those updates together), ``times`` (the
measurements of ``seconds_per_update``) and ``log_sha256`` (of the log of the run, ``log.jsonl``) are not in every
file: the first ones were recorded without.

``cache.json``: ``make`` says which model wrote how many new tokens; ``points`` holds for each prompt length, shortest
first: ``prompt``, ``cached_seconds`` and ``uncached_seconds`` (median of the whole continuation, which is the same
both ways, to 4 digits), ``cache_bytes``, what the cache took, and ``times``, every measurement, where it was kept.

``induction.json`` and ``noun.json`` stand in `tracer.format.experiment_heads`, ``initial.json`` in
`tracer.format.experiment_initial`, ``families.json`` in `tracer.format.experiment_families`.
"""

from pathlib import Path
from typing import Any

import orjson

from tracer.errors import UserError
from tracer.format.experiment_fields import (
    EXPERIMENT,
    MACHINE,
    Kinds,
    check_columns,
    check_evaluations,
    check_fields,
    check_heads,
    check_rising,
    check_times,
    is_amount,
    is_count,
    is_new_tokens,
    is_of,
    is_seed,
    is_size,
    is_whole,
)
from tracer.format.experiment_figures import parts
from tracer.format.experiment_kinds import CHECKS
from tracer.storage.atomic import write_atomically
from tracer.storage.strict_json import parse, read_bytes

DEPTH_SCHEMA = "two-routes/experiment/depth"
CACHE_SCHEMA = "two-routes/experiment/cache"
VERSION = 2
FOLDER = "experiments"
RECORD_AGAIN = "record it again with `python -m tracer experiment`"
LARGEST = 300_000  # bytes

_MAKE: Kinds = {"text": dict, "tokens": dict, "vocabulary": is_count, "settings": dict, "sample": dict, **MACHINE}
_RUN: Kinds = {"blocks": is_count, "parameters": is_size, "seconds_per_update": is_amount,
        "training_seconds": is_amount, "curve": dict, "evaluations": dict, "samples": list}
_RUN_MORE: Kinds = {"times": list, "log_sha256": str}
_CACHE_MAKE: Kinds = {"config": dict, "parameters": is_size, "new_tokens": is_new_tokens, "rounds": is_count,
               "seed": is_seed, "bytes_per_token": is_size, **MACHINE}
_POINT: Kinds = {"prompt": is_count, "cached_seconds": is_amount, "uncached_seconds": is_amount,
                 "cache_bytes": is_size}
# Of what `make` says in parts of its own; settings and config may hold more.
_SAID: dict[str, Kinds] = {"text": {"name": str, "characters": is_count, "sha256": str},
         "tokens": {"train": is_count, "validation": is_count},
         "sample": {"prompt": str, "tokens": is_count, "temperature": is_amount},
         "settings": {**dict.fromkeys(("context", "width", "heads", "updates", "evaluate_every", "batch",
                                       "accumulation"), is_count), "device": str, "precision": str, "compile": bool},
         "config": dict.fromkeys(("vocabulary", "context", "width", "heads", "blocks"), is_count)}


def save_experiment(body: dict[str, Any], path: Path) -> None:
    """Check and write, atomically.  Raises `UserError` for what `load_experiment` would not read."""
    check_experiment(body)
    content = orjson.dumps(body) + b"\n"
    if len(content) > LARGEST:
        raise UserError(f"the experiment has {len(content)} bytes, more than {LARGEST}: take fewer or shorter samples")
    write_atomically(path, content)


def load_experiment(path: Path) -> dict[str, Any]:
    """Raises `UserError` that says what is wrong, where, and what to do."""
    if not path.exists():
        raise UserError(f"there is no experiment {path}: record one with `python -m tracer experiment`")
    try:
        body: dict[str, Any] = parse(read_bytes(path, LARGEST))
        check_experiment(body)
    except UserError as error:
        raise UserError(f"{path}: {error}; {RECORD_AGAIN}") from None
    return body


def load_experiments(traces: Path) -> dict[str, dict[str, Any]]:
    """Every experiment beside the recordings in `traces`, by file stem; none is no error."""
    return {path.stem: load_experiment(path) for path in experiment_files(traces)}


def experiment_files(traces: Path) -> list[Path]:
    """The files of the experiments beside the recordings in `traces`."""
    return sorted((traces / FOLDER).glob("*.json"))


def experiment_path(traces: Path, stem: str) -> Path:
    """The file of that stem beside the recordings in `traces`."""
    return traces / FOLDER / f"{stem}.json"


def check_experiment(body: Any) -> None:
    """Raises `UserError` that names the first thing that is not as the format says; no number is computed again."""
    kinds = {DEPTH_SCHEMA: _check_depth, CACHE_SCHEMA: _check_cache, **CHECKS}
    schema = body.get("schema") if isinstance(body, dict) else None
    if not isinstance(schema, str) or schema not in kinds:
        raise UserError(f"its \"schema\" is none of {', '.join(kinds)}")
    if type(body.get("version")) is not int or body["version"] != VERSION:
        raise UserError(f"it has version {body.get('version')!r}, this program reads version {VERSION}")
    kinds[schema](body)
    _check_hashes(body)


def _check_depth(body: dict[str, Any]) -> None:
    check_fields(body, EXPERIMENT | {"runs": list}, "the experiment")
    check_fields(body["make"], _MAKE, "make")
    if not body["runs"]:
        raise UserError("it has no runs")
    for number, run in enumerate(body["runs"]):
        where = f"run {number}"
        check_fields(run, _RUN, where, _RUN_MORE)
        check_columns(run["curve"], ("update", "loss"), f"curve of {where}", ("seconds",))
        check_times(run.get("times", [0]), where)
        check_columns(run["evaluations"], ("update", "train", "validation"), f"evaluations of {where}")
        for sample in run["samples"]:
            check_fields(sample, {"update": is_whole, "text": str}, f"a sample of {where}")
    check_rising([run["blocks"] for run in body["runs"]], "its depths")
    _check_making(body["make"])


def _check_cache(body: dict[str, Any]) -> None:
    check_fields(body, EXPERIMENT | {"points": list}, "the experiment")
    check_fields(body["make"], _CACHE_MAKE, "make")
    if not body["points"]:
        raise UserError("it has no points")
    for number, point in enumerate(body["points"]):
        check_fields(point, _POINT, f"point {number}", {"times": dict})
        if "times" in point:
            check_fields(point["times"], {"cached_seconds": list, "uncached_seconds": list}, f"times of point {number}")
        for times in point.get("times", {}).values():
            check_times(times, f"point {number}")
    check_rising([point["prompt"] for point in body["points"]], "its prompt lengths")
    _check_making(body["make"])


def _check_making(make: dict[str, Any]) -> None:
    """What the columns and the number of parameters follow from, and what the page says of the making."""
    for part, kinds in _SAID.items():
        for name, kind in kinds.items() if part in make else ():
            if not is_of(kind, make[part].get(name)):
                raise UserError(f"{name!r} of {part} cannot be {make[part].get(name)!r:.40}")
    check_heads(make["config" if "config" in make else "settings"])
    if "settings" in make:
        check_evaluations(make["settings"])


def _check_hashes(body: dict[str, Any]) -> None:
    """A hash of every part, and of nothing else."""
    wanted = parts(body)
    if missing := [place for place in wanted if not isinstance(body["sha256"].get(place), str)]:
        raise UserError(f"it has no sha256 of {missing[0]:.80}")
    if extra := sorted(set(body["sha256"]) - set(wanted)):
        raise UserError(f"it has a sha256 of {extra[0]!r:.80}, which it does not hold")
