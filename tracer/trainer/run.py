"""`fit` as the package offers it: from settings to a trained model, in this process or those that torchrun started."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from tracer.trainer.fit import Evaluation, Fit, Update
from tracer.trainer.processes import join_processes
from tracer.trainer.settings import FitSettings


def fit(settings: FitSettings, *, resume: bool = False, after_update: Callable[[Update], None] = lambda update: None,
        after_evaluation: Callable[[Evaluation], None] = lambda evaluation: None) -> Fit:
    """Train on the prepared data in `settings.data`, all updates that are left; the run as it ended.

    The run has the `model`, its `best` validation loss (nats a token) and after which update (`best_update`), and the
    `folder` with settings, log and checkpoints.  `resume`: go on with the run in that folder.  The callbacks are told
    of every update and every evaluation.  Raises `UserError` before anything is written when data, settings and
    folder do not fit, and `Diverged` (a `UserError`) when a loss, a gradient or a parameter is not finite: the last
    checkpoint then is of before.
    """
    with _threads(settings.threads), join_processes(settings.device) as processes:
        run = Fit(settings, processes, resume)
        run.run(after_update, after_evaluation)
    return run


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """torch computes with so many for a while; 0 leaves it as it is."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
