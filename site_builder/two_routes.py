"""``two-routes``: the commands of the recorder and of the builder in one program.

Each package is imported for its own commands alone.
"""

import click

from tracer import command_line


class _Both(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*_builder().commands, *_recorder().commands])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return _builder().get_command(context, name) or _recorder().get_command(context, name)


def _builder() -> click.Group:
    from site_builder.cli import commands

    return commands


def _recorder() -> click.Group:
    from tracer.cli.commands import commands

    return commands


@click.group(cls=_Both, context_settings=command_line.SETTINGS)
def commands() -> None:
    """Record one update and one generation of a tiny GPT, every number of it, and build the site that replays them."""


def main() -> None:
    """Run the command line."""
    command_line.run(commands, "two-routes", both=True)
