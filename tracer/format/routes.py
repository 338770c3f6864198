"""What a recording of a route must hold, beyond what every recording must: all that the pages read.

Raises `UserError` for the first thing that is missing or of another kind.  A recording of another route holds
what its maker wants.
"""

import re
from collections.abc import Iterator

from tracer.errors import UserError
from tracer.format.trace import Array, Chapter, Operation, Trace
from tracer.kernels import PINS

NUMBER = (int, float)
# What `make` must say, key by key; a key with a default may be left out.
CONFIG = {"vocabulary": int, "context": int, "width": int, "heads": int, "blocks": int, "dropout": NUMBER}
MORE_CONFIG = {"activation": str, "tied": bool, "norm_eps": NUMBER, "norm": str}
SETTINGS = {"seed": int, "updates": int, "lr": NUMBER, "beta1": NUMBER, "beta2": NUMBER, "eps": NUMBER,
            "weight_decay": NUMBER}
BOTH = {"config": dict, "settings": dict, "parameters": list, "token_table": str, "tokenizer": str, "torch": str,
        "tiktoken": str, "kernels": dict, "threads": int}
KERNELS = {"torch": str, "settings": dict, "pinned": bool}
TRAINING = BOTH | {"text": str, "validation_text": str, "tracked_id": int}
GENERATION = BOTH | {"prompt": str, "temperature": NUMBER, "top_k": int, "seed": int, "max_new_tokens": int,
                     "trained_on": str, "updates": int, "rounds": int}
MOST_BLOCKS = 96
MOST_ROUNDS = 500
MOST_STEPS = 5_000  # of a chapter: what is drawn of it takes time that grows faster than their number
MOST_SHOWN = 1_000_000  # ids beside all operations together
LONGEST_TEXT = 100_000  # characters

# Array → kind and target of its operation (empty: nothing made it), dtype, axes.
_TEXT = {"{}.bytes": ("", "int64", "byte"), "{}.byte_tokens": ("byte_tokens.out", "int64", "token"),
         "{}.ids": (("bpe_merge.out", "window.out"), "int64", "token")}
_PAIR = {"{}x": ("window.out", "int64", "position"), "{}y": ("window.out", "int64", "position")}
_LOSS = {"{}cross_entropy": ("cross_entropy.out", "float32", "position"), "{}loss": ("mean.out", "float32", ""),
         "{}cross_entropy.target_probability": ("cross_entropy.target_probability", "float32", "position")}
_UPDATE = {
    "used_ids": ("", "int64", "used_row"), "grad.head": ("cross_entropy.d_logits", "float32", "position vocabulary"),
    "receipt.predicted": (("predicted_change.first", "predicted_change.running"), "float32", ""),
    "receipt.change": ("difference.out", "float32", ""), "series.loss": ("", "float32", "update"),
    "series.target_probability": ("", "float32", "update position"),
    "series.rows": ("", "float32", "update used_row feature")}
_ROUND = {
    "{}.ids": ("window.out", "int64", "position"), "{}.head": (None, "float32", "position vocabulary"),
    "{}.uniform": ("", "float32", ""), "{}.multinomial": ("", "int64", ""), "{}.greedy": ("greedy.out", "int64", ""),
    "{}.sampler.temperature": ("temperature.out", "float32", "position vocabulary"),
    "{}.sampler.top_k.ids": ("top_k.ids", "int64", "candidate"),
    "{}.sampler.top_k.kept": ("top_k.kept", "float32", "candidate"),
    "{}.sampler.softmax": ("softmax.out", "float32", "candidate"),
    "{}.sampler.cumulative": ("cumulative.out", "float32", "candidate"),
    "{}.sampler.draw.choice": ("draw.choice", "int64", ""), "{}.sampler.draw.token": ("draw.token", "int64", ""),
    "{}.next_ids": ("append.out", "int64", "token"), "{}.is_end": ("is_end.out", "int64", "")}
_SHOWN = {"{}.bytes": (("", "join_bytes.out"), "int64", "byte"), "{}.complete": ("complete_bytes.out", "int64", "")}
_HELD = {"{}.held": ("window.out", "int64", "byte")}
_NEW = {"{}.new_bytes": ("", "int64", "byte")}
_CACHED = {"{}.cached.difference": ("largest_difference.out", "float32", ""),
           "{}.cached.sampler.draw.token": ("draw.token", "int64", "")}
_MAY_BE_DERIVED = re.compile(r".*\.(head|temperature)")
_BYTE_TOKENS = ("text.byte_tokens", "validation.byte_tokens")
_PATH = r"[a-z_]\w*(\.\w+)*"  # of a module


def check_route(trace: Trace) -> None:
    if trace.route not in ("training", "generation", "long"):
        return
    if "vocabulary" not in trace.labels:
        raise UserError("there are no labels 'vocabulary'")
    training = trace.route == "training"
    _check_make(trace, TRAINING if training else GENERATION)
    (_check_training if training else _check_generation)(trace)
    _check_shown(trace)
    for operation in trace.operations.values():
        _check_text_operation(trace, operation)
    for array, end in ids_and_bytes(trace):
        values = trace.values(array.name)
        if values.size and not 0 <= values.min() <= values.max() < end:
            raise UserError(f"array {array.name} holds a number that is not from 0 to {end - 1}")


def _check_training(trace: Trace) -> None:
    blocks, table = trace.make["config"]["blocks"], trace.make["token_table"]
    parameters = "|".join(map(re.escape, trace.make["parameters"]))
    evaluations = ("evaluation.training.", "evaluation.validation.")
    _require(trace, _TEXT, "text", "validation")
    _require(trace, _PAIR, "", "validation.")
    _require(trace, _LOSS, "", "again.", *evaluations)
    _require(trace, _UPDATE)
    _require(trace, {table: ("", "float32", "row feature"), f"grad.{table}": (None, "float32", "row feature"),
                     "series.attention.blocks.{}": ("", "float32", "update head query_position key_position")},
             *map(str, range(blocks)))
    _require(trace, {f"adamw.{table}.{{}}.used": ("embedding.out", "float32", "used_row feature")}, "m", "v", "after")
    _check_sources(trace, rf"(text|validation)\.(bytes|eos)|byte_table|(trained\.)?({parameters})|used_ids"
                          rf"|(again\.)?{_PATH}\.word|series\.(loss|target_probability|rows|attention\.blocks\.\d+)")
    text = r"text(\.merges|\.eos|\.shift)?"
    _check_chapters(trace, {
        "text": text, "embedding": _PATH, **{f"blocks.{n}": rf"blocks\.{n}\.{_PATH}" for n in range(blocks)},
        "head": _PATH, "loss": _PATH, "backward": rf"grad\.{_PATH}", "adamw": rf"adamw\.({parameters})",
        "receipt": rf"zero_grad|receipt\.(predicted|change)|again\.{_PATH}",
        "updates": r"series\.(loss|attention|rows)",
        "evaluation": rf"evaluation\.(training|validation)\.{_PATH}|{text.replace('text', 'validation')}"})


def _check_generation(trace: Trace) -> None:
    rounds = range(1, trace.make["rounds"] + 1)
    parameters = "|".join(re.escape(name.removeprefix("trained.")) for name in trace.make["parameters"])
    _require(trace, _TEXT, "text")
    _require(trace, {"eos": ("", "int64", ""), f"trained.{trace.make['token_table']}": ("", "float32", "row feature")})
    _require(trace, _ROUND, *(f"round{n}" for n in rounds))
    _require(trace, _CACHED if rounds[1:] else {}, *(f"round{n}" for n in rounds[1:]))
    for spec, mark in ((_SHOWN, "complete"), (_HELD, "held"), (_NEW, "new_bytes")):
        having = [f"round{n}" for n in rounds if f"round{n}.{mark}" in trace.arrays]
        _require(trace, spec if having else {}, *having)
    _check_sources(trace, rf"text\.bytes|byte_table|eos|(trained|initial)\.({parameters})"
                          r"|round\d+\.(uniform|multinomial|bytes|new_bytes)")
    chapters = {"prompt": r"text(\.merges)?"}
    for n in rounds:
        chapters[f"round{n}"] = rf"round{n}\.{_PATH}"
        if n > 1:
            chapters[f"cached{n}"] = rf"round{n}\.cached\.{_PATH}"
    if trace.route == "generation":
        chapters["parameters"] = rf"parameters\.({parameters})"
    _check_chapters(trace, chapters)
    steps = {step.id for chapter in trace.chapters for step in chapter.steps}
    for name in (f"round{n}.{step}" for n in rounds for step in ("append", "choices", "bytes")):
        if name not in steps:
            raise UserError(f"there is no step {name}")
    shown = len(steps) * trace.arrays[f"round{rounds[-1]}.next_ids"].size
    if shown > MOST_SHOWN:
        raise UserError(f"its pages would show some {shown:,} ids, {MOST_SHOWN:,} at most are allowed")


# How it was made -------------------------------------------------------------------------------------

def _check_make(trace: Trace, keys: dict) -> None:
    make = trace.make
    _check_object(make, keys, "make")
    for key, value in make.items():  # what else a recorder notes of the machine is never read
        if key not in keys and type(value) not in (str, int, float, bool):
            raise UserError(f"make has {key!r}, which this program does not know")
    _check_object(make["config"], CONFIG, "make.config", MORE_CONFIG)
    _check_object(make["settings"], SETTINGS, "make.settings", {})
    _check_object(make["kernels"], KERNELS, "make.kernels", {})
    _check_object(make["kernels"]["settings"], {}, "make.kernels.settings", dict.fromkeys(PINS, str))
    counts = {name: make["config"][name] for name in ("vocabulary", "context", "width", "heads", "blocks")}
    counts |= {name: make.get(name, 1) for name in ("rounds", "top_k", "threads", "max_new_tokens")}
    for name, value in (counts | {"updates": make["settings"]["updates"]}).items():
        if not 1 <= value < 2**31:
            raise UserError(f"make says {value} for {name}: it must be at least 1")
    if make["config"]["blocks"] > MOST_BLOCKS or make.get("rounds", 1) > MOST_ROUNDS:
        raise UserError(f"make says more than {MOST_BLOCKS} blocks or {MOST_ROUNDS} rounds")
    if not 0 <= make["config"]["dropout"] < 1:
        raise UserError(f"make says a dropout of {make['config']['dropout']}: it must be at least 0 and below 1")
    if not make.get("temperature", 1) > 0:
        raise UserError(f"make says a temperature of {make['temperature']}: it must be above 0")
    _check_parameters(trace)


def _check_object(body: dict, keys: dict, where: str, more: dict | None = None) -> None:
    for key, kind in keys.items():
        if key not in body:
            raise UserError(f"{where} has no {key!r}")
        _check_type(body[key], kind, f"{where}.{key}")
    if more is not None:
        for key in body.keys() - keys.keys():
            if key not in more:
                raise UserError(f"{where} has {key!r}, which this program does not know")
            _check_type(body[key], more[key], f"{where}.{key}")


def _check_type(value, kind, where: str) -> None:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if type(value) not in kinds:
        raise UserError(f"{where} is {value!r:.40}, which is no {' or '.join(k.__name__ for k in kinds)}")
    if type(value) is str and len(value) > LONGEST_TEXT:
        raise UserError(f"{where} has {len(value):,} characters, of which {LONGEST_TEXT:,} are read at most")


def _check_parameters(trace: Trace) -> None:
    names = trace.make["parameters"]
    if not names or any(type(name) is not str for name in names) or len({*names}) < len(names):
        raise UserError("make.parameters is not a list of different names")
    for name in names:
        if name not in trace.arrays or name in trace.operations:
            raise UserError(f"make names parameter {name!r}, which is no array that the recording starts from")
    table = trace.make["token_table"]
    if table not in (name.removeprefix("trained.") for name in names):
        raise UserError(f"make names token table {table!r}, which is no parameter")


# Arrays and chapters ---------------------------------------------------------------------------------

def _require(trace: Trace, spec: dict, *fill: str) -> None:
    for pattern, (made_by, dtype, axes) in spec.items():
        for name in dict.fromkeys(pattern.format(part) for part in fill or ("",)):
            _check_required(trace, name, made_by, dtype, axes)


def _check_required(trace: Trace, name: str, made_by, dtype: str, axes: str) -> None:
    if name not in trace.arrays:
        raise UserError(f"there is no array {name}")
    array, operation = trace.arrays[name], trace.operations.get(name)
    if (array.dtype, " ".join(array.axes)) != (dtype, axes):
        raise UserError(f"array {name} is {array.dtype} along {list(array.axes)}, not {dtype} along {axes.split()}")
    kind = f"{operation.kind}.{operation.target}" if operation else ""
    if made_by is not None and kind not in (made_by if isinstance(made_by, tuple) else (made_by,)):
        raise UserError(f"array {name} is made by {kind or 'no operation'}, which cannot be")
    if array.derived and not _MAY_BE_DERIVED.fullmatch(name):
        raise UserError(f"array {name} holds no numbers")


def _check_sources(trace: Trace, known: str) -> None:
    """What nothing made must be what a recording starts from: else it could be any number."""
    pattern = re.compile(known)
    for name in trace.arrays:
        if name not in trace.operations and not pattern.fullmatch(name):
            raise UserError(f"array {name} comes from no operation, and it is nothing that a recording starts from")


def _check_chapters(trace: Trace, steps_of: dict[str, str]) -> None:
    """`steps_of`: the chapters in order, and how the steps of each are named."""
    found = [chapter.id for chapter in trace.chapters]
    if found != [*steps_of]:
        wrong = next((name for name in found if name not in steps_of), None)
        missing = next((name for name in steps_of if name not in found), None)
        raise UserError(f"chapter {wrong!r} belongs to no recording of this kind" if wrong is not None else
                        f"there is no chapter {missing}" if missing else "its chapters are in another order")
    for chapter in trace.chapters:
        _check_steps(trace, chapter, re.compile(steps_of[chapter.id]))


def _check_shown(trace: Trace) -> None:
    """Every operation is shown, and after those that it follows from."""
    names = [name for chapter in trace.chapters for step in chapter.steps for name in step.operations]
    place = {name: number for number, name in enumerate(names)}
    for operation in trace.operations.values():
        if operation.id not in place:
            raise UserError(f"operation {operation.id} is shown in no step")
        for name in operation.operands.values():
            if place.get(name, 0) > place[operation.id]:
                raise UserError(f"operation {operation.id} is shown before {name}, which it reads")


def _check_steps(trace: Trace, chapter: Chapter, pattern: re.Pattern) -> None:
    if len(chapter.steps) > MOST_STEPS:
        raise UserError(f"chapter {chapter.id} has {len(chapter.steps):,} steps, of which {MOST_STEPS:,} are shown")
    for step in chapter.steps:
        if not pattern.fullmatch(step.id):
            raise UserError(f"step {step.id} does not belong into chapter {chapter.id}")


def _check_text_operation(trace: Trace, operation: Operation) -> None:
    """What is drawn of merges and of a window on ids follows from the names of their operations."""
    if (operation.kind == "byte_tokens", operation.id.endswith("byte_tokens")) != (2 * (operation.id in _BYTE_TOKENS,)):
        raise UserError(f"operation {operation.id} is named as {operation.kind} is not")
    if re.fullmatch(r"(again\.|evaluation\.\w+\.)?ids", operation.id):
        raise UserError(f"operation {operation.id} has a name that only a round's ids have")
    if operation.kind == "bpe_merge":
        if not operation.settings["position"] < trace.arrays[operation.id].size:
            raise UserError(f"operation {operation.id} merges at {operation.settings['position']}, beyond its ids")
        if not operation.settings["merged"] < len(trace.label_list("vocabulary")):
            raise UserError(f"operation {operation.id} makes id {operation.settings['merged']}, which the vocabulary "
                            "does not have")


# Ids and bytes ---------------------------------------------------------------------------------------

def ids_and_bytes(trace: Trace) -> Iterator[tuple[Array, int]]:
    """Arrays of ids, and of bytes, with the number that their values stay below."""
    kinds = {"byte_tokens", "bpe_merge", "append", "window", "join_bytes"}
    vocabulary = len(trace.label_list("vocabulary"))
    for name, array in trace.arrays.items():
        operation = trace.operations.get(name)
        holds = operation.kind in kinds if operation else array.axes in (("byte",), ("used_row",))
        if holds and array.dtype == "int64" and not array.derived:
            yield array, 256 if array.axes == ("byte",) and name != "byte_table" else vocabulary
