"""The command line.  Each command imports what it needs, so that `verify` runs without torch."""

from tracer.cli import experiments, fit, library, passes, record, verify  # noqa: F401  each adds its commands
from tracer.cli.shared import commands
from tracer.command_line import run

__all__ = ["commands", "main"]


def main() -> None:
    """Run the command line of the recorder."""
    run(commands, "python -m tracer")
