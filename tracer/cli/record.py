"""The commands that record, and those that look at a recording's checkpoint or at how a text becomes ids."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracer.cli.outputs import check_output
from tracer.cli.shared import TEXT, choices, commands, err, needs, out, progress, together
from tracer.errors import UserError
from tracer.format.sizes import CHOICES
from tracer.storage.together import CHECKPOINT

if TYPE_CHECKING:  # ``--help`` needs no torch
    from tracer.format.trace import Trace
    from tracer.model.config import Config
    from tracer.recording.checkpoint import Checkpoint
    from tracer.recording.forecast import Forecast
    from tracer.recording.generation import GenerationJob
    from tracer.recording.training import TrainingJob

OUTPUT = click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("traces"),
                      help="Folder to write into.")
TRAINING = together(
    click.option("--text", type=TEXT, default="Hi 你!", help="Text to train on."),
    click.option("--validation-text", type=TEXT, default="Hi 你好!", help="Text to evaluate on, never trained on."),
    click.option("--updates", default=120, help="Number of updates."),
    click.option("--lr", default=0.02, help="Learning rate."),
    click.option("--seed", default=20261012, help="Seed of initial values and dropout."),
    click.option("--context", default=16, help="Longest text in tokens."),
    click.option("--width", default=16, help="Width of the residual stream."),
    click.option("--heads", default=2, help="Attention heads a block."),
    click.option("--blocks", default=2, help="Blocks."),
    click.option("--dropout", default=0.1, help="Dropout probability."),
    choices(),
    click.option("--early-updates", type=int, help="Updates after which the model is kept as well, for early.json "
                                                   "[default: 20, or all but one]."),
)
GENERATION = together(
    click.option("--prompt", type=TEXT, default="Hi", help="Text to continue."),
    click.option("--temperature", default=0.8, help="Logits are divided by it."),
    click.option("--top-k", default=5, help="Candidates kept."),
    click.option("--sampling-seed", default=7, help="Seed of the draws."),
    click.option("--early-seed", default=24, help="Seed of the draws from the early model."),
    click.option("--max-new-tokens", default=10, help="Longest continuation in tokens, the end token included."),
)


@commands.command()
@TRAINING
@OUTPUT
def train(output: Path, **options: Any) -> None:
    """Train from scratch; write training.json and checkpoint.pt."""
    needs("torch", "tiktoken", pin=True)
    check_output(output, "recordings")
    job = _training_job(options)
    _say_when_large(_expected_training(job))
    trace, checkpoint = _train(job)
    _write(output, {"training": trace}, checkpoint)


@commands.command()
@GENERATION
@click.option("--checkpoint", type=click.Path(path_type=Path), help="[default: checkpoint.pt in the output folder]")
@OUTPUT
def generate(output: Path, checkpoint: Path | None, **options: Any) -> None:
    """Continue a prompt with a checkpoint; write generation.json, long.json and early.json."""
    needs("torch", "tiktoken", pin=True)
    check_output(output, "recordings")
    from tracer.format.origin import check_training
    from tracer.recording.checkpoint import load_checkpoint

    path = checkpoint or output / CHECKPOINT
    loaded = load_checkpoint(path)
    check_training(output, path, loaded.sha256())
    jobs, expected = _expected_generation(options, loaded.text, loaded.model.config)
    for route, made in expected.items():
        _say_when_large(made, f"{route}: ")
    _write(output, _generate(loaded, jobs))


@commands.command()
@TRAINING
@GENERATION
@OUTPUT
def record(output: Path, **options: Any) -> None:
    """Train, then generate: all recordings of the site, written at one moment."""
    needs("torch", "tiktoken", pin=True)
    check_output(output, "recordings")
    from tracer.recording.forecast import forecast_set

    training = _training_job(options)
    expected = _expected_training(training)
    jobs, others = _expected_generation(options, training.text, training.config)
    _say_when_large(forecast_set(training.config, expected, **others))
    trace, checkpoint = _train(training)
    _write(output, {"training": trace, **_generate(checkpoint, jobs)}, checkpoint)


def _training_job(options: dict[str, Any]) -> TrainingJob:
    from tracer.model.config import Config
    from tracer.model.optimizer import TrainingSettings
    from tracer.model.tokenizer import gpt2
    from tracer.recording.training import TrainingJob

    shape = {name: options[name] for name in ("context", "width", "heads", "blocks", "dropout", *CHOICES)}
    settings = {name: options[name] for name in ("seed", "updates", "lr")}
    return TrainingJob(options["text"], options["validation_text"],
                       Config(vocabulary=gpt2().vocabulary_size, **shape), TrainingSettings(**settings),
                       options["early_updates"])


def _generation_job(options: dict[str, Any]) -> GenerationJob:
    from tracer.recording.generation import GenerationJob

    return GenerationJob(options["prompt"], options["temperature"], options["top_k"], options["sampling_seed"],
                         options["max_new_tokens"])


def _expected_training(job: TrainingJob) -> Forecast:
    """What recording it will take; refuses what is too large."""
    from tracer.model.tokenizer import gpt2
    from tracer.recording.training import expected_training

    return expected_training(job, gpt2())


def _say_when_large(expected: Forecast, about: str = "") -> None:
    from tracer.recording.forecast import when_large

    if large := when_large(expected):
        err.print(about + large, soft_wrap=True)


def _train(job: TrainingJob) -> tuple[Trace, Checkpoint]:
    """The recording and the checkpoint."""
    from tracer.model.tokenizer import gpt2
    from tracer.recording.training import record_training

    with progress("training", job.settings.updates) as advance:
        trace, checkpoint = record_training(job, gpt2(), lambda number, loss: advance(number, f"loss {loss:.6f}"))
    summary = trace.summary
    out.print(f"first loss {summary['loss']}, after {summary['updates']} updates {summary['train_loss']} on "
              f"{job.text!r} and {summary['validation_loss']} on {job.validation_text!r}")
    return trace, checkpoint


def _expected_generation(options: dict[str, Any], text: str,
                         config: Config) -> tuple[dict[str, GenerationJob], dict[str, Forecast]]:
    """The jobs of the routes that continue a prompt, and what each will take; refuses what is too large."""
    from tracer.model.tokenizer import gpt2
    from tracer.recording.generation import check_job, past_context_job

    job = _generation_job(options)
    check_job(job, gpt2(), config)
    jobs = {"generation": job, "long": past_context_job(job, text, gpt2(), config),
            "early": replace(job, seed=options["early_seed"])}
    return jobs, {route: check_job(own, gpt2(), config, route) for route, own in jobs.items()}


def _generate(checkpoint: Checkpoint, jobs: dict[str, GenerationJob]) -> dict[str, Trace]:
    """The recordings of the routes; the early one where the checkpoint holds its moment."""
    from tracer.model.tokenizer import gpt2
    from tracer.recording.generation import record_generation

    models = {route: checkpoint.early if route == "early" else checkpoint for route in jobs}
    return {route: record_generation(jobs[route], model, gpt2(), lambda number, token, text: out.print(
        f"round {number}: id {token}, shows {text!r}"), route) for route, model in models.items() if model}


def _write(folder: Path, traces: dict[str, Trace], checkpoint: Checkpoint | None = None) -> None:
    from tracer.recording.record_set import write_set

    write_set(folder, traces, checkpoint, out.print, lambda line: err.print(line, soft_wrap=True))


@commands.command()
@click.option("--checkpoint", type=click.Path(path_type=Path), default=Path("traces") / CHECKPOINT)
@click.argument("texts", type=TEXT, nargs=-1, required=True)
def evaluate(checkpoint: Path, texts: tuple[str, ...]) -> None:
    """Mean cross-entropy (nats a token, end token included) of each text, without training on it."""
    needs("torch", "tiktoken")
    from tracer.model.tokenizer import gpt2
    from tracer.recording.checkpoint import load_checkpoint
    from tracer.recording.training import evaluation_loss

    model = load_checkpoint(checkpoint).model
    losses = [evaluation_loss(model, text, gpt2()) for text in texts]
    if not all(map(math.isfinite, losses)):
        raise UserError(f"the losses are {', '.join(map(str, losses))}: use a checkpoint from before the training "
                        "diverged, or one that is not damaged")
    for text, loss in zip(texts, losses, strict=True):
        out.print(f"{loss:.6f}  {text!r}")


@commands.command()
@click.argument("text", type=TEXT)
def tokens(text: str) -> None:
    """Show how TEXT becomes ids: its bytes, every merge, the ids."""
    needs("tiktoken")
    from tracer.model.tokenizer import gpt2

    tokenizer = gpt2()
    merges = tokenizer.merge_steps(text)
    out.print(f"bytes   {text.encode().hex(' ')}")
    for merge in merges:
        left, right, merged = (tokenizer.label(i) for i in (merge.left, merge.right, merge.merged))
        out.print(f"merge   {left} + {right} → {merged}  (id {merge.merged})")
    for token in tokenizer.encode(text):
        out.print(f"id      {token}  {tokenizer.label(token)}")
