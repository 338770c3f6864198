"""The figures of the experiment of the loss before the first update."""

from typing import Any

Figures = dict[str, Any]


def initial_figures(stem: str, body: Figures) -> Figures:
    """Losses in nats: measured, of an even guess, and of logits of the spread that the weights give them."""
    make: Figures = body["make"]
    points = [point | {name: value for name, value in summary.items() if name != "vocabulary"}
              for point, summary in zip(body["points"], body["summary"], strict=True)]
    stds = sorted({point["std"] for point in points})
    small, large = ([point for point in points if point["std"] == std] for std in (stds[0], stds[-1]))
    return make | {
        "kind": "initial", "id": stem, "points": points, "stds": stds, "conditions": {},
        "width": make["config"]["width"], "small": stds[0], "large": stds[-1],
        "biggest": points[-1]["vocabulary"], "biggest_even": points[-1]["even"], "biggest_loss": small[-1]["loss"],
        # How far the measured means are from what is expected, and from ln V, at most.
        "off": max(abs(point["loss"] - point["spread"]) for point in points),
        "above_small": max(point["loss"] - point["even"] for point in small),
        "above_large": max(point["loss"] - point["even"] for point in large),
    }
