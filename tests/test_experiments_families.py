"""The experiment of the two other families: its tasks by their rules, its figures worked out again, and its command."""

import itertools

import numpy as np
import pytest
import torch

from tracer.errors import UserError
from tracer.format.attention_text import pack_whole, unpack_whole
from tracer.format.experiment_families import encoder_decoder_parameters, right_words
from tracer.format.experiment_figures import verify_experiment
from tracer.format.experiments import load_experiment, save_experiment
from tracer.model.config import Config
from tracer.model.families import Encoder, EncoderDecoder, draw_weights
from tracer.trainer import letters, masked_words
from tracer.trainer.experiment_families import TASK, fill_in, run_families, write
from tracer.trainer.sentences import ID, NOUNS, TRAINED, VERBS, WORDS
from tracer.trainer.small_settings import families_settings

TINY = {"width": 8, "batch": 4, "updates": 3, "evaluate_every": 2, "seeds": (3, 4)}


@pytest.fixture(scope="module")
def body() -> dict:
    return run_families(*families_settings(**TINY))


# What is learnt -----------------------------------------------------------------------------------------

def test_what_follows_is_the_word_from_its_end():
    words, written, follows = letters.draw(np.random.default_rng(1), 50)
    lengths = set()
    for word, before, after in zip(words.tolist(), written.tolist(), follows.tolist(), strict=True):
        text = "".join(letters.SIGNS[one] for one in word).rstrip("·")
        assert text.endswith(".") and text[:-1].isalpha()
        assert "".join(letters.SIGNS[one] for one in after).rstrip("·") == text[-2::-1] + "."
        assert "".join(letters.SIGNS[one] for one in before).rstrip("·") == ">" + text[-2::-1]
        lengths.add(len(text) - 1)
    assert lengths == {*range(3, 9)}


def test_one_word_of_a_sentence_is_masked_and_asked_for():
    ids, targets = masked_words.batch(np.random.default_rng(2), 200, TRAINED)
    places = np.argwhere(targets != -100)
    assert places[:, 0].tolist() == [*range(200)] and (ids[tuple(places.T)] == masked_words.MASK_ID).all()
    assert (ids == masked_words.MASK_ID).sum() == 200
    asked = {WORDS[targets[row, place]] for row, place in places}
    assert asked == {*VERBS, *NOUNS, *itertools.chain(*NOUNS.values())}  # over 200 sentences: all 38 of them


@pytest.mark.parametrize(("text", "right"), [
    ("the dog [mask] the cat because it purred .", ["feared", "liked", "avoided", "heard"]),
    ("the dog [mask] the cat because it barked .", ["frightened", "amused", "annoyed", "woke"]),
    ("the dog [mask] the cat because it hissed .", []),
    ("the dog feared the [mask] because it hissed .", ["snake"]),
    ("the [mask] feared the snake because it hissed .", [*NOUNS]),
    ("the [mask] feared the snake because it purred .", []),
    ("[mask]", [])])
def test_right_is_what_makes_the_sentence_hold(text, right):
    words = text.split()
    assert right_words(words, words.index("[mask]"), TASK) == right


# What is recorded ---------------------------------------------------------------------------------------

def test_seeds_give_the_same_numbers_and_they_verify(body, tmp_path):
    save_experiment(body, tmp_path / "x.json")
    assert load_experiment(tmp_path / "x.json") == body
    assert [check.problem for check in verify_experiment(body) if check.problem] == []
    assert run_families(*families_settings(**TINY)) == body
    assert [run["seed"] for run in body["reversing"]] == [3, 4]
    assert [(run["sides"], run["seed"]) for run in body["masked"]] == [
        ("both", 3), ("both", 4), ("left", 3), ("left", 4)]
    assert all(run["curve"]["update"] == [0, 2, 3] for run in body["reversing"] + body["masked"])


@pytest.mark.parametrize("blocks", [1, 3])
def test_parameters_are_counted_from_the_shape(blocks):
    config = Config(29, 9, 16, 2, blocks, dropout=0.0)
    model = EncoderDecoder(config, fill=0)
    assert encoder_decoder_parameters(config.to_json()) == sum(one.numel() for one in model.parameters())
    # 29 letters, twice 9 places, twice a block of 12·16² + 13·16, twice a last norm, and cross-attention with its norm.
    assert encoder_decoder_parameters(config.to_json()) == 47 * 16 + 64 + blocks * (
        2 * (12 * 256 + 13 * 16) + 4 * 256 + 4 * 16 + 32)


@torch.no_grad()
def test_the_first_moment_is_that_of_the_fresh_model_word_by_word(body):
    """Each word alone, without what fills it up, letter by letter; weights from the vectors by hand."""
    model = EncoderDecoder(Config(29, 9, 8, 1, 1, dropout=0.0), fill=0).eval()
    torch.manual_seed(3)
    draw_weights(model, 0.1)
    cross, right, looks = model.blocks[0].cross_attention, [], []
    given = []
    cross.register_forward_hook(lambda _module, inputs, _out: given.append(inputs[:2]))

    def written(ids: list[int]) -> tuple[list[int], np.ndarray]:
        made = [1]
        for _ in ids:
            made.append(int(model(torch.tensor([ids]), torch.tensor([made]))[0, -1].argmax()))
        x, memory = (one[0] for one in given[-1])
        query, key = cross.query(x[None])[0].double(), cross.key_value(memory[None])[0, :, :8].double()
        scores = (query @ key.T / 8**0.5).numpy()
        return made[1:], np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)

    for word in letters.draw(np.random.default_rng(99), 400)[0].tolist():
        ids = word[:word.index(2) + 1]
        made, weights = written(ids)
        right.append(made == [*ids[-2::-1], 2])
        looks += [weights[place, len(ids) - 2 - place] for place in range(len(ids) - 1)]
    first = body["reversing"][0]["curve"]
    assert first["words"][0] == pytest.approx(np.mean(right), abs=0.00051)
    assert first["right"][0] == pytest.approx(np.mean(looks), abs=0.00051)
    shown = body["shown"]
    maps = unpack_whole(shown["weights"][0], [(len(word) + 1,) * 2 for word in shown["words"]])
    for word, texts, weights in zip(shown["words"], shown["written"], maps, strict=True):
        made, wanted = written(letters.ids_of_word(word))
        assert texts[0] == "".join(letters.SIGNS[one] for one in made)
        assert np.abs(weights / 1000 - wanted).max() <= 0.00051


@torch.no_grad()
def test_what_is_written_is_fed_back():
    """A table that makes the next letter of each letter the likeliest: the text goes on through the alphabet."""
    model = EncoderDecoder(Config(29, 9, 29, 1, 1, dropout=0.0), fill=0).eval()
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    model.encoder.token_embedding.weight.copy_(torch.eye(29))
    model.final_norm.weight.fill_(1)
    shift = torch.eye(29).roll(1, 0)  # e of a letter → e of the next
    model.blocks[0].attention.qkv.weight[58:] = shift  # the values, of which the last position sees the mean
    model.blocks[0].norm_1.weight.fill_(1)
    model.blocks[0].attention.projection.weight.copy_(9 * torch.eye(29))
    ids, weights = write(model, torch.tensor([[5, 4, 2]]), 1)
    assert ids.tolist() == [[2]]  # after the start, 1
    assert torch.allclose(weights, torch.full((1, 1, 1, 3), 1 / 3))


@torch.no_grad()
def test_an_encoder_of_the_left_does_not_know_what_comes_after():
    torch.manual_seed(1)
    model = Encoder(Config(masked_words.VOCABULARY, 12, 8, 2, 2, dropout=0.0)).eval()
    draw_weights(model, 0.5)
    ids = masked_words.ids_of_words(["the", "dog", "[mask]", "the", "cat", "because", "it", "purred", "."])
    other = ids.copy()
    other[0, 7] = ID["barked"]
    at = {left: [fill_in(model, torch.from_numpy(one), left)[0, 2] for one in (ids, other)] for left in (True, False)}
    assert torch.equal(*at[True]) and not torch.allclose(*at[False], atol=1e-3)
    filled = torch.from_numpy(np.pad(ids, ((0, 0), (0, 3))))  # what fills a sentence up changes nothing
    for left in (True, False):
        assert torch.allclose(fill_in(model, filled, left)[0, 2], at[left][0], atol=1e-5)


def test_whole_weights_as_text_are_read_back():
    random = np.random.default_rng(4)
    maps = [random.dirichlet(np.ones(size), size) for size in (3, 6)]
    shapes = [(3, 3), (6, 6)]
    for read, each in zip(unpack_whole(pack_whole(maps), shapes), maps, strict=True):
        assert np.abs(read / 1000 - each).max() <= 0.0005
    for text, says in (("%", "no base64"), (pack_whole(maps[:1]), "18 bytes, matrices of 3 × 3, 6 × 6 have 90"),
                       (pack_whole([maps[0], maps[1] * 0.9]), "do not add up to one")):
        with pytest.raises(UserError, match=says):
            unpack_whole(text, shapes)


# The command --------------------------------------------------------------------------------------------

def test_the_command_records(tmp_path, command):
    status, out, err = command("experiment", "families", "--updates", 1, "--seeds", "7", "-o", tmp_path / "x.json")
    assert status == 0, err
    told = out.splitlines()
    assert told[0].startswith("reversing, seed 7: ") and told[-1] == f"wrote {tmp_path / 'x.json'}"
    assert [line[:13] for line in told[1:-1]] == ["masked, both,", "masked, left,"]
    assert load_experiment(tmp_path / "x.json")["make"]["threads"] == 1


@pytest.mark.parametrize(("given", "says"), [
    (("--seeds", "1,1"), "--seeds takes different whole numbers from 0 on"),
    (("--updates", "0"), "updates must be at least 1, not 0"),
    (("-o", "."), ". is a folder: name a file as --output")])
def test_refusals_are_one_line_and_write_nothing(tmp_path, monkeypatch, command, given, says):
    monkeypatch.chdir(tmp_path)
    status, _, err = command("experiment", "families", *given)
    assert (status, err.splitlines()[-1].count(says)) == (2, 1), err
    assert list(tmp_path.iterdir()) == []
