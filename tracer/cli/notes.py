"""Warnings of the library as the command line shows them."""

import warnings

import click


def in_one_line(kind: type[Warning]) -> None:
    """From now on, warnings of `kind` are one line on stderr, without the line of code, each once."""
    usual, said = warnings.showwarning, set()

    def show(message, category, *rest) -> None:
        if not issubclass(category, kind):
            usual(message, category, *rest)
        elif str(message) not in said:
            said.add(str(message))
            click.echo(f"note: {message}", err=True)

    warnings.simplefilter("always", kind)
    warnings.showwarning = show
