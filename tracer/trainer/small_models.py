"""Small models of an experiment: trained within seconds on what a rule makes, looked at again and again meanwhile."""

import platform
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.gpt import GPT, initialise
from tracer.model.optimizer import check_seed
from tracer.trainer.schedule import learning_rate
from tracer.trainer.settings import FitSettings
from tracer.trainer.setup import make_optimizer

NONE = -100  # a target that nothing is lost by, as `cross_entropy` knows it
Batch = Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]


def _gpt_logits(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = model(ids, ids)[0]
    return found


def machine_json() -> dict[str, Any]:
    """Where it was recorded."""
    return {"torch": str(torch.__version__), "machine": platform.machine(), "threads": torch.get_num_threads()}


def small_model(config: Config, std: float, seed: int) -> GPT:
    """A model whose matrices are drawn with standard deviation `std`.  Raises `UserError` for no seed."""
    check_seed(seed)
    torch.manual_seed(seed)
    model = GPT(config, explicit=False)
    initialise(model, std)
    return model


def training(model: nn.Module, settings: FitSettings, batch: Batch, seed: int,
             logits: Callable[..., torch.Tensor] = _gpt_logits) -> Iterator[int]:
    """Trains `model` in place; yields how many updates are done, at 0, every `evaluate_every`, and the last.

    `batch` makes (ids, targets) of so many texts: both (B, T), with `NONE` for a target that nothing is asked of.
    What it makes before the targets, `logits` reads with the model: (B, T, V).
    Raises `UserError` when the loss stops being finite.
    """
    optimizer = make_optimizer(model, settings)
    random = np.random.default_rng(seed)
    for done in range(settings.updates + 1):
        if done % settings.evaluate_every == 0 or done == settings.updates:
            yield done
            model.train()
        if done == settings.updates:
            return
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(settings, done + 1)
        *given, targets = (torch.from_numpy(array) for array in batch(random, settings.batch))
        loss = F.cross_entropy(logits(model, *given).flatten(0, 1), targets.flatten(), ignore_index=NONE)
        if not loss.isfinite():
            raise UserError(f"the loss is not finite after {done} updates: choose a smaller lr or std")
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip or float("inf"))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


@torch.no_grad()
def logits_of(model: GPT, ids: torch.Tensor) -> torch.Tensor:
    """Logits (B, T, V) of texts (B, T), in eval mode."""
    found: torch.Tensor = model.eval()(ids, ids)[0]
    return found

