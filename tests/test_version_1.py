"""Recordings of version 1 are read as ones of version 2: two small ones, which the last program of that version wrote.

``tests/version_1/``: a model of one block, width 2 and 258 ids, trained for one update and run for two rounds.
"""

import gzip
from pathlib import Path

import orjson
import pytest
from damage import TwoLetters

from tracer.errors import UserError
from tracer.format.load import load
from tracer.format.origin import check_set, origin_of
from tracer.format.roles import CANDIDATE_ROLES
from tracer.format.routes import MORE_TRAINING
from tracer.format.trace import Trace, outline_hash, structure_to_json
from tracer.format.verify import verify
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.training import TrainingJob, record_training

OLD = Path(__file__).resolve().parent / "version_1"
ROUTES = ("training", "generation")


def body_of(route: str) -> dict:
    return orjson.loads(gzip.decompress((OLD / f"{route}.json.gz").read_bytes()))


def loaded(folder: Path, route: str, body: dict) -> Trace:
    path = folder / f"{route}.json"
    path.write_bytes(orjson.dumps(body))
    return load(path)


@pytest.fixture(scope="module")
def again() -> dict[str, Trace]:
    """The same recorded by the program of today."""
    tokenizer = TwoLetters()
    config = Config(vocabulary=258, context=4, width=2, heads=1, blocks=1, dropout=0.1)
    training, checkpoint = record_training(TrainingJob("ab", "ca", config, TrainingSettings(updates=1)), tokenizer)
    return {"training": training,
            "generation": record_generation(GenerationJob("ab", max_new_tokens=2, top_k=2), checkpoint, tokenizer)}


def without_moments(trace: Trace) -> None:
    """Leave out what recordings hold since: the next tokens at every moment, and the early one."""
    for role in CANDIDATE_ROLES.keys() & trace.roles.keys():
        name = trace.roles.pop(role)
        del trace.arrays[name]
        trace.operations.pop(name, None)
    for chapter in trace.chapters:
        chapter.steps = [step for step in chapter.steps if step.role != "series_candidates"]
    for key in MORE_TRAINING:
        trace.make.pop(key, None)
    trace.labels.pop("moments", None)


@pytest.mark.parametrize("route", ROUTES)
def test_it_is_what_would_be_recorded_today(tmp_path, again, route):
    """Its names are taken apart to just what the recorder says where it makes the steps."""
    old, new = loaded(tmp_path, route, body_of(route)), again[route]
    assert body_of(route)["version"] == 1
    without_moments(new)
    assert structure_to_json(old) == structure_to_json(new)
    assert old.operations.keys() == new.operations.keys() and old.arrays.keys() == new.arrays.keys()
    for name, operation in old.operations.items():
        twin = new.operations[name]
        assert (operation.kind, operation.target, operation.operands, operation.settings) == (
            twin.kind, twin.target, twin.operands, twin.settings)
        assert [*operation.operands] == [*twin.operands]  # so they stand on the page
    assert old.make.keys() == new.make.keys()
    assert old.outline_sha256 == outline_hash(old)


def test_all_of_it_verifies_and_is_one_set(tmp_path):
    traces = {route: loaded(tmp_path, route, body_of(route)) for route in ROUTES}
    for trace in traces.values():
        assert [check for check in verify(trace) if check.problem] == []
    check_set(tmp_path, {route: origin_of(trace) for route, trace in traces.items()})


def test_a_changed_outline_is_found_by_the_hash_that_it_had(tmp_path):
    body = body_of("training")
    body["labels"]["used_rows"][0] = "another"
    found = [check.name for check in verify(loaded(tmp_path, "training", body)) if check.problem]
    assert "outline" in found


@pytest.mark.parametrize("change", [
    lambda body: body.pop("steps"), lambda body: body["make"].pop("token_table"),
    lambda body: body["chapters"][0].update(views=[7]), lambda body: body["chapters"].append({"id": "x", "views": [
        {"id": "adamw.nothing", "steps": [], "arrays": []}]}),
    lambda body: body.update(steps=[[]]), lambda body: body.update(arrays=[])])
def test_what_is_not_as_version_1_had_it_is_refused(tmp_path, change):
    body = body_of("training")
    change(body)
    with pytest.raises(UserError, match=r"of version 1, but not as recordings of that version were written"):
        loaded(tmp_path, "training", body)


@pytest.mark.parametrize("version", [0, 3, 99])
def test_other_versions_are_named_and_refused(tmp_path, version):
    with pytest.raises(UserError, match=rf"schema version {version}, this program reads version 1 and 2; record"):
        loaded(tmp_path, "training", body_of("training") | {"version": version})
