"""Experiments from anywhere: whatever a file says, with hashes that fit, it is refused in one line or can be shown."""

import copy
import os
import time
from pathlib import Path

import orjson
import pytest
from damage import as_json

from site_builder.experiments import read_experiments, tell
from site_builder.experiments_page import shown as page_of
from site_builder.language import languages
from site_builder.plots import Series, Size, plot
from tracer.errors import UserError
from tracer.format.experiment_families import encoder_decoder_parameters
from tracer.format.experiment_figures import finish
from tracer.format.experiments import load_experiment
from tracer.format.sizes import shape_of
from tracer.library.counting import cache_bytes, parameter_count

FOLDER = Path(__file__).resolve().parent.parent / "traces" / "experiments"
KINDS = {stem: orjson.loads((FOLDER / f"{stem}.json").read_bytes())
         for stem in ("depth", "cache", "initial", "induction", "noun", "families")}
DEPTH, CACHE, INITIAL, INDUCTION, NOUN, FAMILIES = KINDS.values()
JUNK = [None, "x", "", [], {}, [1], {"a": 1}, True, 0, -1, 1.5, 10**8, 2**53, 2**63 - 1, 1e300, -1e300, 1e-300]
SINGLE = (str, int, float, bool)


def fitting(body: dict) -> dict:
    """`body` with counts and hashes that follow from the rest; as it stands where the rest gives none."""
    make = body["make"]
    try:
        for run in body.get("runs", ()):
            sizes = make.get("config", make["settings"])
            settings = {name: sizes[name] for name in ("context", "width", "heads")}
            run["parameters"] = parameter_count(shape_of(settings | {
                "vocabulary": sizes.get("vocabulary", make.get("vocabulary")), "blocks": run["blocks"]}))
        for run in body.get("reversing", ()):
            run["parameters"] = encoder_decoder_parameters(make["reversing"]["config"])
        for run in body.get("masked", ()):
            run["parameters"] = parameter_count(shape_of(make["masked"]["config"]))
        for point in body.get("points", ()):
            if "losses" in point:
                point["parameters"] = parameter_count(shape_of(make["config"] | {"vocabulary": point["vocabulary"]}))
                continue
            shape = shape_of(make["config"])
            make["parameters"], make["bytes_per_token"] = parameter_count(shape), cache_bytes(shape)
            point["cache_bytes"] = cache_bytes(shape) * (point["prompt"] + make["new_tokens"] - 1)
        return finish(body)
    except (ArithmeticError, LookupError, TypeError, ValueError, UserError):
        return body


def shown(path: Path, body: dict) -> str:
    """``shown``, or what is said against the experiment."""
    body = fitting(body)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(as_json(body))
    start = time.process_time()
    try:
        for language in languages().values():
            page_of(tell(read_experiments(path.parent.parent), language)[1], language)
    except UserError as error:
        assert len(str(error).splitlines()) == 1 and len(str(error)) < 600
        assert time.process_time() - start < 2
        return str(error)
    assert time.process_time() - start < 5
    return "shown"


def single_values(node, place=()):
    """The places of values that are neither objects nor lists; of a list the first item alone."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node[:1]):
        yield from [(*place, key)] if isinstance(value, SINGLE) else single_values(value, (*place, key))


def put(body: dict, place: tuple, value) -> dict:
    changed = node = copy.deepcopy(body)
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    return changed


@pytest.mark.parametrize("name", KINDS)
def test_a_value_of_another_kind_or_size_is_refused_or_shown(tmp_path, name):
    body = KINDS[name]
    places = [*single_values({key: value for key, value in body.items() if key not in ("summary", "sha256")})]
    path, found = tmp_path / "experiments" / "x.json", set()
    assert shown(path, copy.deepcopy(body)) == "shown" and len(places) >= 15
    for number, place in enumerate(places):
        junk = JUNK if os.environ.get("TWO_ROUTES_TRIALS") else [JUNK[(number * 5 + k) % len(JUNK)] for k in range(5)]
        for value in junk:
            found.add(shown(path, put(body, place, copy.deepcopy(value))) == "shown")
    assert found == {True, False}


@pytest.mark.parametrize(("body", "changes", "says"), [
    (DEPTH, {("make", "settings", "updates"): 10**9, ("make", "settings", "evaluate_every"): 1}, "evaluations"),
    (DEPTH, {("make", "vocabulary"): 0}, "'vocabulary' of make cannot be 0"),
    (DEPTH, {("make", "settings", "batch"): "x"}, "'batch' of settings cannot be 'x'"),
    (DEPTH, {("make", "text", "characters"): None}, "'characters' of text cannot be None"),
    (DEPTH, {("make", "settings", "heads"): 3}, "'heads' cannot be 3"),
    (DEPTH, {("runs", 0, "evaluations", "validation", 0): 1.7e308}, "'validation' of evaluations of run 0"),
    (INITIAL, {("points", 1, "std"): 101}, "'std' of point 1 cannot be 101"),
    (INITIAL, {("points", 1, "losses"): [3.1]}, "'losses' of point 1 are not one for each of the seeds"),
    (INITIAL, {("points", 0, "vocabulary"): 70}, "'vocabulary' and 'std' do not rise from point 0 to point 1"),
    (INITIAL, {("make", "seeds"): []}, "'seeds' of make are no list of seeds"),
    (INITIAL, {("make", "config", "heads"): 5}, "'heads' cannot be 5"),
    (INDUCTION, {("make", "config", "heads"): 5}, "'heads' cannot be 5"),
    (INDUCTION, {("make", "settings", "evaluate_every"): 0}, "'evaluate_every' of settings cannot be 0"),
    (INDUCTION, {("make", "task", "jump"): 1.5}, "'jump' of task cannot be 1.5"),
    (INDUCTION, {("runs", 0, "scores", "twice", 1, 3): 1.001}, "'twice' of scores of run 0 is not 51 shares for"),
    (INDUCTION, {("runs", 3, "scores", "previous"): []}, "'previous' of scores of run 3 is not 51 shares for each"),
    (INDUCTION, {("shown", "ids"): []}, "'ids' of shown are not 1 to 256 ids"),
    (INDUCTION, {("shown", "weights"): []}, "'weights' of shown are not those of every moment"),
    (INDUCTION, {("shown", "weights", 7): "AAAA"}, "attention weights have 3 bytes, 2 heads of 24 tokens have 1200"),
    (INDUCTION, {("shown", "weights", 7): "A" * 1600}, "attention weights of a query do not add up to one"),
    (NOUN, {("make", "task", "nouns"): []}, "'nouns' of task is no list of words"),
    (NOUN, {("sentences", 0, "nouns"): [1, 7]}, "'nouns' of sentence 0 are not two places"),
    (NOUN, {("sentences", 0, "nouns"): [1, 3]}, "sentences.0.nouns"),
    (NOUN, {("sentences", 1, "right"): 1}, "sentences.1.right"),
    (NOUN, {("sentences", 1, "right"): 2}, "'right' of sentence 1 cannot be 2"),
    (NOUN, {("runs", 2, "read"): []}, "run 2 has not read every sentence"),
    (NOUN, {("runs", 2, "read", 1, "weights", 0): [0.5]}, "'weights' of 'read' of run 2 is not 7 shares for each of 2"),
    (NOUN, {("runs", 2, "read", 1, "said", 0): {"word": "cat", "share": 2}}, "'share' of 'said' of run 2 cannot be 2"),
    (NOUN, {("runs", 0, "curve", "held_out", 0): -0.1}, "'held_out' of curve of run 0 holds something"),
    (FAMILIES, {("make", "reversing", "task", "end"): ".."}, "'end' of task of reversing cannot be '..'"),
    (FAMILIES, {("make", "masked", "config", "heads"): 3}, "'heads' cannot be 3"),
    (FAMILIES, {("make", "masked", "task", "does"): {}}, "'does' of task of masked is no list of words"),
    (FAMILIES, {("make", "masked", "task", "does", "cat"): 1}, "'cat' of 'does' is no list of words"),
    (FAMILIES, {("make", "masked", "task", "first"): ["feared"]}, "sentences.0.candidates"),
    (FAMILIES, {("reversing",): []}, "it has no reversing runs"),
    (FAMILIES, {("reversing", 1, "curve", "update", 1): 7}, "reversing.1.curve.update"),
    (FAMILIES, {("reversing", 0, "curve", "right", 2): 1.1}, "'right' of curve of reversing run 0 holds something"),
    (FAMILIES, {("shown", "words"): ["x" * 33]}, "'words' of shown are not of 1 to 32 letters"),
    (FAMILIES, {("shown", "written", 1, 4): "x"}, "'written' of shown is not, at every moment of run 0, as long"),
    (FAMILIES, {("shown", "weights", 4): "AAAA"}, "have 3 bytes, matrices of 9 × 9, 7 × 7, 5 × 5 have 310"),
    (FAMILIES, {("masked", 0, "sides"): "right"}, "'sides' of masked run 0 cannot be 'right'"),
    (FAMILIES, {("masked", 5, "read"): []}, "masked run 5 has not read every sentence"),
    (FAMILIES, {("masked", 5, "read", 2, 0): None}, "'read' of masked run 5 is not a share for each"),
    (FAMILIES, {("sentences", 0, "place"): 9}, "'place' of sentence 0 is no place of its words"),
    (FAMILIES, {("sentences", 0, "right"): ["woke"]}, "sentences.0.right"),
    (CACHE, {("make", "new_tokens"): 10**9}, "'new_tokens' of make cannot be 1000000000"),
    (CACHE, {("make", "new_tokens"): 0, ("points", 0, "prompt"): 1}, "'new_tokens' of make cannot be 0"),
])
def test_what_is_out_of_bounds_is_named(tmp_path, body, changes, says):
    body = copy.deepcopy(body)
    for place, value in changes.items():
        body = put(body, place, value)
    assert says in shown(tmp_path / "experiments" / "x.json", body)


def test_a_key_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "depth.json"
    content = (FOLDER / "depth.json").read_bytes()
    path.write_bytes(content.replace(b'"validation":[', b'"validation":[9],"validation":[', 1))
    with pytest.raises(UserError, match="a key stands twice"):
        load_experiment(path)


def test_what_is_no_file_or_too_large_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(UserError, match="no regular file"):
        load_experiment(tmp_path / "pipe.json")
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(2**33)
    with pytest.raises(UserError, match="too large"):
        load_experiment(tmp_path / "large.json")


@pytest.mark.parametrize("ys", [[1e-15, 3e-15], [0.0, 1e-300], [1e16, 1e16 + 2], [3e38, -3e38], [5, 5 + 1e-15],
                                [-1e-9, 0]])
@pytest.mark.parametrize("zero", [False, True])
def test_values_of_any_size_can_be_drawn(ys, zero):
    drawn = plot([Series([1, 2], ys, 0)], Size(400, 200, right=80), zero=zero)
    heights = [y for _, y in drawn.series[0].points]
    assert all(0 <= y <= 200 for y in heights)
    assert len({tick.text for tick in drawn.y_ticks}) >= 2
