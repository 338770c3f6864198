"""The trainer: from prepared data to a run's log and checkpoints, and on from where a killed run stopped.

Read `Fit.run` and `Fit.update` first.  Whatever happens at update u is a function of the parameters, the
optimizer's state, the seed and u; so a run that is killed and resumed ends with the same bits.

A checkpoint is written of a state only after a loss of it, and its gradient or its validation loss, was finite:
what a run that diverges leaves behind can be gone on from.
"""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.finite import Diverged, all_finite, check_number, first_not_finite
from tracer.model.gpt import GPT
from tracer.model.kernel_probe import described, kernels_used, warn_unless_pinned
from tracer.storage.atomic import write_atomically
from tracer.storage.lock import check_free, only_writer
from tracer.trainer.checkpoints import RunCheckpoint, load_parameters, save_run
from tracer.trainer.corpus import check_length, load_data, random_starts, windows
from tracer.trainer.evaluation import evaluation_starts, split_loss
from tracer.trainer.log import RunLog, read_log
from tracer.trainer.memory import check_memory
from tracer.trainer.processes import Processes
from tracer.trainer.schedule import learning_rate
from tracer.trainer.settings import BEST, LAST, SETTINGS, FitSettings
from tracer.trainer.setup import make_model, make_optimizer, parallel, precision_of, saved_run
from tracer.trainer.throughput import measured_peak

LOG = "log.jsonl"


@dataclass(frozen=True)
class Update:
    """What one update tells: mean loss before it (nats a token), rate, norm of the gradient, seconds it took."""

    number: int
    loss: float
    lr: float
    norm: float
    seconds: float


@dataclass(frozen=True)
class Evaluation:
    """Losses after `number` updates: every window of the validation split, a quarter as many of the training split."""

    number: int
    train: float
    validation: float
    best: bool


Notes = Callable[[GPT], dict[str, Any]]  # what the log shall hold beside an evaluation, by name


class Fit:
    """One run.  `resume`: go on from ``last.pt`` in the output folder, from the start when there is none yet.

    Raises `UserError` before anything is written when data, settings, checkpoint and processes do not fit; warns
    (`KernelWarning`) when the kernels are not the pinned ones that the settings ask for.
    """

    def __init__(self, settings: FitSettings, processes: Processes, resume: bool = False):
        self.processes, self.folder = processes, Path(settings.output)
        processes.all_or_none(lambda: self._prepare(settings, resume))
        # `torch.compile` is typed as what it makes of a function; of a module it makes a module.
        self.compiled = cast(nn.Module, torch.compile(self.model)) if settings.compile else self.model
        self.parallel = parallel(self.compiled, processes)

    def _prepare(self, settings: FitSettings, resume: bool) -> None:
        """All that may be refused; nothing here waits for another process."""
        self.processes.check(settings.accumulation)
        if self.processes.writes:
            check_free(self.folder, "--output")
        self.data, device = load_data(Path(settings.data)), self.processes.device
        check_length(self.data, settings.context)
        self.precision = precision_of(settings.precision, device)
        self._seen = _stamp(self.folder / LAST)
        saved = saved_run(self.folder, self.data, settings, resume)
        if settings.pin_kernels:
            warn_unless_pinned()
        torch.manual_seed(settings.seed)
        self.model = make_model(settings, self.data, saved, self._check_memory).to(device).train()
        shape = {name: getattr(self.model.config, name) for name in ("width", "heads", "blocks")}
        self.settings = settings = replace(settings, **shape)
        self.optimizer = make_optimizer(self.model, settings)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == torch.float16)
        self.done, self._due = 0, False
        self.best: float | None = None
        self.best_update: int | None = None
        self.saved: int | None = None  # the update that ``last.pt`` has
        self._log: RunLog | None = None
        if saved:
            self._restore(saved)
        self._train_starts, self._validation_starts = evaluation_starts(self.data, settings.context)

    @property
    def kernels(self) -> str:
        """What computes: the kernels of a CPU decide on the last digits."""
        return described(kernels_used()) if self.processes.device.type == "cpu" else self.processes.device.type

    def other_kernels(self) -> str | None:
        """Which kernels computed before what is gone on with, when they were not those of now."""
        before = [entry["kernels"] for entry in read_log(self.folder / LOG)
                  if "kernels" in entry and entry["update"] <= self.done]
        return before[-1] if self.done and before and before[-1] != self.kernels else None

    @property
    def tokens_per_update(self) -> int:
        """Of all processes together."""
        return self.settings.batch * self.settings.accumulation * self.settings.context

    def peak(self) -> float:
        """FLOP/s that MFU is measured against, over all processes."""
        one = self.settings.peak_tflops * 1e12 or measured_peak(self.processes.device, self.precision)
        return one * self.processes.world

    def run(self, after_update: Callable[[Update], None] = lambda update: None,
            after_evaluation: Callable[[Evaluation], None] = lambda evaluation: None,
            notes: Notes = lambda model: {}) -> None:
        """All updates that are left.

        The callbacks are called in the writing process alone.  `notes`: what the log shall hold beside an
        evaluation, a sample for example; it must draw nothing from torch's own generator.
        """
        with ExitStack() as stack:
            self.processes.all_or_none(lambda: self._open_log(stack) if self.processes.writes else None)
            try:
                self._all_updates(after_update, after_evaluation, notes)
            except Diverged as error:
                self._write(update=error.update, diverged=error.what, **error.numbers)
                raise

    def _all_updates(self, after_update: Callable[[Update], None], after_evaluation: Callable[[Evaluation], None],
                     notes: Notes) -> None:
        settings = self.settings
        if self.saved is None:
            self._evaluate(after_evaluation, notes)
            self._save(best=True)
        while self.done < settings.updates:
            update = self.update(self.done + 1)
            self.done = update.number
            self._write(update=update.number, loss=update.loss, lr=update.lr, norm=update.norm,
                        seconds=round(update.seconds, 6))
            if self.processes.writes:
                after_update(update)
            last, due = self.done == settings.updates, self.done % settings.save_every == 0
            if last or self.done % settings.evaluate_every == 0:
                improved = self._evaluate(after_evaluation, notes)
                if last or improved or due:
                    self._save(improved)
            else:
                self._due = due  # `update` saves it, once the next gradient has shown that it is worth keeping

    def update(self, number: int) -> Update:
        """Forward and backward of this process's micro-batches, then one step.

        Raises `Diverged` when the loss, the gradient or a parameter is not finite.
        """
        start = time.perf_counter()
        rate = learning_rate(self.settings, number)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        mine = range(self.processes.rank, self.settings.accumulation, self.processes.world)
        total = torch.zeros((), device=self.processes.device)
        for micro_batch in mine:
            with self._synchronise(micro_batch == mine[-1]):
                # The gradient of a mean over micro-batches: without the division, more of them would be a larger lr.
                loss = self._loss(number, micro_batch) / len(mine)
                self.scaler.scale(loss).backward()
            total += loss.detach()
        mean = float(self.processes.mean(total))
        check_number(number, f"the loss of update {number}", mean, loss=mean)
        norm = self._clip()
        if not self._skips(norm):
            check_number(number, f"the gradient's norm of update {number}", norm, loss=mean, norm=norm)
        if self._due:
            paused = time.perf_counter()
            self._save()
            start += time.perf_counter() - paused
        self._step()
        if not all_finite(self.model.parameters()):
            raise Diverged(number, f"a parameter is not finite after update {number}", loss=mean, norm=norm)
        return Update(number, mean, rate, norm, time.perf_counter() - start)

    def checkpoint(self) -> RunCheckpoint:
        """The run as it stands; shares the parameters, so save it before the next update."""
        data = self.data
        return RunCheckpoint(self.model.config, data.tokenizer, data.files, self.settings, self.model.state_dict(),
                             self.optimizer.state_dict()["state"], self.scaler.state_dict(), self.done, self.best,
                             self.best_update)

    def _loss(self, update: int, micro_batch: int) -> torch.Tensor:
        settings = self.settings
        if settings.dropout:
            torch.manual_seed(_mixed_seed(settings.seed, update, micro_batch))
        tokens = self.data.train
        starts = random_starts(len(tokens), settings.batch, settings.context, settings.seed, update, micro_batch)
        x, y = (_send(part, self.processes.device) for part in windows(tokens, starts, settings.context))
        with self._autocast():
            loss: torch.Tensor = self.parallel(x, y)[1]
        return loss

    def _clip(self) -> float:
        """Returns the norm of the gradient before clipping."""
        self.scaler.unscale_(self.optimizer)
        limit = self.settings.clip or float("inf")
        return float(nn.utils.clip_grad_norm_(self.model.parameters(), limit))

    def _skips(self, norm: float) -> bool:
        """Whether this is an overflow that a smaller scale cures: in float16 the scaler skips the step then."""
        return self.scaler.is_enabled() and not math.isfinite(norm) and self.scaler.get_scale() > 1

    def _step(self) -> None:
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def _synchronise(self, now: bool) -> AbstractContextManager[None]:
        """Gradients are summed over processes in the last backward of an update only."""
        if now or not isinstance(self.parallel, DistributedDataParallel):
            return nullcontext()
        return self.parallel.no_sync()

    def _autocast(self) -> AbstractContextManager[object]:
        mixed = self.precision != torch.float32
        return torch.autocast(self.processes.device.type, self.precision) if mixed else nullcontext()

    def _evaluate(self, after_evaluation: Callable[[Evaluation], None], notes: Notes) -> bool:
        """Both splits; returns whether the validation loss is the smallest so far.  Raises `Diverged`."""
        def loss(tokens: np.ndarray, starts: np.ndarray) -> float:
            with self._autocast():
                return split_loss(self.compiled, tokens, starts, self.settings.context, self.settings.batch,
                                  self.processes)

        train = loss(self.data.train, self._train_starts)
        validation = loss(self.data.validation, self._validation_starts)
        for name, value in (("training", train), ("validation", validation)):
            check_number(self.done, f"the {name} loss after {self.done} updates", value, train_loss=train,
                         validation_loss=validation)
        improved = self.best is None or validation < self.best
        if improved:
            self.best, self.best_update = validation, self.done
        if self.processes.writes:
            self._write(update=self.done, train_loss=train, validation_loss=validation, kernels=self.kernels,
                        **notes(self.model))
            after_evaluation(Evaluation(self.done, train, validation, improved))
        return improved

    def _write(self, **entry: object) -> None:
        if self._log:
            self._log.write(**entry)

    def _save(self, best: bool = False) -> None:
        """``last.pt``, and ``best.pt`` when this is the best.  Raises `Diverged` for a state that is not finite."""
        self._due = False
        if (name := first_not_finite([self.optimizer.state_dict()["state"], self.model.state_dict()])) is not None:
            raise Diverged(self.done, f"the optimizer's state is not finite after update {self.done} ({name})")
        if self._log:
            self._log.flush()
            save_run(self.checkpoint(), [self.folder / name for name in ((BEST, LAST) if best else (LAST,))])
            self._seen = _stamp(self.folder / LAST)
        self.saved = self.done

    def _restore(self, saved: RunCheckpoint) -> None:
        path = self.folder / LAST
        load_parameters(self.model, saved.parameters, path)
        # What is not state follows from the settings, which may have changed.
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved.optimizer, "param_groups": groups})
        if saved.scaler:
            self.scaler.load_state_dict(saved.scaler)
        self.done = self.saved = saved.update
        if (self.folder / BEST).is_file():
            self.best, self.best_update = saved.best, saved.best_update

    def _check_memory(self, config: Config, settings: FitSettings) -> None:
        check_memory(config, settings.batch, self.processes.device,
                     less=settings.compile or self.precision != torch.float32)

    def _open_log(self, stack: ExitStack) -> None:
        """Takes the folder until the end of `stack`.  Raises `UserError` when another process has it, or had it."""
        stack.enter_context(only_writer(self.folder, "--output"))
        if _stamp(self.folder / LAST) != self._seen:
            raise UserError(f"another process has trained in {self.folder} meanwhile: give the command again")
        for name in (SETTINGS, LOG, LAST, BEST):
            for path in self.folder.glob(f".{name}.*.tmp"):  # half a file of a run that was killed
                path.unlink()
        write_atomically(self.folder / SETTINGS, self.settings.to_toml().encode(errors="surrogateescape"))
        self._log = log = RunLog(self.folder / LOG, -1 if self.saved is None else self.saved)
        stack.callback(self._close_log, log)

    def _close_log(self, log: RunLog) -> None:
        log.close()
        self._log = None


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Which file this is, None when there is none; another is another stamp."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _mixed_seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])


def _send(part: torch.Tensor, device: torch.device) -> torch.Tensor:
    """To a GPU from pinned memory, so that the copy overlaps with computing."""
    return part.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else part.to(device)
