"""The library's commands with generated arguments: an answer, or a refusal of one line; never a traceback."""

import json
import math
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from trials import generated

from tracer.cli import commands as cli
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.optimizer import TrainingSettings, make_optimizer
from tracer.model.pretrained import save_pretrained
from tracer.recording import checkpoint
from tracer.recording.checkpoint import Checkpoint, save_checkpoint
from tracer.trainer.checkpoints import RunCheckpoint, save_run
from tracer.trainer.corpus import Characters
from tracer.trainer.settings import FitSettings

TRACES = Path(__file__).resolve().parent.parent / "traces"
TINY = Config(vocabulary=5, context=8, width=4, heads=2, blocks=1, dropout=0.0)
GPT2_TINY = replace(TINY, vocabulary=50_257)


def run_checkpoint(config: Config, characters: str) -> RunCheckpoint:
    """Of a run that has made no update yet."""
    torch.manual_seed(0)
    shape = {name: getattr(config, name) for name in ("context", "width", "heads", "blocks")}
    return RunCheckpoint(config, Characters(characters), {"train": "", "validation": ""}, FitSettings(**shape),
                         GPT(config).state_dict(), {}, {}, 0, 1.0, 0)


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> dict[str, str]:
    """What a user may name: models of every kind, whole and damaged, recordings, and what is neither."""
    base = tmp_path_factory.mktemp("sources")
    torch.manual_seed(0)
    model = GPT(GPT2_TINY)
    optimizer = make_optimizer(model, TrainingSettings())
    save_checkpoint(Checkpoint(model, TrainingSettings(), 0, "Hi", optimizer, torch.get_rng_state()), base / "whole.pt")
    with torch.no_grad():
        model.final_norm.weight[1] = math.nan
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "first_not_finite", lambda body: None)  # which refuses to save it
        save_checkpoint(Checkpoint(model, TrainingSettings(), 0, "Hi", optimizer, torch.get_rng_state()),
                        base / "nan.pt")
    (base / "cut.pt").write_bytes((base / "whole.pt").read_bytes()[:-5000])
    whole = run_checkpoint(TINY, "abcd\n")
    runs = {"run": whole, "no line end": run_checkpoint(TINY, "abcde"),
            "nan run": replace(whole, parameters={name: p * math.nan for name, p in whole.parameters.items()}),
            "other parameters": replace(whole, parameters={"a": torch.ones(2)}),
            "no parameters": replace(whole, parameters={}),
            "other tokenizer": run_checkpoint(TINY, "abc"),
            "wrong shape": replace(whole, config=replace(TINY, width=8))}
    for name, run in runs.items():
        (base / name).mkdir()
        save_run(run, [base / name / "best.pt"])
    for name, config in (("gpt2", TINY), ("padded", replace(TINY, vocabulary=50_304))):
        save_pretrained(GPT(config, explicit=False), base / name)
    diverged = GPT(replace(TINY, vocabulary=50_304), explicit=False)
    with torch.no_grad():
        diverged.blocks[0].norm_1.weight[0] = math.nan
    save_pretrained(diverged, base / "nan folder")
    shutil.copytree(base / "padded", base / "cut")
    (base / "cut" / "model.safetensors").write_bytes(b"1234")
    recording = json.loads((TRACES / "training.json").read_bytes())
    for name, change in {"rounds": {"rounds": 5}, "made": None, "steps": {}}.items():
        (base / f"{name}.json").write_text(json.dumps(
            recording | {"make": recording["make"] | change if change else change}))
    (base / "empty.json").write_text("")
    (base / "deep.json").write_text("[" * 10_000)
    (base / "text.txt").write_text("Hi")
    (base / "empty.pt").write_bytes(b"")
    (base / "nothing").mkdir()
    found = {path.name: str(path) for path in sorted(base.iterdir())}
    return found | {"": "", "recording": str(TRACES / "generation.json"), "device": "/dev/null", "long": "x" * 5000,
                    "lone": "\udcff", "url": "https://x/y", "up": "..", "dash": "-",
                    "three": "a/b/c", "name": "no/name", "spaces": " / ", "json": ".json", "folder.json": str(base)}


def mostly(usual: st.SearchStrategy, *other: st.SearchStrategy) -> st.SearchStrategy:
    """What is usual three times of four, so that a command with many options is also answered."""
    return st.one_of(usual, usual, usual, st.one_of(*other))


WHOLE = mostly(st.sampled_from([1, 2, 4, 8]), st.integers(-3, 70), st.sampled_from(
    [2**31 - 1, 2**31, 2**63, 2**64 - 1, 2**64, -2**63, 10**30, 10**400, "1.5", "nan", "", "x", "１", "1_0"]))
SHARE = mostly(st.floats(0.1, 1, exclude_max=True), st.floats(),
               st.sampled_from(["1e400", "5e-324", "-0", "x", "", "nan", "1e30", "1e31"]))
TEXT = mostly(st.text("abcd\n", max_size=9), st.text(max_size=30), st.sampled_from(
    ["\udcff", "\x1b[31m", "a" * 5000, " " * 3000, "你好" * 40, "[red]", "\r\n", "🙂", "a\u202eb", "<|endoftext|>"]))
FLAG = st.none()


def options(**of: st.SearchStrategy) -> st.SearchStrategy:
    """Some of the options, each with any of its values."""
    named = {f"--{name.replace('_', '-')}": values for name, values in of.items()}
    return st.fixed_dictionaries({}, optional=named).map(
        lambda chosen: [name if value is None else f"{name}={value}" for name, value in chosen.items()])


PARAMETERS = options(
    like=mostly(st.sampled_from(["gpt2", "gpt2-xl", "teaching"]), st.text()), vocabulary=WHOLE, context=WHOLE,
    width=WHOLE, heads=st.one_of(st.just(1), WHOLE), blocks=WHOLE, dropout=SHARE, tied=FLAG, untied=FLAG, batch=WHOLE,
    length=st.one_of(st.just(1), WHOLE), tokens_per_second=SHARE, peak_flops=SHARE)
HEADS = options(text=TEXT, top=WHOLE, **{"pass": mostly(st.sampled_from(["round1", "round3"]), st.text(max_size=9))})
SAMPLE = options(prompt=TEXT, temperature=SHARE, top_k=WHOLE, top_p=SHARE, seed=WHOLE, cache=FLAG, no_cache=FLAG,
                 max_new_tokens=mostly(st.integers(1, 20), st.integers(-2, 0), st.sampled_from([2**31, "x"])))
WORKING = st.sampled_from(["run", "whole.pt", "padded", "recording"])


@pytest.fixture
def call(monkeypatch, capfd):
    """Runs the command line in this process and checks how it ends; returns what it wrote."""
    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["tracer", *arguments])
        capfd.readouterr()
        status = 0
        try:
            cli.main()
        except SystemExit as stop:
            status = stop.code or 0
        out, err = capfd.readouterr()
        assert (status, err) == (0, "") or status == 2, (status, err)
        if status:
            assert out == "" and (err.startswith("Usage: ") or (err.startswith("error: ") and err.count("\n") == 1)), (
                out, err)
        return out + err

    return run


TEXTS = st.lists(TEXT, max_size=2)
ARGUMENTS = {"parameters": PARAMETERS, "heads": HEADS, "sample": SAMPLE, "evaluate": st.just([]), "tokens": st.just([]),
             "attention": st.just([])}


@pytest.mark.parametrize("command", ARGUMENTS)
def test_generated_arguments_are_answered_or_refused_in_one_line(call, sources, command):
    answered = []

    @generated(100)
    @given(ARGUMENTS[command], TEXTS, mostly(WORKING, st.sampled_from(sorted(sources))))
    def ends_well(arguments, texts, source):
        if command in ("heads", "sample"):
            texts = [sources[source]]
        elif command == "evaluate":
            arguments = ["--checkpoint", sources[source]]
        said = call(command, *arguments, *(("--", *texts) if command != "parameters" else ()))
        answered.append(not said.startswith(("error: ", "Usage: ")))

    ends_well()
    assert 2 < sum(answered) < len(answered) - 2  # both kinds


# What is said ----------------------------------------------------------------------------------------

@pytest.mark.parametrize(("source", "says"), [
    ("nan.pt", "it holds a number that is not finite, in parameters/final_norm.weight"),
    ("nan run", "it holds a number that is not finite, in parameters/token_embedding.weight"),
    ("other parameters", "it holds 2 parameters, its config says"), ("no parameters", "it holds 0 parameters"),
    ("wrong shape", "its config and its settings have different shapes"),
    ("other tokenizer", "its tokenizer and its config have different vocabularies"),
    ("cut.pt", "is damaged or no checkpoint"), ("cut", "model.safetensors is damaged"),
    ("no line end", "an empty prompt starts from a line end, and the vocabulary has none: give a --prompt"),
    ("name", "is neither a folder nor in the local Hugging Face cache")])
def test_what_sample_says(call, sources, source, says):
    """The prompt that is not given is the empty one."""
    assert says in call("sample", sources[source])
    assert says in call("sample", sources[source], "--prompt", "")


def test_scores_of_a_model_that_diverged_are_not_shown(call, sources):
    assert "a number that is not finite" in call("evaluate", "--checkpoint", sources["nan.pt"], "Hi")
    said = call("heads", sources["nan folder"], "--text", "Hi Hi")
    assert said.startswith("error: ") and "finite" in said


def test_merges_that_are_too_many_to_show(call):
    assert "its longest piece has 5,000 bytes: shorten it" in call("tokens", "a" * 5000)
    assert "id " in call("tokens", "a" * 600)


def test_a_padded_vocabulary_is_sampled_from(call, sources):
    assert call("sample", sources["padded"], "--prompt", "Hi", "--max-new-tokens", "9").startswith("Hi")
    assert "block 0 head 1" in call("heads", sources["padded"], "--text", "Hi Hi")
