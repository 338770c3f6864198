"""What of a recorded experiment follows from the rest of it, and the hashes that hold what does not.

Measured are losses, seconds and samples: nothing in the file can give them again, so a SHA-256 holds each part.
All else is computed again: the updates of every column, parameters and bytes from the shape, medians and sums of
seconds where the single measurements are recorded, and the figures of ``summary``.
"""

import hashlib
import statistics
from collections.abc import Iterator
from typing import Any

import orjson

from tracer.format.experiment_kinds import RECOMPUTED, SUMMARIES
from tracer.format.sizes import cache_bytes, parameter_count, shape_of
from tracer.format.verify import Check, difference

POINTS = 200  # of a curve, at most
FOLLOWS = "recorded {said}, what it follows from gives {given}"


def summarise(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The headline figures: for each run, or for each prompt length."""
    if body["schema"] in SUMMARIES:
        return SUMMARIES[body["schema"]](body)
    if "runs" in body:
        return [_run_summary(run, body["runs"][0]) for run in body["runs"]]
    return [{"prompt": point["prompt"], "ratio": _ratio(point["uncached_seconds"], point["cached_seconds"])}
            for point in body["points"]]


def _run_summary(run: dict[str, Any], shallow: dict[str, Any]) -> dict[str, Any]:
    tested = run["evaluations"]
    lowest = min(range(len(tested["update"])), key=tested["validation"].__getitem__)
    return {"blocks": run["blocks"], "updates": run["curve"]["update"][-1], "train": tested["train"][-1],
            "validation": tested["validation"][-1],
            "lowest": {"update": tested["update"][lowest], "validation": tested["validation"][lowest]},
            "ratio": _ratio(run["seconds_per_update"], shallow["seconds_per_update"])}


def _ratio(value: float, by: float) -> float | None:
    return digits(value / by) if by else None


def digits(value: float) -> float:
    """To 4 digits, as measured seconds are recorded."""
    return float(f"{value:.4g}")


def parts(body: dict[str, Any]) -> dict[str, object]:
    """What a hash holds: place → value.  Together they are the whole experiment but its summary."""
    found: dict[str, object] = {}
    for key, part in body.items():
        if key in ("schema", "version", "summary", "sha256"):
            continue
        of_part = [(key, part)] if isinstance(part, dict) else [(f"{key}.{i}", item) for i, item in enumerate(part)]
        for place, item in of_part:
            _add_parts(found, place, item)
    return found


def _add_parts(found: dict[str, object], place: str, body: dict[str, Any]) -> None:
    """The single values of an object together; each list, and each object in it, by itself."""
    single = {name: value for name, value in body.items() if not isinstance(value, dict | list)}
    if single:
        found[place] = single
    for name, value in body.items():
        if isinstance(value, dict):
            _add_parts(found, f"{place}.{name}", value)
        elif isinstance(value, list):
            found[f"{place}.{name}"] = value


def hashes(body: dict[str, Any]) -> dict[str, str]:
    """SHA-256 of every one of the `parts`, over its JSON with sorted keys."""
    return {place: hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()
            for place, value in parts(body).items()}


def finish(body: dict[str, Any]) -> dict[str, Any]:
    """`body` with its summary and its hashes."""
    return body | {"summary": summarise(body), "sha256": hashes(body)}


def verify_experiment(body: dict[str, Any], *, hashed: bool = True) -> Iterator[Check]:
    """A `Check` (with `hashed`) for every part, for whatever follows from the rest, and for the summary."""
    for place, digest in hashes(body).items() if hashed else ():
        yield Check(place, "sha256", 1, problem="" if digest == body["sha256"][place] else
                    "it is not what was recorded (sha256 differs)")
    for place, said, computed in _recomputed(body):
        count = len(computed) if isinstance(computed, list) else 1
        yield Check(place, "experiment", count, problem=difference(said, computed, "", FOLLOWS))
    yield Check("summary", "summary", len(body["summary"]),
                problem=difference(body["summary"], summarise(body), "", FOLLOWS))


def _recomputed(body: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    """Place, what stands there, and what the rest of the experiment gives for it."""
    make = body["make"]
    if body["schema"] in RECOMPUTED:
        yield from RECOMPUTED[body["schema"]](body)
        return
    if "runs" in body:
        for number, run in enumerate(body["runs"]):
            yield from ((f"runs.{number}.{place}", said, given) for place, said, given in _recomputed_run(run, make))
        return
    shape = shape_of(make["config"])
    yield "make.parameters", make["parameters"], parameter_count(shape)
    yield "make.bytes_per_token", make["bytes_per_token"], cache_bytes(shape)
    for number, point in enumerate(body["points"]):
        tokens = point["prompt"] + make["new_tokens"] - 1  # the last new token is never read again
        yield f"points.{number}.cache_bytes", point["cache_bytes"], cache_bytes(shape) * tokens
        for way in ("cached_seconds", "uncached_seconds"):
            if "times" in point:
                yield f"points.{number}.{way}", point[way], digits(statistics.median(point["times"][way]))


def _recomputed_run(run: dict[str, Any], make: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    settings = make["settings"]
    shape = shape_of(settings | {"vocabulary": make["vocabulary"], "blocks": run["blocks"]})
    updates, every = settings["updates"], settings["evaluate_every"]
    stride = -(-updates // POINTS)
    tested = [*range(0, updates, every), updates]
    yield "parameters", run["parameters"], parameter_count(shape)
    yield "curve.update", run["curve"]["update"], [min(end, updates) for end in range(stride, updates + stride, stride)]
    yield "evaluations.update", run["evaluations"]["update"], tested
    yield "samples", [sample["update"] for sample in run["samples"]], tested
    if "times" in run:
        yield "seconds_per_update", run["seconds_per_update"], digits(statistics.median(run["times"]))
    if "seconds" in run["curve"]:
        yield "training_seconds", run["training_seconds"], round(sum(run["curve"]["seconds"]), 1)
