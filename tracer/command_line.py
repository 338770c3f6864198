"""How a command line runs: what a user is to read is one line, and names the program as it was called."""

import io
import re
import sys
from pathlib import Path
from typing import NoReturn

import click

from tracer.errors import UserError, os_error_line
from tracer.resources import RECORDINGS

SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}
_ADVICE = re.compile(r"`python -m (?:tracer|site_builder)\b")  # so messages name a command


def run(commands: click.Group, program: str, both: bool = False) -> None:
    """Run the command line: a `UserError` becomes one line and exit status 2.

    `both`: `program` has the commands of the recorder and of the builder, so that advice names it instead.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where it is closed
            stream.reconfigure(errors="backslashreplace")  # a terminal or pipe that cannot show 你 gets its code
    try:
        commands(prog_name=program, standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        _fail("interrupted; what was there before is as it was", 130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except UserError as error:
        _fail(_ADVICE.sub(f"`{program}", str(error)) if both else str(error))
    except OSError as error:
        _fail(os_error_line(error))


def _fail(message: str, status: int = 2) -> NoReturn:
    click.echo("error: " + " ".join(message.splitlines()), err=True)
    sys.exit(status)


def recordings(named: Path | None) -> Path:
    """The folder of recordings: the one named, else ``traces/`` here, else the one that comes along, and says so."""
    here = Path("traces")
    if named is None and not here.exists():
        click.echo(f"there is no folder {here} here: taking the recordings that come along, {RECORDINGS}", err=True)
        return RECORDINGS
    return named or here
