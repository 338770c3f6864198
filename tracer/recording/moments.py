"""What a training would say next at every moment, and the model of an early one."""

from typing import Any

import torch
from torch import Tensor

from tracer.model.gpt import GPT
from tracer.recording.recorder import snapshot
from tracer.recording.trace_builder import TraceBuilder

LIKELIEST = 5  # candidates kept of every moment and position
EARLY = 20  # updates after which several next tokens of the teaching text are likely: each drawn has 20 to 80 %


class Moments:
    """The likeliest next tokens after each part of a text, before the first update and after every one.

    Taken in eval mode (no dropout), so that they are what a generation of that moment would choose from; the random
    state stays as it is.  `early`: the updates after which the parameters are kept.
    """

    def __init__(self, model: GPT, x: Tensor, y: Tensor, early: int):
        self.model, self.x, self.y, self.early = model, x, y, early
        self.early_parameters: dict[str, Tensor] = {}
        self.ids: list[Tensor] = []
        self.logits: list[Tensor] = []
        self.log_sum_exp: list[Tensor] = []

    def note(self) -> None:
        """This moment: the first time that before any update."""
        if len(self.ids) == self.early:
            self.early_parameters = snapshot(self.model).parameters
        training = self.model.training
        with torch.no_grad():
            logits = self.model.eval()(self.x, self.y)[0][0]                       # (T, V)
        self.model.train(training)
        largest = logits.topk(min(LIKELIEST, logits.size(-1)))
        self.ids.append(largest.indices)
        self.logits.append(largest.values)
        self.log_sum_exp.append(self.model.cross_entropy.details["log_sum_exp"][0])

    def add_to(self, builder: TraceBuilder) -> None:
        """The step, in the chapter that is open."""
        ids, logits, total = (torch.stack(each) for each in (self.ids, self.logits, self.log_sum_exp))
        axes = ("moment", "position", "candidate")
        labels: dict[str, Any] = {"moment": builder.label("moments", [str(n) for n in range(len(ids))]),
                                  "position": "tokens"}
        step, roles = builder.step("series.candidates", role="series_candidates"), builder.trace.roles
        roles["series_candidates"] = builder.source("series.candidates", ids, axes, labels)
        roles["series_candidate_logits"] = builder.source("series.candidate_logits", logits, axes, labels)
        roles["series_log_sum_exp"] = builder.source("series.log_sum_exp", total, axes[:2], labels)
        roles["series_candidate_probability"] = builder.operation(
            "series.candidate_probability", "token_probability",
            {"logits": "series.candidate_logits", "log_sum_exp": "series.log_sum_exp"},
            (logits.double() - total.double().unsqueeze(-1)).exp().float(), axes, labels=labels)
        step.arrays += ["series.candidates", "series.candidate_logits", "series.log_sum_exp"]
        step.operations.append("series.candidate_probability")
