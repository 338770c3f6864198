"""The command line.  Each command imports what it needs, so that `verify` runs without torch."""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tracer.errors import UserError

CHECKPOINT = "checkpoint.pt"
FOLDER = click.Path(file_okay=False, path_type=Path)
out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, highlight=False)


def main() -> None:
    """Run the command line: a `UserError` becomes one line and exit status 2."""
    try:
        commands(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        click.echo("error: interrupted; what was recorded before is as it was", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except UserError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        click.echo(f"error: {error.filename or 'file'}: {error.strerror}; check the path and the disk", err=True)
        sys.exit(2)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def commands() -> None:
    """Record one update and one generation of a tiny GPT, every number of it."""


def _needs_torch() -> None:
    from tracer.kernels import pin_kernels

    pin_kernels()
    try:
        import tiktoken  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise UserError(f"{error.name} is not installed, recording needs it: run `make traces`, "
                        "or `pip install '.[record]'`") from None


def _options(*options: Callable) -> Callable:
    def add(function: Callable) -> Callable:
        for option in reversed(options):
            function = option(function)
        return function

    return add


OUTPUT = click.option("--output", "-o", type=FOLDER, default=Path("traces"), help="Folder to write into.")
TRAINING = _options(
    click.option("--text", default="Hi 你!", help="Text to train on."),
    click.option("--validation-text", default="Hi 你好!", help="Text to evaluate on, never trained on."),
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
    click.option("--prompt", default="Hi", help="Text to continue."),
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
    _needs_torch()
    _train(output, options)


@commands.command()
@GENERATION
@click.option("--checkpoint", type=click.Path(path_type=Path), help="[default: checkpoint.pt in the output folder]")
@OUTPUT
def generate(output: Path, checkpoint: Path | None, **options) -> None:
    """Continue a prompt with a checkpoint; write generation.json."""
    _needs_torch()
    from tracer.checkpoint import load_checkpoint

    _generate(output, load_checkpoint(checkpoint or output / CHECKPOINT), options)


@commands.command()
@TRAINING
@GENERATION
@OUTPUT
def record(output: Path, **options) -> None:
    """Train, then generate: both recordings of the site."""
    _needs_torch()
    names = {parameter.name for parameter in generate.params}
    sampling = {name: options.pop(name) for name in list(options) if name in names}
    _generate(output, _train(output, options), sampling)


def _train(output: Path, options: dict):
    from tracer.checkpoint import save_checkpoint
    from tracer.model import Config
    from tracer.record_training import TrainingJob, record_training
    from tracer.schema import save
    from tracer.tokenizer import gpt2
    from tracer.training import TrainingSettings

    tokenizer = gpt2()
    shape = {name: options[name] for name in ("context", "width", "heads", "blocks", "dropout")}
    job = TrainingJob(options["text"], options["validation_text"],
                      Config(vocabulary=tokenizer.vocabulary_size, **shape),
                      TrainingSettings(seed=options["seed"], updates=options["updates"], lr=options["lr"]))
    with _progress("training", job.settings.updates) as advance:
        trace, checkpoint = record_training(job, tokenizer, lambda number, loss: advance(number, f"loss {loss:.6f}"))
    save_checkpoint(checkpoint, output / CHECKPOINT)
    save(trace, output / "training.json")
    _remove_unused(output)
    summary = trace.summary
    out.print(f"first loss {summary['loss']}, after {summary['updates']} updates {summary['train_loss']} on "
              f"{job.text!r} and {summary['validation_loss']} on {job.validation_text!r}")
    out.print(f"wrote {output / 'training.json'}: {len(trace.steps)} steps, {summary['parameters']:,} parameters")
    return checkpoint


def _generate(output: Path, checkpoint, options: dict) -> None:
    from tracer.record_generation import GenerationJob, record_generation
    from tracer.schema import save
    from tracer.tokenizer import gpt2

    job = GenerationJob(options["prompt"], options["temperature"], options["top_k"], options["sampling_seed"],
                        options["max_new_tokens"])
    trace = record_generation(job, checkpoint, gpt2(), lambda number, token, text: out.print(
        f"round {number}: id {token}, shows {text!r}"))
    save(trace, output / "generation.json")
    _remove_unused(output)
    out.print(f"wrote {output / 'generation.json'}: {len(trace.steps)} steps, text {trace.summary['text']!r}")


def _remove_unused(folder: Path) -> None:
    """Array files that the recordings before needed and these do not."""
    from tracer.schema import load, unused_files

    traces = [load(path) for path in sorted(folder.glob("*.json"))]
    for path in unused_files(folder, traces):
        path.unlink()


@contextmanager
def _progress(what: str, total: int):
    """A bar on a terminal; a line for every tenth elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=total, note="")

        def advance(number: int, note: str) -> None:
            bar.update(task, completed=number, note=note)
            if not err.is_terminal and (number == 1 or number % max(total // 10, 1) == 0):
                err.print(f"{what} {number}/{total} {note}")

        yield advance


@commands.command()
@click.option("--checkpoint", type=click.Path(path_type=Path), default=Path("traces") / CHECKPOINT)
@click.argument("texts", nargs=-1, required=True)
def evaluate(checkpoint: Path, texts: tuple[str, ...]) -> None:
    """Mean cross-entropy (nats a token, end token included) of each text, without training on it."""
    _needs_torch()
    from tracer.checkpoint import load_checkpoint
    from tracer.record_training import evaluation_loss
    from tracer.tokenizer import gpt2

    model = load_checkpoint(checkpoint).model
    for text in texts:
        out.print(f"{evaluation_loss(model, text, gpt2()):.6f}  {text!r}")


@commands.command()
@click.argument("text")
def tokens(text: str) -> None:
    """Show how TEXT becomes ids: its bytes, every merge, the ids."""
    _needs_torch()
    from tracer.tokenizer import gpt2

    tokenizer = gpt2()
    out.print(f"bytes   {text.encode().hex(' ')}")
    for merge in tokenizer.merge_steps(text):
        left, right, merged = (tokenizer.label(i) for i in (merge.left, merge.right, merge.merged))
        out.print(f"merge   {left} + {right} → {merged}  (id {merge.merged})", markup=False)
    for token in tokenizer.encode(text):
        out.print(f"id      {token}  {tokenizer.label(token)}", markup=False)


@commands.command()
@click.argument("traces", type=click.Path(path_type=Path), default=Path("traces"))
@click.option("--hashes/--no-hashes", default=True, help="Also check the hashes of what nothing recorded made.")
@click.option("--all", "show_all", is_flag=True, help="A row for every step, not for every kind.")
def verify(traces: Path, hashes: bool, show_all: bool) -> None:
    """Recompute every recorded number from its operands, in NumPy, without torch.

    TRACES is a folder of recordings, or one recording.  Exits with 1 when a number does not follow.
    """
    from tracer import schema
    from tracer.verify import verify as checks_of

    failed = 0
    for name, trace in schema.load_all(traces).items():
        checks = list(checks_of(trace, hashes=hashes))
        wrong = [check for check in checks if check.problem]
        out.print(_table(name, checks, show_all))
        for check in wrong:
            out.print(f"WRONG {name}: step {check.step} ({check.kind}): {check.problem}", markup=False, style="bold red")
        failed += len(wrong)
        values = sum(check.count for check in checks if check.kind not in ("sha256", "summary"))
        out.print(f"{name}: {len(checks)} checks, {values:,} numbers recomputed, {len(wrong)} wrong")
    if failed:
        sys.exit(1)


def _table(name: str, checks: list, show_all: bool) -> Table:
    table = Table(title=f"{name}: recorded (PyTorch, float32) against recomputed (NumPy, float64)")
    table.add_column("step" if show_all else "kind of operation", overflow="fold")
    for column in ("checks", "numbers", "largest absolute error", "largest relative error", "verdict"):
        table.add_column(column, justify="right")
    groups: dict[str, list] = {}
    for check in checks:
        groups.setdefault(f"{check.step} ({check.kind})" if show_all else check.kind, []).append(check)
    for group, members in groups.items():
        wrong = sum(bool(check.problem) for check in members)
        table.add_row(group, str(len(members)), f"{sum(c.count for c in members):,}",
                      f"{max(c.absolute for c in members):.3g}", f"{max(c.relative for c in members):.3g}",
                      f"{wrong} wrong" if wrong else "ok")
    return table
