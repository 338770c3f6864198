"""The library's commands, as a user calls them."""

import re

import pytest
import torch
from cli_runs import refused

from tracer.library.generate import generate
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.pretrained import save_pretrained
from tracer.model.sampling import Sampling
from tracer.recording.checkpoint import save_checkpoint

SHAPE = ("--vocabulary", 65, "--context", 64, "--width", 128, "--heads", 4, "--blocks", 2)


@pytest.fixture(scope="module")
def checkpoint(fresh, tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "checkpoint.pt"
    save_checkpoint(fresh.checkpoint, path)
    return path


def test_parameters(run):
    lines = run("parameters").out.splitlines()
    assert any(re.search(r"all .* 124,439,808", line) for line in lines)
    assert any(re.search(r"without what is only looked up .* 123,653,376", line) for line in lines)
    assert any(re.search(r"one block .*MLP 66\.6% of it .* 7,087,872", line) for line in lines)
    teaching = run("parameters", "--like", "teaching").out
    assert "810,960" in teaching


def test_parameters_of_a_shape_of_ones_own(run):
    result = run("parameters", *SHAPE, "--batch", 12, "--tokens-per-second", 10_000, "--peak-flops", 1e11)
    assert "413,312" in result.out
    assert re.search(r"cache, a token of a sequence .* 2,048", result.out)  # 2 · 2 · 128 · 4
    # 6 · (413,312 − 64 · 128) + 12 · 2 · 128 · 64, times 10,000 over 1e11
    assert "2,627,328" in result.out
    assert result.out.splitlines()[-1].endswith("26.27%")
    assert run("parameters", *SHAPE, "--untied").out.count("8,320") > run("parameters", *SHAPE).out.count("8,320")


def test_parameters_refuses(run):
    assert "width 128 cannot be cut into 5 heads" in refused(run("parameters", *SHAPE, "--heads", 5))
    assert "needs both" in refused(run("parameters", "--peak-flops", 1e12))
    for length in (65, 0):
        assert "does not fit a context of 64" in refused(run("parameters", *SHAPE, "--length", length))
    for speed, peak, says in (
            (-1, 1e12, "speed must be above 0 tokens per second and finite, not -1.0"), ("nan", 1e12, "not nan"),
            (10, "inf", "peak must be above 0 operations per second and finite, not inf")):
        result = run("parameters", "--tokens-per-second", speed, "--peak-flops", peak)
        assert says in refused(result) and result.out == ""


def test_heads_refuses_an_option_of_the_other_kind_of_source(run, checkpoint):
    assert "leave --pass out" in refused(run("heads", checkpoint, "--pass", "round1"))
    assert "--pass, not --text" in refused(run("heads", "traces/training.json", "--text", "abc"))


def test_attention(run):
    result = run("attention")
    tables = {name: [float(cell) for cell in re.findall(r"-?[\d.]+(?= │)", line)][-width:]
              for name, width, line in zip(("weights", "output"), (3, 4), last_rows(result.out), strict=True)}
    assert tables == {"weights": [0.2741, 0.2741, 0.4519], "output": [0.7259, 0.7259, 0.2741, 0.2741]}
    assert float(result.out.split()[-1]) < 6e-8


def last_rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if "token 2" in line][-2:]


def test_heads_of_a_recording(run):
    result = run("heads", "traces/training.json", "--top", 2)
    assert "pass evaluation.validation, 7 tokens" in result.out
    assert len(re.findall(r"block \d head \d", result.out)) == 4
    assert "pass round3, 3 tokens" in run("heads", "traces/generation.json", "--pass", "round3").out
    assert "choose one of first, again" in refused(run("heads", "traces/training.json", "--pass", "none"))


def test_heads_of_checkpoints(run, checkpoint, tmp_path):
    result = run("heads", checkpoint, "--text", "Hi 你! Hi 你!")
    assert len(re.findall(r"block \d head \d", result.out)) == 16
    torch.manual_seed(0)
    save_pretrained(GPT(Config(vocabulary=99, context=40, width=8, heads=4, blocks=3)), tmp_path)
    result = run("heads", tmp_path, "--top", 99)  # any vocabulary, when no text is to be read
    assert len(re.findall(r"block \d head \d", result.out)) == 4 * 12
    assert "only a model of that vocabulary" in refused(run("heads", tmp_path, "--text", "Hi"))
    assert "the text is empty" in refused(run("heads", checkpoint, "--text", ""))


def test_sample(run, checkpoint, fresh, tokenizer, tmp_path):
    options = ("--temperature", 0, "--max-new-tokens", 9)
    assert run("sample", checkpoint, "--prompt", "Hi", *options).out == "Hi 你!\n"
    both = run("sample", checkpoint, "--prompt", "Hi", "--prompt", "Hi 你", *options)
    assert both.out == "Hi 你!\n\nHi 你!\n\n"
    save_pretrained(fresh.checkpoint.model, tmp_path)
    warm = ("--prompt", "Hi", "--temperature", 3, "--top-k", 1000, "--top-p", 0.99, "--seed", 4, "--max-new-tokens", 20)
    results = [run("sample", source, *warm, *more).out for source in (checkpoint, tmp_path)
               for more in ((), ("--no-cache",))]
    new = generate(fresh.checkpoint.model, [tokenizer.encode("Hi")], Sampling(3, 1000, 0.99, 4), 20, [tokenizer.eos])[0]
    shown = "Hi" + tokenizer.decode([id for id in new if id != tokenizer.eos])
    assert results == [shown.replace("\x1b", "␛") + "\n"] * 4


def test_an_empty_prompt_starts_from_a_line_end(run, checkpoint):
    options = ("--max-new-tokens", 3, "--temperature", 0)
    shown = run("sample", checkpoint, *options).out
    assert shown.startswith("\n")
    assert run("sample", checkpoint, "--prompt", "", *options).out == shown


def test_sample_writes_what_the_model_writes(run, checkpoint, monkeypatch):
    monkeypatch.setattr("tracer.library.generate.stream", lambda *_: iter(["a\tb\r\n", "[red]c\x1b[31m\x9b1m"]))
    assert run("sample", checkpoint, "--prompt", "x\ty").out == "x\tya\tb\r\n[red]c␛[31m␛[1m\n"


def test_texts_where_the_locale_is_not_utf_8(run, checkpoint):
    """Python then hands over the bytes as lone surrogates."""
    options = ("--max-new-tokens", 1, "--temperature", 0)
    prompt = "Hi 你!"
    bytes_of_it = prompt.encode().decode("ascii", errors="surrogateescape")
    assert run("sample", checkpoint, "--prompt", bytes_of_it, *options).out == "Hi 你!\n"
    assert run("tokens", bytes_of_it).out == run("tokens", prompt).out
    heads = run("heads", checkpoint, "--text", bytes_of_it).out
    assert heads == run("heads", checkpoint, "--text", prompt).out
    assert "the prompt '\\udcff' is not UTF-8" in refused(run("sample", checkpoint, "--prompt", "\udcff", *options))


def test_sample_refuses(run, checkpoint, tmp_path):
    assert "config.json is missing" in refused(run("sample", tmp_path))
    assert "hf download no/name" in refused(run("sample", "no/name"))
    for name in ("nothing.pt", "./nothing", f"{tmp_path}/nothing"):
        assert refused(run("sample", name)) == (f"there is no file or folder {name}: name a checkpoint, or the folder "
                                                "of one")
    assert "top-p must be above 0" in refused(run("sample", checkpoint, "--top-p", 0))
    assert "a seed must be" in refused(run("sample", checkpoint, "--seed", -1))
    assert "at least 1, not 0" in refused(run("sample", checkpoint, "--prompt", "Hi", "--max-new-tokens", 0))
    assert "--max-new-tokens must be at most 2,147,483,647" in refused(
        run("sample", checkpoint, "--prompt", "Hi", "--max-new-tokens", 10**20))
