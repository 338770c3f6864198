"""A recording of a route whose structure is not what the pages need is refused, every hash made to fit."""

import gzip
import shutil
from pathlib import Path

import orjson
import pytest
from damage import Damage, record_tiny, reseal

from tracer.errors import UserError
from tracer.format.files import save
from tracer.format.load import load


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    """Both recordings; the generation is the one of version 1 that has two rounds."""
    folder = tmp_path_factory.mktemp("structure")
    record_tiny(folder)
    path = folder / "generation.json"
    path.write_bytes(gzip.decompress((Path(__file__).parent / "version_1" / "generation.json.gz").read_bytes()))
    save(load(path), path)
    return folder


def step(body: dict, name: str) -> dict:
    return next(one for chapter in body["chapters"] for one in chapter["steps"] if one["id"] == name)


def run(body: dict, kind: str, round: int | None = None) -> dict:
    return next(one for one in body["passes"] if (one["kind"], one.get("round")) == (kind, round))["arrays"]


def table(body: dict) -> dict:
    return next(one for one in body["parameters"] if one["role"] == "token_table")


def swap_roles(body: dict, one: str, other: str) -> None:
    """In every pass and on the way back."""
    for chapter in body["chapters"]:
        for each in chapter["steps"]:
            if each["id"].endswith((f".{one}", f".{other}")):
                each["role"] = {"attention": "mlp", "mlp": "attention"}[each["role"]]


def swap_back(body: dict, one: str, other: str) -> None:
    for name, of in ((one, other), (other, one)):
        step(body, f"grad.{name}").update(of=of, role=step(body, of)["role"])


def parameter(body: dict, name: str) -> dict:
    return next(one for one in body["parameters"] if one["name"] == name)


def reblock(body: dict, name: str, block: int | None) -> None:
    for one in (parameter(body, name), step(body, f"adamw.{name}")):
        one.pop("block")
        if block is not None:
            one["block"] = block


def rerole(body: dict, name: str, role: str) -> None:
    for one in (parameter(body, name), step(body, f"adamw.{name}")):
        one["role"] = role


def swap_arrays(body: dict, one: str, other: str, role: str) -> None:
    first, second = (parameter(body, name)["arrays"] for name in (one, other))
    first[role], second[role] = second[role], first[role]


CHANGES = {
    "another block": ("training", lambda b: step(b, "blocks.0.norm_1").update(block=1), "does not belong into chapter"),
    "another direction": ("training",
        lambda b: step(b, "head").update(direction="backward", of="loss"), "does not belong"),
    "another forward step": ("training", lambda b: step(b, "grad.head").update(of="loss"), "grad.head does not belong"),
    "an unknown role": ("training", lambda b: step(b, "final_norm").update(role="last"), "final_norm does not belong"),
    "another parameter": ("training",
        lambda b: step(b, "adamw.final_norm.bias").update(of="final_norm.weight", role="matrix"),
                          "final_norm.bias does not belong"),
    "another chapter": ("training",
        lambda b: b["chapters"][2].update(kind="head", block=0), "chapter head 0 belongs to no"),
    "a chapter that is a file": ("training",
        lambda b: b["chapters"][0].update(id="rest"), "cannot be the name of a chapter"),
    "a chapter elsewhere": ("training",
        lambda b: b["chapters"][0].update(id="../up"), "cannot be the name of a chapter"),
    "no loss": ("training", lambda b: run(b, "first").pop("loss"), "pass first has no loss"),
    "another loss": ("training", lambda b: run(b, "again").update(loss="loss"), "is shown in no step of that pass"),
    "targets of another kind": ("training",
        lambda b: run(b, "first").update(targets="cross_entropy"), "targets of pass first"),
    "a role of nothing": ("training", lambda b: b["roles"].update(more="x"), "has the role 'more'"),
    "no pass again": ("training", lambda b: b["passes"].pop(1), "of a pass that there is not"),
    "passes in another order": ("training", lambda b: b["passes"].reverse(), "its passes are in another order"),
    "no token table": ("training", lambda b: table(b).update(role="matrix"),
        "which cannot be|is the token table|has the role"),
    "a gradient of nothing": ("training",
        lambda b: table(b)["arrays"].update(gradient="trained.token_embedding.weight"),
                              "gradient of parameter"),
    "ids of another text": ("training",
        lambda b: b["texts"]["training"].update(ids="validation.ids"), "merges of text|ids of"),
    "numbers of another round": ("generation", lambda b: run(b, "round", 2).update(token="round1.sampler.draw.token"),
                                 "is of two passes"),
    "another draw": ("generation",
        lambda b: run(b, "cached", 2).update(uniform="round1.uniform"), "draws with another number"),
    "no choices": ("generation",
        lambda b: step(b, "round1.choices").update(kind=""), "does not belong|has not one step"),
    "a step of another round": ("generation", lambda b: step(b, "round2.append").update(round=1), "does not belong"),
    "the block of a step of another pass": ("generation",
        lambda b: step(b, "round1.blocks.0.attention.softmax").update(block=1), "do not go through its blocks"),
    "a block of a step outside of the model": ("generation",
        lambda b: step(b, "round1.bytes").update(block=0), "round1.bytes does not belong"),
    "the other text of an evaluation": ("training",
        lambda b: step(b, "evaluation.training.blocks.0.norm_2").update(split="validation"),
        "evaluation.training are not those of the model|is shown in no step"),
    "norms that change their roles": ("training", lambda b: swap_roles(b, "norm_1", "norm_2"),
        "is not where a step"),
    "dropouts that go back one for the other": ("training",
        lambda b: swap_back(b, "blocks.0.attention.dropout", "blocks.0.mlp.dropout"), "goes back through"),
    "another block of a parameter": ("training", lambda b: reblock(b, "blocks.0.mlp.up.bias", None),
        "is not read at one place of its block"),
    "a role of a parameter that is read otherwise": ("training",
        lambda b: rerole(b, "blocks.0.attention.qkv.bias", "vector"), "is read as a query_key_value_bias"),
    "values of another parameter": ("training", lambda b: swap_arrays(
        b, "blocks.0.norm_1.bias", "blocks.0.norm_2.bias", "trained"), "is not read at one place"),
    "a gradient of another parameter": ("training", lambda b: swap_arrays(
        b, "blocks.0.norm_1.bias", "blocks.0.norm_2.bias", "gradient"), "has another gradient"),
    "moments of another parameter": ("training", lambda b: swap_arrays(
        b, "blocks.0.norm_1.bias", "blocks.0.norm_2.bias", "m"), "has another"),
    "a change of another parameter": ("generation", lambda b: swap_arrays(
        b, "blocks.0.norm_1.bias", "blocks.0.norm_2.bias", "change"), "has another"),
    "a step of another parameter": ("generation",
        lambda b: step(b, "parameters.blocks.0.norm_1.bias").update(of="blocks.0.norm_2.bias"),
        "is the second one of parameter|is not shown in a step of it"),
    "a prompt that is no text": ("generation",
        lambda b: b["texts"].update(training=b["texts"].pop("prompt")), "its texts are"),
}


@pytest.mark.parametrize(("route", "change", "says"), CHANGES.values(), ids=CHANGES)
def test_it_is_refused(tiny, tmp_path, route, change, says):
    body = orjson.loads((tiny / f"{route}.json").read_bytes())
    change(body)
    path = tmp_path / f"{route}.json"
    shutil.copytree(tiny, tmp_path, dirs_exist_ok=True)
    path.write_bytes(orjson.dumps(body))
    reseal(Damage("structure", path, b""), path)
    with pytest.raises(UserError, match=says):
        load(path)
