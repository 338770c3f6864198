"""What recording costs, and how fast training is: paired measurements, one thread.

    PYTHONPATH=. python bench/recording.py [--runs N]

Exits with 1 when a limit is missed, with 2 when transformers is not installed.  Each pair times its two
sides one right after the other, so that what slows the machine down slows both; only the ratios mean
something.
"""

import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import click
from rich.console import Console
from rich.table import Table

from tracer.kernels import pin_kernels

if "--pin-kernels" in sys.argv:
    pin_kernels()  # before torch is imported
import torch

from tracer.model.gpt import GPT
from tracer.model.kernel_probe import described, kernels_used
from tracer.model.optimizer import make_optimizer, train
from tracer.recording.recorder import Recorder, snapshot
from tracer.recording.training import TrainingJob

IDS = [17250, 220, 19526, 254, 0, 50256]  # "Hi 你!" and the end token
JOB = TrainingJob()
out = Console(width=None if sys.stdout.isatty() else 130, highlight=False)


@dataclass(frozen=True)
class Comparison:
    """`measured` against `reference`; without a limit it is information.

    `prepare` runs before each side, off the clock.
    """

    name: str
    measured: Callable[[], object]
    reference: Callable[[], object]
    runs: int
    limit: float | None = None
    prepare: Callable[[], object] = lambda: None
    threads: int = 1


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([IDS[:-1]]), torch.tensor([IDS[1:]])


class FirstUpdate:
    """Forward and backward of one model in training mode, recorded to a smaller or larger part."""

    def __init__(self):
        torch.manual_seed(JOB.settings.seed)
        self.model = GPT(JOB.config).train()
        self.x, self.y = batch()

    def plain(self) -> None:
        _, loss = self.model(self.x, self.y)
        loss.backward()

    def recorded_with_parameters(self) -> tuple:
        """Also the parameters before the update: all that the recording keeps until `step`."""
        return snapshot(self.model), self.recorded()

    def recorded(self) -> Recorder:
        """All values and all gradients; those of the parameters are left with the model, recorded or not."""
        with Recorder(self.model) as recorder:
            recorder.name_input(self.x, "x")
            recorder.name_input(self.y, "y")
            self.plain()
        return recorder


def teaching_run() -> None:
    """Build the model, then all its updates, as the recording makes them."""
    torch.manual_seed(JOB.settings.seed)
    model = GPT(JOB.config)
    x, y = batch()
    train(model, make_optimizer(model, JOB.settings), x, y, JOB.settings.updates)


def hugging_face_run() -> None:
    """The same amount of work by transformers' GPT-2 of the same shape with torch's default AdamW."""
    from transformers import GPT2Config, GPT2LMHeadModel

    shape, settings = JOB.config, JOB.settings
    torch.manual_seed(settings.seed)
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=shape.vocabulary, n_positions=shape.context, n_embd=shape.width, n_layer=shape.blocks,
        n_head=shape.heads, activation_function="gelu", embd_pdrop=shape.dropout, attn_pdrop=shape.dropout,
        resid_pdrop=shape.dropout, use_cache=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr)
    x, _ = batch()
    model.train()
    for _ in range(settings.updates):
        loss = model(input_ids=x, labels=x).loss  # it shifts the labels itself
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()


# Time on the clock, and time of the processor: of all threads together, without that of other processes.
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
clock_option = click.option("--clock", default="wall", show_default=True, type=click.Choice(list(CLOCKS)),
                            help="Which time to compare; the processor's on a machine that others use too.")


def seconds(run: Callable[[], object], prepare: Callable[[], object], clock: str) -> float:
    """Time of one run, which starts with no garbage left and does not pay for dropping its result."""
    prepare()
    gc.collect()
    start = CLOCKS[clock]()
    result = run()
    elapsed = CLOCKS[clock]() - start
    del result
    return elapsed


def measure(comparison: Comparison, clock: str) -> list[tuple[float, float]]:
    """(measured, reference) of every pair, after pairs of warm-up: a tenth as many, at least two."""
    torch.set_num_threads(comparison.threads)
    pairs = [tuple(seconds(run, comparison.prepare, clock) for run in (comparison.measured, comparison.reference))
             for _ in range(max(comparison.runs // 10, 2) + comparison.runs)]
    return pairs[-comparison.runs:]


def new_table() -> Table:
    """A table for comparisons, without rows yet."""
    table = Table(title="measured / reference: medians in ms (min–max), and ratios")
    table.add_column("what", overflow="fold")
    for column in ("measured", "reference", "ratio of medians", "median of ratios", "min–max", "limit", "verdict"):
        table.add_column(column, justify="right")
    return table


def add_row(table: Table, comparison: Comparison, pairs: list[tuple[float, float]]) -> bool:
    """Times and ratios.  False when the limit is missed, which holds for both medians."""
    measured, reference = zip(*pairs, strict=True)
    ratios = [a / b for a, b in pairs]
    ratio = median(measured) / median(reference)
    kept = comparison.limit is None or max(ratio, median(ratios)) <= comparison.limit
    verdict = "information" if comparison.limit is None else "ok" if kept else "[bold red]MISSED"
    name = comparison.name if comparison.threads == 1 else f"{comparison.name}, {comparison.threads} threads"
    limit = "–" if comparison.limit is None else f"{comparison.limit:.3g}"
    table.add_row(name, times(measured), times(reference), f"{ratio:.3f}", f"{median(ratios):.3f}",
                  f"{min(ratios):.2f}–{max(ratios):.2f}", limit, verdict)
    return kept


def load() -> str:
    """How many processes wanted a processor in the last minute and the last quarter of an hour."""
    return "{0:.1f}, {2:.1f}".format(*os.getloadavg())


def times(values: tuple[float, ...]) -> str:
    low, middle, high = (1000 * f(values) for f in (min, median, max))
    return f"{middle:.1f} ({low:.1f}–{high:.1f})"


@click.command()
@click.option("--runs", default=200, show_default=True, type=click.IntRange(min=1),
              help="Pairs of the first update; of whole runs of 120 updates a tenth as many.")
@click.option("--pin-kernels", is_flag=True, help="Both sides with the kernels of a recording, not the machine's best.")
@clock_option
def main(runs: int, clock: str, pin_kernels: bool) -> None:
    """Compare recording with not recording, and training with Hugging Face's GPT-2."""
    try:
        from transformers import __version__ as transformers
    except ImportError:
        click.echo("error: transformers is not installed: pip install '.[record,test]'", err=True)
        sys.exit(2)
    torch.set_num_threads(1)
    first, updates = FirstUpdate(), JOB.settings.updates
    clear, whole_runs = first.model.zero_grad, max(runs // 10, 1)
    comparisons = [
        Comparison("first update: recorded / not", first.recorded, first.plain, runs, limit=1.5, prepare=clear),
        Comparison("the same, parameters copied too / not", first.recorded_with_parameters, first.plain, runs,
                   prepare=clear),
        Comparison(f"model and {updates} updates: tracer / Hugging Face", teaching_run, hugging_face_run, whole_runs,
                   limit=0.8),
    ]
    table = new_table()
    kept = [add_row(table, comparison, measure(comparison, clock)) for comparison in comparisons]
    out.print(table)
    out.print(f"threads: {torch.get_num_threads()}; torch {torch.__version__}; transformers {transformers}; "
              f"kernels of both sides: {described(kernels_used())}; pairs: {runs}, of whole runs {whole_runs}; "
              f"{clock} time; load {load()}")
    if not all(kept):
        sys.exit(1)


if __name__ == "__main__":
    main()
