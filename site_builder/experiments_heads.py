"""The figures and plots of the experiments in which attention learns where to look."""

import json
import math
from typing import Any

from site_builder.attention_pictures import Matrix, SentencePicture, matrix, sentence_picture
from site_builder.plots import Guide, Plot, Series, Size, plot
from site_builder.strings import Strings
from tracer.format.attention_patterns import PATTERNS
from tracer.format.attention_text import unpack
from tracer.format.experiment_heads import FORMED

WIDE, NARROW = Size(760, 230, right=170), Size(340, 220, right=92, left=40)
DEEP, SHALLOW, OTHER = 0, 1, 2  # colours: of more blocks, of one, and of another head of the former
WINDOW = 5  # moments over which a fall is measured
PATTERN_OF = {"induction": "induction", "previous": "previous token"}  # a head's score → what it is scored by
Figures = dict[str, Any]


# Induction ----------------------------------------------------------------------------------------------

def induction_figures(stem: str, body: Figures) -> Figures:
    """Figures of an induction experiment: losses in nats, scores as shares of attention, updates."""
    make: Figures = body["make"]
    config, task = make["config"], make["task"]
    runs = [run | summary for run, summary in zip(body["runs"], body["summary"], strict=True)]
    first, blocks = runs[0], max(run["blocks"] for run in runs)
    deep = [run for run in runs if run["blocks"] == blocks]
    shallow = [run for run in runs if run["blocks"] < blocks]
    formed = [run["formed"] for run in deep if run["formed"] is not None]
    return make | {
        "kind": "induction", "id": stem, "updates": make["settings"]["updates"], "runs": runs, "run": first,
        "deep": deep, "shallow": shallow, "vocabulary": config["vocabulary"], "tokens": task["tokens"],
        "jump": task["jump"], "even": math.log(config["vocabulary"]), "among": math.log(task["tokens"]),
        "all_formed": len(formed) == len(deep), "none_shallow": all(run["formed"] is None for run in shallow),
        "earliest": min(formed, default=None), "latest": max(formed, default=None), "half": FORMED,
        "cliff": _steepest(first["curve"]["update"], first["curve"]["known"]), "conditions": {},
        "heads": [_head(first, name, config["heads"]) for name in ("previous", "induction")],
        "lowest_unknown": min(first["curve"]["unknown"]), "shown": body["shown"],
    }


def _steepest(updates: list[int], losses: list[float]) -> Figures | None:
    """Where the loss falls most within `WINDOW` moments, and how much it fell in as many before."""
    starts = range(WINDOW, len(losses) - WINDOW)
    if not starts:
        return None
    start = max(starts, key=lambda i: losses[i] - losses[i + WINDOW])
    end = start + WINDOW
    return {"from": updates[start], "to": updates[end], "updates": updates[end] - updates[start],
            "before": losses[start], "after": losses[end], "fall": losses[start] - losses[end],
            "fall_before": losses[start - WINDOW] - losses[start]}


def _head(run: Figures, name: str, heads: int) -> Figures:
    """The head that has the best score of this name at the end: block and head, from zero, and its scores."""
    scores = run["scores"][name]
    best = max(range(len(scores)), key=lambda head: scores[head][-1])
    return {"name": name, "number": best, "block": best // heads, "head": best % heads, "scores": scores[best],
            "single": heads == 1}


def head_name(head: Figures, strings: Strings) -> str:
    """Which head it is: of a block with one the block says it."""
    return strings("experiments.block" if head["single"] else "experiments.block_head", **{
        "block": head["block"], "head": head["head"]})


def induction_plots(one: Figures, strings: Strings) -> dict[str, list[Plot]]:
    """The losses where the next token can be known, and the scores of heads; wide and narrow."""
    guide = Guide(one["even"], f"ln {one['vocabulary']} = {one['even']:.3f}")
    half = Guide(one["half"], "")
    updates = one["run"]["curve"]["update"]
    losses = [Series(run["curve"]["update"], run["curve"]["known"], DEEP, thin=True) for run in one["deep"][1:]]
    scores = [Series(run["curve"]["update"], _head(run, "induction", one["config"]["heads"])["scores"], DEEP, thin=True)
              for run in one["deep"][1:]]
    for run in one["shallow"]:
        name = strings("experiments.of_blocks", n=run["blocks"])
        losses.append(Series(run["curve"]["update"], run["curve"]["known"], SHALLOW, name, dots=False))
        scores.append(Series(run["curve"]["update"], _head(run, "induction", one["config"]["heads"])["scores"], SHALLOW,
                             strings("experiments.induction_of", n=run["blocks"]), dots=False))
    losses.append(Series(updates, one["run"]["curve"]["known"], DEEP,
                         strings("experiments.of_blocks", n=one["run"]["blocks"]), dots=False))
    for head, look in zip(one["heads"], (OTHER, DEEP), strict=True):
        scores.append(Series(updates, head["scores"], look, strings(f"experiments.{head['name']}_short"), dots=False))
    return {"losses": [plot(losses, size, guide, zero=True) for size in (WIDE, NARROW)],
            "scores": [plot(scores, size, half, zero=True) for size in (WIDE, NARROW)]}


def induction_moments(one: Figures) -> tuple[str, list[Matrix]]:
    """What the slider shows, as JSON, and the matrices of the last moment, a head each of `heads`."""
    shown, heads = one["shown"], one["run"]["blocks"] * one["config"]["heads"]
    T = len(shown["ids"])
    last = unpack(shown["weights"][-1], heads, T)
    found = [matrix(shown["ids"], last[head["number"]], PATTERNS[PATTERN_OF[head["name"]]]) for head in one["heads"]]
    cells, scores = T * (T + 1) // 2, [head["scores"] for head in one["heads"]]
    moments = {"updates": one["run"]["curve"]["update"], "readings": [one["run"]["curve"]["known"], *scores],
               "decimals": [2] + [3] * len(scores), "starts": [head["number"] * cells for head in one["heads"]],
               "weights": shown["weights"]}
    return json.dumps(moments, separators=(",", ":")), found


# It and its noun ----------------------------------------------------------------------------------------

def noun_figures(stem: str, body: Figures) -> Figures:
    """Figures of a noun experiment: shares of right answers and of attention."""
    make: Figures = body["make"]
    task = make["task"]
    runs = [run | {"by_head": run["right"]} | summary
            for run, summary in zip(body["runs"], body["summary"], strict=True)]
    blocks = max(run["blocks"] for run in runs)
    deep, shallow = ([run for run in runs if (run["blocks"] == blocks) is is_deep] for is_deep in (True, False))
    clear = max(deep, key=lambda run: float(run["right"]))
    vague = min(deep, key=lambda run: float(run["right"]))
    pairs = len(task["nouns"]) * (len(task["nouns"]) - 1)
    return make | {
        "kind": "noun", "id": stem, "updates": make["settings"]["updates"], "runs": runs, "deep": deep,
        "shallow": shallow, "clear": clear, "vague": vague, "nouns": task["nouns"], "first": task["first"],
        "second": task["second"], "pairs": pairs, "held_out": task["held_out"], "checked": task["checked"],
        "sentences": body["sentences"], "conditions": {},
        "all_right": all(run["held_out"] == 1 for run in deep), "worst": min(run["held_out"] for run in deep),
        "best_shallow": max((run["held_out"] for run in shallow), default=None),
        "worst_shallow": min((run["held_out"] for run in shallow), default=None),
        "most_shallow": max((run["right"] for run in shallow), default=None),
    }


def noun_plots(one: Figures, strings: Strings) -> dict[str, list[Plot]]:
    """The shares of right answers, and the weight on the right noun of the head that looks there most, of every run."""
    answers, weights = [], []
    for run in [*one["shallow"], *one["deep"]]:
        is_deep = run in one["deep"]
        named = run is one["deep"][0] or run is (one["shallow"] or [None])[0]
        look = DEEP if is_deep else SHALLOW
        name = strings("experiments.of_blocks", n=run["blocks"])
        updates = run["curve"]["update"]
        answers.append(Series(updates, run["curve"]["held_out"], look, name if named else "", thin=not named,
                              dots=False))
        weights.append(Series(updates, run["by_head"][run["head"]], look, thin=True))
    return {"answers": [plot(answers, size, zero=True) for size in (WIDE, NARROW)],
            "weights": [plot(weights, size, zero=True) for size in (WIDE, NARROW)]}


def read_sentences(one: Figures, run: Figures) -> list[tuple[SentencePicture, Figures]]:
    """Every sentence as this model reads it: the mean of the heads of a block, drawn; and what it says."""
    heads = one["config"]["heads"]
    found = []
    for sentence, read in zip(one["sentences"], run["read"], strict=True):
        blocks = [[sum(weights) / heads for weights in zip(*read["weights"][at:at + heads], strict=True)]
                  for at in range(0, len(read["weights"]), heads)]
        drawn = sentence_picture(sentence["words"], sentence["nouns"], sentence["right"], blocks)
        said = read["said"][0] if read["said"] else None
        found.append((drawn, sentence | {
            "said": read["said"], "ok": None if sentence["right"] is None or said is None
            else said["word"] in sentence["answers"]}))
    return found
