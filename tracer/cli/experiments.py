"""The commands that record experiments with small models, trained within seconds on what a rule makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import click

from tracer.cli.fit import experiment, whole_numbers
from tracer.cli.outputs import check_output_file
from tracer.cli.shared import F, needs, out, progress, together
from tracer.errors import UserError
from tracer.trainer.small_settings import (
    COMMON,
    INDUCTION,
    NOUN,
    REVERSING,
    SmallSettings,
    families_settings,
    induction_settings,
    noun_settings,
)


def _options(name: str, usual: dict[str, Any]) -> Callable[[F], F]:
    """The settings that can be given, with what they are otherwise."""
    usual = COMMON | usual | {"seeds": ",".join(map(str, usual["seeds"]))}
    helps = {"seeds": "Seeds of the models of two blocks.", "updates": "Updates of each model.",
             "width": "Width of the residual stream.", "heads": "Attention heads a block.",
             "batch": "Texts of an update.", "lr": "Largest learning rate.",
             "std": "Standard deviation of the first weights.",
             "evaluate_every": "Updates from one look at the model to the next."}
    return together(*(click.option(f"--{option.replace('_', '-')}", default=usual[option], help=text)
                      for option, text in helps.items()),
                    click.option("--output", "-o", type=click.Path(path_type=Path), help="File to write.",
                                 default=Path("traces") / "experiments" / f"{name}.json"))


class _Advance(Protocol):
    def __call__(self, blocks: int, seed: int, done: int, value: float) -> None: ...


@contextmanager
def like_a_recording(output: Path) -> Iterator[None]:
    """One thread and the kernels of a recording, so that a seed gives the same numbers everywhere."""
    check_output_file(output)
    needs("torch", pin=True)
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _recording(settings: SmallSettings, output: Path, what: str) -> Iterator[_Advance]:
    """The same, with the progress of all models together."""
    with like_a_recording(output), progress("training", settings.fit.updates * len(settings.models)) as advance:
        def after(blocks: int, seed: int, done: int, value: float) -> None:
            advance(settings.models.index((blocks, seed)) * settings.fit.updates + done,
                    f"{_model(blocks, seed)}: {what} {value:.3f}")

        yield after


@experiment.command()
@_options("induction", INDUCTION)
def induction(seeds: str, output: Path, **options: Any) -> None:
    """Watch an induction head form: train two blocks and one on texts in which a token repeats what followed it."""
    settings = induction_settings(seeds=_seeds(seeds), **options)
    with _recording(settings, output, "loss") as advance:
        from tracer.format.experiments import save_experiment
        from tracer.trainer.experiment_induction import run_induction

        body = run_induction(settings, advance=advance)
    save_experiment(body, output)
    for run in body["summary"]:
        formed = "no head formed" if run["formed"] is None else f"a head had formed at update {run['formed']:,}"
        out.print(f"{_model(run['blocks'], run['seed'])}: loss {run['known']:.3f} where the next token can be "
                  f"known, induction score {run['induction']:.3f}, {formed}")
    out.print(f"wrote {output}")


@experiment.command()
@_options("noun", NOUN)
def noun(seeds: str, output: Path, **options: Any) -> None:
    """Watch "it" find its noun: train two blocks and one on sentences whose verb says which noun is meant."""
    settings = noun_settings(seeds=_seeds(seeds), **options)
    with _recording(settings, output, "right answers") as advance:
        from tracer.format.experiments import save_experiment
        from tracer.trainer.experiment_noun import run_noun

        body = run_noun(settings, advance=advance)
    save_experiment(body, output)
    for run in body["summary"]:
        out.print(f"{_model(run['blocks'], run['seed'])}: {run['held_out']:.1%} right on pairs held out, weight "
                  f"of \"it\" on the right noun {run['right']:.3f}")
    out.print(f"wrote {output}")


@experiment.command()
@click.option("--vocabularies", default="16,65,50257", help="Sizes of the vocabulary.")
@click.option("--seeds", default="0,1,2", help="Seeds of the models.")
@click.option("--width", default=64, help="Width of the residual stream; four heads share it.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="File to write.",
              default=Path("traces") / "experiments" / "initial.json")
def initial(vocabularies: str, seeds: str, width: int, output: Path) -> None:
    """Measure the loss of fresh models on random tokens, beside ln V."""
    sizes, drawn = whole_numbers("--vocabularies", vocabularies), _seeds(seeds)
    with like_a_recording(output):
        from tracer.format.experiments import save_experiment
        from tracer.trainer.experiment_initial import run_initial

        body = run_initial(sizes, drawn, width, lambda point: out.print(
            f"{point['vocabulary']:,} tokens, standard deviation {point['std']}: "
            f"{', '.join(f'{loss:.4f}' for loss in point['losses'])}"))
    save_experiment(body, output)
    out.print(f"wrote {output}")


@experiment.command()
@click.option("--seeds", default="0,1,2", help="Seeds of the models.")
@click.option("--updates", default=REVERSING["updates"], help="Updates of each model.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="File to write.",
              default=Path("traces") / "experiments" / "families.json")
def families(seeds: str, updates: int, output: Path) -> None:
    """Watch the two other families: an encoder–decoder reverses words, an encoder fills in masked words."""
    reversing, masking = families_settings(seeds=_seeds(seeds), updates=updates)
    models = [(what, seed) for what in ("reversing", "masked, both", "masked, left") for seed in reversing.seeds]
    with like_a_recording(output), progress("training", updates * len(models)) as advance:
        from tracer.format.experiments import save_experiment
        from tracer.trainer.experiment_families import run_families

        body = run_families(reversing, masking, lambda what, seed, done, right: advance(
            models.index((what, seed)) * updates + done, f"{what}, seed {seed}: right {right:.3f}"))
    save_experiment(body, output)
    for run in body["summary"]:
        if run["task"] == "reversing":
            out.print(f"reversing, seed {run['seed']}: {run['words']:.1%} of words right, weight of the "
                      f"cross-attention on the right letter {run['right']:.3f}")
        else:
            out.print(f"masked, {run['sides']}, seed {run['seed']}: noun {run['noun']:.1%}, verb {run['verb']:.1%} "
                      f"right; on pairs held out {run['noun_held_out']:.1%} and {run['verb_held_out']:.1%}")
    out.print(f"wrote {output}")


def _model(blocks: int, seed: int) -> str:
    return f"{blocks} block{'s' if blocks > 1 else ''}, seed {seed}"


def _seeds(text: str) -> tuple[int, ...]:
    """Different whole numbers from 0 on, in their order."""
    parts = [part.strip() for part in text.split(",")]
    seeds = [int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 20]
    if len(set(seeds)) != len(parts):
        raise UserError(f"--seeds takes different whole numbers from 0 on with commas between, not {text!r}")
    return tuple(seeds)
