"""The format: what is saved comes back bit for bit, and what is damaged is refused in one clear line.

Most tests use a small recording made by hand (`small`) that has everything the format knows: each dtype, arrays
inline, in a file, shared and derived, long labels in a file, −∞, a listed rounding, a step with attributes.
"""

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from schema_cases import body_of, file_of, folder_bytes, found_by_verify, small

from tracer.format import files as trace_files
from tracer.format.files import INLINE_LIMIT, save, unused_files
from tracer.format.load import load, load_all
from tracer.format.trace import DTYPES, Array, Chapter, Step, Trace, content_hash
from tracer.storage.atomic import write_atomically

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT / "traces"


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


def test_no_committed_array_file_is_unused(recordings):
    assert unused_files(TRACES, recordings.values()) == []
    every = {path.name for path in (TRACES / "arrays").iterdir()}
    assert {path.name for path in unused_files(TRACES, [])} == every


def test_only_files_that_a_recording_wrote_are_ever_called_unused(tmp_path):
    (tmp_path / "arrays").mkdir()
    for name in ("0123456789abcdef.json", "mine.json", "0123456789ABCDEF.json", "0123456789abcdef.txt"):
        (tmp_path / "arrays" / name).write_text("{}")
    assert [path.name for path in unused_files(tmp_path, [])] == ["0123456789abcdef.json"]


def test_committed_recordings_are_small():
    size = sum(path.stat().st_size for path in TRACES.rglob("*") if path.is_file() and path.name != "checkpoint.pt")
    assert 5e6 < size <= 27 * 2**20


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
