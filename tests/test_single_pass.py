"""One pass of a small trained model: against the model's own numbers, and what no such recording may say."""

from pathlib import Path

import numpy as np
import orjson
import pytest
import torch
from drawn import SHAPES
from driver import DESK, WORDS, address, visit
from passes import IDS, LABELS, LLAMA, SETTINGS, TARGETS, model, recorded_pass
from torch.nn import functional as F

from site_builder.build import build
from site_builder.language import languages
from tracer.errors import UserError
from tracer.format.files import save
from tracer.format.load import load
from tracer.format.trace import Trace
from tracer.format.verify import verify
from tracer.model.gpt import GPT
from tracer.recording.single_pass import record_pass

TRACES = Path(__file__).resolve().parent.parent / "traces"

@pytest.mark.parametrize("choices", [{}, LLAMA], ids=["GPT-2", "Llama"])
def test_a_recorded_pass_is_what_the_model_computes(choices, tmp_path):
    made = model(**choices)
    save(recorded_pass(made), tmp_path / "pass.json")
    trace = load(tmp_path / "pass.json")
    assert (tmp_path / "pass.json").stat().st_size < 300_000
    assert [check for check in verify(trace) if check.problem] == []
    fused = GPT(made.config, explicit=False).eval()  # one kernel for attention
    fused.load_state_dict(made.state_dict())
    logits = fused(torch.tensor([IDS]), torch.tensor([TARGETS]))[0][0]
    arrays = trace.arrays_of("single")
    np.testing.assert_allclose(trace.values(arrays["logits"]), logits.detach(), atol=1e-5)
    F.cross_entropy(logits, torch.tensor(TARGETS)).backward()
    for one in trace.parameters:
        wanted = fused.get_parameter(one.name).grad
        np.testing.assert_allclose(trace.values(one.arrays["gradient"]), wanted, rtol=2e-5, atol=1e-5, err_msg=one.name)
    assert trace.summary["ids"] == IDS and trace.summary["targets"] == TARGETS
    assert trace.label_list(trace.arrays[arrays["ids"]].labels["position"]) == ["the", "dog", "saw", "a"]


def test_without_targets_the_last_position_alone_has_logits():
    made = model()
    trace = recorded_pass(made, None)
    assert [chapter.kind for chapter in trace.chapters] == ["embedding", "block", "block", "head"]
    assert trace.values(trace.arrays_of("single")["logits"]).shape == (1, len(LABELS))
    assert {*trace.parameters[0].arrays} == {"trained"}


def test_the_model_is_left_as_it_was():
    made = model()
    made.explicit = False
    made.final_norm.weight.grad = torch.ones(8)
    recorded_pass(made)
    assert made.training and not made.explicit
    assert torch.equal(made.final_norm.weight.grad, torch.ones(8)) and made.token_embedding.weight.grad is None


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> tuple[Trace, Path]:
    folder, site = (tmp_path_factory.mktemp(name) for name in ("passes", "site"))
    for path in TRACES.iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "passes").unlink(missing_ok=True)
    (folder / "passes").mkdir()
    trace = recorded_pass(model())
    save(trace, folder / "passes" / "tiny.json")
    save(recorded_pass(model(**LLAMA), None), folder / "passes" / "llama.json")
    build(folder, site)
    return trace, site


def test_its_pages_are_built_in_every_language(shown):
    _, site = shown
    found = {path.relative_to(site).as_posix() for path in site.glob("*/pass-*.html")}
    assert found == {f"{one}/pass-{name}.html" for one in languages() for name in ("tiny", "llama")}
    assert "pass-" not in (site / "en" / "index.html").read_text(encoding="utf-8")


def test_a_number_opens_and_no_update_is_told(shown, new_page):
    trace, site = shown
    page = visit(new_page(viewport=DESK, reduced_motion="reduce"),
                 address(site, "pass-tiny", "en", "#step=loss&of=loss&at="))
    page.evaluate("() => tools.until(() => document.querySelector('#number .big'))")
    shown_loss = float(page.inner_text("#number .big").split()[0])
    assert shown_loss == pytest.approx(float(trace.values("loss")), rel=1e-3)
    page.evaluate("() => tools.goTo('#step=loss&view=route')")
    page.wait_for_function("() => document.querySelector('figure.stage').stage.drawing")
    said = [shape["text"] for shape in page.evaluate(SHAPES) if shape.get("text")]
    assert any(text.startswith("loss ") for text in said)
    assert WORDS["en"]("picture.route.moved") not in said


def test_twice_the_same_bytes(tmp_path):
    contents = set()
    for name in ("one", "other"):
        save(recorded_pass(model()), tmp_path / f"{name}.json")
        contents.add((tmp_path / f"{name}.json").read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize(("given", "message"), [
    ({"ids": []}, "a pass of 0 tokens"), ({"ids": [0] * 6, "targets": None}, "the context holds from 1 to 5"),
    ({"ids": [0, 6], "targets": None}, "there is no token 6"), ({"ids": [0], "targets": [1, 2]}, "2 targets for 1 ids"),
    ({"ids": [0], "targets": [-1]}, "there is no token -1")])
def test_what_the_model_cannot_read_is_refused(given, message):
    with pytest.raises(UserError, match=message):
        recorded_pass(model(), **given)


def test_tokens_have_one_name_each():
    with pytest.raises(UserError, match="there are 2 names of tokens, the model knows 6"):
        record_pass(model(), IDS, labels=["a", "b"], trained_on="nothing", settings=SETTINGS)


def without(*path):
    def change(body):
        for key in path[:-1]:
            body = body[key]
        del body[path[-1]]
    return change


@pytest.mark.parametrize(("change", "message"), [
    (without("make", "trained_on"), "make has no 'trained_on'"),
    (without("make", "settings", "seed"), "make.settings has no 'seed'"),
    (without("passes", 0, "arrays", "loss"), "lacks the role 'loss'"),
    (without("passes", 0, "arrays", "ids"), "pass single has no ids"),
    (without("passes", 0, "arrays", "targets"), "without targets"),
    (without("parameters", 0, "arrays", "gradient"), "lacks the role 'gradient'"),
    (without("chapters", -1), "is shown in no step|there is no chapter backward"),
    (lambda body: body["make"]["settings"].update(lr=[]), "make.settings.lr is \\[\\]"),
    (lambda body: body["roles"].update(loss_change="loss"), "does not know"),
    (lambda body: body["texts"].update(prompt={"ids": "ids"}), "its texts are"),
    (lambda body: body["passes"][0].update(kind="first"), "pass"),
])
def test_what_is_no_such_recording_is_refused(change, message, tmp_path):
    path = tmp_path / "pass.json"
    save(recorded_pass(model()), path)
    body = orjson.loads(path.read_bytes())
    change(body)
    path.write_bytes(orjson.dumps(body))
    with pytest.raises(UserError, match=message) as caught:
        load(path)
    assert len(str(caught.value).splitlines()) == 1


def test_other_values_of_a_parameter_are_found(tmp_path):
    path = tmp_path / "pass.json"
    save(recorded_pass(model()), path)
    body = orjson.loads(path.read_bytes())
    body["make"]["trained_on"] = "something"
    path.write_bytes(orjson.dumps(body))
    assert any("checkpoint" in check.problem for check in verify(load(path)))
