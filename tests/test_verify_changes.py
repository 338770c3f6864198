"""A recording with one changed number does not verify, and what made the number is named.

Every test here changes something on purpose and expects to be told where.
"""

import dataclasses
import random
from collections import defaultdict

import numpy as np
import orjson
import pytest
from verify_cases import (
    ROUTES,
    THOUSANDTH,
    changed,
    copy_of_traces,
    fresh_check,
    listed_alone,
    problems,
    stored_steps,
    with_step,
    with_values,
)

from tracer.format.load import load
from tracer.format.summary import summarise
from tracer.format.trace import AXES, Operation, Trace, outline_hash
from tracer.format.verify import (
    check_hashes,
    check_operation,
    check_summary,
    verify,
    wrong_values,
)
from tracer.ops import KINDS
from tracer.ops.language import walk
from tracer.ops.replay import Replay

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
