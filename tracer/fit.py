"""The trainer: from prepared data to a run's log and checkpoints, and on from where a killed run stopped.

Read `Fit.run` and `Fit.update` first.  Whatever happens at update u is a function of the parameters, the
optimizer's state, the seed and u; so a run that is killed and resumed ends with the same bits.
"""

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from tracer.data import Data, check_length, check_same_files, check_same_tokenizer, load_data, random_starts, windows
from tracer.errors import UserError
from tracer.evaluation import split_loss, window_starts
from tracer.fit_settings import SETTINGS, FitSettings
from tracer.kernel_probe import described, kernels_used, warn_unless_pinned
from tracer.learning_rate import learning_rate
from tracer.model import GPT, Config
from tracer.pretrained import from_pretrained
from tracer.processes import Processes
from tracer.run_checkpoint import BEST, LAST, RunCheckpoint, check_shape, load_parameters, load_run, save_run
from tracer.run_log import RunLog, read_log
from tracer.schema import write_atomically
from tracer.throughput import measured_peak
from tracer.training import decays

LOG = "log.jsonl"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


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


class Fit:
    """One run.  `resume`: go on from ``last.pt`` in the output folder, from the start when there is none yet.

    Raises `UserError` before anything is written when data, settings, checkpoint and processes do not fit; warns
    (`KernelWarning`) when the kernels are not the pinned ones that the settings ask for.
    """

    def __init__(self, settings: FitSettings, processes: Processes, resume: bool = False):
        processes.check(settings.accumulation)
        self.settings, self.processes = settings, processes
        self.folder, self.data = Path(settings.output), load_data(Path(settings.data))
        check_length(self.data, settings.context)
        self.precision = _precision(settings.precision, processes.device)
        saved = self._saved(resume)
        if settings.pin_kernels:
            warn_unless_pinned()
        torch.manual_seed(settings.seed)
        self.model = _make_model(settings, self.data, saved).to(processes.device).train()
        shape = {name: getattr(self.model.config, name) for name in ("width", "heads", "blocks")}
        self.settings = settings = replace(settings, **shape)
        self.optimizer = make_optimizer(self.model, settings)
        self.scaler = torch.amp.GradScaler(processes.device.type, enabled=self.precision == torch.float16)
        self.done, self.best = 0, None
        if saved:
            self._restore(saved)
        self.compiled = torch.compile(self.model) if settings.compile else self.model
        self.parallel = _parallel(self.compiled, processes)
        self._train_starts, self._validation_starts = _evaluation_starts(self.data, settings.context)

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
        return self.settings.batch * self.settings.accumulation * self.settings.context

    def peak(self) -> float:
        """FLOP/s that MFU is measured against, over all processes."""
        one = self.settings.peak_tflops * 1e12 or measured_peak(self.processes.device, self.precision)
        return one * self.processes.world

    def run(self, after_update: Callable[[Update], None] = lambda update: None,
            after_evaluation: Callable[[Evaluation], None] = lambda evaluation: None,
            notes: Callable[[GPT], dict] = lambda model: {}) -> None:
        """All updates that are left.

        The callbacks are called in the writing process alone.  `notes`: what the log shall hold beside an
        evaluation, a sample for example; it must draw nothing from torch's own generator.
        """
        settings, writes = self.settings, self.processes.writes
        log = self._open_log() if writes else None
        self.processes.wait()  # until the folder is there
        if self.done == 0:
            self._evaluate(log, after_evaluation, notes)
        while self.done < settings.updates:
            update = self.update(self.done + 1)
            self.done = update.number
            if writes:
                # In float16 a gradient may overflow now and then; the scaler then skips the step.
                log.write(update=update.number, loss=update.loss, lr=update.lr,
                          norm=update.norm if math.isfinite(update.norm) else None, seconds=round(update.seconds, 6))
                after_update(update)
            last = self.done == settings.updates
            due = last or self.done % settings.evaluate_every == 0
            improved = due and self._evaluate(log, after_evaluation, notes)
            if writes and (last or improved or self.done % settings.save_every == 0):
                log.flush()
                save_run(self.checkpoint(), [self.folder / name for name in ((BEST, LAST) if improved else (LAST,))])
        if log:
            log.close()

    def update(self, number: int) -> Update:
        """Forward and backward of this process's micro-batches, then one step.  Raises `UserError` on a NaN loss."""
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
        if not math.isfinite(mean):
            raise UserError(f"the loss of update {number} is {mean}: choose a smaller lr or a longer warmup")
        norm = self._step()
        return Update(number, mean, rate, norm, time.perf_counter() - start)

    def checkpoint(self) -> RunCheckpoint:
        """The run as it stands; shares the parameters, so save it before the next update."""
        data = self.data
        return RunCheckpoint(self.model.config, data.tokenizer, data.files, self.settings, self.model.state_dict(),
                             self.optimizer.state_dict(), self.scaler.state_dict(), self.done, self.best)

    def _loss(self, update: int, micro_batch: int) -> torch.Tensor:
        settings = self.settings
        if settings.dropout:
            torch.manual_seed(_mixed_seed(settings.seed, update, micro_batch))
        tokens = self.data.train
        starts = random_starts(len(tokens), settings.batch, settings.context, settings.seed, update, micro_batch)
        x, y = (_send(part, self.processes.device) for part in windows(tokens, starts, settings.context))
        with self._autocast():
            return self.parallel(x, y)[1]

    def _step(self) -> float:
        """Clip and step; returns the norm of the gradient before clipping."""
        self.scaler.unscale_(self.optimizer)
        limit = self.settings.clip or float("inf")
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), limit))
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def _synchronise(self, now: bool):
        """Gradients are summed over processes in the last backward of an update only."""
        return nullcontext() if now or self.processes.world == 1 else self.parallel.no_sync()

    def _autocast(self):
        mixed = self.precision != torch.float32
        return torch.autocast(self.processes.device.type, self.precision) if mixed else nullcontext()

    def _evaluate(self, log: RunLog | None, after_evaluation: Callable[[Evaluation], None],
                  notes: Callable[[GPT], dict]) -> bool:
        """Both splits; returns whether the validation loss is the smallest so far."""
        def loss(tokens, starts):
            with self._autocast():
                return split_loss(self.compiled, tokens, starts, self.settings.context, self.settings.batch,
                                  self.processes)

        train = loss(self.data.train, self._train_starts)
        validation = loss(self.data.validation, self._validation_starts)
        improved = self.best is None or validation < self.best
        if improved:
            self.best = validation
        if log:
            log.write(update=self.done, train_loss=train, validation_loss=validation, kernels=self.kernels,
                      **notes(self.model))
            after_evaluation(Evaluation(self.done, train, validation, improved))
        return improved

    def _saved(self, resume: bool) -> RunCheckpoint | None:
        path = self.folder / LAST
        if not resume:
            if path.exists():
                raise UserError(f"{self.folder} holds a run already: go on with --resume, or choose another --output")
            return None
        if not path.exists():  # killed before the first checkpoint
            if not (self.folder / SETTINGS).exists():
                raise UserError(f"{self.folder} holds no run to resume: leave --resume out")
            return None
        saved = load_run(path)
        if saved.update > self.settings.updates:
            raise UserError(f"{path} has {saved.update} updates done, more than {self.settings.updates}: resume with "
                            f"--updates {saved.update} or more")
        check_same_tokenizer(self.data.tokenizer, saved.tokenizer, path)
        check_same_files(self.data, saved.files, path)
        return saved

    def _restore(self, saved: RunCheckpoint) -> None:
        path = self.folder / LAST
        load_parameters(self.model, saved.parameters, path)
        self.optimizer.load_state_dict(saved.optimizer)
        for group, decay in zip(self.optimizer.param_groups, (self.settings.weight_decay, 0.0), strict=True):
            group.update(betas=(self.settings.beta1, self.settings.beta2), eps=self.settings.eps, weight_decay=decay)
        self.scaler.load_state_dict(saved.scaler)
        self.done, self.best = saved.update, saved.best

    def _open_log(self) -> RunLog:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in (SETTINGS, LOG, LAST, BEST):
            for path in self.folder.glob(f".{name}.*.tmp"):  # half a file of a run that was killed
                path.unlink()
        write_atomically(self.folder / SETTINGS, self.settings.to_toml().encode(errors="surrogateescape"))
        return RunLog(self.folder / LOG, self.done if (self.folder / LAST).exists() else -1)


def make_optimizer(model: nn.Module, settings: FitSettings) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019), decay on matrices only, torch's fused kernel."""
    parameters = list(model.parameters())
    groups = [{"params": [p for p in parameters if decays(p)], "weight_decay": settings.weight_decay},
              {"params": [p for p in parameters if not decays(p)], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=settings.lr, betas=(settings.beta1, settings.beta2), eps=settings.eps,
                             fused=True)


def _make_model(settings: FitSettings, data: Data, saved: RunCheckpoint | None) -> GPT:
    """From scratch, with the shape of the run that is gone on with, or from GPT-2's weights, which bring their own."""
    if settings.pretrained and not saved:
        return _pretrained(settings, data)
    config = Config(data.tokenizer.vocabulary_size, settings.context, settings.width, settings.heads, settings.blocks,
                    settings.dropout)
    if saved:
        check_shape(saved.config, config, Path(settings.output) / LAST)
        config = replace(saved.config, dropout=settings.dropout)
    return GPT(config, explicit=False)


def _pretrained(settings: FitSettings, data: Data) -> GPT:
    model = from_pretrained(settings.pretrained, settings.dropout)
    if model.config.vocabulary != data.tokenizer.vocabulary_size:
        raise UserError(f"{settings.pretrained} has {model.config.vocabulary} tokens, the data was prepared with "
                        f"{data.tokenizer.vocabulary_size} ({data.tokenizer.name}): prepare it with --tokenizer gpt2")
    model.crop_context(settings.context)
    return model


def _precision(name: str, device: torch.device) -> torch.dtype:
    """The type that products are computed in.  Raises `UserError` where the device has no mixed precision of it."""
    if name == "auto":
        if device.type != "cuda":
            return torch.float32
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if name == "float16" and device.type != "cuda":
        raise UserError(f"float16 needs a CUDA device, this is {device.type}: choose bfloat16 or float32")
    return DTYPES[name]


def _parallel(model: nn.Module, processes: Processes) -> nn.Module:
    if processes.world == 1:
        return model
    devices = [processes.device.index] if processes.device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, device_ids=devices)


def _evaluation_starts(data: Data, context: int) -> tuple[np.ndarray, np.ndarray]:
    validation = window_starts(len(data.validation), context)
    return window_starts(len(data.train), context, at_most=-(-len(validation) // 4)), validation


def _mixed_seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])


def _send(part: torch.Tensor, device: torch.device) -> torch.Tensor:
    """To a GPU from pinned memory, so that the copy overlaps with computing."""
    return part.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else part.to(device)
