"""The experiment of the two other families: an encoder–decoder reverses words, an encoder fills in masked words.

``families.json``: ``make`` says for ``reversing`` and for ``masked`` which model learnt what (shape, settings, task;
``end`` is the sign for the end of a word).

``reversing`` holds for each seed: ``parameters``; ``curve``, whenever it was looked at: the share of ``words`` that the
model writes right, its own letters fed back, and the mean weight of its cross-attention on the ``right`` letter, both
on words drawn apart from those of the training.  ``shown`` holds a few ``words`` as the first run writes them:
``written``, word by word the text at each moment (as many signs as the word has letters, and one for its end), and
``weights``, at each moment the cross-attention of all of these words, one after the other: a row for each sign that is
written, a column for each letter and for the end (`tracer.format.attention_text`).

``masked`` holds for ``sides``, ``both`` or ``left``, and each seed: ``parameters``; ``curve``, the shares of sentences
in which the ``noun`` that *it* means is filled in, and a ``verb`` that means the noun which the sentence goes on with,
on pairs of nouns that were trained and on those held out; ``read``, of each of the ``sentences`` the probabilities of
its ``candidates`` after the last update.  Of these the ``right`` ones make the sentence hold.  Shares, weights and
probabilities have 3 decimals.
"""

from collections.abc import Iterator
from typing import Any

from tracer.errors import UserError
from tracer.format.attention_text import unpack_whole
from tracer.format.experiment_fields import (
    EXPERIMENT,
    MACHINE,
    Kinds,
    check_columns,
    check_evaluations,
    check_fields,
    check_heads,
    is_count,
    is_seed,
    is_share,
    is_size,
    is_whole,
)
from tracer.format.experiment_heads import CONFIG, SETTINGS, check_words
from tracer.format.sizes import parameter_count, shape_of

FAMILIES_SCHEMA = "two-routes/experiment/families"
LONGEST_WORD = 32  # letters of a word that is shown
SIDES = ("both", "left")

_MAKING: Kinds = dict.fromkeys(("config", "settings", "task"), dict)
_LETTERS: Kinds = {**dict.fromkeys(("letters", "shortest", "longest", "checked"), is_count),
                   "end": lambda value: type(value) is str and len(value) == 1}
_WORDS: Kinds = {"does": dict, "first": list, "second": list, "held_out": is_count, "checked": is_count}
_RUN: Kinds = {"seed": is_seed, "parameters": is_size, "curve": dict}
_SENTENCE: Kinds = {"words": list, "place": is_whole, "candidates": list, "right": list}
_FILLED = ("noun", "noun_held_out", "verb", "verb_held_out")
_CURVES = {"reversing": ("words", "right"), "masked": _FILLED}


# What stands where --------------------------------------------------------------------------------------

def check_families(body: dict[str, Any]) -> None:
    """Raises `UserError` that names the first thing that is not as the format says."""
    check_fields(body, EXPERIMENT | {"reversing": list, "shown": dict, "masked": list, "sentences": list},
                 "the experiment")
    check_fields(body["make"], {"reversing": dict, "masked": dict, **MACHINE}, "make")
    for name, task in (("reversing", _LETTERS), ("masked", _WORDS)):
        _check_making(body["make"][name], task, name)
    task = body["make"]["masked"]["task"]
    for name in ("first", "second"):
        check_words(task[name], f"{name!r} of task of masked")
    check_words([*task["does"]], "'does' of task of masked")
    for noun, does in task["does"].items():
        if not isinstance(does, list):
            raise UserError(f"{noun!r:.40} of 'does' is no list of words")
        check_words(does, f"{noun!r:.40} of 'does'")
    _check_runs(body["reversing"], "reversing", {})
    _check_shown(body["shown"], len(body["reversing"][0]["curve"]["update"]))
    _check_sentences(body["sentences"])
    _check_runs(body["masked"], "masked", {"sides": lambda value: value in SIDES, "read": list})
    if {run["sides"] for run in body["masked"]} != {*SIDES}:
        raise UserError("it has no masked run of both sides, or none of the left")
    for number, run in enumerate(body["masked"]):
        for shares, sentence in zip(run["read"], body["sentences"], strict=False):
            if not isinstance(shares, list) or len(shares) != len(sentence["candidates"]) or not all(
                    map(is_share, shares)):
                raise UserError(f"'read' of masked run {number} is not a share for each of the candidates")
        if len(run["read"]) != len(body["sentences"]):
            raise UserError(f"masked run {number} has not read every sentence")


def _check_making(making: dict[str, Any], task: Kinds, name: str) -> None:
    check_fields(making, _MAKING, f"{name!r} of make")
    for part, kinds in (("config", CONFIG | {"blocks": is_count}), ("settings", SETTINGS), ("task", task)):
        check_fields(making[part], kinds, f"{part} of {name}")
    check_heads(making["config"])
    check_evaluations(making["settings"])


def _check_runs(runs: list[Any], name: str, more: Kinds) -> None:
    if not runs:
        raise UserError(f"it has no {name} runs")
    for number, run in enumerate(runs):
        where = f"{name} run {number}"
        check_fields(run, _RUN | more, where)
        check_columns(run["curve"], ("update", *_CURVES[name]), f"curve of {where}")
        for column in _CURVES[name]:
            if not all(map(is_share, run["curve"][column])):
                raise UserError(f"{column!r} of curve of {where} holds something that is no share")


def _check_shown(shown: dict[str, Any], moments: int) -> None:
    check_fields(shown, dict.fromkeys(("words", "written", "weights"), list), "shown")
    check_words(shown["words"], "'words' of shown")
    if not all(1 <= len(word) <= LONGEST_WORD for word in shown["words"]):
        raise UserError(f"'words' of shown are not of 1 to {LONGEST_WORD} letters")
    if len(shown["written"]) != len(shown["words"]) or not all(
            isinstance(texts, list) and len(texts) == moments
            and all(type(text) is str and len(text) == len(word) + 1 for text in texts)
            for texts, word in zip(shown["written"], shown["words"], strict=True)):
        raise UserError("'written' of shown is not, at every moment of run 0, as long as the words and their ends")
    if len(shown["weights"]) != moments or not all(type(one) is str for one in shown["weights"]):
        raise UserError("'weights' of shown are not those of every moment of run 0")
    for text in shown["weights"]:
        unpack_whole(text, matrix_shapes(shown["words"]))


def matrix_shapes(words: list[str]) -> list[tuple[int, int]]:
    """Of the cross-attention of each word: its letters and its end, both ways."""
    return [(len(word) + 1, len(word) + 1) for word in words]


def _check_sentences(sentences: list[Any]) -> None:
    if not sentences:
        raise UserError("it has no sentences")
    for number, sentence in enumerate(sentences):
        where = f"sentence {number}"
        check_fields(sentence, _SENTENCE, where)
        for name, least in (("words", 1), ("candidates", 1), ("right", 0)):
            check_words(sentence[name], f"{name!r} of {where}", least)
        if sentence["place"] >= len(sentence["words"]):
            raise UserError(f"'place' of {where} is no place of its words")


# What follows -------------------------------------------------------------------------------------------

def families_summary(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each run the shares of its last moment."""
    return [{"task": task, **({"sides": run["sides"]} if "sides" in run else {}), "seed": run["seed"],
             "updates": run["curve"]["update"][-1], **{name: run["curve"][name][-1] for name in _CURVES[task]}}
            for task in _CURVES for run in body[task]]


def candidates(words: list[str], task: dict[str, Any]) -> list[str]:
    """What may stand at the masked place: a verb, where there is none in the sentence; else a noun."""
    verbs = [*task["first"], *task["second"]]
    return [*task["does"]] if any(word in verbs for word in words) else verbs


def right_words(words: list[str], place: int, task: dict[str, Any]) -> list[str]:
    """The candidates that make the sentence hold: what follows *it* is what the noun does that the verb means."""
    return [word for word in candidates(words, task) if _holds([*words[:place], word, *words[place + 1:]], task)]


def _holds(words: list[str], task: dict[str, Any]) -> bool:
    nouns = [word for word in words if word in task["does"]]
    if len(nouns) != 2 or "it" not in words[:-1]:
        return False
    meant = nouns[any(word in task["second"] for word in words)]
    return words[words.index("it") + 1] in task["does"][meant]


def encoder_decoder_parameters(config: dict[str, Any]) -> int:
    """Of two models of this shape with one token table, and cross-attention, with its norm, in every block of one.

    Cross-attention has as many maps as self-attention: Q, K, V and the output, D × D + D each.
    """
    shape = shape_of(config)
    D = shape.width
    cross = shape.blocks * (2 * D + 4 * (D * D + D))
    return 2 * parameter_count(shape) - shape.vocabulary * D + cross


def families_recomputed(body: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    """Place, what stands there, and what the rest of the experiment gives for it."""
    make = body["make"]
    counts = {"reversing": encoder_decoder_parameters(make["reversing"]["config"]),
              "masked": parameter_count(shape_of(make["masked"]["config"]))}
    for task, count in counts.items():
        settings = make[task]["settings"]
        updates, every = settings["updates"], settings["evaluate_every"]
        for number, run in enumerate(body[task]):
            yield f"{task}.{number}.parameters", run["parameters"], count
            yield f"{task}.{number}.curve.update", run["curve"]["update"], [*range(0, updates, every), updates]
    words = make["masked"]["task"]
    for number, sentence in enumerate(body["sentences"]):
        said, place = sentence["words"], sentence["place"]
        yield f"sentences.{number}.candidates", sentence["candidates"], candidates(said, words)
        yield f"sentences.{number}.right", sentence["right"], right_words(said, place, words)
