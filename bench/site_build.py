"""How long the site takes to build from recordings that are there: whole processes, start to end.

    PYTHONPATH=. python bench/site_build.py [--runs N] [--traces FOLDER]

Exits with 1 when the limit is missed, with 2 when a command fails.
"""

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
from rich.console import Console
from rich.table import Table

from site_builder import verified

ROOT = Path(__file__).parent.parent
out = Console(width=None if sys.stdout.isatty() else 130, highlight=False)


@dataclass(frozen=True)
class Process:
    """A Python command line; without a limit (seconds) it is information.  Before it the folders are removed."""

    name: str
    arguments: tuple[str, ...]
    limit: float | None = None
    without: tuple[Path, ...] = ()


def processes(traces: Path, site: Path) -> list[Process]:
    """The build, what of it is not building, and `verify`, which reads the same recordings."""
    build = ("-m", "site_builder", "build", "--traces", str(traces), "--output", str(site))
    return [
        Process("site_builder build: all recordings verified first", build, 4.0, (verified.FOLDER, site)),
        Process("site_builder build: recordings that were verified before", build, 2.0, (site,)),
        Process("site_builder build: nothing has changed", build, 1.0),
        Process("– of which Python starts", ("-c", "pass")),
        Process("– of which Python starts and imports the builder",
                ("-c", "import site_builder.cli, site_builder.build")),
        Process("– of which it also reads the recordings",
                ("-c", "import sys, site_builder.cli, site_builder.build\n"
                       "from tracer.format.load import load_all\nload_all(__import__('pathlib').Path(sys.argv[1]))",
                 str(traces))),
        Process("tracer verify", ("-m", "tracer", "verify", str(traces))),
    ]


def run(process: Process) -> tuple[float, float]:
    """Elapsed and processor seconds.  A command that fails ends the benchmark."""
    for folder in process.without:
        shutil.rmtree(folder, ignore_errors=True)
    before, start = processor_time(), time.perf_counter()
    done = subprocess.run([sys.executable, *process.arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - start
    if done.returncode:
        click.echo(f"error: {process.name} ended with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}",
                   err=True)
        sys.exit(2)
    return elapsed, processor_time() - before


def processor_time() -> float:
    """Of all processes that were run and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def add_row(table: Table, process: Process, measured: list[tuple[float, float]]) -> bool:
    """False when the limit is missed."""
    elapsed, processor = zip(*measured, strict=True)
    kept = process.limit is None or median(elapsed) <= process.limit
    verdict = "information" if process.limit is None else "ok" if kept else "[bold red]MISSED"
    table.add_row(process.name, f"{median(elapsed):.2f}", f"{min(elapsed):.2f}–{max(elapsed):.2f}",
                  f"{median(processor):.2f}", str(process.limit or "–"), verdict)
    return kept


@click.command()
@click.option("--runs", default=7, show_default=True, type=click.IntRange(min=1), help="Runs of every command.")
@click.option("--traces", default=Path("traces"), show_default=True, type=click.Path(path_type=Path),
              help="Folder of the recordings.")
def main(runs: int, traces: Path) -> None:
    """Time the build of the site, and `verify`."""
    measured: dict[Process, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        commands = processes(traces.resolve(), Path(folder) / "site")
        for number in range(runs + 1):
            for process in commands:
                result = run(process)
                if number:  # the first round compiles, and fills the disk's cache
                    measured.setdefault(process, []).append(result)
        size = sum(path.stat().st_size for path in (Path(folder) / "site").rglob("*") if path.is_file())
    table = Table(title="seconds, whole process")
    table.add_column("what", overflow="fold")
    for column in ("median", "min–max", "processor time", "limit", "verdict"):
        table.add_column(column, justify="right")
    kept = [add_row(table, process, results) for process, results in measured.items()]
    out.print(table)
    out.print(f"site: {size / 1e6:.1f} MB; Python {sys.version.split()[0]}; runs: {runs}")
    if not all(kept):
        sys.exit(1)


if __name__ == "__main__":
    main()
