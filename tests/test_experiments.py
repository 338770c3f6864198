"""Experiments: what they record agrees with the runs they come from, and a wrong file is told apart."""

import copy
import json
import statistics
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from tracer.errors import UserError
from tracer.format.experiments import check_experiment, load_experiment, load_experiments, save_experiment
from tracer.format.files import unused_files
from tracer.format.load import load_all
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.storage.lock import locked
from tracer.trainer import checkpoints as run_checkpoint
from tracer.trainer import corpus as data
from tracer.trainer.experiment_cache import run_cache
from tracer.trainer.experiment_depth import run_depth
from tracer.trainer.log import read_log
from tracer.trainer.settings import make_settings, read_settings

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = make_settings({"context": 8, "width": 8, "heads": 2, "batch": 2, "updates": 210, "warmup": 2,
                          "evaluate_every": 80, "save_every": 100, "peak_tflops": 1.0})
SHORT = replace(SETTINGS, updates=2)


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("one two three four five six seven\n" * 12, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def depth(text, runs) -> dict:
    return run_depth(text, runs, SETTINGS, (1, 2), "one", 12)


# Depth -------------------------------------------------------------------------------------------------

def test_curves_and_evaluations_are_those_of_the_logs(depth, runs):
    for run in depth["runs"]:
        log = read_log(runs / f"{run['blocks']}-blocks" / "log.jsonl")
        losses = {entry["update"]: entry["loss"] for entry in log if "loss" in entry}
        assert run["curve"]["update"] == list(range(2, 211, 2))  # the fewest updates a point for at most 200 points
        for end, loss in zip(run["curve"]["update"], run["curve"]["loss"], strict=True):
            assert loss == pytest.approx(statistics.fmean(losses[end - k] for k in range(2)), abs=5.1e-5)
        tested = [entry for entry in log if "validation_loss" in entry]
        assert run["evaluations"]["update"] == [0, 80, 160, 210]
        assert run["evaluations"]["validation"] == [round(entry["validation_loss"], 4) for entry in tested]
        assert run["training_seconds"] == pytest.approx(sum(e["seconds"] for e in log if "loss" in e), abs=0.06)
        assert run["seconds_per_update"] > 0


def test_depths_are_the_models_that_were_trained(depth, runs):
    for run, blocks in zip(depth["runs"], (1, 2), strict=True):
        saved = run_checkpoint.load_run(runs / f"{blocks}-blocks" / "last.pt")
        assert saved.config.blocks == run["blocks"] == blocks and saved.update == 210
        assert run["parameters"] == sum(value.numel() for value in saved.parameters.values())
        loaded = data.load_data(runs / "data")
        assert depth["make"]["vocabulary"] == loaded.tokenizer.vocabulary_size
        assert depth["make"]["tokens"] == {"train": len(loaded.train), "validation": len(loaded.validation)}


def test_samples_are_what_the_model_says_at_that_time(depth, runs):
    """The last one once more, from the checkpoint, a step at a time without the decoding loop."""
    run = depth["runs"][1]
    assert [sample["update"] for sample in run["samples"]] == [0, 80, 160, 210]
    saved = run_checkpoint.load_run(runs / "2-blocks" / "last.pt")
    model, tokenizer = saved.model().requires_grad_(False), saved.tokenizer
    ids, generator = tokenizer.encode("one"), torch.Generator().manual_seed(SETTINGS.seed)
    for _ in range(12):
        logits = model(torch.tensor([ids[-8:]]))[0][0, -1].double() / 0.8
        order = sorted(range(len(logits)), key=lambda id: (-float(logits[id]), id))
        limit, total = float(torch.rand((), generator=generator)), 0.0
        for id in order:
            total += float(logits.softmax(-1)[id])
            if limit < total:
                break
        ids.append(id)
    assert run["samples"][-1]["text"] == tokenizer.decode(ids[3:])
    assert len({sample["text"] for sample in run["samples"]}) > 1


def test_a_stopped_experiment_goes_on_and_a_changed_one_is_refused(depth, text, runs, tmp_path):
    seen = []
    again = run_depth(text, runs.rename(runs.with_name("moved")), SETTINGS, (1, 2), "one", 12, after_update=seen.append)
    runs.with_name("moved").rename(runs)
    assert not seen  # nothing was left to do
    measured_again = {"seconds_per_update": 0, "times": []}
    without_time = [[run | measured_again for run in body["runs"]] for body in (depth, again)]
    assert without_time[0] == without_time[1]
    with pytest.raises(UserError, match=r"holds a run with lr 0\.003, not 0\.5"):
        run_depth(text, runs, replace(SETTINGS, lr=0.5), (1, 2), "one", 12)


@pytest.mark.parametrize(("prompt", "tokens", "says"), [
    ("one!", 12, "the vocabulary lacks '!'"),
    ("one", 0, "a sample must have from 1 to 2,147,483,647 tokens, not 0"),
    ("one", 10**20, "a sample must have from 1 to"),
])
def test_an_experiment_that_cannot_be_is_refused_before_anything_is_made(text, tmp_path, prompt, tokens, says):
    with pytest.raises(UserError, match=says):
        run_depth(text, tmp_path, SETTINGS, (1,), prompt, tokens)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def short_runs(text, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("short")
    run_depth(text, folder, SHORT, (1,), "one", 5)
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("change", "says"), [
    ({"prompt": "two"}, "holds runs with samples of prompt 'one', not 'two': choose another --runs, or remove it"),
    ({"sample_tokens": 6}, "holds runs with samples of tokens 5, not 6"),
    ({"settings": replace(SHORT, lr=0.5)}, r"1-blocks holds a run with lr 0\.003, not 0\.5"),
    ({"depths": (3,), "prompt": "two"}, "holds runs with samples of prompt 'one', not 'two'"),
])
def test_runs_are_not_gone_on_with_to_another_end(text, short_runs, change, says):
    before = contents(short_runs)
    given = {"text": text, "runs": short_runs, "settings": SHORT, "depths": (1,), "prompt": "one", "sample_tokens": 5}
    with pytest.raises(UserError, match=says):
        run_depth(**given | change)
    assert contents(short_runs) == before


def test_runs_on_another_text_or_with_unknown_samples_are_left_alone(text, short_runs, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text(text.read_text(encoding="utf-8")[::-1], encoding="utf-8")
    before = contents(short_runs)
    with pytest.raises(UserError, match="holds runs on another text: choose another --runs, or remove it"):
        run_depth(other, short_runs, SHORT, (1,), "one", 5)
    assert contents(short_runs) == before
    for content in (None, b"{", b"[1]"):
        (short_runs / "sample.json").unlink()
        if content:
            (short_runs / "sample.json").write_bytes(content)
        with pytest.raises(UserError, match=r"sample\.json does not say what the samples of the runs are"):
            run_depth(text, short_runs, SHORT, (1,), "one", 5)
        (short_runs / "sample.json").write_bytes(before[short_runs / "sample.json"])


def test_two_experiments_do_not_share_a_folder(text, short_runs):
    before = contents(short_runs)
    for folder, option in ((short_runs, "--runs"), (short_runs / "1-blocks", "--output")):
        says = f"another process writes into {folder}: .*{option}"
        with locked(folder / ".lock"), pytest.raises(UserError, match=says):
            run_depth(text, short_runs, SHORT, (1,), "one", 5)
        assert contents(short_runs) == before


# Cache -------------------------------------------------------------------------------------------------

def test_cache_records_each_prompt_length():
    torch.manual_seed(1)
    config = Config(vocabulary=20, context=32, width=8, heads=2, blocks=3, dropout=0.0)
    body = run_cache(GPT(config, explicit=False), (4, 28), 4, 2, 5)
    check_experiment(body)
    assert [point["prompt"] for point in body["points"]] == [4, 28]
    # keys and values, 3 blocks, width 8, 4 bytes, for prompt and new tokens but the last
    assert [point["cache_bytes"] for point in body["points"]] == [2 * 3 * 8 * 4 * 7, 2 * 3 * 8 * 4 * 31]
    assert all(point["cached_seconds"] > 0 and point["uncached_seconds"] > 0 for point in body["points"])
    with pytest.raises(UserError, match="a prompt of 29 and 4 new tokens do not fit the context of 32"):
        run_cache(GPT(config, explicit=False), (4, 29), 4, 2, 5)


def test_a_cache_that_changes_the_text_is_not_recorded(monkeypatch):
    monkeypatch.setattr("tracer.trainer.experiment_cache.generate", lambda *_, cached: [[int(cached)]])
    with pytest.raises(AssertionError, match="the cache changes what follows a prompt of 4 tokens"):
        run_cache(GPT(Config(20, 32, 8, 2, 1, 0.0)), (4,), 4, 1, 5)


# Files -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("change", "says"), [
    (lambda body: body.update(schema="two-routes/trace"), "is none of"),
    (lambda body: body.update(version=1), "has version 1, this program reads version 2"),
    (lambda body: body.update(version=True), "has version True"),
    (lambda body: body.update(extra=1), "has the unknown field 'extra'"),
    (lambda body: body.pop("make"), "the experiment has no 'make'"),
    (lambda body: body["make"].update(vocabulary="65"), "'vocabulary' of make cannot be '65'"),
    (lambda body: body.update(runs=[]), "it has no runs"),
    (lambda body: body["runs"].reverse(), "its depths are no rising"),
    (lambda body: body["runs"][1].update(parameters=1.5), "'parameters' of run 1 cannot be 1.5"),
    (lambda body: body["runs"][0].update(seconds_per_update=-1), "'seconds_per_update' of run 0"),
    (lambda body: body["runs"][0].update(seconds_per_update=float("nan")), "'seconds_per_update' of run 0"),
    (lambda body: body["runs"][1]["curve"]["loss"].pop(), "curve of run 1 has columns of different length"),
    (lambda body: body["runs"][0]["evaluations"]["train"].__setitem__(1, None), "'train' of evaluations of run 0"),
    (lambda body: body["runs"][0]["curve"]["update"].__setitem__(1, 2), "the updates of curve of run 0 are no rising"),
    (lambda body: body["runs"][0]["samples"][0].update(text=3), "'text' of a sample of run 0 cannot be 3"),
])
def test_a_wrong_file_is_told_apart(depth, tmp_path, change, says):
    body = copy.deepcopy(depth)
    save_experiment(body, tmp_path / "depth.json")
    assert load_experiment(tmp_path / "depth.json") == json.loads(json.dumps(depth))
    change(body)
    with pytest.raises(UserError, match=says):
        save_experiment(body, tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()
    (tmp_path / "depth.json").write_text(json.dumps(body).replace("NaN", "null"), encoding="utf-8")
    with pytest.raises(UserError, match="record it again"):
        load_experiment(tmp_path / "depth.json")


def test_damaged_and_missing_files(depth, tmp_path):
    save_experiment(depth, tmp_path / "depth.json")
    content = (tmp_path / "depth.json").read_bytes()
    (tmp_path / "depth.json").write_bytes(content[:-40])
    with pytest.raises(UserError, match="cut off or damaged"):
        load_experiment(tmp_path / "depth.json")
    with pytest.raises(UserError, match="there is no experiment"):
        load_experiment(tmp_path / "none.json")
    long = copy.deepcopy(depth)
    long["runs"][0]["samples"][0]["text"] = "x" * 300_000
    with pytest.raises(UserError, match="take fewer or shorter samples"):
        save_experiment(long, tmp_path / "long.json")


def test_experiments_stand_beside_recordings_and_are_not_taken_for_them(depth, tmp_path, training_trace):
    save_experiment(depth, tmp_path / "experiments" / "depth.json")
    assert list(load_experiments(tmp_path)) == ["depth"] and load_experiments(tmp_path / "none") == {}
    with pytest.raises(UserError, match="holds no recording"):
        load_all(tmp_path)
    assert unused_files(tmp_path, []) == []


def test_reading_needs_no_torch():
    code = "import sys; sys.modules['torch'] = None; from tracer.format.experiments import load_experiments as load; "
    subprocess.run([sys.executable, "-c", code + "load(__import__('pathlib').Path('traces'))"], cwd=ROOT, check=True)


def test_committed_experiments_follow_the_format():
    found = load_experiments(ROOT / "traces")
    assert {name: body["schema"] for name, body in found.items()} == {
        name: f"two-routes/experiment/{name.partition('-')[0]}"
        for name in ("cache", "depth", "depth-10000", "families", "induction", "initial", "noun")}


@pytest.mark.parametrize(("recording", "recipe", "limits"), [
    ("depth", "depth-2000", {2: 1.91, 4: 1.89, 8: 1.88}),  # a known trainer's: 1.912, 1.898, 1.889
    ("depth-10000", "depth-10000", {2: 1.82, 4: 1.66, 8: 1.59}),
])
def test_the_committed_depths_are_the_recipe_s_and_reach_their_losses(recording, recipe, limits):
    body = load_experiment(ROOT / "traces" / "experiments" / f"{recording}.json")
    settings = read_settings(ROOT / "tracer" / "recipes" / f"{recipe}.toml", {})
    assert body["make"]["settings"].items() <= asdict(settings).items()
    losses = {run["blocks"]: run["evaluations"]["validation"][-1] for run in body["runs"]}
    assert losses.keys() == limits.keys()
    assert all(losses[blocks] <= limit for blocks, limit in limits.items()), losses


@pytest.mark.parametrize("path", sorted((ROOT / "tracer" / "recipes").glob("*.toml")), ids=lambda path: path.stem)
def test_recipes_are_settings_of_the_size_in_their_name(path):
    settings = read_settings(path, {})
    assert (settings.width, settings.heads, settings.context) == (128, 4, 64)
    assert path.stem == f"depth-{settings.updates}"


# Commands ----------------------------------------------------------------------------------------------

def test_the_depth_command(text, tmp_path, command):
    (tmp_path / "tiny.toml").write_text(replace(SETTINGS, updates=9, evaluate_every=9).to_toml(), encoding="utf-8")
    status, out, err = command("experiment", "depth", "--text", text, "--config", tmp_path / "tiny.toml",
                               "--updates", 3, "--depths", "2,1", "--sample-tokens", 5, "--runs", tmp_path / "runs",
                               "--output", tmp_path / "depth.json")
    assert status == 0, err
    body = load_experiment(tmp_path / "depth.json")
    assert [run["blocks"] for run in body["runs"]] == [1, 2] and body["make"]["settings"]["updates"] == 3
    assert out.splitlines()[-1] == f"wrote {tmp_path / 'depth.json'}"
    assert body["make"]["text"]["characters"] == len(text.read_text(encoding="utf-8"))


def test_the_cache_command(tmp_path, command):
    status, out, err = command("experiment", "cache", "--context", 16, "--width", 8, "--heads", 2, "--blocks", 1,
                               "--prompts", "8,2", "--new-tokens", 4, "--rounds", 1, "-o", tmp_path / "cache.json")
    assert status == 0, err
    assert [point["prompt"] for point in load_experiment(tmp_path / "cache.json")["points"]] == [2, 8]
    assert out.count("s with the cache") == 2


def test_the_cache_command_takes_the_folder_of_a_run(short_runs, tmp_path, command):
    parameters = []
    for number, checkpoint in enumerate((short_runs / "1-blocks", short_runs / "1-blocks" / "best.pt")):
        path = tmp_path / f"{number}.json"
        status, _, err = command("experiment", "cache", "--checkpoint", checkpoint, "--prompts", "2",
                                 "--new-tokens", 4, "--rounds", 1, "-o", path)
        assert status == 0, err
        parameters.append(load_experiment(path)["make"]["parameters"])
    saved = run_checkpoint.load_run(short_runs / "1-blocks" / "best.pt")
    assert parameters == [sum(value.numel() for value in saved.parameters.values())] * 2


@pytest.mark.parametrize(("given", "says"), [
    (("depth", "--depths", "2,x"), "--depths takes different whole numbers"),
    (("depth", "--depths", "0"), "--depths takes different whole numbers"),
    (("depth", "--text", "nowhere.txt"), "there is no text nowhere.txt"),
    (("depth", "--depths", "1" * 5000), "--depths takes different whole numbers"),
    (("depth", "--sample-tokens", "0"), "a sample must have from 1 to"),
    (("depth", "-o", "."), ". is a folder: name a file as --output"),
    (("cache", "-o", "."), ". is a folder: name a file as --output"),
    (("cache", "--checkpoint", "."), "there is no checkpoint ."),
    (("cache", "--threads", "99999999999"), "threads must be at most 1024, not 99999999999"),
    (("cache", "--context", str(10**18)), "context must be at most 2,147,483,647"),
    (("cache", "--vocabulary", str(2**31 - 1), "--width", str(2**31 - 4)), "there is not enough memory"),
    (("cache", "--prompts", "4,4"), "--prompts takes different whole numbers"),
    (("cache", "--rounds", "0"), "rounds must be at least 1, not 0"),
    (("cache", "--checkpoint", "nowhere.pt"), "there is no checkpoint nowhere.pt"),
    (("cache", "--prompts", "1000"), "do not fit the context of 1024"),
])
def test_refusals_are_one_line_and_write_nothing(tmp_path, monkeypatch, command, given, says):
    monkeypatch.chdir(tmp_path)
    status, out, err = command("experiment", *given)
    assert (status, out, err.count("\n")) == (2, "", 1) and says in err
    assert list(tmp_path.iterdir()) == []
