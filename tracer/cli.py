"""The command line.  Each command imports what it needs, so that `verify` runs without torch."""

import importlib
import math
import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tracer import notes
from tracer.command_line import SETTINGS, recordings, run
from tracer.errors import UserError
from tracer.kernels import KernelWarning, pin_kernels
from tracer.resources import install_command
from tracer.together import CHECKPOINT

NO_MEMORY = ("allocate memory", "Storage size calculation overflowed")  # what torch says then
# What is recorded may hold brackets and colons: no markup.  In a file or a pipe no line is ever folded.
out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 1000)
err = Console(stderr=True, highlight=False, markup=False, emoji=False)


class _Command(click.Command):
    """What goes wrong while it records or trains, told as a `UserError`."""

    def invoke(self, context: click.Context):
        notes.in_one_line(KernelWarning)
        try:
            return super().invoke(context)
        except ArithmeticError as error:  # the recorder checks what it writes
            raise UserError(f"{error}; this recording was not written: choose a smaller lr, or report this with the "
                            "command you gave") from None
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not any(words in str(error) for words in NO_MEMORY):
                raise
            raise UserError("there is not enough memory for this model: choose a smaller batch, context, width or "
                            "number of blocks") from None


class _Group(click.Group):
    command_class = _Command
    group_class = type  # of its groups too


def main() -> None:
    """Run the command line of the recorder."""
    run(commands, "python -m tracer")


@click.group(cls=_Group, context_settings=SETTINGS)
def commands() -> None:
    """Record one update and one generation of a tiny GPT, every number of it; train and run models of any size."""


def _needs(*packages: str, pin: bool = False) -> None:
    """Raises `UserError` that says what to install when one of them is missing.

    `pin`: torch shall take the kernels of a recording.
    """
    if pin:
        pin_kernels()
    try:
        for package in packages:
            importlib.import_module(package)
    except ImportError as error:
        raise UserError(f"{error.name} is not installed, recording needs it: run {install_command('record')}"
                        ) from None


def _check_output(folder: Path) -> None:
    """Raises `UserError` before any work is done for an output that cannot be written."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {folder}: choose another --output ({_why_not(place)})")


def _why_not(place: Path) -> str:
    if not place.is_dir():
        return f"{place} is a file"
    if hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"{place} lies on a disk that can only be read"
    return f"this user may not write into {place}"


def _check_output_file(path: Path) -> None:
    """The same for a file."""
    if path.is_dir():
        raise UserError(f"{path} is a folder: name a file as --output")
    _check_output(path.parent)


def _options(*options: Callable) -> Callable:
    def add(function: Callable) -> Callable:
        for option in reversed(options):
            function = option(function)
        return function

    return add


class _Text(click.ParamType):
    """Text of the command line.

    Where the locale is not UTF-8, Python hands its bytes over as lone surrogates: they are read as UTF-8 here.
    """

    name = "text"

    def convert(self, value: str, param, context) -> str:
        try:
            return value.encode(errors="surrogateescape").decode()
        except UnicodeError:
            return value  # no UTF-8 either: whoever takes the text says so


TEXT = _Text()

OUTPUT = click.option("--output", "-o", type=click.Path(path_type=Path), default=Path("traces"),
                      help="Folder to write into.")
TRAINING = _options(
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
)
GENERATION = _options(
    click.option("--prompt", type=TEXT, default="Hi", help="Text to continue."),
    click.option("--temperature", default=0.8, help="Logits are divided by it."),
    click.option("--top-k", default=5, help="Candidates kept."),
    click.option("--sampling-seed", default=7, help="Seed of the draws."),
    click.option("--max-new-tokens", default=10, help="Longest continuation in tokens, the end token included."),
)


@commands.command()
@TRAINING
@OUTPUT
def train(output: Path, **options) -> None:
    """Train from scratch; write training.json and checkpoint.pt."""
    _needs("torch", "tiktoken", pin=True)
    _check_output(output)
    job = _training_job(options)
    _check_training(job)
    trace, checkpoint = _train(job)
    _write(output, {"training": trace}, checkpoint)


@commands.command()
@GENERATION
@click.option("--checkpoint", type=click.Path(path_type=Path), help="[default: checkpoint.pt in the output folder]")
@OUTPUT
def generate(output: Path, checkpoint: Path | None, **options) -> None:
    """Continue a prompt with a checkpoint; write generation.json and long.json."""
    _needs("torch", "tiktoken", pin=True)
    _check_output(output)
    from tracer.checkpoint import load_checkpoint
    from tracer.origin import check_training

    path = checkpoint or output / CHECKPOINT
    loaded = load_checkpoint(path)
    check_training(output, path, loaded.sha256())
    _write(output, _generate(loaded, _generation_job(options)))


@commands.command()
@TRAINING
@GENERATION
@OUTPUT
def record(output: Path, **options) -> None:
    """Train, then generate: all recordings of the site, written at one moment."""
    _needs("torch", "tiktoken", pin=True)
    _check_output(output)
    training, generation = _training_job(options), _generation_job(options)
    _check_training(training)
    _check_generation(generation, training.text, training.config)  # before the training, not after it
    trace, checkpoint = _train(training)
    _write(output, {"training": trace, **_generate(checkpoint, generation)}, checkpoint)


def _training_job(options: dict):
    from tracer.model import Config
    from tracer.record_training import TrainingJob
    from tracer.tokenizer import gpt2
    from tracer.training import TrainingSettings

    shape = {name: options[name] for name in ("context", "width", "heads", "blocks", "dropout")}
    settings = {name: options[name] for name in ("seed", "updates", "lr")}
    return TrainingJob(options["text"], options["validation_text"],
                       Config(vocabulary=gpt2().vocabulary_size, **shape), TrainingSettings(**settings))


def _generation_job(options: dict):
    from tracer.record_generation import GenerationJob

    return GenerationJob(options["prompt"], options["temperature"], options["top_k"], options["sampling_seed"],
                         options["max_new_tokens"])


def _check_training(job) -> None:
    """Says when its recording is large, refuses what is too large."""
    from tracer.forecast import when_large
    from tracer.record_training import expected_training
    from tracer.tokenizer import gpt2

    if large := when_large(expected_training(job, gpt2())):
        err.print(large, soft_wrap=True)


def _train(job) -> tuple:
    """The recording and the checkpoint."""
    from tracer.record_training import record_training
    from tracer.tokenizer import gpt2

    with _progress("training", job.settings.updates) as advance:
        trace, checkpoint = record_training(job, gpt2(), lambda number, loss: advance(number, f"loss {loss:.6f}"))
    summary = trace.summary
    out.print(f"first loss {summary['loss']}, after {summary['updates']} updates {summary['train_loss']} on "
              f"{job.text!r} and {summary['validation_loss']} on {job.validation_text!r}")
    return trace, checkpoint


def _check_generation(job, text: str, config) -> dict:
    """The jobs of both routes that continue a prompt; says when they are large, refuses what is too large."""
    from tracer.forecast import when_large
    from tracer.record_generation import check_job, past_context_job
    from tracer.tokenizer import gpt2

    check_job(job, gpt2(), config)
    jobs = {"generation": job, "long": past_context_job(job, text, gpt2(), config)}
    for route, own in jobs.items():
        if large := when_large(check_job(own, gpt2(), config, route)):
            err.print(f"{route}: {large}", soft_wrap=True)
    return jobs


def _generate(checkpoint, job) -> dict:
    """The recordings of both routes."""
    from tracer.record_generation import record_generation
    from tracer.tokenizer import gpt2

    jobs = _check_generation(job, checkpoint.text, checkpoint.model.config)
    return {route: record_generation(own, checkpoint, gpt2(), lambda number, token, text: out.print(
        f"round {number}: id {token}, shows {text!r}"), route) for route, own in jobs.items()}


def _write(folder: Path, traces: dict, checkpoint=None) -> None:
    from tracer.record_set import write_set

    write_set(folder, traces, checkpoint, out.print, err.print)


@contextmanager
def _progress(what: str, total: int, done: int = 0, quiet: bool = False):
    """A bar on a terminal; a line for every tenth elsewhere.  `done`: how many were done before."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=err, disable=quiet or not err.is_terminal) as bar:
        task = bar.add_task(what, total=total, completed=done, note="")

        def advance(number: int, note: str) -> None:
            bar.update(task, completed=number, note=note)
            if not quiet and not err.is_terminal and (number == 1 or number % max(total // 10, 1) == 0):
                err.print(f"{what} {number}/{total} {note}")

        yield advance


@commands.command()
@click.option("--checkpoint", type=click.Path(path_type=Path), default=Path("traces") / CHECKPOINT)
@click.argument("texts", type=TEXT, nargs=-1, required=True)
def evaluate(checkpoint: Path, texts: tuple[str, ...]) -> None:
    """Mean cross-entropy (nats a token, end token included) of each text, without training on it."""
    _needs("torch", "tiktoken")
    from tracer.checkpoint import load_checkpoint
    from tracer.record_training import evaluation_loss
    from tracer.tokenizer import gpt2

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
    _needs("tiktoken")
    from tracer.tokenizer import gpt2

    tokenizer = gpt2()
    merges = tokenizer.merge_steps(text)
    out.print(f"bytes   {text.encode().hex(' ')}")
    for merge in merges:
        left, right, merged = (tokenizer.label(i) for i in (merge.left, merge.right, merge.merged))
        out.print(f"merge   {left} + {right} → {merged}  (id {merge.merged})")
    for token in tokenizer.encode(text):
        out.print(f"id      {token}  {tokenizer.label(token)}")


@commands.command()
@click.argument("traces", type=click.Path(path_type=Path), required=False)
@click.option("--hashes/--no-hashes", default=True, help="Also check the hashes of what nothing recorded made.")
@click.option("--brief", is_flag=True, help="A row for every kind of operation, not for every step.")
def verify(traces: Path | None, hashes: bool, brief: bool) -> None:
    """Recompute every recorded number from its operands, in NumPy, without torch.

    TRACES is a folder of recordings with its experiments, or one file; without it, traces/ is taken, or where there is
    none the recordings that come along.  Exits with 1 when a number does not follow.
    """
    from tracer.verify_folder import checks_of_all

    failed = 0
    for name, checks in checks_of_all(recordings(traces), hashes):
        wrong = [check for check in checks if check.problem]
        out.print(_table(name, checks, brief))
        for check in wrong:
            out.print(f"WRONG {name}: step {check.step} ({check.kind}): {check.problem}", style="bold red")
        failed += len(wrong)
        values = sum(check.count for check in checks if check.kind not in ("sha256", "summary"))
        out.print(f"{name}: {len(checks)} checks, {values:,} numbers recomputed, {len(wrong)} wrong")
    if failed:
        sys.exit(1)


def _table(name: str, checks: list, brief: bool) -> Table:
    table = Table(title=f"{name}: recorded (PyTorch, float32) against recomputed (NumPy, float64)")
    for column in ("kind of operation", "checks") if brief else ("step", "kind of operation"):
        table.add_column(column, overflow="fold", justify="right" if column == "checks" else "left")
    for column in ("numbers", "largest absolute error", "largest relative error", "verdict"):
        table.add_column(column, justify="right")
    groups: dict = {}
    for number, check in enumerate(checks):
        groups.setdefault(check.kind if brief else number, []).append(check)
    for members in groups.values():
        wrong = sum(bool(check.problem) for check in members)
        first = members[0]
        table.add_row(*((first.kind, str(len(members))) if brief else (first.step, first.kind)),
                      f"{sum(c.count for c in members):,}", f"{max(c.absolute for c in members):.3g}",
                      f"{max(c.relative for c in members):.3g}", f"{wrong} wrong" if wrong else "ok")
    return table


from tracer import cli_fit, cli_library  # noqa: E402, F401  they add their commands to `commands`
