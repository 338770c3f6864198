"""The builder's command line."""

import gc
import sys
import time
from pathlib import Path

import click

from tracer.errors import UserError

FOLDER = click.Path(path_type=Path)  # a file in its place is told in one line by what reads or writes there


def main() -> None:
    """Run the command line: a `UserError` becomes one line and exit status 2."""
    try:
        commands()
    except UserError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        said = f"{error.filename or 'file'}: {error.strerror}" if error.strerror else str(error)
        click.echo(f"error: {said}; check the path and the disk", err=True)
        sys.exit(2)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def commands() -> None:
    """Build the site from recordings, or serve it."""


@commands.command()
@click.option("--traces", type=FOLDER, default=Path("traces"), help="Folder of the recordings.")
@click.option("--output", "-o", type=FOLDER, default=Path("site"), help="Folder to write the site into.")
def build(traces: Path, output: Path) -> None:
    """Build the site; it opens by double-click and from any web host."""
    from site_builder.stamp import is_current

    start = time.perf_counter()
    if is_current(traces, output):
        click.echo(f"nothing has changed since it was built: open {(output / 'index.html').resolve()}")
        return
    from site_builder.build import build as build_site

    gc.disable()  # nearly all that is made is kept until the end
    index = build_site(traces, output)
    click.echo(f"built in {time.perf_counter() - start:.1f} s: open {index.resolve()}")


@commands.command()
@click.option("--site", type=FOLDER, default=Path("site"), help="Folder of the built site.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, help="Port on this machine; 0: a free one.")
def serve(site: Path, port: int) -> None:
    """Serve the built site on this machine alone."""
    from site_builder.listing import listed
    from site_builder.output import recover
    from site_builder.server import server_of

    recover(site)
    if not (site / "index.html").is_file() or listed(site) is None:
        raise UserError(f"there is no site in {site}: run `make site` first")
    with server_of(site, port) as server:
        click.echo(f"serving {site} on http://localhost:{server.server_port}/ (Ctrl-C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("")


@commands.command()
@click.option("--site", type=FOLDER, default=Path("site"), help="Folder of the built site.")
def remove(site: Path) -> None:
    """Remove a built site; files in its folder that the builder did not write stay."""
    from site_builder.output import remove_site

    remove_site(site)
