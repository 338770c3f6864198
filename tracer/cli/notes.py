"""Warnings of the library as the command line shows them."""

import warnings
from typing import TextIO

import click


def in_one_line(kind: type[Warning]) -> None:
    """From now on, warnings of `kind` are one line on stderr, without the line of code, each once."""
    usual = warnings.showwarning
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
             line: str | None = None) -> None:
        if not issubclass(category, kind):
            usual(message, category, filename, lineno, file, line)
        elif str(message) not in said:
            said.add(str(message))
            click.echo(f"note: {message}", err=True)

    warnings.simplefilter("always", kind)
    warnings.showwarning = show
