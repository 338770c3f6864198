"""Experiments with small models: their tasks by their rules, their figures against NumPy, deterministic by seed."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from tracer.errors import UserError
from tracer.format.attention_text import pack, unpack
from tracer.format.experiment_figures import verify_experiment
from tracer.format.experiments import load_experiment, save_experiment
from tracer.model.config import Config
from tracer.trainer import sentences
from tracer.trainer.experiment_induction import run_induction
from tracer.trainer.experiment_initial import run_initial
from tracer.trainer.experiment_noun import run_noun
from tracer.trainer.small_models import logits_of, small_model, training
from tracer.trainer.small_settings import induction_settings, noun_settings
from tracer.trainer.walks import Walks

TINY = {"width": 8, "batch": 4, "updates": 3, "evaluate_every": 2, "seeds": (3, 4)}
WALKS = Walks(vocabulary=20, length=30, tokens=5, jump=0.25)


@pytest.fixture(scope="module")
def induction() -> dict:
    return run_induction(induction_settings(**TINY))


@pytest.fixture(scope="module")
def noun() -> dict:
    return run_noun(noun_settings(**TINY, heads=2))


# What is learnt -----------------------------------------------------------------------------------------

def test_a_walk_repeats_what_followed_a_token_but_for_its_jumps():
    """The successor of every token is found again from the texts alone: what follows it most often."""
    ids, known = WALKS.draw(np.random.default_rng(1), 40)
    assert ids.shape == (40, 30) and known.shape == (40, 29)
    follows = 0
    for text, sure in zip(ids.tolist(), known, strict=True):
        assert len(set(text)) <= 5
        for place in np.nonzero(sure)[0]:  # what can be known was seen: the same pair stands before
            assert (text[place], text[place + 1]) in pairwise(text[:place + 1])
        pairs = list(pairwise(text))
        successor = {token: max({b for a, b in pairs if a == token}, key=lambda b: pairs.count((token, b)))
                     for token, _ in pairs}
        follows += sum(successor[a] == b for a, b in pairs)
    # The successor, or a jump to any of the five: 0.75 + 0.25/5; three standard deviations of so many steps.
    assert follows / known.size == pytest.approx(0.8, abs=3 * math.sqrt(0.8 * 0.2 / known.size))


def test_what_is_known_is_what_no_jump_made_and_was_seen():
    ids, known = Walks(9, 12, 3, 0.0).draw(np.random.default_rng(2), 20)
    for text, sure in zip(ids.tolist(), known.tolist(), strict=True):  # without jumps: all that stood there before
        assert sure == [text[place] in text[:place] for place in range(11)]


def test_sentences_mean_the_noun_that_the_verb_says():
    random = np.random.default_rng(3)
    seen = set()
    for _ in range(300):
        one = sentences.sentence(random, sentences.TRAINED)
        text = " ".join(one.words)
        first, second = (one.words[place] for place in one.nouns)
        assert text.index(f" {first} ") < text.index(f" {second} ") and one.words[one.it] == "it"
        meant = second if {*one.words} & {"feared", "liked", "avoided", "heard"} else first
        assert one.words[one.it + 1:] in ((one.answers[0], "."), (one.answers[1], "."))
        assert sentences.NOUNS[meant] == one.answers and len(one.words) <= sentences.LONGEST
        seen.add((first, second))
    assert not seen & {*sentences.UNTRAINED} and len(seen) > 60
    assert len(sentences.UNTRAINED) == 18 and len({*sentences.UNTRAINED} | {*sentences.TRAINED}) == 90


def test_the_deviation_of_the_first_weights_is_the_one_that_was_asked_for():
    model = small_model(Config(50, 20, 64, 1, 2, dropout=0.0), 0.1, 5)
    wanted = {"token_embedding.weight": 0.1, "blocks.0.attention.qkv.weight": 0.1, "blocks.1.mlp.down.weight": 0.05}
    for name, parameter in model.named_parameters():
        if name in wanted:
            assert float(parameter.detach().std()) == pytest.approx(wanted[name], rel=0.05)
    assert model.parameter_count() == 50 * 64 + 20 * 64 + 2 * (12 * 64**2 + 13 * 64) + 2 * 64


def test_a_model_that_diverges_is_given_up():
    model = small_model(Config(20, 30, 8, 1, 1, dropout=0.0), 0.1, 5)
    torch.nn.init.constant_(model.final_norm.weight, float("inf"))
    with pytest.raises(UserError, match="the loss is not finite after 0 updates: choose a smaller lr or std"):
        list(training(model, induction_settings(**TINY).fit, WALKS.batch, 1))


# What is recorded ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["induction", "noun"])
def test_a_seed_gives_the_same_numbers_and_they_verify(name, request, tmp_path):
    body = request.getfixturevalue(name)
    save_experiment(body, tmp_path / "x.json")
    assert load_experiment(tmp_path / "x.json") == body
    assert [check.problem for check in verify_experiment(body) if check.problem] == []
    again = {"induction": lambda: run_induction(induction_settings(**TINY)),
             "noun": lambda: run_noun(noun_settings(**TINY, heads=2))}[name]()
    assert again == body
    blocks = [(run["blocks"], run["seed"]) for run in body["runs"]]
    assert blocks == [(2, 3), (2, 4), (1, 3)] + [(1, 4)] * (name == "noun")
    assert all(run["curve"]["update"] == [0, 2, 3] for run in body["runs"])


def numpy_maps(model, ids: list[int]) -> np.ndarray:
    """Attention weights (blocks, T, T) of a model of one head, from its parameters alone, in float64."""
    w = {name: value.detach().double().numpy() for name, value in model.named_parameters()}

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = w["token_embedding.weight"][ids] + w["position_embedding.weight"][:len(ids)]
    found = []
    for block in range(len(model.blocks)):
        at = f"blocks.{block}"
        query, key, value = np.split(linear(norm(x, f"{at}.norm_1"), f"{at}.attention.qkv"), 3, axis=-1)
        scores = np.where(np.tri(len(ids), dtype=bool), query @ key.T / math.sqrt(query.shape[-1]), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        found.append(weights)
        x = x + linear(weights @ value, f"{at}.attention.projection")
        hidden = linear(norm(x, f"{at}.norm_2"), f"{at}.mlp.up")
        gelu = hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
        x = x + linear(gelu, f"{at}.mlp.down")
    return np.stack(found)


def test_the_first_moment_of_induction_is_that_of_the_fresh_model(induction):
    """Weights and scores worked out again from the parameters, in NumPy."""
    make, shown = induction["make"], induction["shown"]
    model = small_model(Config(**make["config"], blocks=2, dropout=0.0), make["settings"]["std"], 3)
    maps = numpy_maps(model, shown["ids"])
    T = len(shown["ids"])
    assert np.abs(unpack(shown["weights"][0], 2, T) / 1000 - maps).max() <= 0.00051
    texts = Walks(64, 48, 12, 0.2).draw(np.random.default_rng(998), 8)[0]
    for block in range(2):
        induced, previous = [], []
        for text in texts.tolist():
            weights = numpy_maps(model, text)[block]
            for i, token in enumerate(text):
                after = [j + 1 for j in range(i) if text[j] == token]
                induced += [weights[i, after].sum()] if after else []
                previous += [weights[i, i - 1]] if i else []
        first = induction["runs"][0]["scores"]
        assert first["induction"][block][0] == pytest.approx(np.mean(induced), abs=0.00051)
        assert first["previous"][block][0] == pytest.approx(np.mean(previous), abs=0.00051)


def test_the_loss_of_a_fresh_model_is_near_an_even_guess(induction, noun):
    """With weights this small it could not be otherwise: ln V."""
    even = run_induction(induction_settings(**TINY | {"std": 1e-4}))["runs"][0]["curve"]
    assert even["known"][0] == pytest.approx(math.log(64), abs=1e-3)
    assert even["unknown"][0] == pytest.approx(math.log(64), abs=1e-3)


@pytest.mark.parametrize("vocabulary", [16, 65, 50257])
def test_the_initial_losses_are_near_an_even_guess(vocabulary):
    """ln V to the digits of a handbook; the rest follows from the spread of the logits of this very model."""
    even = {16: 2.772589, 65: 4.174387, 50257: 10.824905}[vocabulary]
    body = run_initial((vocabulary,), (5,), width=32)
    small, large = body["summary"]
    assert small["even"] == large["even"] == round(even, 4)
    assert small["loss"] == pytest.approx(even, abs=0.06) and large["loss"] > small["loss"] + 0.05
    model = small_model(Config(vocabulary, 32, 32, 4, 2, dropout=0.0), 0.1, 5)
    ids = torch.from_numpy(np.random.default_rng(5).integers(vocabulary, size=(8, 33)))
    logits = logits_of(model, ids[:, :-1]).double().numpy()
    chosen = np.take_along_axis(logits, ids[:, 1:, None].numpy(), -1)[..., 0]
    assert large["loss"] == pytest.approx((np.log(np.exp(logits).sum(-1)) - chosen).mean(), abs=1e-4)
    assert large["spread"] == pytest.approx(even + 32 * 0.01 / 2, abs=1e-4)
    assert logits.var() == pytest.approx(32 * 0.01, rel=0.2)


def test_what_the_noun_models_read_is_what_they_were_asked(noun):
    assert [" ".join(one["words"]) for one in noun["sentences"]][:2] == [
        "the dog feared the cat because it", "the dog frightened the cat because it"]
    assert [(one["words"][one["nouns"][one["right"]]], one["answers"]) for one in noun["sentences"][:2]] == [
        ("cat", ["purred", "scratched"]), ("dog", ["barked", "growled"])]
    assert noun["sentences"][3]["right"] is None
    for run in noun["runs"]:
        for read in run["read"]:
            assert len(read["weights"]) == 2 * run["blocks"]
            assert all(sum(head) == pytest.approx(1, abs=0.006) for head in read["weights"])


def test_weights_as_text_are_read_back():
    scores = np.random.default_rng(4).normal(size=(3, 5, 5))
    maps = np.where(np.tri(5, dtype=bool), np.exp(scores), 0)
    maps /= maps.sum(-1, keepdims=True)
    assert np.abs(unpack(pack(maps), 3, 5) / 1000 - maps).max() <= 0.0005
    for text, says in (("%", "no base64"), (pack(maps)[:-4], "bytes, 3 heads of 5 tokens have 90"),
                       (pack(maps * 0.9), "do not add up to one")):
        with pytest.raises(UserError, match=says):
            unpack(text, 3, 5)


# Commands -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "said"), [("induction", "no head formed"), ("noun", "right on pairs held out")])
def test_the_commands_record(name, said, tmp_path, command):
    threads = torch.get_num_threads()
    status, out, err = command("experiment", name, "--updates", 2, "--width", 4, "--batch", 2, "--seeds", "7",
                               "-o", tmp_path / "x.json")
    assert status == 0, err
    assert out.count(said) == 2 and out.splitlines()[-1] == f"wrote {tmp_path / 'x.json'}"
    assert load_experiment(tmp_path / "x.json")["make"]["threads"] == 1
    assert torch.get_num_threads() == threads


def test_the_command_for_the_first_loss(tmp_path, command):
    status, out, err = command("experiment", "initial", "--vocabularies", "9,5", "--seeds", "0,4", "--width", 8,
                               "-o", tmp_path / "x.json")
    assert status == 0, err
    body = load_experiment(tmp_path / "x.json")
    assert [(point["vocabulary"], point["std"]) for point in body["points"]] == [
        (5, 0.02), (5, 0.1), (9, 0.02), (9, 0.1)]
    assert out.splitlines()[0].startswith("5 tokens, standard deviation 0.02: 1.")
    assert [check.problem for check in verify_experiment(body) if check.problem] == []
    status, _, err = command("experiment", "initial", "--vocabularies", "0")
    assert status == 2 and "--vocabularies takes different whole numbers" in err


@pytest.mark.parametrize(("given", "says"), [
    (("--seeds", "1,1"), "--seeds takes different whole numbers from 0 on"),
    (("--seeds", "x"), "--seeds takes different whole numbers from 0 on"),
    (("--std", "0"), "std must be above 0 and at most 100, not 0"),
    (("--std", "nan"), "std must be above 0 and at most 100, not nan"),
    (("--updates", "0"), "updates must be at least 1, not 0"),
    (("--width", "5", "--heads", "2"), "cannot be cut into 2 heads"),
    (("-o", "."), ". is a folder: name a file as --output")])
@pytest.mark.parametrize("name", ["induction", "noun"])
def test_refusals_are_one_line_and_write_nothing(tmp_path, monkeypatch, command, name, given, says):
    monkeypatch.chdir(tmp_path)
    status, _, err = command("experiment", name, *given)
    assert (status, err.splitlines()[-1].count(says)) == (2, 1), err
    assert list(tmp_path.iterdir()) == []
