"""Train a model on one text: the settings, the optimizer, the loop."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from tracer.errors import UserError

LARGEST_LR = 1000


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.  The defaults are the recipe of the teaching recording."""

    seed: int = 20261012
    updates: int = 120
    lr: float = 0.02
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        if self.updates < 1:
            raise UserError(f"updates must be at least 1, not {self.updates}")
        if not 0 <= self.lr <= LARGEST_LR:
            raise UserError(f"lr must be from 0 to {LARGEST_LR}, not {self.lr}: beyond, float32 overflows")
        check_seed(self.seed)

    def to_json(self) -> dict[str, int | float]:
        return asdict(self)


def check_seed(seed: int) -> None:
    """Raises `UserError` for a seed that torch's generators do not take."""
    if not 0 <= seed < 2**64:
        raise UserError(f"a seed must be from 0 to 2⁶⁴ − 1, not {seed}")


def decays(parameter: Tensor) -> bool:
    """Weight decay is for matrices; biases and layer-norm parameters go without."""
    return parameter.dim() >= 2


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019) in two groups, with torch's fused kernel."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if decays(p)], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if not decays(p)], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.lr, betas=(settings.beta1, settings.beta2),
                             eps=settings.eps, fused=True)


def update(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> float:
    """Forward, backward, step, clear the gradients; returns the loss before the step."""
    _, loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def train(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, updates: int,
          after_update: Callable[[int, float], None] = lambda number, loss: None) -> None:
    """`updates` updates on the same batch.  `after_update` gets the number of the update and its loss."""
    model.train()
    for number in range(1, updates + 1):
        after_update(number, update(model, optimizer, x, y))
