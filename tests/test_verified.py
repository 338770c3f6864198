"""What is shown has been checked: a build publishes nothing that does not follow, and names the place."""

import base64
import os
import random
import re
import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import orjson
import pytest
from recorded_numbers import THOUSANDTH, TRACES, changed, leaves, put
from shared import files
from trials import TRIALS

from site_builder import cli, stamp, verified
from site_builder.listing import LIST
from tracer import resources
from tracer.errors import UserError
from tracer.format import origin
from tracer.format.files import save
from tracer.format.load import load
from tracer.format.trace import content_hash
from tracer.format.verify import Check

ROUTES = ("training", "generation", "long")


@pytest.fixture
def traces(tmp_path) -> Path:
    return Path(shutil.copytree(TRACES, tmp_path / "traces", ignore=shutil.ignore_patterns("*.pt")))


@pytest.fixture(autouse=True)
def nothing_known(tmp_path, monkeypatch) -> None:
    """No recording has been verified before."""
    monkeypatch.setattr(verified, "FOLDER", tmp_path / "verified")


@pytest.fixture
def build(monkeypatch, capfd):
    def call(traces: Path, output: Path) -> tuple[int, str, str]:
        """Exit status, output and error of the command."""
        monkeypatch.setattr(sys, "argv", ["site_builder", "build", "--traces", str(traces), "--output", str(output)])
        status = 0
        try:
            cli.main()
        except SystemExit as stop:
            status = stop.code or 0
        return status, *capfd.readouterr()

    return call


def change_value(path: Path, name: str, index: int, to: float) -> None:
    body = orjson.loads(path.read_bytes())
    body["arrays"][name]["values"][index] = to
    path.write_bytes(orjson.dumps(body))


# A build ---------------------------------------------------------------------------------------------

def test_a_wrong_recording_is_refused_and_the_old_site_stays(traces, site, tmp_path, build):
    old = Path(shutil.copytree(site, tmp_path / "site"))
    before = files(old)
    change_value(traces / "training.json", "final_norm", 0, 5.0)
    status, out, err = build(traces, old)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: {traces / 'training.json'}: final_norm (layer_norm.out): 1 of 80 wrong, first value "
                          "0: recorded 5.0, recomputed ")
    assert err.endswith(f"; record again with `python -m tracer record --output {traces}`\n")
    assert files(old) == before
    assert build(traces, tmp_path / "none")[0] == 2 and not (tmp_path / "none").exists()


def test_a_loss_of_an_experiment_changed_by_hand_is_refused(traces, tmp_path, build):
    path = traces / "experiments" / "depth.json"
    body = orjson.loads(path.read_bytes())
    body["runs"][1]["evaluations"]["validation"][2] -= 0.1
    path.write_bytes(orjson.dumps(body))
    status, _, err = build(traces, tmp_path / "site")
    assert status == 2 and err == (
        f"error: {path}: runs.1.evaluations.validation (sha256): it is not what was recorded (sha256 differs); record "
        "it again with `python -m tracer experiment`\n")
    assert not (tmp_path / "site").exists()


# Any number ------------------------------------------------------------------------------------------

def read_all(traces: Path, routes=ROUTES) -> None:
    """What a build reads before it writes a page."""
    found = {route: origin.origin_of(verified.read_recording(traces / f"{route}.json", route)) for route in routes}
    verified.read_experiments(traces)
    origin.check_set(traces, found)


def refusal(traces: Path, routes=ROUTES) -> str:
    with pytest.raises(UserError) as caught:
        read_all(traces, routes)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def damage_array(body: dict, folder: Path, draw: random.Random) -> str:
    """One number of one array, wherever it is held; returns the array's name."""
    name = draw.choice([name for name, array in body["arrays"].items() if {"values", "file"} & array.keys()])
    array = body["arrays"][name]
    if "file" in array:
        path = folder / array["file"]
        held = orjson.loads(path.read_bytes())
        data = np.frombuffer(base64.b64decode(held["base64"]), held["dtype"]).copy()
        index = draw.choice(np.flatnonzero(data).tolist())
        data[index] *= 1 + THOUSANDTH
        held["base64"] = base64.b64encode(data.tobytes()).decode()
        path.write_bytes(orjson.dumps(held))
    else:
        index = draw.choice([i for i, value in enumerate(array["values"]) if value is not None])
        new = changed(array["values"][index])
        array["values"][index] = float(np.float32(new)) if array["dtype"] == "float32" else new
    return name


def damage_other(body: dict, draw: random.Random) -> str:
    """A number that is in no array: settings, settings, roundings, the summary, shapes; returns the top key."""
    rest = {key: value for key, value in body.items() if key != "arrays"}
    rest["arrays"] = {name: {"shape": array["shape"]} for name, array in body["arrays"].items()}
    key = draw.choice([key for key in rest if any(leaves(rest[key]))])
    path, value = draw.choice(list(leaves(rest[key])))
    put(body[key] if path else body, path or (key,), changed(value))
    return key


@pytest.mark.parametrize("seed", range(6 * TRIALS))
def test_any_changed_number_of_a_recording_is_refused_and_named(traces, seed):
    draw = random.Random(seed)
    route, kind = draw.choice(["generation", "long", "training"]), draw.choice(["array", "array", "other"])
    path = traces / f"{route}.json"
    body = orjson.loads(path.read_bytes())
    what = damage_array(body, traces, draw) if kind == "array" else damage_other(body, draw)
    path.write_bytes(orjson.dumps(body))
    said = refusal(traces, [route])
    assert said.startswith(f"{path}: "), (what, said)
    if kind == "array":
        # By its own name, or by that of a step that reads it, through a derived array if there is one between.
        same = {what} | {name for name, array in body["arrays"].items() if array.get("same_as") == what}
        derived = {name for name, array in body["arrays"].items() if array.get("derived")}
        named = {one["id"] for one in body["operations"] if (same | derived) & {*one["operands"].values()}} | same
        assert re.split(r" \(|: ", said.removeprefix(f"{path}: "))[0] in named, (what, said)


def with_hashes(traces: Path, route: str) -> None:
    """Every hash in the recording made that of what stands there now."""
    trace = load(traces / f"{route}.json")
    for array in trace.arrays.values():
        if array.sha256:
            array.sha256 = content_hash(trace.values(array.name))
    trace.make[origin.KEY] = origin.recomputed_hash(trace)
    save(trace, traces / f"{route}.json")


def is_held(body: dict, name: str) -> bool:
    """Whether something else than a hash holds the array's numbers: what made them, or the other recordings."""
    parameters = {name for one in body["parameters"] for name in one["arrays"].values()}
    return name in parameters | {one["id"] for one in body["operations"]}


@pytest.mark.parametrize("seed", range(6 * TRIALS))
def test_with_all_hashes_made_anew_too(traces, seed):
    """Numbers that a step made are recomputed, parameters are those of the other recordings of the set."""
    draw = random.Random(seed)
    route = draw.choice(["generation", "long", "training"])
    path = traces / f"{route}.json"
    body, name = orjson.loads(path.read_bytes()), ""
    while not is_held(body, name):
        body = orjson.loads(path.read_bytes())
        for file in (traces / "arrays").iterdir():
            shutil.copy(TRACES / "arrays" / file.name, file)
        name = damage_array(body, traces, draw)
    path.write_bytes(orjson.dumps(body))
    with_hashes(traces, route)
    assert name in orjson.loads(path.read_bytes())["arrays"]
    assert str(traces) in refusal(traces, [route] if name in {one["id"] for one in body["operations"]} else ROUTES)


# Verified once ---------------------------------------------------------------------------------------

@pytest.fixture
def verifications(monkeypatch) -> list[str]:
    """The routes that were verified."""
    seen, real = [], verified.verifier.verify
    monkeypatch.setattr(verified.verifier, "verify", lambda trace: (seen.append(trace.route), real(trace))[1])
    return seen


def test_a_recording_is_verified_once(traces, verifications):
    for _ in range(2):
        for route in ROUTES:
            assert verified.read_recording(traces / f"{route}.json", route).route == route
    assert verifications == list(ROUTES)


def test_every_byte_counts(traces, verifications):
    """Of the recording, of an array file, of the labels: whatever has changed is not taken for what was verified."""
    path = traces / "long.json"
    read = partial(verified.read_recording, path, "long")
    read()
    path.write_bytes(path.read_bytes() + b"\n")  # means nothing, and still is not what was verified
    trace = read()
    assert len(verifications) == 2
    known = verified._content_hash(path, trace)
    held = {array.file for array in trace.arrays.values() if array.file} | {trace.labels["vocabulary"]["file"]}
    assert len(held) == 2
    for file in sorted(held):
        content = (traces / file).read_bytes()
        place = len(content) // 2
        (traces / file).write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1:])
        assert verified._content_hash(path, trace) != known
        with pytest.raises(UserError):
            read()
        (traces / file).write_bytes(content)
    read()
    assert verified._content_hash(path, trace) == known


def test_what_is_wrong_is_never_kept(traces, verifications):
    change_value(traces / "long.json", "round1.final_norm", 3, 5.0)
    for _ in range(2):
        with pytest.raises(UserError, match=r"round1\.final_norm"):
            verified.read_recording(traces / "long.json", "long")
    assert verifications == ["long"] * 2


def test_another_verifier_looks_anew(traces, verifications, monkeypatch, tmp_path):
    read = partial(verified.read_recording, traces / "long.json", "long")
    read()
    source = tmp_path / "tracer"
    shutil.copytree(verified.TRACER, source)
    before = verified._verifier_hash()
    for file in ("format/verify.py", "ops/gelu.py", "format/validation.py"):
        (source / file).write_text((source / file).read_text("utf-8") + "# another\n", "utf-8")
        verified._verifier_hash.cache_clear()
        monkeypatch.setattr(verified, "TRACER", source)
        assert verified._verifier_hash() != before
        before = verified._verifier_hash()
        read()
    monkeypatch.undo()
    verified._verifier_hash.cache_clear()
    assert len(verifications) == 4


def test_hashes_that_cannot_be_kept_or_are_something_else(traces, verifications, monkeypatch, tmp_path):
    read = partial(verified.read_recording, traces / "long.json", "long")
    (tmp_path / "verified").write_text("a file where the folder should be")
    read()
    read()
    assert len(verifications) == 2
    (tmp_path / "verified").unlink()
    (tmp_path / "verified").mkdir()
    (tmp_path / "verified" / ("0" * 64)).write_text("yes")
    read()
    assert len(verifications) == 3
    shutil.rmtree(tmp_path / "verified")
    monkeypatch.setattr(verified, "KEPT", 2)
    for number in range(4):
        verified._keep(str(number))
        os.utime(tmp_path / "verified" / str(number), (number, number))
    assert sorted(path.name for path in (tmp_path / "verified").iterdir()) == ["2", "3"]


def test_a_recording_that_is_replaced_while_it_is_read_is_not_taken_for_the_other(traces, monkeypatch, verifications):
    path = traces / "long.json"
    real = verified.load

    def load(where):
        found = real(where)
        where.write_bytes(where.read_bytes() + b" ")
        return found

    monkeypatch.setattr(verified, "load", load)
    with pytest.raises(UserError, match=r"long\.json was replaced while it was read: build again"):
        verified.read_recording(path, "long")
    assert not verified.FOLDER.exists()


def test_the_first_problem_is_what_is_said():
    checks = [Check("a", "add.out", 1), Check("b", "add.out", 1, problem="is off"), Check("c", "c", 1, problem="too")]
    with pytest.raises(UserError, match=r"^x\.json: b \(add\.out\): is off; again$"):
        verified._refuse_wrong(Path("x.json"), checks, "again")


# Built once ------------------------------------------------------------------------------------------

def test_a_site_that_is_already_the_one_is_left_alone(traces, tmp_path, build):
    output = tmp_path / "site"
    status, out, _ = build(traces, output)
    assert status == 0 and out.startswith("built in ")
    (output / "mine.txt").write_text("the user's own")
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    status, out, _ = build(traces, output)
    assert (status, out) == (0, f"nothing has changed since it was built: open {output.resolve() / 'index.html'}\n")
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*")} == before
    page = output / "en" / "training.html"
    for damage in (page.unlink, (output / LIST).unlink):  # what is not whole is no longer the one
        damage()
        assert not stamp.is_current(traces, output)


def test_the_stamp_is_over_all_that_a_build_reads(traces, tmp_path, monkeypatch):
    program = tmp_path / "program"
    (program / "templates").mkdir(parents=True)
    (program / "page.html").write_text("a")
    monkeypatch.setattr(resources, "PROGRAM", {"program": (program, ("*.html", "templates/*.html"))})
    seen = [stamp.stamp(traces)]
    assert stamp.stamp(traces) == seen[0]
    for path in (traces / "training.json", next((traces / "arrays").iterdir()), traces / "experiments" / "cache.json",
                 program / "page.html"):
        path.write_bytes(path.read_bytes() + b" ")
        seen.append(stamp.stamp(traces))
    (program / "page.html").rename(program / "templates" / "page.html")
    seen.append(stamp.stamp(traces))
    (traces / "long.json").unlink()
    seen.append(stamp.stamp(traces))
    monkeypatch.setattr(stamp, "version", lambda package: "another")
    seen.append(stamp.stamp(traces))
    assert len({*seen}) == len(seen) == 8
    (program / "__pycache__").mkdir()
    (program / "__pycache__" / "page.pyc").write_text("a")
    assert stamp.stamp(traces) == seen[-1]


def test_the_stamp_reads_what_is_imported_by_the_builder():
    """Every module of ours; `test_package` has all files."""
    stamped = {path.resolve() for _, path in resources.program_files()}
    ours = [Path(module.__file__) for name, module in list(sys.modules.items())
            if name.split(".")[0] in ("site_builder", "tracer") and getattr(module, "__file__", None)]
    assert len(ours) > 40
    assert [path for path in ours if path.resolve() not in stamped] == []
