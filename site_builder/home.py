"""What the home page shows: the two routes, the states that each of them changes, every chapter."""

from dataclasses import dataclass

from site_builder.strings import Strings

STATES = ("parameters", "optimizer", "activations", "sequence")
# Route → the words of the boxes on its picture, and of what goes back from the last one to the first.
ROADS = {"training": (("network", "chapter.loss", "chapter.adamw"), "state.parameters"),
         "generation": (("network", "logits", "ids"), "state.sequence")}
FIRST, APART, WIDTH = 8, 108, 98  # where boxes stand, in units of the picture


@dataclass
class Stop:
    """A box on the picture of a route, at `x`; `road` is the path to the next one."""

    x: int
    middle: int
    label: str
    road: str


@dataclass
class RouteCard:
    """One of the two routes: its picture, what is said of it, and the way in."""

    route: str
    title: str
    body: str
    label: str
    stops: list[Stop]
    back: str
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
    labels = [strings(word) for word in words]
    stops = [Stop(x, x + WIDTH // 2, label, "" if label is labels[-1] else f"M{x + WIDTH} 31 h{APART - WIDTH - 2}")
             for x, label in zip(range(FIRST, FIRST + APART * len(labels), APART), labels, strict=True)]
    label = f"{' → '.join(labels)} ↺ {strings(back)}"
    return RouteCard(route, title, body, label, stops, strings(back), strings(f"start_{route}"))


def states(strings: Strings) -> list[State]:
    return [State(*(strings(f"state.{state}{of}") for of in ("", "_training", "_generation"))) for state in STATES]


def chapter_lists(chapters: dict[str, list[tuple[str, str]]], strings: Strings) -> list[RouteChapters]:
    return [RouteChapters(route, strings(route), found) for route, found in chapters.items()]
