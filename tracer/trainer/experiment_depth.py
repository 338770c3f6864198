"""The depth experiment: the same text, recipe and data order with 2, 4 and 8 blocks."""

import hashlib
import json
import platform
import statistics
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from tracer.errors import UserError
from tracer.format.experiment_figures import POINTS, digits, finish
from tracer.format.experiments import DEPTH_SCHEMA, VERSION
from tracer.format.shapes import LARGEST
from tracer.library.generate import generate
from tracer.model.gpt import GPT
from tracer.model.sampling import Sampling
from tracer.storage.atomic import write_atomically
from tracer.storage.lock import only_writer
from tracer.trainer.corpus import Corpus, encode_text, load_data, prepare, prompt_ids, read_text, tokenizer_from_json
from tracer.trainer.fit import LOG, Evaluation, Fit, Update
from tracer.trainer.log import read_log
from tracer.trainer.processes import Processes
from tracer.trainer.settings import SETTINGS, FitSettings, read_settings

ROUNDS = 15  # of the measurement of time
TEMPERATURE = 0.8
SAMPLE = "sample.json"  # in the folder of the runs: what their samples are


def run_depth(text: Path, runs: Path, settings: FitSettings, depths: tuple[int, ...], prompt: str, sample_tokens: int,
              begin: Callable[[int], None] = lambda blocks: None,
              after_update: Callable[[Update], None] = lambda update: None,
              after_evaluation: Callable[[Evaluation], None] = lambda evaluation: None) -> dict[str, Any]:
    """Train one model a depth and return the experiment as JSON, in the form `experiment_schema` checks.

    `runs`: folder of the data and of one run a depth; runs that were stopped there are gone on with.
    Raises `UserError` as `prepare` and `Fit` do, and when `runs` holds runs of another text, with other settings
    or with other samples: all of that before anything is written; and while another process trains there.
    """
    if not 1 <= sample_tokens <= LARGEST:
        raise UserError(f"a sample must have from 1 to {LARGEST:,} tokens, not {sample_tokens}")
    settings = replace(settings, data=str(runs / "data"))
    each = {blocks: replace(settings, blocks=blocks, output=str(runs / f"{blocks}-blocks")) for blocks in depths}
    meta = encode_text(text)[0]
    start = prompt_ids(tokenizer_from_json(meta["tokenizer"]), prompt)
    sample = {"prompt": prompt, "tokens": sample_tokens, "temperature": TEMPERATURE}
    _check_runs(runs, each.values(), meta["files"], sample)
    with only_writer(runs, "--runs"):
        _check_runs(runs, each.values(), meta["files"], sample)  # another process may have begun some meanwhile
        prepare(text, runs / "data")
        write_atomically(runs / SAMPLE, json.dumps(sample).encode() + b"\n")
        data = load_data(runs / "data")

        def notes(model: GPT) -> dict[str, Any]:
            new = generate(model, [start], Sampling(TEMPERATURE, seed=settings.seed), sample_tokens)[0]
            return {"sample": data.tokenizer.decode(new)}

        parts = {}
        for blocks, own in each.items():
            begin(blocks)
            parts[blocks] = Fit(own, Processes(0, 1, torch.device("cpu")), resume=_started(own))
            parts[blocks].run(after_update, after_evaluation, notes)
    times = times_of_an_update(list(parts.values()))
    return finish({
        "schema": DEPTH_SCHEMA, "version": VERSION,
        "make": _make(text, data, settings, sample),
        "runs": [_run(run, blocks, times[number]) for number, (blocks, run) in enumerate(parts.items())],
    })


def _started(settings: FitSettings) -> bool:
    return (Path(settings.output) / SETTINGS).exists()


def _check_runs(runs: Path, each: Iterable[FitSettings], files: dict[str, str],
                sample: dict[str, Any]) -> None:
    """Raises `UserError` when a run in `runs` has other settings, another text or other samples than wanted."""
    for settings in filter(_started, each):
        before = asdict(read_settings(Path(settings.output) / SETTINGS, {}))
        for name, value in before.items():
            if name not in ("data", "output"):  # the folder may have been moved
                _check_same(settings.output, f"a run with {name}", value, getattr(settings, name))
    if any(runs.glob(f"*-blocks/{SETTINGS}")):
        if load_data(runs / "data").files != files:
            raise UserError(f"{runs} holds runs on another text: choose another --runs, or remove it")
        before = _read_sample(runs / SAMPLE)
        for name, value in sample.items():
            _check_same(runs, f"runs with samples of {name}", before.get(name), value)


def _check_same(where: object, what: str, before: object, now: object) -> None:
    if before != now:
        raise UserError(f"{where} holds {what} {before!r}, not {now!r}: choose another --runs, or remove it")


def _read_sample(path: Path) -> dict[str, Any]:
    """What the samples of the runs beside `path` continue, how far, and at which temperature."""
    try:
        return dict(json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError, TypeError, RecursionError):
        raise UserError(f"{path} does not say what the samples of the runs are: choose another --runs, or remove "
                        f"{path.parent}") from None


def times_of_an_update(runs: list[Fit]) -> list[list[float]]:
    """Seconds of an update of each model, `ROUNDS` times in turn, so that a busy machine slows all alike.

    Changes the models: call it when the runs are over.
    """
    times: list[list[float]] = [[] for _ in runs]
    for number in range(ROUNDS + 1):
        for run, list_of_times in zip(runs, times, strict=True):
            seconds = run.update(run.settings.updates).seconds
            if number:  # the first warms up
                list_of_times.append(seconds)
    return times


def _make(text: Path, data: Corpus, settings: FitSettings, sample: dict[str, Any]) -> dict[str, Any]:
    content = read_text(text)
    left_out = ("data", "output", "blocks", "pretrained")
    return {
        "text": {"name": text.name.encode(errors="replace").decode(), "characters": len(content),
                 "sha256": hashlib.sha256(text.read_bytes()).hexdigest()},
        "tokens": {"train": len(data.train), "validation": len(data.validation)},
        "vocabulary": data.tokenizer.vocabulary_size,
        "settings": {name: value for name, value in asdict(settings).items() if name not in left_out},
        "sample": sample,
        "torch": str(torch.__version__), "machine": platform.machine(), "threads": torch.get_num_threads(),
    }


def _run(run: Fit, blocks: int, times: list[float]) -> dict[str, Any]:
    """One run from its log.  Losses are rounded to 4 decimals, seconds to 4 digits."""
    content = (run.folder / LOG).read_bytes()
    log = read_log(run.folder / LOG)
    updates = [entry for entry in log if entry.get("loss") is not None]
    stride = -(-len(updates) // POINTS)
    parts = [updates[i: i + stride] for i in range(0, len(updates), stride)]
    seconds = [digits(sum(entry["seconds"] for entry in part)) for part in parts]
    evaluations = [entry for entry in log if entry.get("validation_loss") is not None]
    return {
        "blocks": blocks, "parameters": run.model.parameter_count(),
        "seconds_per_update": digits(statistics.median(times)),
        "training_seconds": round(sum(seconds), 1),
        # Each point is the mean of `stride` updates (of what is left, at the end), placed at the last of them.
        "curve": {"update": [part[-1]["update"] for part in parts],
                  "loss": [round(statistics.fmean(entry["loss"] for entry in part), 4) for part in parts],
                  "seconds": seconds},
        "evaluations": {"update": [entry["update"] for entry in evaluations],
                        "train": [round(entry["train_loss"], 4) for entry in evaluations],
                        "validation": [round(entry["validation_loss"], 4) for entry in evaluations]},
        "samples": [{"update": entry["update"], "text": entry["sample"]} for entry in evaluations],
        "times": times, "log_sha256": hashlib.sha256(content).hexdigest(),
    }
