"""What the home page shows: the two routes, the states that each of them changes, every chapter."""

from dataclasses import dataclass

from site_builder.strings import Strings

STATES = ("parameters", "optimizer", "activations", "sequence")
# Route → what its picture shows from left to right, and what goes back from the last to the first.
ROADS = {"training": (("network", "chapter.loss", "chapter.adamw"), "state.parameters"),
         "generation": (("network", "logits", "ids"), "state.sequence")}


@dataclass
class RouteCard:
    """One of the two routes: what its picture shows, what is said of it, and the way in."""

    route: str
    title: str
    body: str
    label: str
    start: str


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


def route_card(route: str, title: str, body: str, strings: Strings) -> RouteCard:
    """A route with what is said of it (HTML)."""
    words, back = ROADS[route]
    label = f"{' → '.join(strings(word) for word in words)} ↺ {strings(back)}"
    return RouteCard(route, title, body, label, strings(f"start_{route}"))


def states(strings: Strings) -> list[State]:
    return [State(*(strings(f"state.{state}{of}") for of in ("", "_training", "_generation"))) for state in STATES]


def chapter_lists(chapters: dict[str, list[tuple[str, str]]], strings: Strings) -> list[RouteChapters]:
    return [RouteChapters(route, strings(route), found) for route, found in chapters.items()]
