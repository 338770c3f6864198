"""What the home page shows: the two routes, the states that each of them changes, every chapter."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from site_builder.strings import Strings

EXAMPLE = "softmax"  # the stop that a page of one's own shows
STATES = ("parameters", "optimizer", "activations", "sequence")
# Route → what its picture shows from left to right, and what goes back from the last to the first.
ROADS = {"training": (("network", "chapter.loss", "chapter.adamw"), "state.parameters"),
         "generation": (("network", "logits", "ids"), "state.sequence")}


@dataclass
class RouteCard:
    """One of the two routes: what its picture shows (a recording's), what is said of it, and the way in."""

    route: str
    shown: str
    title: str
    body: str
    label: str
    start: str
    address: str  # where one begins: the tour, where there is one


@dataclass
class ClassStop:
    """A stop of a tour, with its address from a page of the same language."""

    name: str
    step: str
    title: str
    address: str


@dataclass
class ClassTour:
    """The stops of a route."""

    route: str
    stops: list[ClassStop]


@dataclass
class State:
    """What one route changes and the other does not."""

    name: str
    training: str
    generation: str


@dataclass
class RouteChapters:
    """The chapters of a route: (first step, title)."""

    route: str
    title: str
    chapters: list[tuple[str, str]]


def route_card(route: str, shown: str, title: str, body: str, strings: Strings,
               tour: list[dict[str, Any]]) -> RouteCard:
    """A route with what is said of it (HTML).  `shown`, `tour`: of the recording whose picture stands there."""
    words, back = ROADS[route]
    label = f"{' → '.join(strings(word) for word in words)} ↺ {strings(back)}"
    address = _class_stop(shown, tour[0]).address if tour else f"{shown}.html"
    return RouteCard(route, shown, title, body, label, strings(f"start_{route}"), address)


def class_tours(tours: dict[str, list[dict[str, Any]]]) -> list[ClassTour]:
    """The tours that there are, with the addresses of their stops."""
    return [ClassTour(route, [_class_stop(route, stop) for stop in stops]) for route, stops in tours.items() if stops]


def _class_stop(route: str, stop: dict[str, Any]) -> ClassStop:
    view = "" if stop["view"] == "step" else f"&view={stop['view']}"
    step = quote(stop["step"], safe="")
    return ClassStop(stop["name"], step, stop["title"], f"{route}.html#step={step}{view}&tour={stop['name']}")


def states(strings: Strings) -> list[State]:
    return [State(*(strings(f"state.{state}{of}") for of in ("", "_training", "_generation"))) for state in STATES]


def chapter_lists(chapters: dict[str, list[tuple[str, str]]], strings: Strings) -> list[RouteChapters]:
    return [RouteChapters(route, strings(route), found) for route, found in chapters.items()]
