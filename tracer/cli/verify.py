"""The command that recomputes what was recorded."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from tracer.cli.shared import commands, err, out
from tracer.command_line import recordings

if TYPE_CHECKING:  # ``--help`` reads no recording
    from tracer.format.verify import Check


@commands.command()
@click.argument("traces", type=click.Path(path_type=Path), required=False)
@click.option("--hashes/--no-hashes", default=True, help="Also check the hashes of what nothing recorded made.")
@click.option("--brief", is_flag=True, help="A row for every kind of operation, not for every single one.")
def verify(traces: Path | None, hashes: bool, brief: bool) -> None:
    """Recompute every recorded number from its operands, in NumPy, without torch.

    TRACES is a folder of recordings with its experiments, or one file; without it, traces/ is taken, or where there is
    none the recordings that come along.  A JSON file there that does not say it is a recording is left alone, as by
    the builder.  Exits with 1 when a number does not follow.
    """
    from tracer.format.load import left_alone
    from tracer.format.verify_folder import checks_of_all

    found = []
    path = recordings(traces)
    for other in left_alone(path) if path.is_dir() else ():
        err.print(f"left alone: {other}, which does not say that it is a recording", soft_wrap=True)
    for name, checks in checks_of_all(path, hashes):
        wrong = [check for check in checks if check.problem]
        out.print(_table(name, checks, brief))
        for check in wrong:
            out.print(f"WRONG {name}: {check.name} ({check.kind}): {check.problem}", style="bold red")
        found += [f"{name}, {check.name}" for check in wrong]
        values = sum(check.count for check in checks if check.kind not in ("sha256", "summary"))
        out.print(f"{name}: {len(checks)} checks, {values:,} numbers recomputed, {len(wrong)} wrong")
    if found:
        out.print(f"WRONG in all: {len(found)}, the first: {found[0]}", style="bold red")
        sys.exit(1)


def _table(name: str, checks: list[Check], brief: bool) -> Table:
    table = Table(title=f"{name}: recorded (PyTorch, float32) against recomputed (NumPy, float64)")
    for column in ("kind of operation", "checks") if brief else ("what", "kind of operation"):
        table.add_column(column, overflow="fold", justify="right" if column == "checks" else "left")
    for column in ("numbers", "largest absolute error", "largest relative error", "verdict"):
        table.add_column(column, justify="right")
    groups: dict[Hashable, list[Check]] = {}
    for number, check in enumerate(checks):
        groups.setdefault(check.kind if brief else number, []).append(check)
    for members in groups.values():
        wrong = sum(bool(check.problem) for check in members)
        first = members[0]
        table.add_row(*((first.kind, str(len(members))) if brief else (first.name, first.kind)),
                      f"{sum(c.count for c in members):,}", f"{max(c.absolute for c in members):.3g}",
                      f"{max(c.relative for c in members):.3g}", f"{wrong} wrong" if wrong else "ok")
    return table
