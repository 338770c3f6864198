"""What a recording of a route must hold, beyond what every recording must: all that the pages read.

Raises `UserError` for the first thing that is missing or of another kind.  A recording of another route holds
what its maker wants.
"""

from collections.abc import Iterator
from typing import Any

from tracer.errors import UserError
from tracer.format import roles
from tracer.format.model_steps import check_model_steps
from tracer.format.route_steps import check_steps
from tracer.format.sizes import COMMON
from tracer.format.trace import Array, Operation, Parameter, Pass, Trace
from tracer.kernels import PINS

NUMBER = (int, float)
# What `make` must say, key by key; a key with a default may be left out.
CONFIG = {"vocabulary": int, "context": int, "width": int, "heads": int, "blocks": int, "dropout": NUMBER}
MORE_CONFIG = {name: NUMBER if type(value) is float else type(value) for name, value in COMMON.items()}
SETTINGS = {"seed": int, "updates": int, "lr": NUMBER, "beta1": NUMBER, "beta2": NUMBER, "eps": NUMBER,
            "weight_decay": NUMBER}
BOTH = {"config": dict, "settings": dict, "tokenizer": str, "torch": str, "tiktoken": str,
        "kernels": dict, "threads": int}
KERNELS = {"torch": str, "settings": dict, "pinned": bool}
TRAINING = BOTH | {"text": str, "validation_text": str, "tracked_id": int}
MORE_TRAINING = {"early_updates": int, "early_checkpoint_sha256": str}  # of the moment that `early` continues from
PASS = {key: BOTH[key] for key in ("config", "settings", "torch", "kernels", "threads")} | {
    "trained_on": str, "updates": int}
PASS_SETTINGS = {"seed": int, "updates": int}  # besides other numbers and texts
GENERATION = BOTH | {"prompt": str, "temperature": NUMBER, "top_k": int, "seed": int, "max_new_tokens": int,
                     "trained_on": str, "updates": int, "rounds": int}
_OF_IDS = (("byte",), ("used_row",), ("position",), roles.MOMENTS)  # axes of whole numbers that nothing made
MOST_BLOCKS = 96
MOST_ROUNDS = 500
MOST_SHOWN = 1_000_000  # ids beside all operations together
LONGEST_TEXT = 100_000  # characters


def check_route(trace: Trace) -> None:
    """Whether a recording of one of our routes holds all that the pages read, each of its kind and in its place."""
    if trace.route not in roles.KNOWN:
        return
    if "vocabulary" not in trace.labels:
        raise UserError("there are no labels 'vocabulary'")
    if trace.route == roles.PASS:
        _check_make(trace, PASS, {})
        _check_pass(trace)
    elif trace.route == "training":
        _check_make(trace, TRAINING, MORE_TRAINING)
        _check_training(trace)
    else:
        _check_make(trace, GENERATION, {})
        _check_generation(trace)
    check_steps(trace)
    _check_homes(trace)
    check_model_steps(trace)
    _check_sources(trace)
    for operation in trace.operations.values():
        _check_merge(trace, operation)
    for which, arrays in trace.texts.items():
        _check_merges(trace, which, arrays)
    for array, end in ids_and_bytes(trace):
        values = trace.values(array.name)
        if values.size and not 0 <= values.min() <= values.max() < end:
            raise UserError(f"array {array.name} holds a number that is not from 0 to {end - 1}")


def _check_training(trace: Trace) -> None:
    _need_texts(trace, {"training": roles.TRAINED_TEXT_ARRAYS, "validation": roles.TRAINED_TEXT_ARRAYS})
    evaluations = [Pass("evaluation", split) for split in ("training", "validation")]
    _need_passes(trace, [Pass("first"), Pass("again"), *evaluations])
    _need_arrays(trace, "the recording", trace.roles, roles.TRAINING_ROLES)
    for parameter in trace.parameters:
        used = roles.USED_ROWS if parameter.role == "token_table" else {}
        _check_parameter(trace, parameter, [*roles.TRAINING_PARAMETER_ARRAYS], used)
    _check_token_table(trace)


def _check_pass(trace: Trace) -> None:
    _need_texts(trace, {})
    _need_passes(trace, [Pass("single")])
    _need_arrays(trace, "the recording", trace.roles, {})
    arrays = trace.passes[0].arrays
    found = arrays.keys() & (roles.FIRST_PASS_ARRAYS.keys() | {"last"})
    for wanted in ({*roles.FIRST_PASS_ARRAYS}, {"ids", "last", "logits"}):
        if ("targets" in arrays) == ("targets" in wanted) and (wrong := sorted(found ^ wanted)):
            raise UserError(f"pass single {'has' if wrong[0] in arrays else 'lacks'} the role {wrong[0]!r}, "
                            f"{'with' if 'targets' in arrays else 'without'} targets")
    known = roles.LOSS_PARAMETER_ARRAYS if "targets" in arrays else roles.GENERATION_PARAMETER_ARRAYS
    for parameter in trace.parameters:
        _check_parameter(trace, parameter, [*known], {})
    _check_token_table(trace)


def _check_generation(trace: Trace) -> None:
    rounds = range(1, trace.make["rounds"] + 1)
    _need_texts(trace, {"prompt": roles.TEXT_ARRAYS})
    _need_passes(trace, [Pass(kind, round=n) for n in rounds for kind in ("round", "cached")
                         if n > 1 or kind == "round"])
    _need_arrays(trace, "the recording", trace.roles, roles.GENERATION_ROLES)
    known = (roles.CHANGE_PARAMETER_ARRAYS if trace.route == "generation" else roles.GENERATION_PARAMETER_ARRAYS)
    for parameter in trace.parameters:
        _check_parameter(trace, parameter, [*known], {})
    _check_token_table(trace)
    once: set[str] = set()
    for one in trace.passes:
        names = [name for role, name in one.arrays.items() if (one.kind, role) != ("cached", "uniform")]
        if twice := next((name for name in names if name in once), None):
            raise UserError(f"array {twice} is of two passes, or twice in one")
        once.update(names)
    last = trace.arrays_of("round", round=rounds[-1])["next_ids"]
    shown = sum(1 for _ in trace.steps()) * trace.arrays[last].size
    if shown > MOST_SHOWN:
        raise UserError(f"its pages would show some {shown:,} ids, {MOST_SHOWN:,} at most are allowed")


# Arrays by role --------------------------------------------------------------------------------------

def _need_texts(trace: Trace, specs: dict[str, dict[str, Any]]) -> None:
    if trace.texts.keys() != specs.keys():
        raise UserError(f"its texts are {sorted(trace.texts)}, not {sorted(specs)}")
    for which, arrays in trace.texts.items():
        _need_arrays(trace, f"text {which}", arrays, specs[which])


def _need_passes(trace: Trace, wanted: list[Pass]) -> None:
    found = [one.name for one in trace.passes]
    names = [one.name for one in wanted]
    if found != names:
        wrong = next((name for name in found if name not in names), None)
        missing = next((name for name in names if name not in found), None)
        raise UserError(f"pass {wrong} belongs to no recording of this kind" if wrong is not None else
                        f"there is no pass {missing}" if missing else "its passes are in another order")
    for one in trace.passes:
        _need_arrays(trace, f"pass {one.name}", one.arrays, roles.PASS_ARRAYS[one.kind])


def _need_arrays(trace: Trace, where: str, arrays: dict[str, str], specs: dict[str, roles.Spec]) -> None:
    """Exactly the roles of `specs`; those that are not `always` there may be missing."""
    for role, name in arrays.items():
        if role not in specs:
            raise UserError(f"{where} has the role {role!r:.40}, which this program does not know")
        _check_array(trace, f"{role} of {where}", name, specs[role])
    if missing := [role for role, spec in specs.items() if spec.always and role not in arrays]:
        raise UserError(f"{where} has no {missing[0]}")


def _check_array(trace: Trace, what: str, name: str, spec: roles.Spec) -> None:
    array, operation = trace.arrays[name], trace.operations.get(name)
    if (array.dtype, " ".join(array.axes)) != (spec.dtype, spec.axes):
        raise UserError(f"{what}, {name}, is {array.dtype} along {list(array.axes)}, not {spec.dtype} along "
                        f"{spec.axes.split()}")
    kind = f"{operation.kind}.{operation.target}" if operation else ""
    if spec.made_by and kind not in spec.made_by:
        raise UserError(f"{what}, {name}, is made by {kind or 'no operation'}, which cannot be")
    if array.derived and not spec.derived:
        raise UserError(f"{what}, {name}, holds no numbers")


def _check_parameter(trace: Trace, parameter: Parameter, known: list[str], used: dict[str, roles.Spec]) -> None:
    where = f"parameter {parameter.name}"
    own = {role: name for role, name in parameter.arrays.items() if role not in used}
    if wrong := [role for role in {*own} ^ {*known} if role in own or role in known]:
        raise UserError(f"{where} {'has' if wrong[0] in own else 'lacks'} the role {wrong[0]!r:.40}")
    _need_arrays(trace, where, {role: parameter.arrays[role] for role in used if role in parameter.arrays}, used)
    trained = trace.arrays[own["trained"]]
    rank = {"token_table": 2, "position_table": 2, "query_key_value_bias": 1, "vector": 1}.get(parameter.role)
    if parameter.role not in roles.PARAMETER_ROLES or len(trained.shape) != (rank or max(len(trained.shape), 2)):
        raise UserError(f"{where} has {len(trained.shape)} axes and the role {parameter.role!r:.40}, which cannot be")
    for role, name in own.items():
        array, operation = trace.arrays[name], trace.operations.get(name)
        if (array.dtype, array.shape, array.axes) != ("float32", trained.shape, trained.axes):
            raise UserError(f"{role} of {where}, {name}, is no array of the parameter's shape")
        kind = f"{operation.kind}.{operation.target}" if operation else ""
        if roles.MADE_BY.get(role, kind) != kind or (role == "gradient" and not kind):
            raise UserError(f"{role} of {where}, {name}, is made by {kind or 'no operation'}, which cannot be")


def _check_token_table(trace: Trace) -> None:
    names = [parameter.name for parameter in trace.parameters]
    tables = [parameter for parameter in trace.parameters if parameter.role == "token_table"]
    if len(tables) != 1 or len({*names}) < len(names):
        raise UserError("its parameters are not different ones, of which one is the token table")
    for role in ("trained", "initial", "gradient"):
        array = trace.arrays.get(tables[0].arrays.get(role, ""))
        if array and (array.axes != ("row", "feature") or array.derived):
            raise UserError(f"array {array.name} is no token table that is held")


def _check_homes(trace: Trace) -> None:
    """What an operation made of a pass stands in a step of that pass, but for what it is given."""
    home = {name: step for step in trace.steps() for name in step.operations}
    for one in trace.passes:
        for role, name in one.arrays.items():
            given = role == "targets" or (role == "ids" and one.kind in ("single", "first", "again", "evaluation"))
            if name in home and not given and trace.pass_of(home[name]) is not one:
                raise UserError(f"{role} of pass {one.name}, {name}, is shown in no step of that pass")
        if one.kind == "cached" and one.arrays["uniform"] != trace.arrays_of("round", round=one.round)["uniform"]:
            raise UserError(f"pass {one.name} draws with another number than its round")


def _check_sources(trace: Trace) -> None:
    """What nothing made must be what a recording starts from: else it could be any number."""
    known = {name for arrays in trace.texts.values() for name in arrays.values()} | {*trace.roles.values()}
    known |= {name for parameter in trace.parameters for name in parameter.arrays.values()}
    known |= {name for one in trace.passes for name in one.arrays.values()}
    known |= {name for step in trace.steps() if step.role == "series_attention" for name in step.arrays}
    for operation in trace.operations.values():
        if operation.kind == "dropout" and "word" in operation.operands:
            known.add(operation.operands["word"])
    for name in trace.arrays:
        if name not in trace.operations and name not in known:
            raise UserError(f"array {name} comes from no operation, and it is nothing that a recording starts from")


# Texts -----------------------------------------------------------------------------------------------

def _check_merge(trace: Trace, operation: Operation) -> None:
    """A merge within its ids, to an id that there is; every text's own bytes alone become tokens."""
    if operation.kind == "byte_tokens" and operation.id not in {text["byte_tokens"] for text in trace.texts.values()}:
        raise UserError(f"operation {operation.id} makes tokens of bytes that are no text's")
    if operation.kind == "bpe_merge":
        if not operation.settings["position"] < trace.arrays[operation.id].size:
            raise UserError(f"operation {operation.id} merges at {operation.settings['position']}, beyond its ids")
        if not operation.settings["merged"] < len(trace.label_list("vocabulary")):
            raise UserError(f"operation {operation.id} makes id {operation.settings['merged']}, which the vocabulary "
                            "does not have")


def _check_merges(trace: Trace, which: str, arrays: dict[str, str]) -> None:
    """From the tokens of the bytes to the ids, one merge after the other: so they are drawn."""
    split = "" if which == "prompt" else which
    steps = [step for step in trace.steps() if (step.kind, step.split) == ("bpe_merge", split)]
    merges = [trace.operations[name] for step in steps for name in step.operations]
    ids, first = trace.operations[arrays["ids"]], arrays["byte_tokens"]
    made = [first, *(merge.id for merge in merges)]
    chain = [("bpe_merge", one) for one in made[:-1]] == [(one.kind, one.operands.get("before")) for one in merges]
    whole = made[-1] == ids.id if merges else ids.operands.get("ids") == first
    if len(steps) > 1 or not chain or not whole:
        raise UserError(f"the merges of text {which} do not lead from its bytes to its ids")


# How it was made -------------------------------------------------------------------------------------

def _check_make(trace: Trace, keys: dict[str, Any], more: dict[str, Any]) -> None:
    make = trace.make
    _check_object(make, keys, "make")
    for key in more.keys() & make.keys():
        _check_type(make[key], more[key], f"make.{key}")
    for key, value in make.items():  # what else a recorder notes of the machine is never read
        if key not in keys and type(value) not in (str, int, float, bool):
            raise UserError(f"make has {key!r}, which this program does not know")
    _check_object(make["config"], CONFIG, "make.config", MORE_CONFIG)
    if trace.route == roles.PASS:
        more_settings = dict.fromkeys(make["settings"].keys() - PASS_SETTINGS.keys(), (*NUMBER, str))
        _check_object(make["settings"], PASS_SETTINGS, "make.settings", more_settings)
    else:
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


def _check_object(body: dict[str, Any], keys: dict[str, Any], where: str, more: dict[str, Any] | None = None) -> None:
    for key, kind in keys.items():
        if key not in body:
            raise UserError(f"{where} has no {key!r}")
        _check_type(body[key], kind, f"{where}.{key}")
    if more is not None:
        for key in body.keys() - keys.keys():
            if key not in more:
                raise UserError(f"{where} has {key!r}, which this program does not know")
            _check_type(body[key], more[key], f"{where}.{key}")


def _check_type(value: object, kind: Any, where: str) -> None:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if type(value) not in kinds:
        raise UserError(f"{where} is {value!r:.40}, which is no {' or '.join(k.__name__ for k in kinds)}")
    if type(value) is str and len(value) > LONGEST_TEXT:
        raise UserError(f"{where} has {len(value):,} characters, of which {LONGEST_TEXT:,} are read at most")


# Ids and bytes ---------------------------------------------------------------------------------------

def ids_and_bytes(trace: Trace) -> Iterator[tuple[Array, int]]:
    """Arrays of ids, and of bytes, with the number that their values stay below."""
    kinds = {"byte_tokens", "bpe_merge", "append", "window", "join_bytes"}
    vocabulary = len(trace.label_list("vocabulary"))
    for name, array in trace.arrays.items():
        operation = trace.operations.get(name)
        holds = operation.kind in kinds if operation else array.axes in _OF_IDS
        if holds and array.dtype == "int64" and not array.derived:
            yield array, 256 if array.axes == ("byte",) and name != trace.roles.get("byte_table") else vocabulary
