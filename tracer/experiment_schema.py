"""The format of a recorded experiment, in ``traces/experiments/``: one JSON file each, torch not needed.

They stand in a folder of their own because every ``*.json`` beside a recording is taken for a recording.

``depth.json``: ``make`` says how it was made (text by name, length and hash; settings); ``runs`` holds for each
depth, shallowest first: ``blocks``, ``parameters``, ``seconds_per_update`` (median, the depths measured in turn),
``training_seconds`` (all updates of the run, evaluations apart), ``curve`` (training loss, each point the mean of
the updates since the point before), ``evaluations`` (loss over every window of the validation split and over a
quarter as many of the training split) and ``samples``, the continuation of one prompt at each evaluation.  Losses
are in nats a token, rounded to 4 decimals.

``cache.json``: ``make`` says which model wrote how many new tokens; ``points`` holds for each prompt length, shortest
first: ``prompt``, ``cached_seconds`` and ``uncached_seconds`` (median of the whole continuation, which is the same
both ways, to 4 digits) and ``cache_bytes``, what the cache took.
"""

import math
from pathlib import Path

import orjson

from tracer.errors import UserError
from tracer.schema import write_atomically

DEPTH_SCHEMA = "two-routes/experiment/depth"
CACHE_SCHEMA = "two-routes/experiment/cache"
VERSION = 1
FOLDER = "experiments"
LARGEST = 300_000  # bytes

_NUMBER, _WHOLE = (int, float), (int,)
_MAKE = {"text": dict, "tokens": dict, "vocabulary": _WHOLE, "settings": dict, "sample": dict, "torch": str,
         "machine": str, "threads": _WHOLE}
_RUN = {"blocks": _WHOLE, "parameters": _WHOLE, "seconds_per_update": _NUMBER, "training_seconds": _NUMBER,
        "curve": dict, "evaluations": dict, "samples": list}
_CACHE_MAKE = {"config": dict, "parameters": _WHOLE, "new_tokens": _WHOLE, "rounds": _WHOLE, "seed": _WHOLE,
               "bytes_per_token": _WHOLE, "torch": str, "machine": str, "threads": _WHOLE}
_POINT = {"prompt": _WHOLE, "cached_seconds": _NUMBER, "uncached_seconds": _NUMBER, "cache_bytes": _WHOLE}


def save_experiment(body: dict, path: Path) -> None:
    """Check and write, atomically.  Raises `UserError` for what `load_experiment` would not read."""
    check_experiment(body)
    content = orjson.dumps(body) + b"\n"
    if len(content) > LARGEST:
        raise UserError(f"the experiment has {len(content)} bytes, more than {LARGEST}: take fewer or shorter samples")
    write_atomically(path, content)


def load_experiment(path: Path) -> dict:
    """Raises `UserError` that says what is wrong, where, and what to do."""
    try:
        content = path.read_bytes()
        body = orjson.loads(content)
        check_experiment(body)
    except FileNotFoundError:
        raise UserError(f"there is no experiment {path}: record one with `python -m tracer experiment`") from None
    except orjson.JSONDecodeError as error:
        raise UserError(f"{path} is cut off or damaged (JSON breaks at character {error.pos}): record it again with "
                        "`python -m tracer experiment`") from None
    except UserError as error:
        raise UserError(f"{path}: {error}; record it again with `python -m tracer experiment`") from None
    return body


def load_experiments(traces: Path) -> dict[str, dict]:
    """Every experiment beside the recordings in `traces`, by file stem; none is no error."""
    return {path.stem: load_experiment(path) for path in experiment_files(traces)}


def experiment_files(traces: Path) -> list[Path]:
    """The files of the experiments beside the recordings in `traces`."""
    return sorted((traces / FOLDER).glob("*.json"))


def check_experiment(body) -> None:
    """Raises `UserError` that names the first thing that is not as the format says."""
    kinds = {DEPTH_SCHEMA: _check_depth, CACHE_SCHEMA: _check_cache}
    schema = body.get("schema") if isinstance(body, dict) else None
    if not isinstance(schema, str) or schema not in kinds:
        raise UserError(f"its \"schema\" is none of {', '.join(kinds)}")
    if type(body.get("version")) is not int or body["version"] != VERSION:
        raise UserError(f"it has version {body.get('version')!r}, this program reads version {VERSION}")
    kinds[schema](body)


def _check_depth(body: dict) -> None:
    _fields(body, {"schema": str, "version": _WHOLE, "make": dict, "runs": list}, "the experiment")
    _fields(body["make"], _MAKE, "make")
    if not body["runs"]:
        raise UserError("it has no runs")
    for number, run in enumerate(body["runs"]):
        where = f"run {number}"
        _fields(run, _RUN, where)
        _columns(run["curve"], ("update", "loss"), f"curve of {where}")
        _columns(run["evaluations"], ("update", "train", "validation"), f"evaluations of {where}")
        for sample in run["samples"]:
            _fields(sample, {"update": _WHOLE, "text": str}, f"a sample of {where}")
    _rising([run["blocks"] for run in body["runs"]], "its depths")


def _check_cache(body: dict) -> None:
    _fields(body, {"schema": str, "version": _WHOLE, "make": dict, "points": list}, "the experiment")
    _fields(body["make"], _CACHE_MAKE, "make")
    if not body["points"]:
        raise UserError("it has no points")
    for number, point in enumerate(body["points"]):
        _fields(point, _POINT, f"point {number}")
    _rising([point["prompt"] for point in body["points"]], "its prompt lengths")


def _fields(body, kinds: dict, where: str) -> None:
    """Exactly these fields, each of its kind."""
    if not isinstance(body, dict):
        raise UserError(f"{where} is not an object")
    for name, kind in kinds.items():
        if name not in body:
            raise UserError(f"{where} has no {name!r}")
        value = body[name]
        right = type(value) in (kind if isinstance(kind, tuple) else (kind,))
        if not right or (kind is _NUMBER and not (math.isfinite(value) and value >= 0)):
            raise UserError(f"{name!r} of {where} cannot be {value!r:.40}")
    if extra := sorted(set(body) - set(kinds)):
        raise UserError(f"{where} has the unknown field {extra[0]!r}")


def _columns(body: dict, names: tuple[str, ...], where: str) -> None:
    """Lists of equally many numbers; the updates are whole and rise."""
    _fields(body, dict.fromkeys(names, list), where)
    lengths = {len(body[name]) for name in names}
    if len(lengths) > 1 or lengths == {0}:
        raise UserError(f"{where} has columns of different length, or nothing")
    for name in names:
        if any(type(value) not in _NUMBER or not math.isfinite(value) for value in body[name]):
            raise UserError(f"{name!r} of {where} holds something that is not a number")
    _rising(body["update"], f"the updates of {where}")


def _rising(values: list, what: str) -> None:
    if any(type(value) is not int for value in values) or values != sorted(set(values)):
        raise UserError(f"{what} are no rising whole numbers")
