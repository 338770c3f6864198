"""The command that records one pass of each small model that the lessons open."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from tracer.cli.experiments import like_a_recording
from tracer.cli.shared import commands, out, progress
from tracer.format.passes import FOLDER


def _advanced(advance: Callable[[int, str], None], before: int, name: str, done: int) -> None:
    advance(before + done, name)


@commands.command()
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Folder to write into.",
              default=Path("traces") / FOLDER)
def passes(output: Path) -> None:
    """Train a small model for each of Llama's changes, and record one pass of each for the lessons."""
    with like_a_recording(output / "plain.json"):
        from tracer.format.files import save
        from tracer.recording.single_pass import record_pass
        from tracer.trainer.lesson_models import CHANGES, IDS, LABELS, SETTINGS, TRAINED_ON, UPDATES, trained

        made = {}
        with progress("training", UPDATES * len(CHANGES)) as advance:
            for number, name in enumerate(CHANGES):
                model = trained(name, partial(_advanced, advance, number * UPDATES, name))
                made[name] = record_pass(model, IDS, labels=LABELS, trained_on=TRAINED_ON, settings=SETTINGS)
        for name, trace in made.items():
            save(trace, output / f"{name}.json")
            out.print(f"wrote {output / name}.json: {len(trace.operations)} operations")
