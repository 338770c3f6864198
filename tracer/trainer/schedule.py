"""The learning rate of each update: a linear rise, then half a cosine."""

import math

from tracer.trainer.settings import FitSettings


def learning_rate(settings: FitSettings, update: int) -> float:
    """The rate of update 1 … `updates`: lr·update/warmup while it rises, then a cosine from lr to lr_end.

    Loshchilov and Hutter (2017), "SGDR", equation 5, with one cycle; lr_end is reached at the last update.
    """
    if update <= settings.warmup:
        return settings.lr * update / settings.warmup
    done = (update - settings.warmup) / max(settings.updates - settings.warmup, 1)
    cosine = (1 + math.cos(math.pi * min(done, 1.0))) / 2
    return settings.lr_end + (settings.lr - settings.lr_end) * cosine
