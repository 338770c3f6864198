"""The loss over a whole split, not over a random few of its windows."""

import numpy as np
import torch
from torch import nn

from tracer.trainer.corpus import Corpus, windows
from tracer.trainer.processes import Processes


def window_starts(count: int, context: int, at_most: int | None = None) -> np.ndarray:
    """Where windows laid end to end start, so that each of `count` tokens but the first is a target once.

    The last window may be shorter than the context.  `at_most`: that many of them, evenly spread.
    """
    starts = np.arange(0, count - 1, context)
    if at_most is None or at_most >= len(starts):
        return starts
    return starts[np.arange(at_most) * len(starts) // at_most]


def evaluation_starts(data: Corpus, context: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the windows of an evaluation start: of the training split a quarter as many as of the validation split."""
    validation = window_starts(len(data.validation), context)
    return window_starts(len(data.train), context, at_most=-(-len(validation) // 4)), validation


@torch.no_grad()
def split_loss(model: nn.Module, tokens: np.ndarray, starts: np.ndarray, context: int, batch: int,
               processes: Processes) -> float:
    """Mean cross-entropy in nats of all targets of the windows, each target counted once.

    `model`: called as ``model(ids, targets)``.  The processes share the batches and get the same result.
    """
    whole = starts[starts + context < len(tokens)]
    batches = [(whole[i: i + batch], context) for i in range(0, len(whole), batch)]
    batches += [(starts[-1:], len(tokens) - 1 - int(start)) for start in starts[len(whole):]]
    total = torch.zeros(2, dtype=torch.float64)  # summed loss, number of targets
    training = model.training
    model.eval()
    for where, length in batches[processes.rank:: processes.world]:
        x, y = (part.to(processes.device) for part in windows(tokens, where, length))
        total += torch.tensor([float(model(x, y)[1]) * y.numel(), y.numel()], dtype=torch.float64)
    model.train(training)
    total = processes.mean(total.to(processes.device) if processes.device.type == "cuda" else total)
    return float(total[0] / total[1])
