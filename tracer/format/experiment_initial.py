"""The experiment of the loss before the first update: near ln V, and above it the more, the larger the weights are.

``initial.json``: ``make`` says the shape of the models but their vocabulary, how many texts of random tokens each
reads, and the ``seeds``; ``points`` holds for each vocabulary and standard deviation of the weights, in rising order:
``vocabulary``, ``std``, ``parameters`` and ``losses``, one a seed, nats, 4 decimals.  In the ``summary`` stand beside
their mean the loss of an even guess, ln V, and what independent logits of that spread would cost.
"""

import math
import statistics
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tracer.errors import UserError
from tracer.format.experiment_fields import (
    EXPERIMENT,
    LARGEST_STD,
    MACHINE,
    Kinds,
    check_fields,
    check_heads,
    is_amount,
    is_count,
    is_seed,
    is_size,
)
from tracer.format.sizes import parameter_count, shape_of

INITIAL_SCHEMA = "two-routes/experiment/initial"
_CONFIG: Kinds = dict.fromkeys(("context", "width", "heads", "blocks"), is_count)
_POINT: Kinds = {"vocabulary": is_count, "std": is_amount, "parameters": is_size, "losses": list}


def check_initial(body: dict[str, Any]) -> None:
    """Raises `UserError` that names the first thing that is not as the format says."""
    check_fields(body, EXPERIMENT | {"points": list}, "the experiment")
    make = body["make"]
    check_fields(make, {"config": dict, "texts": is_count, "seeds": list, **MACHINE}, "make")
    check_fields(make["config"], _CONFIG, "config")
    check_heads(make["config"])
    if not make["seeds"] or not all(map(is_seed, make["seeds"])):
        raise UserError("'seeds' of make are no list of seeds")
    if not body["points"]:
        raise UserError("it has no points")
    for number, point in enumerate(body["points"]):
        check_fields(point, _POINT, f"point {number}")
        if point["std"] > LARGEST_STD:
            raise UserError(f"'std' of point {number} cannot be {point['std']!r:.40}")
        if len(point["losses"]) != len(make["seeds"]) or not all(map(is_amount, point["losses"])):
            raise UserError(f"'losses' of point {number} are not one for each of the seeds")
    for number, (one, after) in enumerate(pairwise(body["points"])):
        if (one["vocabulary"], one["std"]) >= (after["vocabulary"], after["std"]):
            raise UserError(f"'vocabulary' and 'std' do not rise from point {number} to point {number + 1}")


def initial_summary(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each point the mean loss, ln V, and ln V + D·std²/2.

    The last norm makes every vector D numbers of mean square one; logits, their products with rows of the table,
    are then normal with variance s² = D·std², and the mean of e^logit is e^(s²/2), while the logit of the target is
    zero in the mean.
    """
    width = body["make"]["config"]["width"]
    return [{"vocabulary": point["vocabulary"], "std": point["std"],
             "loss": round(statistics.fmean(point["losses"]), 4),
             "even": round(math.log(point["vocabulary"]), 4),
             "spread": round(math.log(point["vocabulary"]) + width * point["std"] ** 2 / 2, 4)}
            for point in body["points"]]


def initial_recomputed(body: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    """Place, what stands there, and what the rest of the experiment gives for it."""
    for number, point in enumerate(body["points"]):
        yield (f"points.{number}.parameters", point["parameters"],
               parameter_count(shape_of(body["make"]["config"] | {"vocabulary": point["vocabulary"]})))
