"""What the commands share: the group they belong to, the console, options, and what they need installed."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tracer.cli import notes
from tracer.command_line import SETTINGS
from tracer.errors import UserError
from tracer.format.sizes import CHOICES, COMMON
from tracer.kernels import KernelWarning, pin_kernels
from tracer.resources import install_command

NO_MEMORY = ("allocate memory", "Storage size calculation overflowed")  # what torch says then
# What is recorded may hold brackets and colons: no markup.  In a file or a pipe no line is ever folded.
_ON_TERMINAL = sys.stdout is not None and sys.stdout.isatty()  # None where it was closed
out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False, width=None if _ON_TERMINAL else 1000)
err = Console(stderr=True, highlight=False, markup=False, emoji=False)


F = TypeVar("F", bound=Callable[..., Any])


class _Command(click.Command):
    """What goes wrong while it records or trains, told as a `UserError`."""

    def invoke(self, context: click.Context) -> Any:
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


@click.group(cls=_Group, context_settings=SETTINGS)
def commands() -> None:
    """Record one update and one generation of a tiny GPT, every number of it; train and run models of any size."""


def needs(*packages: str, pin: bool = False) -> None:
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


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator of several, which are listed in the order that ``--help`` has."""
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def flags(name: str, kind: type) -> str:
    """How an option is given: one that is on or off as a pair."""
    shown = name.replace("_", "-")
    return f"--{shown}/--{'untied' if name == 'tied' else f'no-{shown}'}" if kind is bool else f"--{shown}"


def choices(defaults: bool = True) -> Callable[[F], F]:
    """Options for what makes a model GPT-2, Llama or something between (`tracer.format.sizes`).

    Without `defaults`, what is not given is None.
    """
    options: list[Callable[[F], F]] = []
    for name, text in CHOICES.items():
        kind = type(COMMON[name])
        options.append(click.option(flags(name, kind), name, type=kind, default=COMMON[name] if defaults else None,
                                    help=text))
    return together(*options)


class _Text(click.ParamType[str]):
    """Text of the command line.

    Where the locale is not UTF-8, Python hands its bytes over as lone surrogates: they are read as UTF-8 here.
    """

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return value.encode(errors="surrogateescape").decode()
        except UnicodeError:
            return value  # no UTF-8 either: whoever takes the text says so


TEXT = _Text()


@contextmanager
def progress(what: str, total: int, done: int = 0, quiet: bool = False) -> Iterator[Callable[[int, str], None]]:
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
