"""What every command says and how: the two streams, a progress bar, refusals before any work is done."""

import importlib
import os
import sys
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tracer.errors import UserError

# What is recorded may hold brackets and colons: no markup.  In a file or a pipe no line is ever folded.
out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 1000)
err = Console(stderr=True, highlight=False, markup=False, emoji=False)


def need(*packages: str) -> None:
    """Raises `UserError` that says what to install when one of them is missing."""
    from tracer.kernels import pin_kernels

    pin_kernels()
    try:
        for package in packages:
            importlib.import_module(package)
    except ImportError as error:
        raise UserError(f"{error.name} is not installed, recording needs it: run `make traces`, "
                        "or `pip install '.[record]'`") from None


def check_output(folder: Path) -> None:
    """Raises `UserError` before any work is done for an output that cannot be written."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {folder}: choose another --output")


@contextmanager
def progress(what: str, total: int, start: int = 0, quiet: bool = False):
    """A bar on a terminal; a line for every tenth elsewhere.  Yields `advance(number, note)`."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=err, disable=quiet or not err.is_terminal) as bar:
        task = bar.add_task(what, total=total, completed=start, note="")

        def advance(number: int, note: str) -> None:
            bar.update(task, completed=number, note=note)
            if not quiet and not err.is_terminal and (number == 1 or number % max(total // 10, 1) == 0):
                err.print(f"{what} {number}/{total} {note}")

        yield advance
