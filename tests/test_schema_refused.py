"""What is no recording is refused in one line that names the place."""

import copy
import itertools
import math
import random
import tracemalloc
from pathlib import Path

import orjson
import pytest
from schema_cases import body_of, file_of, found_by_verify, refusal

from tracer.errors import UserError
from tracer.format.decode import LARGEST
from tracer.format.load import load, load_all

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
     "'pass' of step embedding is 'third', which is none of single, first, again"),
    (("chapters", 0, "steps", 0, "block"), -1, "'block' of step embedding is -1, not from 0"),
    (("chapters", 1, "steps", 0, "of"), "wpe", "step masked names parameter 'wpe', which the trace does not hold"),
    (("chapters", 1, "kind"), "rounds", "'kind' of chapter second is 'rounds', which is none of text"),
    (("passes", 0, "kind"), "last", "pass 'last' is none of single, first, again, evaluation, round, cached"),
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
