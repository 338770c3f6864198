"""An early moment of the training, and what comes next at every moment: recorded, kept, shown."""

import copy

import numpy as np
import pytest
import torch
from driver import DESK, address, visit

from tracer.errors import UserError
from tracer.format import origin
from tracer.format.files import save
from tracer.format.load import load
from tracer.format.trace import AXES
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.ops.replay import Replay
from tracer.recording.checkpoint import load_checkpoint, save_checkpoint
from tracer.recording.training import TrainingJob, record_training

NAMES = ("series_candidates", "series_candidate_logits", "series_log_sum_exp", "series_candidate_probability")
TINY = TrainingJob("Hi", "Hi", Config(context=4, width=4, heads=1, blocks=1), TrainingSettings(updates=3))


@pytest.fixture(scope="module")
def moments(training_trace):
    return [training_trace.values(training_trace.roles[name]) for name in NAMES]


def likeliest(logits: np.ndarray) -> np.ndarray:
    return np.sort(logits.astype(np.float64), axis=-1)[..., :-6:-1]


def test_the_last_moment_is_what_the_evaluation_of_the_text_says(training_trace, moments):
    """The same parameters, the same text, both without dropout; the logits here from the recorded table by NumPy."""
    ids, logits, _, p = moments
    evaluation = training_trace.arrays_of("evaluation", split="training")
    whole = Replay(training_trace, AXES).values(evaluation["logits"]).astype(np.float64)
    np.testing.assert_allclose(logits[-1], likeliest(whole), rtol=2e-6)
    assert (ids[-1, :, 0] == whole.argmax(-1)).all()
    shares = np.exp(whole - whole.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    np.testing.assert_allclose(p[-1], np.take_along_axis(shares, ids[-1], -1), rtol=2e-5)


def test_before_the_first_update_no_token_is_likely(moments):
    assert moments[3][0].max() < 1e-4 and len(moments[0]) == 121


def test_the_early_generation_begins_where_that_moment_stands(recordings, moments):
    early, updates = recordings["early"], recordings["training"].make["early_updates"]
    assert early.make["updates"] == updates == 20 and early.make["prompt"] == "Hi"
    logits = early.values(early.arrays_of("round", round=1)["logits"])
    np.testing.assert_allclose(moments[1][updates, 0], likeliest(logits)[0], rtol=2e-6)


def test_there_the_dice_matter(recordings):
    """Every drawn token has 20 to 80 %, one of them is not the likeliest, and the text is not the one learnt."""
    early = recordings["early"]
    drawn = [one["probability"] for one in early.summary["rounds"]]
    assert len(drawn) == 6 and min(drawn) > 0.2 and max(drawn) <= 0.8
    assert any(early.values(early.arrays_of("round", round=n)["choice"]) > 0 for n in range(1, 7))
    assert early.summary["text"] == "Hi 你!!" != recordings["generation"].summary["text"]
    assert min(one["probability"] for one in recordings["generation"].summary["rounds"]) > 0.99


# Kept ------------------------------------------------------------------------------------------------

def test_a_checkpoint_keeps_its_early_moment(tokenizer, tmp_path):
    _, made = record_training(TINY, tokenizer)
    save_checkpoint(made, tmp_path / "one.pt")
    again = load_checkpoint(tmp_path / "one.pt")
    assert again.early.step == made.early.step == 2  # all updates but one: 20 would be more than there are
    assert again.early.sha256() == made.early.sha256() != made.sha256()
    assert all(torch.equal(value, again.early.model.state_dict()[name])
               for name, value in made.early.model.state_dict().items())
    made.early = None
    save_checkpoint(made, tmp_path / "old.pt")  # as those were that knew of no early moment
    assert load_checkpoint(tmp_path / "old.pt").early is None


@pytest.mark.parametrize(("early", "says"), [
    (3, "early-updates must be from 0 to 2, before the last update, not 3"), (-1, "not -1")])
def test_a_moment_that_is_not_before_the_last_update_is_refused(tokenizer, early, says):
    with pytest.raises(UserError, match=says):
        record_training(TrainingJob(TINY.text, TINY.validation_text, TINY.config, TINY.settings, early), tokenizer)


def test_the_untrained_model_is_a_moment(tokenizer):
    training, made = record_training(
        TrainingJob(TINY.text, TINY.validation_text, TINY.config, TINY.settings, early=0), tokenizer)
    table = made.early.model.get_parameter("token_embedding.weight").detach().numpy()
    assert (table == training.values("token_embedding.weight")).all()


@pytest.mark.parametrize("known", ["another", "none"])
def test_an_early_recording_of_another_training_is_no_part_of_the_set(recordings, tmp_path, known):
    found = {route: origin.origin_of(trace) for route, trace in recordings.items()}
    origin.check_set(tmp_path, found)
    training = found["training"]
    found["training"] = origin.Origin("training", training.checkpoint, {}, "0" * 64 if known == "another" else "")
    with pytest.raises(UserError, match=r"early\.json was made from another training than training\.json"):
        origin.check_set(tmp_path, found)


def test_the_candidates_are_all_there_or_not_at_all(training_trace, tmp_path):
    damaged = copy.deepcopy(training_trace)
    del damaged.roles["series_log_sum_exp"]
    save(damaged, tmp_path / "training.json")
    with pytest.raises(UserError, match=r"series\.log_sum_exp|candidates of every moment"):
        load(tmp_path / "training.json")


# Shown -----------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def page(site, module_page):
    return visit(module_page(viewport=DESK, reduced_motion="reduce"), address(site, "training", "en",
                                                                              "#step=series.candidates&u=120"))


def bars(page) -> dict[str, str]:
    """What the picture says of the chosen moment: candidate → its share, as it is written."""
    shapes = page.evaluate("""() => document.querySelector("figure.stage").shapes
        .filter(({ key, text }) => key && text).map(({ key, text }) => [key, text])""")
    found = dict(shapes)
    return {found[f"{key[:-6]} name"]: text for key, text in found.items() if key.endswith(" share")}


def test_a_slider_goes_through_the_moments(page, training_trace, moments):
    ids, _, _, p = moments
    vocabulary = training_trace.label_list("vocabulary")
    slider = page.locator("figure.stage .which input[type=range]")
    assert (slider.get_attribute("max"), slider.input_value()) == ("120", "120")
    position = page.evaluate("document.querySelector('figure.stage').stage.scene.index[1]")
    for moment in (0, 20, 60):
        slider.fill(str(moment))
        page.wait_for_function(f"() => document.querySelector('figure.stage').stage.scene.index[0] === {moment}")
        shown = list(bars(page).items())
        wanted = [(vocabulary[i], share) for i, share in zip(ids[moment, position], p[moment, position], strict=True)]
        assert [name for name, _ in shown[:-1]] == [name for name, _ in wanted]
        for (_, said), (_, share) in zip(shown, wanted, strict=False):
            assert float(said.replace("−", "-")) == pytest.approx(share, rel=2e-2 if share < 1e-3 else 6e-3)
        assert "/ 120" in page.locator("figure.stage .which output").inner_text()
        assert f"u={moment}" in page.url


def test_an_address_without_a_moment_shows_the_early_one(site, new_page):
    page = visit(new_page(viewport=DESK), address(site, "training", "en", "#step=series.candidates"))
    assert page.locator("figure.stage .which input[type=range]").input_value() == "20"
