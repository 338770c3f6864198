"""The builder's command line."""

import gc
import time
from pathlib import Path

import click

from tracer.command_line import SETTINGS, recordings, run
from tracer.errors import UserError

FOLDER = click.Path(path_type=Path)  # a file in its place is told in one line by what reads or writes there


def main() -> None:
    """Run the command line of the builder."""
    run(commands, "python -m site_builder")


@click.group(context_settings=SETTINGS)
def commands() -> None:
    """Build the site from recordings, or serve it."""


@commands.command()
@click.option("--traces", type=FOLDER,
              help="Folder of the recordings.  [default: traces, or, without one, those that come along]")
@click.option("--output", "-o", type=FOLDER, default=Path("site"), help="Folder to write the site into.")
def build(traces: Path | None, output: Path) -> None:
    """Build the site; it opens by double-click and from any web host."""
    from site_builder.stamp import is_current

    start = time.perf_counter()
    traces = recordings(traces)
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
        raise UserError(f"there is no site in {site}: build one first with `python -m site_builder build`")
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
