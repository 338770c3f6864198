"""What an evaluation takes is predicted before it is done, and never below what it then takes."""

import math
import os
import time
import tracemalloc
from collections.abc import Iterator

import numpy as np
import orjson
import pytest

from tracer.errors import UserError
from tracer.format import budget
from tracer.format.load import load
from tracer.format.trace import AXES, Array, Operation, Trace, content_hash
from tracer.ops import KINDS, Computation, evaluate
from tracer.ops.cost import BLOCK, evaluation_cost
from tracer.ops.replay import Replay
from tracer.ops.rounded import Rounded

# Lengths that make the grid of any kind large, by letter of the axis.
LENGTHS = {"position": 40, "query_position": 60, "key_position": 60, "head": 3, "feature": 24, "head_feature": 24,
           "hidden": 96, "qkv": 216, "output": 72, "row": 9000, "vocabulary": 9000, "candidate": 300, "update": 50,
           "moment": 50, "token": 50, "byte": 50, "used_row": 50, "round": 50}


def steps_of_every_kind(recordings) -> Iterator[tuple[Trace, Operation]]:
    seen = set()
    for trace in recordings.values():
        for step in trace.operations.values():
            if (step.kind, step.target) not in seen:
                seen.add((step.kind, step.target))
                yield trace, step


def enlarged(trace: Trace, step: Operation, inexact: bool):
    """The step's computation on long axes with numbers of its own; None where its numbers are places in others."""
    replay = Replay(trace, AXES)
    equations, draw = replay.equations(step), np.random.default_rng(0)
    operands = {}
    for operand, name in step.operands.items():
        array = trace.arrays[name]
        if array.dtype == "int64":
            return None
        values = draw.normal(size=[LENGTHS[axis] for axis in array.axes])
        operands[operand] = Rounded(values, np.abs(values) * 1e-7) if inexact else values.astype(np.float32)
    shape = tuple(LENGTHS[axis] for axis in trace.arrays[step.id].axes)
    try:
        computation = Computation(equations, operands, step.settings, shape)
        computation.sizes()
    except ValueError:
        return None
    return computation


@pytest.mark.parametrize("inexact", [False, True], ids=["recorded operands", "derived operands"])
def test_memory_is_never_more_than_predicted(recordings, inexact):
    measured = {}
    for trace, step in steps_of_every_kind(recordings):
        computation = enlarged(trace, step, inexact)
        if computation is None:
            continue
        read = 0 if inexact else sum(values.size for values in computation.operands.values())
        cost = evaluation_cost(computation.equations, computation.sizes(), read)
        tracemalloc.start()
        try:
            evaluate(computation)
        except IndexError:  # an index that is computed leads out of these arrays
            continue
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        measured[step.kind, step.target] = peak / cost.memory
        assert peak < cost.memory + 2**19, (step.kind, step.target, peak, cost.memory)
    assert len(measured) > 25
    assert max(measured.values()) > 0.3  # the prediction is no number that holds anything


def test_work_is_predicted_from_the_terms(recordings):
    """At least one unit for each number made and for each term of a plain sum of products, and not thousands."""
    kinds = {}
    for trace, step in steps_of_every_kind(recordings):
        if computation := enlarged(trace, step, False):
            numbers = math.prod(computation.shape)
            work = evaluation_cost(computation.equations, computation.sizes(), 0).work
            assert work >= numbers, step.id
            kinds[step.kind, step.target] = work / max(numbers, 1)
    assert kinds["add", "out"] < 1000  # one addition a number
    assert kinds["linear", "out"] > kinds["add", "out"]  # a sum of products a number


def test_a_step_that_makes_a_large_grid_stays_small():
    """A table of 50,000 rows gets a gradient from 50 positions: the grid of all terms would be 1.3 GB a time."""
    rows, width, length = 50_000, 64, 50
    equations = KINDS["embedding"].targets["d_table"]
    gradient = Rounded(np.ones((length, width)), np.full((length, width), 1e-9))
    computation = Computation(equations, {"d_out": gradient, "ids": np.arange(length) * 7}, {}, (rows, width))
    tracemalloc.start()
    made = evaluate(computation)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 16 * rows * width
    assert made.value.sum() == length * width and (made.value[::7][:length] == 1).all()


# Recordings that ask for too much ------------------------------------------------------------------------

def one_step(folder, arrays: dict, steps: list[dict]):
    for name, array in arrays.items():
        if "values" in array and name not in [step["id"] for step in steps]:
            values = np.array(array["values"], array["dtype"]).reshape(array["shape"])
            array["sha256"] = content_hash(values)
    body = {"schema": "two-routes/trace", "version": 2, "route": "by hand", "make": {}, "summary": {}, "labels": {},
            "chapters": [{"id": "c", "steps": [{"id": "v", "operations": [s["id"] for s in steps], "arrays": []}]}],
            "passes": [], "texts": {}, "parameters": [], "roles": {}, "operations": steps, "arrays": arrays,
            "outline_sha256": ""}
    path = folder / "much.json"
    path.write_bytes(orjson.dumps(body))
    return path


def refused(path) -> str:
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(UserError) as caught:
        load(path)
    taken, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**26 + 40 * path.stat().st_size and taken < 20
    assert str(caught.value).startswith(f"{path}: ") and len(str(caught.value).splitlines()) == 1
    return str(caught.value)


SCORES = {"q": ["head", "query_position", "head_feature"], "k": ["head", "key_position", "head_feature"],
          "out": ["head", "query_position", "key_position"]}


def test_scores_that_fill_the_memory_are_refused(tmp_path):
    """Some 100 KB of JSON that name 8192 × 8192 numbers: read, they would take 4 GB."""
    ones = {"shape": [1, 8192, 1], "dtype": "float32", "values": [1.0] * 8192}
    arrays = {"q": ones | {"axes": SCORES["q"]}, "k": ones | {"axes": SCORES["k"]},
              "scores": {"shape": [1, 8192, 8192], "dtype": "float32", "axes": SCORES["out"], "derived": True}}
    arrays["sum"] = {"shape": [1, 8192], "dtype": "float32", "axes": ["head", "query_position"], "values": [1.0] * 8192}
    steps = [{"id": "scores", "kind": "scaled_scores", "target": "out", "operands": {"query": "q", "key": "k"}},
             {"id": "sum", "kind": "layer_norm", "target": "mean", "operands": {"x": "scores"}}]
    path = one_step(tmp_path, arrays, steps)
    assert path.stat().st_size < 200_000
    assert "recomputing operation sum would take some" in (said := refused(path)) and "GiB of memory" in said


def test_many_small_steps_that_take_long_are_refused(tmp_path):
    many = {"shape": [8192], "dtype": "float32", "axes": ["candidate"], "values": [1.0] * 8192}
    arrays, steps = {"p": many}, []
    for n in range(40):
        arrays[f"sum{n}"] = {"shape": [8192], "dtype": "float32", "axes": ["candidate"], "derived": True}
        arrays[f"held{n}"] = {"shape": [8192], "dtype": "float32", "axes": ["candidate"], "same_as": "p"}
        steps += [{"id": f"sum{n}", "kind": "cumulative", "target": "out", "operands": {"probabilities": "p"}},
                  {"id": f"held{n}", "kind": "change", "target": "out",
                   "operands": {"before": f"sum{n}", "after": f"sum{n}"}}]
    assert "recomputing it would take some" in refused(one_step(tmp_path, arrays, steps))


def test_derived_arrays_that_nothing_follows_from_cost_nothing(tmp_path):
    trace = Trace("by hand", {}, {}, {}, [], {}, {
        "x": Array("x", (1,), "float32", ("row",), data=np.ones(1, np.float32)),
        "y": Array("y", (2**26,), "float32", ("row",), derived=True)})
    trace.operations["y"] = Operation("y", "change", "out", {"before": "y", "after": "y"})
    assert budget.forecast(trace, Replay(trace, AXES)).memory == 4


@pytest.mark.parametrize("content", [
    b"[" + b"[]," * 9_000_000 + b"0]", b"[" + b"{}," * 9_000_000 + b"0]", b'["' + "😀".encode() * 5_000_000 + b'"]',
    b"[" + b'{"a":1},' * 3_000_000 + b"0]", b"[" + b"1.5," * 8_000_000 + b"0]"])
def test_json_that_becomes_too_many_objects_is_refused(tmp_path, content):
    path = tmp_path / "much.json"
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(UserError, match=r"holds too much|is not"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < 2**30
    tracemalloc.stop()


def test_a_file_that_never_ends_or_is_none_is_refused(tmp_path):
    path = tmp_path / "much.json"
    with path.open("wb") as file:
        file.truncate(10 * 2**40)  # holes: it takes no room
    assert "the file is too large: 10,995,116,277,760 bytes" in refused(path)
    path.unlink()
    os.mkfifo(path)
    assert "it is no regular file" in refused(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "it is no regular file" in refused(path)


def test_the_grid_is_cut_where_it_is_large():
    """The constant of the cut is one that the other tests reach."""
    assert LENGTHS["row"] * LENGTHS["feature"] * LENGTHS["position"] > BLOCK
