"""AdamW in recordings of version 1, which did not say the moments before the update: they were zero."""

import numpy as np
import orjson
import pytest
import torch

from tracer.errors import UserError
from tracer.format.load import load
from tracer.format.trace import content_hash
from tracer.format.verify import verify

ADAMW = {"lr": 0.02, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.01}


def array(values, **more) -> dict:
    numbers = np.asarray(values, np.float32)
    return {"shape": list(numbers.shape), "dtype": "float32", "axes": ["feature"],
            "values": [float(repr(value)) for value in numbers.tolist()], **more}


@pytest.fixture
def body() -> dict:
    """One update of three numbers by torch's own AdamW, as version 1 wrote it."""
    before, gradient = torch.tensor([0.5, -0.25, 2.0]), torch.tensor([0.1, -3.0, 1e-9])
    parameter = torch.nn.Parameter(before.clone())
    parameter.grad = gradient.clone()
    settings = {"lr": 0.02, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.01}
    optimizer = torch.optim.AdamW([parameter], fused=False, foreach=False, **settings)
    optimizer.step()
    state = optimizer.state[parameter]
    made = {"m": state["exp_avg"], "v": state["exp_avg_sq"], "after": parameter.detach()}
    reads = {"m": ["gradient"], "v": ["gradient"], "after": ["m", "v", "before"]}
    names = {"before": "w", "gradient": "grad.w", **{name: f"adamw.w.{name}" for name in made}}
    sources = {"w": before, "grad.w": gradient}
    needs = {"m": ["beta1"], "v": ["beta2"], "after": [*ADAMW]}
    return {
        "schema": "two-routes/trace", "version": 1, "route": "by hand", "make": {}, "summary": {}, "labels": {},
        "chapters": [{"id": "adamw", "views": [
            {"id": "adamw.w", "steps": [names[name] for name in made], "arrays": [*sources]}]}],
        "arrays": {name: array(values, sha256=content_hash(values.numpy())) for name, values in sources.items()}
        | {names[name]: array(values) for name, values in made.items()},
        "steps": [{"id": names[name], "kind": "adamw", "target": name,
                   "operands": {operand: names[operand] for operand in reads[name]},
                   "attributes": {setting: ADAMW[setting] for setting in needs[name]}
                   | ({"step": 1} if name == "after" else {})} for name in made],
        "outline_sha256": "0" * 64,
    }


def test_the_moments_before_it_are_put_in_as_zeros(body, tmp_path):
    path = tmp_path / "adamw.json"
    path.write_bytes(orjson.dumps(body))
    trace = load(path)
    assert [check.name for check in verify(trace) if check.problem] == ["outline"]  # the hash here is none
    assert trace.chapters[0].steps[0].operations == [
        "adamw.w.m_before", "adamw.w.v_before", "adamw.w.m", "adamw.w.v", "adamw.w.after"]
    assert trace.operations["adamw.w.v"].operands == {"gradient": "grad.w", "v_before": "adamw.w.v_before"}
    assert trace.operations["adamw.w.after"].settings["update"] == 1
    before = trace.arrays["adamw.w.m_before"]
    assert before.derived and before.shape == (3,) and trace.operations[before.name].kind == "initial_moments"


def test_an_update_that_did_not_begin_from_zero_is_found_wrong(body, tmp_path):
    body["arrays"]["adamw.w.m"]["values"][0] *= 1.001
    path = tmp_path / "adamw.json"
    path.write_bytes(orjson.dumps(body))
    assert "adamw.w.m" in [check.name for check in verify(load(path)) if check.problem]


def test_a_step_of_version_1_without_operands_is_refused_in_one_line(body, tmp_path):
    del body["steps"][0]["operands"]
    path = tmp_path / "adamw.json"
    path.write_bytes(orjson.dumps(body))
    with pytest.raises(UserError, match="not as recordings of that version were written"):
        load(path)
