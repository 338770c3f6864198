"""The controls of a route's page, and what its scripts are told."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from site_builder.strings import Strings
from tracer.ops import KINDS, expand_ellipsis

DIGITS = ("2", "4", "6", "all")
SPEEDS = ("slow", "normal", "fast")
USUAL_SPEED = "normal"
# Of the panel beside the picture; the map where it has no room of its own.
TABS = ("words", "formula", "tables", "number", "code", "map")
SIDES = ("map", "steps", "none")  # what may stand beside a step; the first one does
MODES = ("forward", "backward", "update")
REASONS = ("blocked", "missing", "old", "failed")  # why no script started: the notice of static/boot.js
HELP = ("next", "back", "ends", "chapter", "play", "grid", "trail", "escape", "present", "search", "counting")


@dataclass
class Choice:
    """One of several values, with its word."""

    value: str
    text: str
    is_chosen: bool = False


@dataclass
class Controls:
    """All choices and words of a route's page that its steps do not say."""

    digits: list[Choice]
    speeds: list[Choice]
    sides: list[Choice]
    tabs: list[Choice]
    reasons: list[Choice]
    help: list[str]
    script_data: dict[str, Any]
    modes: list[Choice] = field(default_factory=list)  # of the map, on a route that goes more ways than forward


def controls(page: str, root: str, strings: Strings, tour: list[dict[str, Any]], modes: Sequence[str] = (),
             title: str = "") -> Controls:
    """The controls of a page of a route with its `tour`, its `title` and the `modes` of its steps.

    `root` is the way from the page to the folder of the site.
    """
    words = strings.for_scripts() | ({page: title} if title else {})
    return Controls(
        digits=[Choice(value, strings("all_digits") if value == "all" else value) for value in DIGITS],
        speeds=[Choice(value, strings(value), value == USUAL_SPEED) for value in SPEEDS],
        sides=[Choice(value, strings(f"network_map.{value}"), value == SIDES[0]) for value in SIDES],
        tabs=[Choice(value, strings(f"panel.{value}")) for value in TABS],
        reasons=[Choice(value, strings(f"not_started.{value}")) for value in REASONS],
        help=[strings(f"help_{key}") for key in HELP],
        script_data={"route": page, "root": root, "words": words, "tour": tour},
        modes=[Choice(value, strings(f"network_map.{value}")) for value in MODES if value in modes]
        if len(modes) > 1 else [])


_OF_HOME = ("picture.route", "watch", "move_", "moves")


def home_data(root: str, strings: Strings) -> dict[str, Any]:
    """What the scripts of the home page are told: the words of its moving pictures."""
    words = {key: word for key, word in strings.for_scripts().items() if key.startswith(_OF_HOME)}
    return {"route": "", "root": root, "words": words}


def lesson_data(root: str, strings: Strings, tools: list[str]) -> dict[str, Any]:
    """What the scripts of a lesson are told: its words, those of its tools, and the equations that tools evaluate."""
    groups = ("lesson.", *(f"tool.{tool}." for tool in tools))
    words = {key: word for key, word in strings.all().items() if key.startswith(groups)}
    kinds = dict.fromkeys(kind for tool in tools for kind in TOOL_KINDS.get(tool, ()))
    return {"route": "", "root": root, "words": words, "kinds": {kind: _equations(kind) for kind in kinds}}


# Tool → the kinds of operation whose equations it evaluates.
TOOL_KINDS = {"attention": ("linear_without_bias", "scaled_scores", "causal_mask", "softmax", "weighted_sum"),
              "softmax": ("softmax", "temperature"), "dots": ("softmax",)}
# Letters that ... stands for: rows of several heads, rows of tokens.
_LEADING = {"softmax": ["h", "i"], "linear_without_bias": ["t"]}


def _equations(kind: str) -> list[Any]:
    return [equation.to_json() for equation in expand_ellipsis(KINDS[kind].targets["out"], _LEADING.get(kind, []))]
