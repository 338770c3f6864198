"""The page of the recorded experiments: their figures, what is said about them, and their pictures."""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from site_builder import verified
from site_builder.experiments_families import families_figures, families_plots
from site_builder.experiments_heads import induction_figures, induction_plots, noun_figures, noun_plots
from site_builder.experiments_initial import initial_figures
from site_builder.language import Language
from site_builder.parts import number_in_prose
from site_builder.plots import Guide, Plot, Series, Size, plot
from site_builder.prose import render, render_title
from site_builder.strings import Strings, count
from tracer.format.experiment_families import FAMILIES_SCHEMA
from tracer.format.experiment_heads import INDUCTION_SCHEMA, NOUN_SCHEMA
from tracer.format.experiment_initial import INITIAL_SCHEMA
from tracer.format.experiments import CACHE_SCHEMA, DEPTH_SCHEMA

WIDE, NARROW = Size(760, 360, right=150), Size(340, 300, right=84, left=40)
LOW_WIDE, LOW_NARROW = Size(760, 240, right=150), Size(340, 240, right=84, left=44)
UNCACHED, CACHED = 3, 5  # their colours; the first ones are those of the depths
Figures = dict[str, Any]  # by name, as templates and prose ask for them
CONDITIONS = ("device", "precision", "compile")

def read_experiments(traces: Path) -> list[Figures]:
    """The figures of every experiment in `traces`, kind by kind; empty where there is none.

    Raises `UserError` for a file that is damaged or does not follow.
    """
    found = []
    for stem, body in verified.read_experiments(traces).items():
        found.append(FIGURES[body["schema"]](stem, body))
    found.sort(key=lambda one: ([*PLOTS].index(one["kind"]), one.get("updates", 0), one["id"]))
    depths = sorted({run["blocks"] for one in found if one["kind"] == "depth" for run in one["runs"]})
    for one in found:
        for run in one["runs"] if one["kind"] == "depth" else ():
            run["look"] = depths.index(run["blocks"])  # a depth has one colour, whichever experiment it is in
    return found


def tell(experiments: list[Figures], language: Language) -> tuple[tuple[str, str], list[Figures]]:
    """(title, HTML) of the page; and for each experiment its figures, prose in HTML and plots."""
    strings = Strings(language)

    def say(key: str, figures: Figures) -> tuple[str, str, str]:
        section = language.prose[key]
        figures = figures | {"num": number_in_prose, "count": partial(count, language), "fixed": fixed, "ln": math.log}
        return (render_title(section.title, figures), render(section.body, figures), render(section.misread, figures))

    told = [one | {"what": say(f"experiments: {one['kind']}", one),
                   "reading": say(f"experiments: {one['kind']}, reading", one),
                   "plots": PLOTS[one["kind"]](one, strings)}
            for one in experiments]
    return say("experiments: lead", {})[:2], told


def experiment_title(one: Figures, language: Language) -> str:
    """What an experiment is called on its page."""
    title: str = tell([one], language)[1][0]["what"][0]
    return title


def fixed(value: float, places: int) -> str:
    """`places` decimals, thousands separators, a true minus sign."""
    return f"{value:,.{places}f}".replace("-", "−")


# Depth -------------------------------------------------------------------------------------------------

def _depth(stem: str, body: Figures) -> Figures:
    """Figures of a depth experiment; losses in nats a token, seconds."""
    make: Figures = body["make"]
    settings = make["settings"]
    runs = [_run(run, body["runs"][0]) for run in body["runs"]]
    by_loss = sorted(runs, key=lambda run: run["validation"])
    evaluations = [run["evaluations"] for run in runs]
    return make | {
        "kind": "depth", "id": stem, "runs": runs, "updates": runs[0]["updates"],
        "conditions": {name: settings[name] for name in CONDITIONS},
        "windows": settings["batch"] * settings["accumulation"], "context": settings["context"],
        "shallow": runs[0], "deep": runs[-1], "best": by_loss[0], "worst": by_loss[-1],
        "spread": round(by_loss[-1]["validation"] - by_loss[0]["validation"], 4),
        "rises": _pairs(runs, lambda a, b: b["validation"] > a["validation"]),
        "falls": _pairs(runs, lambda a, b: b["validation"] < a["validation"]),
        # What the least improved model gained between the last two evaluations.
        "gain": min(e["validation"][-2:][0] - e["validation"][-1] for e in evaluations),
        "gain_updates": evaluations[0]["update"][-1] - evaluations[0]["update"][-2:][0],
        "early": _early(evaluations[0], evaluations[-1]),
        "even": math.log(make["vocabulary"]),
        "starts": all(e["update"][0] == 0 and abs(e["validation"][0] - math.log(make["vocabulary"])) < 0.1
                      for e in evaluations),
        # How many times longer the runs took than their updates, measured one by one, would.
        "slower": max(run["slower"] for run in runs), "faster": min(run["slower"] for run in runs),
    }


def _run(run: Figures, shallow: Figures) -> Figures:
    evaluations, per_update = run["evaluations"], run["seconds_per_update"]
    updates = run["curve"]["update"][-1]
    ratio = per_update / shallow["seconds_per_update"] if shallow["seconds_per_update"] else math.nan
    losses = dict(zip(evaluations["update"], evaluations["validation"], strict=True))
    return run | {"train": evaluations["train"][-1], "validation": evaluations["validation"][-1], "updates": updates,
                  "ratio": ratio, "share": round(updates / ratio) if ratio > 0 else 0,
                  "slower": run["training_seconds"] / (per_update * updates) if per_update else 1.0,
                  "samples": [sample | {"loss": losses.get(sample["update"])} for sample in run["samples"]]}


def _pairs(runs: list[Figures], holds: Callable[[Figures, Figures], bool]) -> bool:
    """Whether something holds for every depth and the next."""
    return len(runs) > 1 and all(holds(a, b) for a, b in pairwise(runs))


def _early(shallow: Figures, deep: Figures) -> Figures | None:
    """The first evaluation that follows an update, and how far the deepest model is above the shallowest there."""
    shared = [update for update in shallow["update"] if update and update in deep["update"]]
    if not shared:
        return None
    losses = [one["validation"][one["update"].index(shared[0])] for one in (shallow, deep)]
    return {"after": shared[0], "behind": round(losses[1] - losses[0], 4)}


def _depth_plots(one: Figures, strings: Strings) -> dict[str, list[Plot]]:
    """The losses, and where there are several depths how far each is above the shallowest; both wide and narrow."""
    guide = Guide(one["even"], f"ln {one['vocabulary']} = {fixed(one['even'], 3)}")
    thin = [Series(run["curve"]["update"], run["curve"]["loss"], run["look"], thin=True) for run in one["runs"]]

    def losses(value: bool) -> list[Series]:
        return [Series(run["evaluations"]["update"], run["evaluations"]["validation"], run["look"],
                       _named(run, strings) + (f" · {fixed(run['validation'], 4)}" if value else ""))
                for run in one["runs"]]

    found = {"losses": [plot([*thin, *losses(True)], WIDE, guide), plot([*thin, *losses(False)], NARROW, guide)]}
    if len(one["runs"]) > 1:
        apart = [_above(run, one["shallow"], strings) for run in one["runs"]]
        found["apart"] = [plot(apart, size, zero=True) for size in (LOW_WIDE, LOW_NARROW)]
    return found


def _named(run: Figures, strings: Strings) -> str:
    return strings("experiments.depth", n=run["blocks"])


def _above(run: Figures, shallow: Figures, strings: Strings) -> Series:
    """Validation loss less that of the shallowest model after the same update."""
    base = dict(zip(shallow["evaluations"]["update"], shallow["evaluations"]["validation"], strict=True))
    both = [(update, round(loss - base[update], 4)) for update, loss in
            zip(run["evaluations"]["update"], run["evaluations"]["validation"], strict=True) if update in base]
    return Series([update for update, _ in both], [loss for _, loss in both], run["look"], _named(run, strings))


# Cache -------------------------------------------------------------------------------------------------

def _cache(stem: str, body: Figures) -> Figures:
    """Figures of a cache experiment; seconds, bytes, positions that went through the model."""
    make: Figures = body["make"]
    points = [_point(point, make["new_tokens"]) for point in body["points"]]
    config = make["config"]
    return make | {
        "kind": "cache", "id": stem, "points": points, "new": make["new_tokens"], "first": points[0],
        "last": points[-1], "conditions": {}, "looks": {"uncached": UNCACHED, "cached": CACHED},
        "number_bytes": make["bytes_per_token"] // (2 * config["blocks"] * config["width"]),
        "grows": all(b["ratio"] > a["ratio"] for a, b in pairwise(points)),
        "scatter": any(b["cached_seconds"] < a["cached_seconds"] for a, b in pairwise(points)),
        "faster": all(point["ratio"] > 1 for point in points),
    }


def _point(point: Figures, new: int) -> Figures:
    """Without a cache round k of 0 … m − 1 computes n + k positions; with one the prompt, then one a round.

    The last new token is never read again: m new tokens take n + m − 1 positions.
    """
    n = point["prompt"]
    uncached, cached = new * n + new * (new - 1) // 2, n + new - 1
    return point | {
        "uncached": uncached, "cached": cached, "fewer": uncached / cached,
        "ratio": point["uncached_seconds"] / point["cached_seconds"] if point["cached_seconds"] else math.nan,
        "uncached_each": 1000 * point["uncached_seconds"] / uncached,  # milliseconds a position
        "cached_each": 1000 * point["cached_seconds"] / cached,
    }


def _cache_plots(one: Figures, strings: Strings) -> dict[str, list[Plot]]:
    """The times over prompt lengths, and the positions of every round after the shortest prompt; wide and narrow."""
    prompts = [point["prompt"] for point in one["points"]]
    times = [Series(prompts, [point[f"{way}_seconds"] for point in one["points"]], look, strings(f"experiments.{way}"))
             for way, look in (("uncached", UNCACHED), ("cached", CACHED))]
    n, new = one["first"]["prompt"], one["new"]
    edges = [edge for k in range(new) for edge in (k, k + 1)]
    areas = [Series(edges, [n + k // 2 for k in range(2 * new)], UNCACHED, area=True),
             Series(edges, [n if k < 2 else 1 for k in range(2 * new)], CACHED, area=True)]
    return {"times": [plot(times, size, zero=True) for size in (WIDE, NARROW)],
            "positions": [plot(areas, Size(size.width, size.height, 20, size.left), zero=True)
                          for size in (LOW_WIDE, LOW_NARROW)]}


FIGURES: dict[str, Callable[[str, Figures], Figures]] = {
    DEPTH_SCHEMA: _depth, CACHE_SCHEMA: _cache, INDUCTION_SCHEMA: induction_figures, NOUN_SCHEMA: noun_figures,
    INITIAL_SCHEMA: initial_figures, FAMILIES_SCHEMA: families_figures}
# By kind, in the order of the page.
PLOTS: dict[str, Callable[[Figures, Strings], dict[str, list[Plot]]]] = {
    "depth": _depth_plots, "cache": _cache_plots, "initial": lambda one, strings: {},
    "induction": induction_plots, "noun": noun_plots, "families": families_plots}
