"""Experiments in which attention learns to look somewhere: an induction head forms, *it* finds its noun.

``induction.json``: ``make`` says which model learnt what (shape, settings, task); ``runs`` holds for each depth and
seed: ``parameters``; ``curve``, the loss where the next token can be known from the text and where it cannot, nats,
4 decimals, whenever it was looked at; ``scores``, of each head (block by block) at the same moments, 3 decimals:
``induction`` and ``previous`` (token) in texts of the task, ``twice``, induction where random tokens are said twice.
``shown`` holds one text, ``ids``, and of the first run the ``weights`` of every head at each moment
(`tracer.format.attention_text`).

``noun.json``: ``make`` says besides which words there are.  ``runs`` holds for each depth and seed: ``curve``, the
share of right answers on pairs that were trained and on those held out; ``right`` and ``other``, of each head at the
same moments the weight that *it* puts on the noun that it means and on the other, in the mean over the held-out
sentences; ``read``, of each of the ``sentences`` the weights of its last word, head by head, and the likeliest next
words, both after the last update.  All are shares, 3 decimals.
"""

from collections.abc import Iterator
from typing import Any

from tracer.errors import UserError
from tracer.format.attention_text import unpack
from tracer.format.experiment_fields import (
    EXPERIMENT,
    MACHINE,
    Kinds,
    check_columns,
    check_evaluations,
    check_fields,
    check_heads,
    is_amount,
    is_count,
    is_seed,
    is_share,
    is_size,
    is_whole,
)
from tracer.format.sizes import parameter_count, shape_of

INDUCTION_SCHEMA = "two-routes/experiment/induction"
NOUN_SCHEMA = "two-routes/experiment/noun"
FORMED = 0.5  # an induction score above it: the head has formed
LONGEST_TEXT = 256  # tokens of a text whose attention is shown

_MAKE: Kinds = {"config": dict, "settings": dict, "task": dict, **MACHINE}
CONFIG: Kinds = dict.fromkeys(("vocabulary", "context", "width", "heads"), is_count)
SETTINGS: Kinds = {**dict.fromkeys(("updates", "batch", "evaluate_every"), is_count), **dict.fromkeys(
    ("lr", "lr_end", "warmup", "beta1", "beta2", "weight_decay", "clip", "std"), is_amount)}
_WALKS: Kinds = {"tokens": is_count, "jump": is_share, "checked": is_count, "scored": is_count}
_WORDS: Kinds = {"nouns": list, "first": list, "second": list, "held_out": is_count, "checked": is_count}
_RUN: Kinds = {"blocks": is_count, "seed": is_seed, "parameters": is_size, "curve": dict}
_SENTENCE: Kinds = {"words": list, "nouns": list, "right": lambda value: value is None or value in (0, 1),
                    "answers": list}
SCORES = ("induction", "previous", "twice")


# What stands where --------------------------------------------------------------------------------------

def check_induction(body: dict[str, Any]) -> None:
    """Raises `UserError` that names the first thing that is not as the format says."""
    check_fields(body, EXPERIMENT | {"runs": list, "shown": dict}, "the experiment")
    _check_making(body["make"], _WALKS)
    for where, run, heads in _checked_runs(body, {"scores": dict}, ("known", "unknown")):
        check_fields(run["scores"], dict.fromkeys(SCORES, list), f"scores of {where}")
        for name in SCORES:
            _check_shares(run["scores"][name], heads, len(run["curve"]["update"]), f"{name!r} of scores of {where}")
    shown, first = body["shown"], body["runs"][0]
    check_fields(shown, {"ids": list, "weights": list}, "shown")
    if not shown["ids"] or len(shown["ids"]) > LONGEST_TEXT or not all(map(is_whole, shown["ids"])):
        raise UserError(f"'ids' of shown are not 1 to {LONGEST_TEXT} ids")
    if len(shown["weights"]) != len(first["curve"]["update"]) or not all(type(one) is str for one in shown["weights"]):
        raise UserError("'weights' of shown are not those of every moment of run 0")
    for text in shown["weights"]:
        unpack(text, first["blocks"] * body["make"]["config"]["heads"], len(shown["ids"]))


def check_noun(body: dict[str, Any]) -> None:
    """Raises `UserError` that names the first thing that is not as the format says."""
    check_fields(body, EXPERIMENT | {"runs": list, "sentences": list}, "the experiment")
    _check_making(body["make"], _WORDS)
    for name in ("nouns", "first", "second"):
        check_words(body["make"]["task"][name], f"{name!r} of task")
    for number, sentence in enumerate(body["sentences"]):
        where = f"sentence {number}"
        check_fields(sentence, _SENTENCE, where)
        check_words(sentence["words"], f"'words' of {where}")
        check_words(sentence["answers"], f"'answers' of {where}", least=0)
        places = sentence["nouns"]
        if len(places) != 2 or not all(is_whole(place) and place < len(sentence["words"]) for place in places):
            raise UserError(f"'nouns' of {where} are not two places of words")
    for where, run, heads in _checked_runs(body, dict.fromkeys(("right", "other", "read"), list),
                                           ("trained", "held_out")):
        moments = len(run["curve"]["update"])
        for name in ("trained", "held_out"):
            if not all(map(is_share, run["curve"][name])):
                raise UserError(f"{name!r} of curve of {where} holds something that is no share")
        for name in ("right", "other"):
            _check_shares(run[name], heads, moments, f"{name!r} of {where}")
        if len(run["read"]) != len(body["sentences"]):
            raise UserError(f"{where} has not read every sentence")
        for read, sentence in zip(run["read"], body["sentences"], strict=True):
            check_fields(read, {"weights": list, "said": list}, f"'read' of {where}")
            _check_shares(read["weights"], heads, len(sentence["words"]), f"'weights' of 'read' of {where}")
            for word in read["said"]:
                check_fields(word, {"word": str, "share": is_share}, f"'said' of {where}")


def _check_making(make: object, task: Kinds) -> None:
    check_fields(make, _MAKE, "make")
    assert isinstance(make, dict)
    for name, kinds in (("config", CONFIG), ("settings", SETTINGS), ("task", task)):
        check_fields(make[name], kinds, name)
    check_heads(make["config"])
    check_evaluations(make["settings"])


def _checked_runs(body: dict[str, Any], more: Kinds, columns: tuple[str, ...]) -> Iterator[tuple[str, Any, int]]:
    """Where it stands, the run, and how many heads its model has."""
    if not body["runs"]:
        raise UserError("it has no runs")
    for number, run in enumerate(body["runs"]):
        where = f"run {number}"
        check_fields(run, _RUN | more, where)
        check_columns(run["curve"], ("update", *columns), f"curve of {where}")
        yield where, run, run["blocks"] * body["make"]["config"]["heads"]


def _check_shares(columns: list[Any], heads: int, length: int, where: str) -> None:
    if len(columns) != heads or not all(isinstance(one, list) and len(one) == length and all(map(is_share, one))
                                        for one in columns):
        raise UserError(f"{where} is not {length} shares for each of {heads} heads")


def check_words(words: list[Any], where: str, least: int = 1) -> None:
    """Raises `UserError` for what is no list of `least` to `LONGEST_TEXT` words."""
    if not least <= len(words) <= LONGEST_TEXT or not all(type(word) is str for word in words):
        raise UserError(f"{where} is no list of words")


# What follows -------------------------------------------------------------------------------------------

def induction_summary(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each run the last losses, the best scores of the last moment, and when a head had formed, or None."""
    found = []
    for run in body["runs"]:
        curve, best = run["curve"], {name: [max(at) for at in zip(*run["scores"][name], strict=True)]
                                     for name in SCORES}
        formed = [update for update, score in zip(curve["update"], best["induction"], strict=True) if score > FORMED]
        found.append({"blocks": run["blocks"], "seed": run["seed"], "updates": curve["update"][-1],
                      "known": curve["known"][-1], "unknown": curve["unknown"][-1],
                      **{name: scores[-1] for name, scores in best.items()}, "formed": formed[0] if formed else None})
    return found


def noun_summary(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each run the last share of right answers, and the head whose *it* looks most at the right noun."""
    found = []
    for run in body["runs"]:
        right = [weights[-1] for weights in run["right"]]
        head = right.index(max(right))
        found.append({"blocks": run["blocks"], "seed": run["seed"], "updates": run["curve"]["update"][-1],
                      "trained": run["curve"]["trained"][-1], "held_out": run["curve"]["held_out"][-1],
                      "head": head, "right": right[head], "other": run["other"][head][-1]})
    return found


def recomputed(body: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    """Place, what stands there, and what the rest of the experiment gives for it."""
    settings, config = body["make"]["settings"], body["make"]["config"]
    updates, every = settings["updates"], settings["evaluate_every"]
    for number, run in enumerate(body["runs"]):
        yield (f"runs.{number}.parameters", run["parameters"],
               parameter_count(shape_of(config | {"blocks": run["blocks"]})))
        yield f"runs.{number}.curve.update", run["curve"]["update"], [*range(0, updates, every), updates]


def noun_recomputed(body: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    """As of both; and of every sentence where its nouns stand, and which of them its verb means."""
    yield from recomputed(body)
    task = body["make"]["task"]
    for number, sentence in enumerate(body["sentences"]):
        words = sentence["words"]
        yield (f"sentences.{number}.nouns", sentence["nouns"],
               [place for place, word in enumerate(words) if word in task["nouns"]])
        means = [*(0 for word in words if word in task["first"]), *(1 for word in words if word in task["second"])]
        yield f"sentences.{number}.right", sentence["right"], means[0] if means else None
