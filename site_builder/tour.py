"""The tours: a dozen stops of each route, each a step with something chosen and one or two sentences."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from site_builder.keys import keys_of
from tracer.format.roles import GENERATIONS
from tracer.format.trace import AXES, Step, Trace

STOPS = Path(__file__).with_name("tour.toml")


@dataclass(frozen=True)
class Stop:
    """Where a tour stops.  `view`: from how far the step is seen, "step" or "route"; `at`: letter → chosen place, below
    zero from the end.
    """

    name: str
    step: str
    view: str = "step"
    round: int | None = None
    block: int | None = None
    at: dict[str, int] = field(default_factory=dict)


@cache
def _stops() -> dict[str, list[Stop]]:
    written = tomllib.loads(STOPS.read_text(encoding="utf-8"))
    return {route: [Stop(**stop) for stop in stops] for route, stops in written.items()}


def stops(trace: Trace) -> list[tuple[str, Step, dict[str, Any]]]:
    """The stops that a recording has: the key of what is said there, the step, and how it is shown.

    A recording of another route has no tour of its own.  Of the early moment is said what is said of a generation.
    """
    said = GENERATIONS[0] if trace.route in GENERATIONS else trace.route
    found = [(stop, _step(trace, stop)) for stop in _stops().get(trace.route, [])]
    return [(f"tour: {said} {stop.name}", step,
             {"name": stop.name, "step": step.id, "view": stop.view, "at": _chosen(trace, stop, step)})
            for stop, step in found if step]


def _chosen(trace: Trace, stop: Stop, step: Step) -> dict[str, int]:
    lengths = {AXES[axis]: length for name in (*step.operations, *step.arrays)
               for axis, length in zip(trace.arrays[name].axes, trace.arrays[name].shape, strict=True)}
    return {letter: place if place >= 0 else lengths[letter] + place for letter, place in stop.at.items()}


def _step(trace: Trace, stop: Stop) -> Step | None:
    """The first step that is meant."""
    return next((step for step in trace.steps() if stop.step in keys_of(step, trace.route)
                 and stop.round in (None, step.round) and stop.block in (None, step.block)), None)
