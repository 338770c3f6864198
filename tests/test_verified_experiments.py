"""Experiments that were changed by hand are refused."""

import random
from pathlib import Path

import orjson
import pytest
from recorded_numbers import TRACES, changed, leaves, put
from trials import TRIALS

from site_builder import verified
from tracer.errors import UserError
from tracer.format.experiment_figures import finish, hashes, verify_experiment
from tracer.format.experiments import check_experiment

# Experiments -----------------------------------------------------------------------------------------

EXPERIMENTS = sorted(path.stem for path in (TRACES / "experiments").glob("*.json"))
# What was measured or given: nothing else in the file can give it again, the hash alone holds it.
MEASURED = {("make", "text", "characters"), ("make", "tokens", "train"), ("make", "tokens", "validation"),
            ("make", "sample", "tokens"), ("make", "sample", "temperature"), ("make", "threads"), ("make", "rounds"),
            ("make", "seed"), ("make", "config", "dropout"), ("make", "texts")}
COLUMNS = ("loss", "train", "validation", "known", "unknown", "trained", "held_out")


def other(value: float) -> float:
    """Another number; of a share that is whole another share."""
    return value / 2 if type(value) is float and value == 1 else changed(value)


def is_measured(path: tuple) -> bool:
    """Losses and seconds but those of the summary, and settings that no number of the file follows from."""
    free = {"context", "width", "heads", "updates", "evaluate_every"}
    setting = path[:2] == ("make", "settings") and path[-1] not in free
    column = path[0] == "runs" and path[-2] in COLUMNS
    learnt = path[0] == "runs" and (path[2] in ("scores", "right", "other", "read") or path[-1] == "seed")
    if path[0] in ("reversing", "masked") and path[2:3] in (("read",), ("curve",)):
        return path[3] != "update"
    if path[0] == "make" and path[1] in ("reversing", "masked"):  # each has settings of its own
        return path[-1] == "heads" or path[2] == "task" or (path[2] == "settings" and path[-1] not in free)
    given = path[:2] in (("make", "task"), ("make", "seeds"), ("shown", "ids")) or path[-2:-1] == ("losses",)
    return path in MEASURED or setting or column or learnt or given or path[-1] in (
        "training_seconds", "seconds_per_update", "cached_seconds", "uncached_seconds")


def refused_experiment(body: dict, path: Path) -> str:
    """What `verified` says of the experiment in memory; empty when it is read."""
    try:
        check_experiment(body)
        verified._refuse_wrong(path, verify_experiment(body), "again")
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        return str(error)
    return ""


@pytest.mark.parametrize("stem", EXPERIMENTS)
def test_any_changed_number_of_an_experiment_is_refused_and_named(stem):
    """With the hashes as they were: every number, by its place.  With hashes made anew: all but what was measured."""
    path = TRACES / "experiments" / f"{stem}.json"
    body = orjson.loads(path.read_bytes())
    recorded, places, draw = body["sha256"], list(leaves(body)), random.Random(1)
    assert refused_experiment(body, path) == ""
    for place, value in draw.sample(places, min(len(places), 100 * TRIALS)):
        put(body, place, other(value))
        said = refused_experiment(body, path)
        words = {*said.replace(":", " ").replace(".", " ").replace("'", " ").split()}
        assert {*map(str, place)} & words, (place, said)
        if not is_measured(place):
            body["sha256"] = hashes(body)
            assert refused_experiment(body, path), place
        put(body, place, value)
        body["sha256"] = recorded


@pytest.mark.parametrize("stem", EXPERIMENTS)
def test_only_what_was_measured_is_held_by_a_hash_alone(stem):
    """Everything that the test above leaves out is really free: the list is no longer than it must be."""
    body = orjson.loads((TRACES / "experiments" / f"{stem}.json").read_bytes())
    places = [(place, value) for place, value in leaves(body) if is_measured(place)]
    assert places
    for place, value in random.Random(2).sample(places, min(len(places), 60 * TRIALS)):
        put(body, place, other(value))
        assert refused_experiment(finish(body), Path()) == "", place
        put(body, place, value)
