"""The commands that prepare data, train a model on it and record experiments."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

import click

from tracer.cli.outputs import check_output, check_output_file
from tracer.cli.shared import F, commands, err, flags, needs, out, progress
from tracer.errors import UserError
from tracer.format.experiment_fields import MOST_NEW_TOKENS
from tracer.trainer.settings import (
    BEST,
    LAST,
    FitSettings,
    check_threads,
    make_settings,
    read_settings,
    read_toml,
    resumed_settings,
)

if TYPE_CHECKING:  # ``--help`` needs no torch
    from tracer.trainer.fit import Evaluation, Fit, Update
    from tracer.trainer.processes import Processes

TOKENIZER = click.option("--tokenizer", type=click.Choice(["characters", "gpt2"]), default="characters",
                         help="What becomes an id.")
CONFIG = click.option("--config", type=click.Path(path_type=Path),
                      help="TOML file of settings, or a recipe by name, such as depth-2000; options override it.")


@commands.command()
@click.argument("text", type=click.Path(path_type=Path), required=False)
@click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("data"), help="Folder to write into.")
@TOKENIZER
def prepare(text: Path | None, output: Path, tokenizer: str) -> None:
    """Turn TEXT, a UTF-8 file, into token files for `fit`; without TEXT, a small one that comes along."""
    needs("torch")
    check_output(output, "prepared data")
    from tracer.trainer.corpus import DEFAULT_TEXT
    from tracer.trainer.corpus import prepare as prepare_data

    meta = prepare_data(text or DEFAULT_TEXT, output, tokenizer)
    out.print(f"wrote {output}: {meta['tokens']['train']:,} tokens to train on, {meta['tokens']['validation']:,} to "
              f"validate on, {meta['tokenizer']['vocabulary_size']:,} in the vocabulary, {meta['dtype']}")


def _setting_options(function: F) -> F:
    kinds = get_type_hints(FitSettings)
    for item in reversed(fields(FitSettings)):
        text, kind = item.metadata["help"], kinds[item.name]
        shown = "" if "[default" in text else f"  [default: {item.default}]"
        function = click.option(flags(item.name, kind), item.name, type=kind, default=None, help=text + shown)(function)
    return function


@commands.command()
@CONFIG
@click.option("--resume", is_flag=True, help="Go on with the run in the output folder, exactly.")
@_setting_options
def fit(config: Path | None, resume: bool, **options: object) -> None:
    """Train a model on prepared data; under torchrun, with many processes."""
    given = {name: value for name, value in options.items() if value is not None}
    with _first_of_machine_speaks():
        settings = _resumed_settings(config, given) if resume else read_settings(config, given)
        needs("torch", pin=settings.pin_kernels)
        check_output(Path(settings.output), "a run")
        if settings.threads:
            os.environ["OMP_NUM_THREADS"] = str(settings.threads)
        import torch

    from tracer.trainer.processes import join_processes

    if settings.threads:
        torch.set_num_threads(settings.threads)
    with join_processes(settings.device) as processes:
        _fit(settings, processes, resume)


@contextmanager
def _first_of_machine_speaks() -> Iterator[None]:
    """Under torchrun every process of a machine refuses the same command; it is told once."""
    try:
        yield
    except UserError:
        if "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("LOCAL_RANK", "0") != "0":
            raise SystemExit(2) from None
        raise


def _resumed_settings(config: Path | None, given: dict[str, object]) -> FitSettings:
    """Those that the run was started with, then the file's, then the command line's."""
    named = (read_toml(config) if config else {}) | given
    output = make_settings({"output": named.get("output", FitSettings.output)}).output
    return resumed_settings(Path(output), named)


def _fit(settings: FitSettings, processes: Processes, resume: bool) -> None:
    from tracer.model.finite import Diverged
    from tracer.trainer.fit import Fit

    run = Fit(settings, processes, resume)
    try:
        _train(run, processes)
    except KeyboardInterrupt:
        if processes.writes and run.saved is not None:
            err.print(f"{run.folder / LAST} has update {run.saved}: --resume goes on from there", soft_wrap=True)
        raise
    except Diverged as error:
        processes.speak_alone()
        raise UserError(_after_divergence(run, error.what)) from None


def _after_divergence(run: Fit, what: str) -> str:
    """What happened, what is left, and a command that goes on from it."""
    if run.saved is None:
        return f"{what}: the run has diverged before its first checkpoint; check the data, or the --pretrained model"
    lr = min(run.settings.lr / 10, FitSettings.lr)
    best = "" if run.best_update in (None, run.saved) else f" ({BEST} has update {run.best_update}, the best)"
    return (f"{what}: the run has diverged. {run.folder / LAST} has update {run.saved}, when all was finite{best}; "
            f"go on from it with `python -m tracer fit --resume --output {shlex.quote(str(run.folder))} --lr {lr!r}`")


def _train(run: Fit, processes: Processes) -> None:
    from tracer.library.counting import mfu

    settings = run.settings
    if processes.writes:
        out.print(settings.to_toml(), end="")
        out.print(f"{run.model.parameter_count():,} parameters, {run.tokens_per_update:,} tokens an update, "
                  f"{processes.world} process{'es' if processes.world > 1 else ''} on {processes.device.type}, "
                  f"kernels: {run.kernels}")
        if run.done:
            out.print(f"going on after update {run.done}")
        if before := run.other_kernels():
            click.echo(f"note: the run was trained with other kernels, {before}: its last digits will not be those of "
                       "an unbroken run", err=True)
    with progress("training", settings.updates, run.done, quiet=not processes.writes) as advance:
        peak = run.peak() if processes.writes else 0.0

        def after_update(update: Update) -> None:
            speed = run.tokens_per_update / update.seconds
            advance(update.number, f"loss {update.loss:.4f}, {speed:,.0f} tokens/s, "
                                   f"MFU {mfu(run.model.config, speed, peak):.1%}")

        def after_evaluation(evaluation: Evaluation) -> None:
            err.print(f"after {evaluation.number} updates: train {evaluation.train:.4f}, validation "
                      f"{evaluation.validation:.4f}{', the best so far' if evaluation.best else ''}")

        run.run(after_update, after_evaluation)
    if processes.writes:
        best = "" if run.best is None else f": best validation loss {run.best:.4f}, after {run.best_update} updates"
        out.print(f"wrote {run.folder}{best}")


@commands.group()
def experiment() -> None:
    """Record an experiment for the site."""


@experiment.command()
@click.option("--text", type=click.Path(path_type=Path), help="UTF-8 text to learn.  [default: a small one]")
@CONFIG
@click.option("--depths", default="2,4,8", help="Numbers of blocks.")
@click.option("--updates", type=int, help="Updates of each run.  [default: 2000]")
@click.option("--lr", type=float, help="Largest learning rate.  [default: 0.003]")
@click.option("--prompt", default="", help="What samples continue; nothing starts from a line end.")
@click.option("--sample-tokens", default=300, help="Length of a sample.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs") / "depth",
              help="Folder of the runs; stopped ones are gone on with.")
@click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("traces") / "experiments" / "depth.json",
              help="File to write.")
def depth(text: Path | None, config: Path | None, depths: str, prompt: str, sample_tokens: int, runs: Path,
          output: Path, **options: object) -> None:
    """Train models of several depths on a text; record losses, samples and time."""
    counts = whole_numbers("--depths", depths)
    settings = read_settings(config, {name: value for name, value in options.items() if value is not None})
    needs("torch", pin=settings.pin_kernels)
    check_output(runs, "runs", "--runs")
    check_output_file(output)
    import torch

    from tracer.format.experiments import save_experiment
    from tracer.trainer.corpus import DEFAULT_TEXT
    from tracer.trainer.experiment_depth import run_depth

    torch.set_num_threads(settings.threads or torch.get_num_threads())
    with progress("training", settings.updates * len(counts)) as advance:
        current = [0]

        def begin(blocks: int) -> None:
            current[0] = blocks

        def after_update(update: Update) -> None:
            advance(counts.index(current[0]) * settings.updates + update.number, f"{current[0]} blocks, loss "
                    f"{update.loss:.4f}")

        def after_evaluation(evaluation: Evaluation) -> None:
            err.print(f"{current[0]} blocks after {evaluation.number} updates: train {evaluation.train:.4f}, "
                      f"validation {evaluation.validation:.4f}")

        body = run_depth(text or DEFAULT_TEXT, runs, settings, counts, prompt, sample_tokens, begin, after_update,
                         after_evaluation)
    save_experiment(body, output)
    for run in body["runs"]:
        out.print(f"{run['blocks']} blocks: {run['parameters']:,} parameters, validation loss "
                  f"{run['evaluations']['validation'][-1]:.4f}, {run['seconds_per_update'] * 1000:.1f} ms an update")
    out.print(f"wrote {output}")


@experiment.command()
@click.option("--checkpoint", type=click.Path(path_type=Path),
              help="Checkpoint or folder of a run.  [default: a fresh model]")
@click.option("--vocabulary", default=65, help="Tokens of a fresh model.")
@click.option("--context", default=1024, help="Context of a fresh model.")
@click.option("--width", default=128, help="Width of a fresh model.")
@click.option("--heads", default=4, help="Attention heads of a fresh model.")
@click.option("--blocks", default=4, help="Blocks of a fresh model.")
@click.option("--prompts", default="16,64,128,256,512,896", help="Prompt lengths in tokens.")
@click.option("--new-tokens", default=128, help="Tokens that follow each prompt.")
@click.option("--rounds", default=5, help="Measurements of each; the median counts.")
@click.option("--seed", default=1337, help="Seed of a fresh model, of prompts and draws.")
@click.option("--threads", default=1, help="Threads.")
@click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("traces") / "experiments" / "cache.json",
              help="File to write.")
def cache(checkpoint: Path | None, vocabulary: int, context: int, width: int, heads: int, blocks: int, prompts: str,
          new_tokens: int, rounds: int, seed: int, threads: int, output: Path) -> None:
    """Generate with and without a key-value cache after prompts of several lengths; record time and memory."""
    lengths = whole_numbers("--prompts", prompts)
    for name, value in (("new-tokens", new_tokens), ("rounds", rounds), ("threads", threads)):
        if value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    if new_tokens > MOST_NEW_TOKENS:
        raise UserError(f"new-tokens must be at most {MOST_NEW_TOKENS:,}, not {new_tokens}")
    check_threads(threads)
    needs("torch")
    check_output_file(output)
    import torch

    from tracer.format.experiments import save_experiment
    from tracer.model.config import Config
    from tracer.model.gpt import GPT
    from tracer.model.optimizer import check_seed
    from tracer.trainer.checkpoints import find_run, load_run
    from tracer.trainer.experiment_cache import run_cache

    check_seed(seed)
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    path = checkpoint and (find_run(checkpoint) or checkpoint)
    fresh = Config(vocabulary, context, width, heads, blocks, dropout=0.0)
    model = load_run(path).model() if path else GPT(fresh, explicit=False)
    body = run_cache(model, lengths, new_tokens, rounds, seed, lambda point: out.print(
        f"prompt {point['prompt']}: {point['cached_seconds']:.3f} s with the cache, {point['uncached_seconds']:.3f} s "
        f"without, {point['uncached_seconds'] / point['cached_seconds']:.1f} ×, {point['cache_bytes']:,} bytes"))
    save_experiment(body, output)
    out.print(f"wrote {output}")


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Different whole numbers from 1 on, smallest first."""
    parts = [part.strip() for part in text.split(",")]
    counts = tuple(sorted({int(part) for part in parts if part.isdecimal() and len(part) < 10}))
    if len(counts) != len(parts) or not counts[0]:
        raise UserError(f"{option} takes different whole numbers from 1 on with commas between, not {text!r}")
    return counts
