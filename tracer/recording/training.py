"""Record a training run: the first update whole, the series over all updates, both evaluations."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor

from tracer.errors import UserError
from tracer.format.origin import EARLY_KEY, KEY
from tracer.format.trace import Trace
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.kernel_probe import kernels_used, warn_unless_pinned
from tracer.model.optimizer import TrainingSettings, make_optimizer, train
from tracer.model.tokenizer import Tokenizer, append_eos, shift
from tracer.recording.checkpoint import Checkpoint, Moment, model_of
from tracer.recording.first_update import add_first_update, forward, record_first_update
from tracer.recording.forecast import Forecast, check_training_size
from tracer.recording.forward import RecordedPass, add_forward, add_parameters
from tracer.recording.moments import EARLY, Moments
from tracer.recording.recorder import Recorder, snapshot
from tracer.recording.series import Series
from tracer.recording.text import add_pairs, add_text, add_vocabulary
from tracer.recording.trace_builder import TraceBuilder


@dataclass(frozen=True)
class TrainingJob:
    """What to train on, and how.

    `early`: the updates after which the model is kept as well, to continue a prompt while the dice still matter; None
    for `EARLY`, or for the last moment but one where the training is not so long.
    """

    text: str = "Hi 你!"
    validation_text: str = "Hi 你好!"
    config: Config = field(default_factory=Config)
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    early: int | None = None

    @property
    def early_updates(self) -> int:
        """Raises `UserError` for a moment that is not before the last update."""
        last = self.settings.updates - 1
        early = min(EARLY, last) if self.early is None else self.early
        if not 0 <= early <= last:
            raise UserError(f"early-updates must be from 0 to {last}, before the last update, not {early}")
        return early


def expected_training(job: TrainingJob, tokenizer: Tokenizer) -> Forecast:
    """What recording will take.  Raises `UserError` for a text that is empty or too long, and for too much."""
    _ = job.early_updates
    tokens = check_text(job.text, "text", tokenizer, job.config)
    validation_tokens = check_text(job.validation_text, "validation text", tokenizer, job.config)
    return check_training_size(job.config, tokens, validation_tokens, job.settings.updates)


def record_training(job: TrainingJob, tokenizer: Tokenizer,
                    progress: Callable[[int, float], None] = lambda number, loss: None) -> tuple[Trace, Checkpoint]:
    """Train as `job` says and record it.

    Raises `UserError` as `expected_training` does, before anything is done; warns (`KernelWarning`) when the kernels
    are not the pinned ones (`tracer.kernels`).
    """
    torch.set_num_threads(1)  # sums split over threads round differently
    expected_training(job, tokenizer)
    warn_unless_pinned()
    builder = TraceBuilder("training", _how(job, tokenizer))
    x, y = _add_training_text(builder, job, tokenizer)
    torch.manual_seed(job.settings.seed)
    model = GPT(job.config)
    optimizer = make_optimizer(model, job.settings)
    series = Series(model, sorted({*x.flatten().tolist(), *y.flatten().tolist()}))
    moments = Moments(model, x, y, job.early_updates)
    moments.note()
    first = record_first_update(model, optimizer, x, y, series)
    moments.note()
    progress(1, series.losses[0])

    def after_update(number: int, loss: float) -> None:
        series.note_loss(loss)
        moments.note()
        progress(number + 1, loss)

    with series:
        train(model, optimizer, x, y, job.settings.updates - 1, after_update)

    add_first_update(builder, first, job.settings, series.used_ids)
    series.add_to(builder)
    moments.add_to(builder)
    _add_evaluations(builder, model, job, tokenizer, x, y)
    early = Moment(model_of(job.config, moments.early_parameters), job.settings, job.early_updates, job.text)
    checkpoint = Checkpoint(model, job.settings, job.settings.updates, job.text, optimizer, torch.get_rng_state(),
                            early)
    builder.trace.make |= {KEY: checkpoint.sha256(), EARLY_KEY: early.sha256(), "early_updates": early.step}
    return builder.finish(), checkpoint


def _how(job: TrainingJob, tokenizer: Tokenizer) -> dict[str, Any]:
    """How to make the recording again."""
    return {"text": job.text, "validation_text": job.validation_text, "config": job.config.to_json(),
            "settings": job.settings.to_json(), **environment(tokenizer)}


def environment(tokenizer: Tokenizer) -> dict[str, Any]:
    """What a recording's last digits depend on."""
    return {"tokenizer": tokenizer.name, "torch": torch.__version__.split("+")[0], "tiktoken": version("tiktoken"),
            "kernels": kernels_used(), "threads": torch.get_num_threads()}


def _add_training_text(builder: TraceBuilder, job: TrainingJob, tokenizer: Tokenizer) -> tuple[Tensor, Tensor]:
    add_vocabulary(builder, tokenizer)
    builder.chapter("text", "text")
    ids = add_text(builder, tokenizer, job.text, "training")
    x, y = add_pairs(builder, tokenizer, ids, "training", "text", ("x", "y"), "tokens")
    builder.trace.make["tracked_id"] = next((i for i in x if i in y), x[0])
    return torch.tensor([x]), torch.tensor([y])


def check_text(text: str, what: str, tokenizer: Tokenizer, config: Config) -> int:
    """How many tokens it is.  Raises `UserError` for an empty text and for one that the context does not hold."""
    if not text:
        raise UserError(f"the {what} is empty: give at least one character")
    count = len(tokenizer.encode(text))
    if count > config.context:
        raise UserError(f"the {what} {text!r} is {count} tokens, the context holds {config.context}: "
                        "shorten it or choose a longer context")
    return count


@torch.no_grad()
def evaluation_loss(model: GPT, text: str, tokenizer: Tokenizer) -> float:
    """Mean cross-entropy of `text` with EOS as its last target, in nats a token, in eval mode."""
    check_text(text, "text", tokenizer, model.config)
    x, y = shift(append_eos(tokenizer.encode(text), tokenizer))
    return float(model.eval()(torch.tensor([x]), torch.tensor([y]))[1])


def _add_evaluations(builder: TraceBuilder, model: GPT, job: TrainingJob, tokenizer: Tokenizer,
                     x: Tensor, y: Tensor) -> None:
    """Forward passes in eval mode with the trained parameters, on each text, without an update."""
    builder.chapter("evaluation", "evaluation")
    add_parameters(builder, model, snapshot(model).parameters, "trained", "trained.")
    model.eval()
    _add_evaluation(builder, model, x, y, "training", {"x": "x", "y": "y"}, "tokens")
    ids = add_text(builder, tokenizer, job.validation_text, "validation", "validation")
    names = {"x": "validation.x", "y": "validation.y"}
    inputs, targets = add_pairs(builder, tokenizer, ids, "validation", "validation", (names["x"], names["y"]),
                                "validation.tokens")
    _add_evaluation(builder, model, torch.tensor([inputs]), torch.tensor([targets]), "validation", names,
                    "validation.tokens")


def _add_evaluation(builder: TraceBuilder, model: GPT, x: Tensor, y: Tensor, name: str, inputs: dict[str, str],
                    tokens: str) -> None:
    with torch.no_grad(), Recorder(model) as recorder:
        forward(recorder, model, x, y)
    # All the logits again would be another 2 MB: they follow from the last norm and the table.
    evaluation = builder.add_pass("evaluation", split=name, ids=inputs["x"], targets=inputs["y"])
    add_forward(builder, RecordedPass(recorder, model, evaluation, f"evaluation.{name}.", "trained.{}", inputs, tokens,
                                      derived=frozenset({"head"})))
