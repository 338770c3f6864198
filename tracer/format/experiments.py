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
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from tracer.errors import UserError
from tracer.format.experiment_figures import parts
from tracer.storage.atomic import write_atomically
from tracer.storage.strict_json import parse, read_bytes

DEPTH_SCHEMA = "two-routes/experiment/depth"
CACHE_SCHEMA = "two-routes/experiment/cache"
VERSION = 2
FOLDER = "experiments"
RECORD_AGAIN = "record it again with `python -m tracer experiment`"
LARGEST = 300_000  # bytes

LONGEST = 10**9  # updates, or anything else that is counted
MOST_NEW_TOKENS = 20_000  # after a prompt: each is drawn
MOST_EVALUATIONS = 10_000  # of a run
LARGEST_WHOLE = 2**53  # parameters, bytes
LARGEST_NUMBER = 2.0**128  # losses and seconds: no float32 is larger


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < LARGEST_NUMBER


def _seconds(value: Any) -> bool:
    return _number(value) and value >= 0


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_WHOLE


def _count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= LONGEST


def _size(value: Any) -> bool:
    return _whole(value) and value > 0


def _seed(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**64


def _new_tokens(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MOST_NEW_TOKENS


Kind = type | Callable[[Any], bool]  # a type, or what says whether a value is of the kind
Kinds = dict[str, Kind]
_EXPERIMENT: Kinds = {"schema": str, "version": _count, "make": dict, "summary": list, "sha256": dict}
_MAKE: Kinds = {"text": dict, "tokens": dict, "vocabulary": _count, "settings": dict, "sample": dict, "torch": str,
         "machine": str, "threads": _count}
_RUN: Kinds = {"blocks": _count, "parameters": _size, "seconds_per_update": _seconds, "training_seconds": _seconds,
        "curve": dict, "evaluations": dict, "samples": list}
_RUN_MORE: Kinds = {"times": list, "log_sha256": str}
_CACHE_MAKE: Kinds = {"config": dict, "parameters": _size, "new_tokens": _new_tokens, "rounds": _count, "seed": _seed,
               "bytes_per_token": _size, "torch": str, "machine": str, "threads": _count}
_POINT: Kinds = {"prompt": _count, "cached_seconds": _seconds, "uncached_seconds": _seconds, "cache_bytes": _size}
# Of what `make` says in parts of its own; settings and config may hold more.
_SAID: dict[str, Kinds] = {"text": {"name": str, "characters": _count, "sha256": str},
         "tokens": {"train": _count, "validation": _count},
         "sample": {"prompt": str, "tokens": _count, "temperature": _seconds},
         "settings": {**dict.fromkeys(("context", "width", "heads", "updates", "evaluate_every", "batch",
                                       "accumulation"), _count), "device": str, "precision": str, "compile": bool},
         "config": dict.fromkeys(("vocabulary", "context", "width", "heads", "blocks"), _count)}


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
    kinds = {DEPTH_SCHEMA: _check_depth, CACHE_SCHEMA: _check_cache}
    schema = body.get("schema") if isinstance(body, dict) else None
    if not isinstance(schema, str) or schema not in kinds:
        raise UserError(f"its \"schema\" is none of {', '.join(kinds)}")
    if type(body.get("version")) is not int or body["version"] != VERSION:
        raise UserError(f"it has version {body.get('version')!r}, this program reads version {VERSION}")
    kinds[schema](body)
    _check_making(body["make"])
    _check_hashes(body)


def _check_depth(body: dict[str, Any]) -> None:
    _fields(body, _EXPERIMENT | {"runs": list}, "the experiment")
    _fields(body["make"], _MAKE, "make")
    if not body["runs"]:
        raise UserError("it has no runs")
    for number, run in enumerate(body["runs"]):
        where = f"run {number}"
        _fields(run, _RUN, where, _RUN_MORE)
        _columns(run["curve"], ("update", "loss"), f"curve of {where}", ("seconds",))
        _times(run.get("times", [0]), where)
        _columns(run["evaluations"], ("update", "train", "validation"), f"evaluations of {where}")
        for sample in run["samples"]:
            _fields(sample, {"update": _whole, "text": str}, f"a sample of {where}")
    _rising([run["blocks"] for run in body["runs"]], "its depths")


def _check_cache(body: dict[str, Any]) -> None:
    _fields(body, _EXPERIMENT | {"points": list}, "the experiment")
    _fields(body["make"], _CACHE_MAKE, "make")
    if not body["points"]:
        raise UserError("it has no points")
    for number, point in enumerate(body["points"]):
        _fields(point, _POINT, f"point {number}", {"times": dict})
        if "times" in point:
            _fields(point["times"], {"cached_seconds": list, "uncached_seconds": list}, f"times of point {number}")
        for times in point.get("times", {}).values():
            _times(times, f"point {number}")
    _rising([point["prompt"] for point in body["points"]], "its prompt lengths")


def _check_making(make: dict[str, Any]) -> None:
    """What the columns and the number of parameters follow from, and what the page says of the making."""
    for part, kinds in _SAID.items():
        for name, kind in kinds.items() if part in make else ():
            if not _is(kind, make[part].get(name)):
                raise UserError(f"{name!r} of {part} cannot be {make[part].get(name)!r:.40}")
    shape = make["config" if "config" in make else "settings"]
    if shape["width"] % shape["heads"]:
        raise UserError(f"'heads' cannot be {shape['heads']}: they do not divide the 'width' {shape['width']}")
    if "settings" in make and make["settings"]["updates"] // make["settings"]["evaluate_every"] > MOST_EVALUATIONS:
        raise UserError(f"'evaluate_every' of settings cannot be {make['settings']['evaluate_every']}: "
                        f"of {make['settings']['updates']} 'updates' that is more than {MOST_EVALUATIONS} evaluations")


def _check_hashes(body: dict[str, Any]) -> None:
    """A hash of every part, and of nothing else."""
    wanted = parts(body)
    if missing := [place for place in wanted if not isinstance(body["sha256"].get(place), str)]:
        raise UserError(f"it has no sha256 of {missing[0]:.80}")
    if extra := sorted(set(body["sha256"]) - set(wanted)):
        raise UserError(f"it has a sha256 of {extra[0]!r:.80}, which it does not hold")


def _times(times: list[object], where: str) -> None:
    if not times or not all(map(_seconds, times)):
        raise UserError(f"the times of {where} are no list of seconds")


def _fields(body: object, kinds: Kinds, where: str, more: Kinds | None = None) -> None:
    """Exactly these fields, each of its kind; those of `more` may be there."""
    kinds = kinds | {name: kind for name, kind in (more or {}).items() if isinstance(body, dict) and name in body}
    if not isinstance(body, dict):
        raise UserError(f"{where} is not an object")
    for name, kind in kinds.items():
        if name not in body:
            raise UserError(f"{where} has no {name!r}")
        if not _is(kind, body[name]):
            raise UserError(f"{name!r} of {where} cannot be {body[name]!r:.40}")
    if extra := sorted(set(body) - set(kinds)):
        raise UserError(f"{where} has the unknown field {extra[0]!r:.80}")


def _is(kind: Kind, value: object) -> bool:
    return type(value) is kind if isinstance(kind, type) else kind(value)


def _columns(body: dict[str, Any], names: tuple[str, ...], where: str, more: tuple[str, ...] = ()) -> None:
    """Lists of equally many numbers; the updates are whole and rise.  Those of `more` may be there."""
    names = (*names, *(name for name in more if name in body))
    _fields(body, dict.fromkeys(names, list), where)
    lengths = {len(body[name]) for name in names}
    if len(lengths) > 1 or lengths == {0}:
        raise UserError(f"{where} has columns of different length, or nothing")
    for name in names:
        if not all(map(_number, body[name])):
            raise UserError(f"{name!r} of {where} holds something that is not a number")
    _rising(body["update"], f"the updates of {where}")


def _rising(values: list[Any], what: str) -> None:
    if not all(map(_whole, values)) or values != sorted(set(values)):
        raise UserError(f"{what} are no rising whole numbers")
