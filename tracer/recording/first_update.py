"""The first update, whole: forward, backward, AdamW, and its receipt."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tracer.format.files import INLINE_LIMIT
from tracer.format.trace import Parameter, Step
from tracer.model.gpt import GPT
from tracer.model.optimizer import TrainingSettings, decays
from tracer.ops import KINDS
from tracer.recording.backward import add_backward
from tracer.recording.forward import (
    RecordedPass,
    add_forward,
    add_parameters,
    block_of,
    parameter_axes,
    parameter_of,
)
from tracer.recording.recorder import Recorder, Snapshot, snapshot
from tracer.recording.series import Series
from tracer.recording.trace_builder import TraceBuilder

TABLE = "token_embedding.weight"
MOMENTS = {"m": "m", "v": "v", "after": "updated"}  # what AdamW makes → its role


@dataclass
class FirstUpdate:
    """The recorder of the training forward and of the one after the update, and the moments between."""

    model: GPT
    forward: Recorder
    before: Snapshot
    gradients: dict[str, Tensor]
    after: Snapshot
    again: Recorder


def record_first_update(model: GPT, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor,
                        series: Series) -> FirstUpdate:
    """One update of `model`, watched; then the same text again, with the same dropout masks.

    The second forward changes nothing: the random state afterwards is what it was before it.
    """
    model.train()
    before = snapshot(model)
    masks = torch.get_rng_state()
    with series, Recorder(model) as recorder:
        loss = forward(recorder, model, x, y)
        loss.backward()
    series.note_loss(loss.item())
    # Held here: `zero_grad` only lets go of them.
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    optimizer.step()
    after = snapshot(model, optimizer)
    optimizer.zero_grad()
    random_state = torch.get_rng_state()
    torch.set_rng_state(masks)
    with torch.no_grad(), Recorder(model) as again:
        forward(again, model, x, y)
    torch.set_rng_state(random_state)
    return FirstUpdate(model, recorder, before, gradients, after, again)


def forward(recorder: Recorder, model: GPT, x: Tensor, y: Tensor) -> Tensor:
    """A recorded forward pass; the mean loss."""
    recorder.name_input(x, "x")
    recorder.name_input(y, "y")
    return model(x, y)[1]


def add_first_update(builder: TraceBuilder, update: FirstUpdate, settings: TrainingSettings,
                     used_ids: list[int]) -> None:
    """The chapters from the first embedding to the receipt of the update."""
    add_parameters(builder, update.model, update.before.parameters, "initial")
    run = RecordedPass(update.forward, update.model, builder.add_pass("first", ids="x", targets="y"))
    add_forward(builder, run, lambda path: chapter_of(update.model, path))
    builder.chapter("backward", "backward")
    add_backward(builder, run, update.gradients)
    builder.chapter("adamw", "adamw")
    builder.trace.roles["used_ids"] = builder.source("used_ids", used_ids, ("used_row",),
                                                     _used_labels(builder, used_ids))
    for name in update.before.parameters:
        _add_adamw(builder, update, settings, name)
    _add_receipt(builder, update)


def _add_receipt(builder: TraceBuilder, update: FirstUpdate) -> None:
    """What the gradients predict for the loss, and what the same text with the same masks then shows."""
    builder.chapter("receipt", "receipt")
    cleared = builder.step("zero_grad", role="zero_grad", direction="update")
    cleared.arrays += [f"adamw.{TABLE}.{kept}.used" for kept in ("m", "v", "after")]
    _add_prediction(builder, update)
    again = builder.add_pass("again", ids="x", targets="y")
    add_forward(builder, RecordedPass(update.again, update.model, again, "again.", "adamw.{}.after",
                                      {"x": "x", "y": "y"}, derived=frozenset({"head"})))
    change = update.again.values["loss"] - update.forward.values["loss"]
    builder.trace.roles["loss_change"] = builder.operation(
        "receipt.change", "difference", {"after": "again.loss", "before": "loss"}, change)
    builder.step("receipt.change", "difference", "loss").operations.append("receipt.change")


def _add_prediction(builder: TraceBuilder, update: FirstUpdate) -> None:
    """Σ gradient · change, parameter by parameter, as a running total."""
    step = builder.step("receipt.predicted", "predicted_change")
    total, previous = torch.zeros(()), ""
    for name, before in update.before.parameters.items():
        change = update.after.parameters[name] - before
        total = total + (update.gradients[name] * change).sum()
        operands = {"gradient": f"grad.{name}", "before": name, "after": f"adamw.{name}.after"}
        target = "running" if previous else "first"
        if previous:
            operands["previous"] = previous
        last = name == next(reversed(update.before.parameters))
        previous = builder.operation("receipt.predicted" if last else f"receipt.predicted.{name}", "predicted_change",
                                operands, total, target=target)
        step.operations.append(previous)
    builder.trace.roles["predicted_change"] = previous


def chapter_of(model: GPT, path: str) -> tuple[str, str, int | None]:
    """Name, kind and block of the chapter that shows the module at `path`."""
    block, part = block_of(path), path.split(".")[0]
    if block is not None:
        return f"{part}.{block}", "block", block
    name = model.chapters.get(part, part)
    return name, name, None


def _used_labels(builder: TraceBuilder, used_ids: list[int]) -> dict[str, str]:
    vocabulary = builder.trace.label_list("vocabulary")
    return {"used_row": builder.label("used_rows", [vocabulary[i] for i in used_ids])}


def _add_adamw(builder: TraceBuilder, update: FirstUpdate, settings: TrainingSettings, name: str) -> None:
    """Moments, before and after, and the new value of one parameter; of a large one, only the rows in use are held."""
    of = parameter_of(builder, name)
    step = builder.step(f"adamw.{name}", "adamw", of.role, direction="update", of=name, block=of.block)
    state = update.after.state[name]
    parameter = update.before.parameters[name]
    made = {"m": state["exp_avg"], "v": state["exp_avg_sq"], "after": update.after.parameters[name]}
    constants = {"lr": settings.lr, "beta1": settings.beta1, "beta2": settings.beta2, "eps": settings.eps,
                  "weight_decay": settings.weight_decay if decays(parameter) else 0.0, "update": 1}
    operands = {"gradient": f"grad.{name}", "before": name,
                **{moment: f"adamw.{name}.{moment}" for moment in ("m_before", "v_before", "m", "v")}}
    large = parameter.numel() > INLINE_LIMIT
    axes, labels = parameter_axes(update.model)[name], builder.trace.arrays[name].labels
    for moment in ("m_before", "v_before"):
        step.operations.append(builder.operation(operands[moment], "initial_moments", {}, None, axes, target=moment,
                                                 labels=labels, derived=True, shape=tuple(parameter.shape)))
    for target, values in made.items():
        of.arrays[MOMENTS[target]] = builder.operation(
            f"adamw.{name}.{target}", "adamw", {o: operands[o] for o in KINDS["adamw"].operands(target)}, values, axes,
            target=target, settings=constants, labels=labels, derived=large)
        step.operations.append(of.arrays[MOMENTS[target]])
    if name == TABLE:
        _add_used_rows(builder, step, of, made)


def _add_used_rows(builder: TraceBuilder, step: Step, table: Parameter, made: dict[str, Tensor]) -> None:
    """The rows in use as PyTorch has them: with these the derived tables are checked."""
    used = builder.trace.values("used_ids")
    labels = builder.trace.arrays["used_ids"].labels
    for target, values in made.items():
        name = builder.operation(f"adamw.{TABLE}.{target}.used", "embedding",
                                 {"table": f"adamw.{TABLE}.{target}", "ids": "used_ids"},
                                 values[used], ("used_row", "feature"), labels=labels)
        step.operations.append(name)
        table.arrays[f"{MOMENTS[target]}_used"] = name
