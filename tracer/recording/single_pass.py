"""Record one pass of a small trained model over named tokens: forward, and back from the loss where it has targets."""

from typing import Any

import torch

from tracer.errors import UserError
from tracer.format.origin import KEY, checkpoint_hash
from tracer.format.roles import PASS
from tracer.format.trace import Trace, content_hash
from tracer.model.gpt import GPT
from tracer.model.kernel_probe import kernels_used
from tracer.recording.backward import add_backward
from tracer.recording.first_update import chapter_of
from tracer.recording.forward import RecordedPass, add_forward, add_parameters
from tracer.recording.recorder import Recorder, snapshot
from tracer.recording.trace_builder import TraceBuilder, to_numpy


def record_pass(model: GPT, ids: list[int], targets: list[int] | None = None, *, labels: list[str],
                trained_on: str, settings: dict[str, Any]) -> Trace:
    """One pass of `model`, as it is used: without dropout.

    `ids`, and `targets` of the same length, are numbers of the tokens that `labels` names, one for each row of the
    token table.  With targets every position has its logits, and the loss goes back to all parameters; without, the
    last position alone has logits.  `trained_on` says in words on what the model was trained, `settings` how: "seed"
    and "updates", and other numbers and texts.  The mode and the gradients of the model are as before.  Raises
    `UserError` for ids that the model cannot read.
    """
    _check(model, ids, targets, labels)
    torch.set_num_threads(1)  # sums split over threads round differently
    builder = TraceBuilder(PASS, _how(model, trained_on, settings))
    builder.label("vocabulary", labels)
    add_parameters(builder, model, snapshot(model).parameters, "trained")
    given = {"ids": ids, "targets": targets}
    inputs = {name: builder.source(name, row, ("position",), {
        "position": builder.label(f"{name}.tokens", [labels[i] for i in row])})
        for name, row in given.items() if row is not None}
    recorder, gradients = _run(model, ids, targets)
    single = builder.add_pass("single", "", None, **inputs)
    run = RecordedPass(recorder, model, single, inputs={name: name for name in inputs}, tokens="ids.tokens")
    add_forward(builder, run, lambda path: chapter_of(model, path))
    if targets is not None:
        builder.chapter("backward", "backward")
        add_backward(builder, run, gradients)
    return builder.finish()


def _check(model: GPT, ids: list[int], targets: list[int] | None, labels: list[str]) -> None:
    rows = model.config.vocabulary
    if len(labels) != rows:
        raise UserError(f"there are {len(labels)} names of tokens, the model knows {rows}: name each of them once")
    if not 1 <= len(ids) <= model.config.context:
        raise UserError(f"a pass of {len(ids)} tokens is none: the context holds from 1 to {model.config.context}")
    if targets is not None and len(targets) != len(ids):
        raise UserError(f"there are {len(targets)} targets for {len(ids)} ids: give one for each")
    if wrong := next((i for i in [*ids, *(targets or ())] if not 0 <= i < rows), None):
        raise UserError(f"there is no token {wrong}: they are numbered from 0 to {rows - 1}")


def _how(model: GPT, trained_on: str, settings: dict[str, Any]) -> dict[str, Any]:
    config, updates = model.config.to_json(), settings["updates"]
    parameters = {name: content_hash(to_numpy(values)) for name, values in model.named_parameters()}
    return {"config": config, "settings": settings, "trained_on": trained_on, "updates": updates,
            KEY: checkpoint_hash(config, settings, trained_on, updates, parameters),
            "torch": torch.__version__.split("+")[0], "kernels": kernels_used(), "threads": torch.get_num_threads()}


def _run(model: GPT, ids: list[int], targets: list[int] | None) -> tuple[Recorder, dict[str, torch.Tensor]]:
    """The recorder of the pass, and the gradients of the parameters."""
    modes = model.training, model.explicit
    kept = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.eval()
    model.explicit = True
    model.zero_grad()
    x = torch.tensor([ids])
    y = None if targets is None else torch.tensor([targets])
    try:
        with torch.set_grad_enabled(y is not None), Recorder(model) as recorder:
            recorder.name_input(x, "ids")
            if y is not None:
                recorder.name_input(y, "targets")
            loss = model(x, y)[1]
            if loss is not None:
                loss.backward()
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    finally:
        model.train(modes[0])
        model.explicit = modes[1]
        for name, gradient in kept.items():
            model.get_parameter(name).grad = gradient
    return recorder, gradients
