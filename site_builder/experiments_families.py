"""The figures, plots and bars of the experiment of the two other families."""

import json
import statistics
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from site_builder.attention_pictures import Matrix, cross_matrix
from site_builder.experiments_heads import DEEP, NARROW, OTHER, SHALLOW, WIDE
from site_builder.plots import Plot, Series, plot
from site_builder.strings import Strings
from tracer.format.attention_text import unpack_whole
from tracer.format.experiment_families import SIDES, matrix_shapes

LOOKS = dict(zip(SIDES, (DEEP, SHALLOW), strict=True))
LINE, BAR, LENGTH = 30, 12, 165  # units of a drawing of bars: a word, a bar, how long a share of 1 is
Figures = dict[str, Any]


def families_figures(stem: str, body: Figures) -> Figures:
    """Figures of a families experiment: shares of right words, weights and probabilities."""
    make: Figures = body["make"]
    summary = {task: [one for one in body["summary"] if one["task"] == task] for task in ("reversing", "masked")}
    runs = {task: [run | last for run, last in zip(body[task], summary[task], strict=True)] for task in summary}
    sides = {name: [run for run in runs["masked"] if run["sides"] == name] for name in SIDES}
    asked = [sentence | {name: _on_right(sentence, sides[name][0]["read"][number]) for name in SIDES}
             for number, sentence in enumerate(body["sentences"])]
    task = make["masked"]["task"]
    return make | {
        "kind": "families", "id": stem, "updates": make["reversing"]["settings"]["updates"], "conditions": {},
        "runs": runs["reversing"], "run": runs["reversing"][0], "letters": make["reversing"]["task"],
        "masked_runs": runs["masked"], "asked": asked, "shown": body["shown"], "seeds": len(runs["reversing"]),
        "lowest": {name: min(run[name] for run in runs["reversing"]) for name in ("words", "right")},
        "sides": {name: {column: statistics.fmean(run[column] for run in sides[name])
                         for column in ("noun", "noun_held_out", "verb", "verb_held_out")} for name in SIDES},
        "nouns": len(task["does"]), "verbs": len(task["first"]) + len(task["second"]), "held_out": task["held_out"],
        "pairs": len(task["does"]) * (len(task["does"]) - 1), "checked": task["checked"],
        "chance_noun": 1 / len(task["does"]),
        "read": {name: sides[name][0]["read"] for name in SIDES},
    }


def _on_right(sentence: Figures, shares: list[float]) -> float:
    return sum(share for word, share in zip(sentence["candidates"], shares, strict=True) if word in sentence["right"])


def families_plots(one: Figures, strings: Strings) -> dict[str, list[Plot]]:
    """The words that are right, and the weight on the right letter, of every seed; wide and narrow."""
    found = []
    for name, look in (("words", DEEP), ("right", OTHER)):
        for number, run in enumerate(reversed(one["runs"]), 1):
            first = number == len(one["runs"])
            found.append(Series(run["curve"]["update"], run["curve"][name], look, thin=not first, dots=False,
                                name=strings(f"experiments.{name}_short") if first else ""))
    return {"reversing": [plot(found, size, zero=True) for size in (WIDE, NARROW)]}


def families_moments(one: Figures) -> tuple[str, list[Matrix]]:
    """What the slider shows, as JSON, and the matrix of each word at the last moment."""
    shown, run = one["shown"], one["run"]
    shapes, end = matrix_shapes(shown["words"]), one["letters"]["end"]
    last = unpack_whole(shown["weights"][-1], shapes)
    matrices = [cross_matrix(word, written[-1], end, weights)
                for word, written, weights in zip(shown["words"], shown["written"], last, strict=True)]
    moments = {"updates": run["curve"]["update"], "readings": [run["curve"]["words"], run["curve"]["right"]],
               "decimals": [3, 3], "starts": [*accumulate((T * S for T, S in shapes[:-1]), initial=0)],
               "weights": shown["weights"], "written": shown["written"]}
    return json.dumps(moments, separators=(",", ":")), matrices


@dataclass
class Bar:
    """One probability: its colour, where it stands and how long it is, and its figure."""

    look: int
    y: int
    width: float
    text: str

    @property
    def end(self) -> float:
        """Where its figure begins."""
        return round(94 + self.width, 1)

    @property
    def base(self) -> int:
        """The line on which its figure stands."""
        return self.y + 8


@dataclass
class Filling:
    """A sentence with a masked word; each candidate, whether it is right, where its name stands; the bars of both."""

    words: list[str]
    place: int
    height: int
    names: list[tuple[str, bool, int]]
    bars: list[Bar]

    @property
    def marked(self) -> list[tuple[str, bool]]:
        """Every word, and whether it is the masked one."""
        return [(word, place == self.place) for place, word in enumerate(self.words)]

    @property
    def label(self) -> str:
        """The sentence, and of each candidate the figures of both sides and of the left alone."""
        figures = [f"{word} {self.bars[2 * number].text} {self.bars[2 * number + 1].text}"
                   for number, (word, _, _) in enumerate(self.names)]
        return " · ".join([" ".join(self.words), *figures])


def fillings(one: Figures) -> list[Filling]:
    """Every sentence, as the first model of both sides fills it in, and the first of the left alone."""
    found = []
    for number, sentence in enumerate(one["asked"]):
        shares = [one["read"][name][number] for name in SIDES]
        bars = [Bar(LOOKS[name], LINE * line + BAR * below, round(LENGTH * share, 1), f"{share:.3f}".lstrip("0") or "0")
                for line, both in enumerate(zip(*shares, strict=True))
                for below, (name, share) in enumerate(zip(SIDES, both, strict=True))]
        names = [(word, word in sentence["right"], LINE * line + 15)
                 for line, word in enumerate(sentence["candidates"])]
        found.append(Filling(sentence["words"], sentence["place"], LINE * len(names), names, bars))
    return found
