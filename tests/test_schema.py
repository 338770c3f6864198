"""The format: what is saved comes back bit for bit, and what is damaged is refused in one clear line.

Most tests use a small recording made by hand (`small`) that has everything the format knows: each dtype, arrays
inline, in a file, shared and derived, long labels in a file, −∞, a listed rounding, a step with attributes.
"""

import copy
import errno
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import tracemalloc
from decimal import Decimal
from pathlib import Path

import numpy as np
import orjson
import pytest

from tracer.errors import UserError
from tracer.format import files as trace_files
from tracer.format.decode import LARGEST
from tracer.format.files import INLINE_LIMIT, save, unused_files
from tracer.format.load import load, load_all
from tracer.format.trace import DTYPES, Array, Chapter, Parameter, Step, Trace, content_hash
from tracer.format.verify import verify
from tracer.recording.trace_builder import TraceBuilder
from tracer.storage.atomic import write_atomically

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT / "traces"
INLINE = 8  # of the small recording, so that a file needs few numbers


@pytest.fixture
def short_inline(monkeypatch):
    monkeypatch.setattr(trace_files, "INLINE_LIMIT", INLINE)


def small() -> Trace:
    builder = TraceBuilder("by hand", {"why": "a test", "list": [1, 2.5, None]})
    tokens = {"position": builder.label("tokens", ["H", "i", "你"])}
    rows = {"row": builder.label("vocabulary", [f"token {n}" for n in range(12)])}
    table = np.random.default_rng(1).normal(size=(12, 2)).astype(np.float32)
    ids = np.array([3, 1, 11])
    builder.chapter("first", "embedding")
    run = builder.add_pass("first", "training", ids="ids")
    step = builder.step("embedding", "embedding", "token", run, direction="forward")
    step.arrays += [builder.source("ids", ids, ("position",), tokens),
                    builder.source("table", table, ("row", "feature"), rows)]
    step.operations += [
        builder.operation("embedding", "embedding", {"table": "table", "ids": "ids"}, table[ids],
                          ("position", "feature"), labels=tokens),
        builder.operation("twice", "add", {"a": "embedding", "b": "embedding"}, table[ids] * 2, ("position", "feature"),
                     derived=True),
        builder.operation("mean", "layer_norm", {"x": "twice"}, table[ids].mean(axis=1) * 2, ("position",),
                          target="mean"),
        builder.operation("same ids", "window", {"ids": "ids"}, ids, ("position",), settings={"offset": 0})]
    builder.trace.texts["prompt"] = {"ids": "same ids"}
    builder.trace.parameters = [Parameter("wte", "token_table", 0, {"trained": "table"})]
    builder.trace.roles["mean"] = "mean"
    builder.chapter("second", "round", 0, 1)
    step = builder.step("masked", "causal_mask", direction="update", block=0, round=1, of="wte")
    scores = np.array([[[1, 2], [3, 4]]], np.float32)
    masked = np.array([[[1, -np.inf], [3, 4]]], np.float32)
    axes = ("head", "query_position", "key_position")
    cancelling = np.array([[1e4, -1e4 + 0.01]], np.float32)
    step.arrays += [builder.source("scores", scores, axes), builder.source("precise", np.array(0.1)),
                    builder.source("cancelling", cancelling, ("position", "feature"))]
    off = np.float64(cancelling).mean() + 1e-4  # as a kernel may be that adds in another way
    step.operations += [
        builder.operation("masked", "causal_mask", {"scores": "scores"}, masked, axes),
        builder.operation("rounded", "layer_norm", {"x": "cancelling"}, np.array([off], np.float32), ("position",),
                     target="mean")]
    trace, precise = builder.finish(), np.array(0.1)  # the recorder holds float32 alone, the format float64 too
    trace.arrays["precise"] = Array("precise", (), "float64", (), data=precise, sha256=content_hash(precise))
    return trace


@pytest.fixture
def saved(tmp_path, short_inline) -> Path:
    save(small(), tmp_path / "small.json")
    return tmp_path / "small.json"


def body_of(path: Path) -> dict:
    return orjson.loads(path.read_bytes())


def refusal(path: Path, body=None) -> str:
    """What `load` says of the file (with `body` written into it): one line that names it and what to do."""
    if body is not None:
        path.write_bytes(body if isinstance(body, bytes) else orjson.dumps(body))
    with pytest.raises(UserError) as caught:
        load(path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(f"{path}: ") and message.endswith(
        f"record again with `python -m tracer record --output {path.parent}`"), message
    return message


def found_by_verify(trace: Trace) -> list[str]:
    return [check.problem for check in verify(trace) if check.problem]


# Round trips -----------------------------------------------------------------------------------------

def test_the_small_recording_has_everything(saved):
    body = body_of(saved)
    arrays = body["arrays"].values()
    for way in ("values", "file", "same_as", "derived", "sha256", "nonfinite", "labels"):
        assert any(way in array for array in arrays), way
    assert {array["dtype"] for array in arrays} == set(DTYPES)
    assert any("rounding" in one for one in body["operations"]) and any("settings" in one for one in body["operations"])
    assert isinstance(body["labels"]["vocabulary"], dict) and isinstance(body["labels"]["tokens"], list)
    assert found_by_verify(load(saved)) == []


def round_trip(folder: Path, **arrays: np.ndarray) -> dict[str, np.ndarray]:
    names = ("position", "feature", "head")
    trace = Trace("by hand", {}, {}, {}, [Chapter("c", [Step("v", [], list(arrays))])], {}, {
        name: Array(name, data.shape, data.dtype.name, names[:data.ndim], data=data, sha256=content_hash(data))
        for name, data in arrays.items()})
    save(trace, folder / "trip.json")
    loaded = load(folder / "trip.json")
    assert found_by_verify(loaded) == []
    return {name: loaded.values(name) for name in arrays}


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("inline", [True, False])
def test_every_float32_comes_back_bit_for_bit(tmp_path, monkeypatch, inline):
    """Random bit patterns, every exponent, the edges of the subnormal numbers, both zeros."""
    monkeypatch.setattr(trace_files, "INLINE_LIMIT", 10**9 if inline else 0)
    bits = np.random.default_rng(2).integers(0, 2**32, 300_000, dtype=np.uint32)
    edges = [0, 1, 2, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F800000]
    bits = np.concatenate([bits, edges, np.array(edges, np.uint32) | np.uint32(2**31),
                           np.arange(256, dtype=np.uint32) << 23]).astype(np.uint32)
    data = bits.view(np.float32)
    data = data[~np.isnan(data)]
    assert np.isinf(data).sum() >= 1 and (np.abs(data[data != 0]) < np.finfo(np.float32).tiny).sum() > 100
    assert same_bits(round_trip(tmp_path, data=data)["data"], data)


@pytest.mark.parametrize("inline", [True, False])
def test_every_dtype_and_odd_value_comes_back(tmp_path, monkeypatch, inline):
    monkeypatch.setattr(trace_files, "INLINE_LIMIT", 10**9 if inline else 0)
    arrays = {
        "words": np.array([0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)], np.int64),
        "float64": np.array([0.1, 5e-324, 1.7976931348623157e308, -0.0, 1 / 3, np.inf, -np.inf, np.pi]),
        "float32": np.array([[np.inf, -np.inf, -0.0], [1e-45, 0.1, 3.4028235e38]], np.float32),
        "scalar": np.array(1.17549435e-38, np.float32),
        "whole": np.array(7, np.int64),
        "empty": np.zeros((0,), np.float32),
        "empty2": np.zeros((3, 0, 2), np.int64),
    }
    loaded = round_trip(tmp_path, **arrays, nan=np.array([np.nan, 1, -np.nan], np.float32))
    assert (tmp_path / "arrays").exists() != inline
    for name, data in arrays.items():
        assert same_bits(loaded[name], data), name
    assert np.array_equal(loaded["nan"], [np.nan, 1, np.nan], equal_nan=True)


def test_arrays_in_another_memory_order_are_saved_by_their_values(tmp_path):
    grid = np.arange(6, dtype=np.float32).reshape(2, 3)
    big_endian = grid.astype(">f4")
    loaded = round_trip(tmp_path, transposed=grid.T, every_second=grid[:, ::2], big_endian=big_endian)
    assert same_bits(loaded["transposed"], np.array([[0, 3], [1, 4], [2, 5]], np.float32))
    assert same_bits(loaded["every_second"], np.array([[0, 2], [3, 5]], np.float32))
    assert same_bits(loaded["big_endian"], grid)


def test_everything_else_comes_back(saved):
    trace, loaded = small(), load(saved)
    for part in ("route", "make", "summary", "chapters"):
        assert getattr(loaded, part) == getattr(trace, part), part
    assert {s.id: (s.kind, s.target, s.operands, s.settings, s.rounding) for s in loaded.operations.values()} == {
        s.id: (s.kind, s.target, s.operands, s.settings, s.rounding) for s in trace.operations.values()}
    assert list(loaded.arrays) == list(trace.arrays)
    for name, array in trace.arrays.items():
        other = loaded.arrays[name]
        assert (other.shape, other.dtype, other.axes, other.labels, other.derived, other.sha256) == (
            array.shape, array.dtype, array.axes, array.labels, array.derived, array.sha256)
        if not array.derived:
            assert same_bits(loaded.values(name), trace.values(name))
    for name in trace.labels:
        assert loaded.label_list(name) == trace.label_list(name)
    with pytest.raises(KeyError, match="twice is derived"):
        loaded.values("twice")
    assert {name: [s.id for s in steps] for name, steps in loaded.uses.items()}["ids"] == ["embedding", "same ids"]


def test_a_file_is_named_by_what_it_holds(saved, tmp_path, short_inline):
    """The name depends on numbers, dtype and shape, and on nothing else."""
    table = np.arange(20, dtype=np.float32)
    arrays = {"a": table, "b": table + 1, "c": table.astype(np.float64), "d": table.reshape(4, 5)}
    round_trip(tmp_path / "one", **arrays)
    round_trip(tmp_path / "two", other=table, **{name: data for name, data in arrays.items() if name != "a"})
    names = [{name: a["file"] for name, a in body_of(tmp_path / folder / "trip.json")["arrays"].items()}
             for folder in ("one", "two")]
    assert len(set(names[0].values())) == 4
    assert names[1] == {"other": names[0]["a"], "b": names[0]["b"], "c": names[0]["c"], "d": names[0]["d"]}
    assert file_of(body_of(saved)) == f"arrays/{content_hash(small().values('table'))[:16]}.json"


def test_equal_arrays_are_held_once(saved, tmp_path):
    """Also when they differ in axes; not when they differ in dtype, shape or the sign of a zero."""
    assert body_of(saved)["arrays"]["same ids"]["same_as"] == "ids"
    zero = np.zeros(2, np.float32)
    round_trip(tmp_path, a=zero, b=zero.copy(), c=-zero, d=zero.reshape(1, 2), e=np.zeros(2), f=np.zeros(2, np.int64))
    held = {name: array.get("same_as") for name, array in body_of(tmp_path / "trip.json")["arrays"].items()}
    assert held == {"a": None, "b": "a", "c": None, "d": None, "e": None, "f": None}


def test_saving_a_loaded_recording_gives_the_same_bytes(saved, tmp_path, short_inline):
    other = tmp_path / "elsewhere" / "small.json"
    save(load(saved), other)
    assert folder_bytes(other.parent) == folder_bytes(saved.parent, "elsewhere")


def test_saving_twice_gives_the_same_bytes(saved, tmp_path, short_inline):
    trace = small()
    for name in ("one", "two"):
        save(trace, tmp_path / name / "small.json")
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")
    assert (tmp_path / "one" / "small.json").read_bytes() == saved.read_bytes()


def folder_bytes(folder: Path, without: str = "nothing") -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and without not in path.parts}


# The committed files ---------------------------------------------------------------------------------

def committed() -> list[Path]:
    paths = sorted(TRACES.rglob("*.json"))
    assert len(paths) > 5
    return paths


def test_committed_files_parse_as_strict_json():
    """As in a browser: no NaN, no Infinity; and no key twice, of which parsers keep different ones."""
    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    def once(pairs):
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    for path in committed():
        json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse, object_pairs_hook=once)


class Digits(str):
    """A number of the file as it is written."""


@pytest.mark.parametrize("route", ["training", "generation"])
def test_inline_numbers_are_in_their_shortest_form(route):
    """NumPy prints a float32 in the fewest digits that give it back: the file must have those digits."""
    body = json.loads((TRACES / f"{route}.json").read_text(encoding="utf-8"), parse_float=Digits)
    seen = 0
    for array in body["arrays"].values():
        if array["dtype"] == "float32":
            for written in array.get("values", ()):
                if written is not None:
                    assert isinstance(written, Digits)
                    assert Decimal(written) == Decimal(str(np.float32(written))), written
                    assert np.float32(written) == np.float32(float(written))  # a browser reads a double first
                    seen += 1
    assert seen > 10_000


def test_large_arrays_stand_in_files_named_by_content(training_trace, generation_trace):
    files = {}
    for trace in (training_trace, generation_trace):
        for array in trace.arrays.values():
            held = array.data is not None
            assert bool(array.file) == (held and array.size > INLINE_LIMIT), array.name
            if array.file:
                assert array.file == f"arrays/{content_hash(array.data)[:16]}.json"
                files.setdefault(array.file, []).append((trace.route, array.name))
    shared = [names for names in files.values() if {route for route, _ in names} == {"training", "generation"}]
    assert [("training", "trained.token_embedding.weight"), ("generation", "trained.token_embedding.weight")] in shared


def test_no_committed_array_file_is_unused(training_trace, generation_trace):
    assert unused_files(TRACES, [training_trace, generation_trace]) == []
    every = {path.name for path in (TRACES / "arrays").iterdir()}
    assert {path.name for path in unused_files(TRACES, [])} == every


def test_only_files_that_a_recording_wrote_are_ever_called_unused(tmp_path):
    (tmp_path / "arrays").mkdir()
    for name in ("0123456789abcdef.json", "mine.json", "0123456789ABCDEF.json", "0123456789abcdef.txt"):
        (tmp_path / "arrays" / name).write_text("{}")
    assert [path.name for path in unused_files(tmp_path, [])] == ["0123456789abcdef.json"]


def test_committed_recordings_are_small():
    size = sum(path.stat().st_size for path in TRACES.rglob("*") if path.is_file() and path.name != "checkpoint.pt")
    assert 5e6 < size <= 20 * 2**20


# Writing is atomic -----------------------------------------------------------------------------------

def no_space(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def other_recording() -> Trace:
    trace = small()
    for name in ("table", "scores"):
        trace.arrays[name].data = trace.arrays[name].data + 1
    trace.make["why"] = "another"
    return trace


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_full_disk_leaves_the_old_recording(saved, monkeypatch, call, number):
    """The first file written is an array's, the last one the trace: whichever fails, the old trace is whole."""
    before = folder_bytes(saved.parent)
    counter, real = itertools.count(1), getattr(os, call)
    monkeypatch.setattr(os, call, lambda *a: no_space() if next(counter) == number else real(*a))
    with pytest.raises(OSError, match="No space left"):
        save(other_recording(), saved)
    after = folder_bytes(saved.parent)
    assert {name: after[name] for name in before} == before
    assert not [name for name in after if name.endswith(".tmp")]
    assert found_by_verify(load(saved)) == []


def test_a_write_that_stops_half_way_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    write_atomically(path, b"old")
    real = os.fdopen

    def half(handle, mode):
        file = real(handle, mode)

        class Half:
            def __enter__(self):
                return self

            def __exit__(self, *exception):
                file.close()

            def write(self, content):
                file.write(content[:len(content) // 2])
                file.flush()
                raise KeyboardInterrupt

        return Half()

    monkeypatch.setattr(os, "fdopen", half)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new and longer")
    assert folder_bytes(tmp_path) == {"file.json": b"old"}
    monkeypatch.undo()
    write_atomically(path, b"new and longer")
    assert folder_bytes(tmp_path) == {"file.json": b"new and longer"}
    assert path.stat().st_mode & 0o777 == 0o644


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from tracer.format import files as trace_files
from tracer.format.files import save
from tracer.format.load import load
path, call, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
trace_files.INLINE_LIMIT = 8
trace = load(path)
for name in ("table", "scores"):
    trace.arrays[name].data = trace.arrays[name].data + 1
real, count = getattr(os, call), 0
def kill(*arguments):
    global count
    count += 1
    if count == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments)
setattr(os, call, kill)
save(trace, path)
"""


@pytest.mark.parametrize(("call", "number"), [("fsync", 1), ("replace", 1), ("replace", 2)])
def test_a_recording_that_is_killed_leaves_the_old_one(saved, call, number):
    """SIGKILL while the array file is written, before it is renamed, and before the trace is."""
    before = folder_bytes(saved.parent)
    result = subprocess.run([sys.executable, "-c", KILLED, str(saved), call, str(number)], cwd=ROOT, timeout=300)
    assert result.returncode == -signal.SIGKILL
    after = folder_bytes(saved.parent)
    assert {name: after[name] for name in before} == before
    left = after.keys() - before.keys()
    assert any(name.endswith(".tmp") for name in left)
    assert list(load_all(saved.parent)) == ["small"]  # what is left over is not taken for a recording
    assert found_by_verify(load(saved)) == []


# What is refused -------------------------------------------------------------------------------------

def test_missing_file_and_folder(tmp_path):
    assert "missing" in refusal(tmp_path / "none.json")
    (tmp_path / "folder.json").mkdir()
    assert "cannot be read" in refusal(tmp_path / "folder.json")
    for folder in (tmp_path / "none", tmp_path / "folder.json"):
        with pytest.raises(UserError, match=str(folder)) as caught:
            load_all(folder)
        assert len(str(caught.value).splitlines()) == 1


def test_every_cut_off_file_is_refused(saved):
    content = saved.read_bytes()
    for length in [0, 1, 2, *range(3, len(content) - 1, 7), len(content) - 2]:
        assert "cut off or damaged" in refusal(saved, content[:length])
    saved.write_bytes(content[:-1])  # the line break at the end is no part of the JSON
    assert found_by_verify(load(saved)) == []


@pytest.mark.parametrize("content", [b"\x00", b"\xff\xfe{}", b"PK\x03\x04", b"not JSON", b"{'a': 1}", b"{} {}", b"NaN",
                                     b"[" * 100_000, b'{"a": "\xff"}', b"<html>", b'{"a": 1,}'])
def test_what_is_not_json_is_refused(saved, content):
    assert "cut off or damaged" in refusal(saved, content)


@pytest.mark.parametrize("body", [[], [1], 3, 1.5, "text", True, {}, {"schema": "two-routes/array"}, {"schema": None},
                                  {"schema": ["two-routes/trace"]}, {"schema": 1, "version": 1}])
def test_json_of_another_kind_is_refused(saved, body):
    assert "its \"schema\" is not 'two-routes/trace'" in refusal(saved, body)
    saved.write_bytes(b"null")
    assert "its \"schema\" is not" in refusal(saved)


@pytest.mark.parametrize("version", [0, 3, "1", None, True, 1.0, [1], -1])
def test_an_unknown_version_is_refused(saved, version):
    body = body_of(saved)
    body["version"] = version
    message = refusal(saved, body)
    assert f"schema version {version!r}, this program reads version 1 and 2" in message


def places(node, path=()):
    """The path of every key and item of nested JSON."""
    for key, item in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield (*path, key)
        yield from places(item, (*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


def must_be_found(path: Path, body) -> str:
    """A change of `body` is refused, or loads and is then found; nothing else is raised."""
    path.write_bytes(orjson.dumps(body))
    try:
        trace = load(path)
    except UserError as error:
        message = str(error)
        assert len(message.splitlines()) == 1 and message.startswith(f"{path}: "), message
        return "refused"
    return "found" if found_by_verify(trace) else "unnoticed"


# Where a key of the small recording may go without a refusal, the checks or the hash of the outline find it.
FREE = {"rounding", "settings", "labels", "why", "list", "role", "kind", "block", "round", "direction", "of", "ids",
        "mean", "trained", "prompt", "split", "pass"}


def test_every_missing_key_is_noticed(saved):
    body = body_of(saved)
    outcomes = {}
    for path in places(body):
        if isinstance(at(body, path[:-1]), dict):
            less = copy.deepcopy(body)
            del at(less, path[:-1])[path[-1]]
            outcomes[path] = must_be_found(saved, less)
    assert len(outcomes) > 120
    assert [path for path, outcome in outcomes.items() if outcome == "unnoticed"] == []
    assert {path[0] for path, outcome in outcomes.items() if outcome == "refused" and len(path) == 1} == set(body)
    assert {path[-1] for path, outcome in outcomes.items() if outcome == "found"} <= FREE | {"0", "position", "row"}


def test_every_missing_key_of_a_file_beside_it_is_refused(saved):
    for file in sorted((saved.parent / "arrays").iterdir()):
        body = body_of(file)
        for key in body:
            file.write_bytes(orjson.dumps({k: v for k, v in body.items() if k != key}))
            assert file.name in refusal(saved)
        file.write_bytes(orjson.dumps(body))
    load(saved)


JUNK = [None, "", "x", [], {}, 0, 1, -1, 7, 2**40, 2**63, -(2**63), 0.5, 1e300, -1e-300, True, False, [[]], [None],
        {"a": 1}, ["position"], "ids", "table", "twice", "head", "arrays/0123456789abcdef.json", "../x.json", [1, 2],
        [10**9, 10**9], "line\nbreak", "\u2028", "inf", "nan", "float32", "int64", 3.5e38]


def test_random_damage_is_refused_or_found(saved):
    """1500 times one node of the JSON is replaced: never a traceback, never a clean bill for a changed recording."""
    body, draw = body_of(saved), random.Random(4)
    paths = list(places(body))
    outcomes = {"refused": 0, "found": 0, "unnoticed": 0}
    for _ in range(1500):
        path = draw.choice(paths)
        new = draw.choice(JUNK) if draw.random() < 0.8 else copy.deepcopy(at(body, draw.choice(paths)))
        damaged = copy.deepcopy(body)
        at(damaged, path[:-1])[path[-1]] = new
        outcome = must_be_found(saved, damaged)
        same = orjson.dumps(damaged) == orjson.dumps(body) or harmless(at(body, path), new)
        assert outcome != "unnoticed" or same, (path, at(body, path), new)
        outcomes[outcome] += 1
    assert outcomes["refused"] > 800 and outcomes["found"] > 50, outcomes


def harmless(old, new) -> bool:
    """Whether the two are the same number, written in another way."""
    return isinstance(old, int | float) and isinstance(new, int | float) and not isinstance(new, bool) and old == new


def test_random_damage_of_a_file_beside_it_is_refused(saved):
    draw = random.Random(6)
    for file in sorted((saved.parent / "arrays").iterdir()):
        body = body_of(file)
        paths = list(places(body))
        for _ in range(100):
            damaged = copy.deepcopy(body)
            path = draw.choice(paths)
            at(damaged, path[:-1])[path[-1]] = draw.choice(JUNK)
            file.write_bytes(orjson.dumps(damaged))
            assert must_be_found(saved, body_of(saved)) != "unnoticed" or harmless(at(body, path), at(damaged, path))
        file.write_bytes(orjson.dumps(body))


def edited(body: dict, *path, to) -> dict:
    new = copy.deepcopy(body)
    at(new, path[:-1])[path[-1]] = to
    return new


def file_of(body: dict) -> str:
    return body["arrays"]["table"]["file"]


@pytest.mark.parametrize(("path", "to", "says"), [
    (("arrays", "ids", "values"), [1, 2], "array ids has 2 values, its shape [3] needs 3"),
    (("arrays", "ids", "shape"), [4], "array ids has 3 values, its shape [4] needs 4"),
    (("arrays", "ids", "values", 0), 1.5, "array ids holds a value that is not a number of dtype int64"),
    (("arrays", "ids", "values", 0), 2**63, "array ids holds a value that is too large for int64"),
    (("arrays", "scores", "values", 0), 1e39, "array scores holds a value that is too large for float32"),
    (("arrays", "scores", "values", 0), None, "array scores holds a value that is not a number"),
    (("arrays", "scores", "values", 0), "1", "array scores holds a value that is not a number"),
    (("arrays", "scores", "values", 0), True, "array scores holds a value that is not a number"),
    (("arrays", "scores", "nonfinite"), {"0": "nan"}, "array scores has no null at '0'"),
    (("arrays", "masked", "nonfinite"), {"-3": "-inf"}, "array masked has no null at '-3'"),
    (("arrays", "masked", "nonfinite"), {"99": "-inf"}, "array masked has no null at '99'"),
    (("arrays", "masked", "nonfinite"), {"1": "huge"}, "array masked says 'huge' at 1"),
    (("arrays", "scores", "shape"), [1, -2, -2], "array scores has the impossible shape [1, -2, -2]"),
    (("arrays", "scores", "shape"), [1, 2], "array scores has 4 values"),
    (("arrays", "scores", "shape"), [1, 4], "array scores has shape [1, 4] but axes"),
    (("arrays", "scores", "axes"), ["head", "x", "y"], "array scores has shape [1, 2, 2] but axes"),
    (("arrays", "scores", "dtype"), "float16", "array scores has unknown dtype 'float16'"),
    (("arrays", "twice", "shape"), [10**9, 10**9], "array twice has the impossible shape"),
    (("arrays", "twice", "shape"), [10**9, 10**9, 10**9], "array twice has the impossible shape"),
    (("arrays", "twice", "shape"), [3, 3], "operation twice does not fit its arrays: axis d of"),
    (("arrays", "table", "shape"), [10**9, 10**9], "array table has the impossible shape"),
    (("arrays", "table", "shape"), [2, 12], "does not hold the float32 [2, 12] that table needs"),
    (("arrays", "table", "dtype"), "float64", "does not hold the float64 [12, 2] that table needs"),
    (("arrays", "table", "file"), "arrays/0123456789abcdef.json", "arrays/0123456789abcdef.json: the file is missing"),
    (("arrays", "table", "file"), "../../x.json", "has no name that this program gives"),
    (("arrays", "table", "file"), "arrays/../small.json", "has no name that this program gives"),
    (("arrays", "table", "file"), "/etc/passwd", "has no name that this program gives"),
    (("arrays", "table", "file"), "arrays/0123456789abcdef.json\n", "has no name that this program gives"),
    (("arrays", "same ids", "same_as"), "nowhere", "array same ids names array 'nowhere'"),
    (("arrays", "same ids", "same_as"), "same ids", "array same ids cannot be the same as same ids"),
    (("arrays", "same ids", "same_as"), "twice", "array same ids cannot be the same as twice"),
    (("arrays", "same ids", "same_as"), "scores", "array same ids cannot be the same as scores"),
    (("arrays", "same ids", "derived"), True, "array same ids must have exactly one of values, file, same_as and"),
    (("arrays", "ids", "labels"), {"position": "nowhere"}, "array ids names labels 'nowhere'"),
    (("arrays", "ids", "labels"), {"feature": "tokens"}, "array ids names axis 'feature'"),
    (("labels", "tokens"), ["a", "b"], "array ids has 3 along position, its labels tokens are 2"),
    (("labels", "tokens"), ["a", "b", 3], "labels tokens hold something that is not a text"),
    (("labels", "tokens"), "abc", "labels tokens are neither a list nor in a file"),
    (("labels", "vocabulary", "length"), 13, "has 12 labels, not the 13 of labels vocabulary"),
    (("labels", "vocabulary", "file"), "../small.json", "has no name that this program gives"),
    (("chapters", 0, "steps", 0, "kind"), "linear", "step embedding shows no operation of its kind 'linear'"),
    (("chapters", 0, "steps", 0, "direction"), "up", "'direction' of step embedding is 'up', which is none of forward"),
    (("chapters", 0, "steps", 0, "pass"), "again", "step embedding is of a pass that there is not"),
    (("chapters", 0, "steps", 0, "pass"), "third",
     "'pass' of step embedding is 'third', which is none of first, again"),
    (("chapters", 0, "steps", 0, "block"), -1, "'block' of step embedding is -1, not from 0"),
    (("chapters", 1, "steps", 0, "of"), "wpe", "step masked names parameter 'wpe', which the trace does not hold"),
    (("chapters", 1, "kind"), "rounds", "'kind' of chapter second is 'rounds', which is none of text"),
    (("passes", 0, "kind"), "last", "pass 'last' is none of first, again, evaluation, round, cached"),
    (("passes", 0, "arrays", "ids"), "nowhere", "its structure names array 'nowhere'"),
    (("texts", "prompt", "ids"), "nowhere", "its structure names array 'nowhere'"),
    (("parameters", 0, "arrays", "trained"), "nowhere", "its structure names array 'nowhere'"),
    (("roles", "mean"), "nowhere", "its structure names array 'nowhere'"),
    (("roles", "mean"), 1, "'roles' of the trace holds something that is not a text"),
    (("operations", 0, "kind"), "magic", "operation embedding has unknown kind magic.out"),
    (("operations", 0, "target"), "d_magic", "operation embedding has unknown kind embedding.d_magic"),
    (("operations", 0, "operands"), {"table": "table"}, "operation embedding lacks its operand ids"),
    (("operations", 0, "operands", "ids"), "nowhere", "operation embedding names array 'nowhere'"),
    (("operations", 0, "operands", "ids"), "embedding",
     "operation embedding reads embedding, which no operation before it makes"),
    (("operations", 0, "operands", "ids"), "mean",
     "operation embedding reads mean, which no operation before it makes"),
    (("operations", 1, "operands", "a"), "twice", "operation twice reads twice, which no operation before it makes"),
    (("operations", 1, "operands", "a"), "mean", "operation twice reads mean, which no operation before it makes"),
    (("operations", 1, "operands", "a"), "ids", "operation twice does not fit its arrays: a has 1 axes"),
    (("operations", 3, "settings"), {}, "operation same ids lacks its setting offset"),
    (("operations", 3, "settings", "offset"), "0",
     "'settings' of operation same ids holds something that is not a number"),
    (("operations", 3, "settings", "eps"), 1e-5,
     "operation same ids has the setting eps, which window.out does not read"),
    (("operations", 0, "settings"), {"p": 0},
     "operation embedding has the setting p, which embedding.out does not read"),
    (("operations", 3, "operands", "table"), "table",
     "operation same ids has the operand table, which window.out does not read"),
    (("operations", 3, "rounding"), {"0": 0.0}, "operation same ids lists a rounding, but its numbers are whole"),
    (("operations", 1, "rounding"), {"0": 0.0}, "operation twice lists a rounding, but its numbers are not held"),
    (("operations", 5, "rounding"), {"1": 0.0}, "operation rounded lists a rounding for value 1 of 1"),
    (("operations", 3, "id"), "embedding", "two operations have the same id"),
    (("operations", 5, "rounding"), {"-1": 1.0},
     "'rounding' of operation rounded has an index that is not a whole number"),
    (("operations", 5, "rounding"), {"0": None},
     "'rounding' of operation rounded holds something that is not a number"),
    (("chapters", 0, "steps", 0, "operations"), ["nowhere"], "step embedding names operation 'nowhere'"),
    (("chapters", 0, "steps", 0, "arrays"), ["nowhere"], "step embedding names array 'nowhere'"),
    (("chapters", 0, "steps", 0, "operations"), "mean", "'operations' of step embedding is not a list"),
    (("summary",), [], "'summary' of the trace is not an object"),
])
def test_what_does_not_fit_is_refused(saved, path, to, says):
    assert says in refusal(saved, edited(body_of(saved), *path, to=to))


def test_a_long_chain_of_derived_arrays_is_refused(saved):
    """It would be deeper than Python recurses."""
    body = body_of(saved)
    step = next(s for s in body["operations"] if s["id"] == "twice")
    names = ["twice", *[f"twice{n}" for n in range(2000)]]
    for before, name in itertools.pairwise(names):
        body["arrays"][name] = body["arrays"]["twice"]
        body["operations"].append({**step, "id": name, "operands": {"a": before, "b": before}})
    body["arrays"]["last"] = {"shape": [3], "dtype": "float32", "axes": ["position"], "values": [1.0, 2.0, 3.0]}
    body["operations"].append({"id": "last", "kind": "layer_norm", "target": "mean", "operands": {"x": names[-1]}})
    assert "follows from more than 32 derived arrays in a row" in refusal(saved, body)


def test_damaged_array_files_are_refused(saved):
    file = saved.parent / file_of(body_of(saved))
    content, body = file.read_bytes(), body_of(file)
    for damaged, says in (
        (content[:len(content) // 2], "cut off or damaged"), (b"", "cut off or damaged"), (b"[]", "is not"),
        (orjson.dumps({**body, "base64": body["base64"][:-4]}), "does not hold the float32 [12, 2]"),
        (orjson.dumps({**body, "base64": body["base64"][:-1]}), "is damaged"),
        (orjson.dumps({**body, "base64": "*" + body["base64"][1:]}), "is damaged"),
        (orjson.dumps({**body, "base64": "你" + body["base64"][1:]}), "is damaged"),
        (orjson.dumps({**body, "base64": 5}), "'base64' of it is not a text"),
        (orjson.dumps({**body, "dtype": "int64"}), "does not hold the float32 [12, 2]"),
        (orjson.dumps({**body, "shape": [2, 12]}), "does not hold the float32 [12, 2]"),
        (orjson.dumps({**body, "version": 2}), "schema version 2"),
        (orjson.dumps({**body, "schema": "two-routes/trace"}), "its \"schema\" is not 'two-routes/array'"),
    ):
        file.write_bytes(damaged)
        message = refusal(saved)
        assert says in message and file.name in message, message
    file.unlink()
    assert f"arrays/{file.name}: the file is missing" in refusal(saved)


def test_a_huge_shape_is_refused_without_allocating(saved):
    """By its size alone, also where the product no longer fits 64 bits."""
    tracemalloc.start()
    for shape in ([10**9, 10**9], [2**26 + 1], [2**62], [2**63 - 1, 2**63 - 1]):
        array = {"shape": shape, "dtype": "float32", "axes": ["position", "feature"][:len(shape)], "derived": True}
        assert math.prod(shape) > LARGEST
        assert "impossible shape" in refusal(saved, edited(body_of(saved), "arrays", "twice", to=array))
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_a_name_with_line_breaks_gives_one_line_still(saved):
    body = body_of(saved)
    body["arrays"]["two\nlines\u2028more"] = {"shape": [], "dtype": "x\ny", "axes": []}
    refusal(saved, body)  # asserts that the message is one line
