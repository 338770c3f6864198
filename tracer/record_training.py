"""Record a training run: the first update whole, the series over all updates, both evaluations."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version

import torch
from torch import Tensor

from tracer.checkpoint import Checkpoint
from tracer.errors import UserError
from tracer.model import GPT, Config
from tracer.record_text import add_pairs, add_text, add_vocabulary
from tracer.recorder import Recorder, Snapshot, snapshot
from tracer.schema import INLINE_LIMIT, Trace
from tracer.tokenizer import Tokenizer, append_eos, shift
from tracer.trace_builder import Pass, TraceBuilder, add_backward, add_forward, add_parameters, parameter_axes
from tracer.training import TrainingSettings, decays, make_optimizer, train

TABLE = "token_embedding.weight"


@dataclass(frozen=True)
class TrainingJob:
    """What to train on, and how."""

    text: str = "Hi 你!"
    validation_text: str = "Hi 你好!"
    config: Config = field(default_factory=Config)
    settings: TrainingSettings = field(default_factory=TrainingSettings)


def record_training(job: TrainingJob, tokenizer: Tokenizer,
                    progress: Callable[[int, float], None] = lambda number, loss: None) -> tuple[Trace, Checkpoint]:
    """Train as `job` says and record it.  Raises `UserError` for a text that is empty or too long."""
    torch.set_num_threads(1)  # sums split over threads round differently
    check_text(job.text, "text", tokenizer, job.config)
    check_text(job.validation_text, "validation text", tokenizer, job.config)
    builder = TraceBuilder("training", _how(job, tokenizer))
    x, y = _add_training_text(builder, job, tokenizer)
    torch.manual_seed(job.settings.seed)
    model = GPT(job.config)
    optimizer = make_optimizer(model, job.settings)
    series = _Series(model, sorted({*x.flatten().tolist(), *y.flatten().tolist()}))

    first = _record_first_update(model, optimizer, x, y, series)
    progress(1, series.losses[0])
    with series:
        train(model, optimizer, x, y, job.settings.updates - 1,
              lambda number, loss: (series.note_loss(loss), progress(number + 1, loss)))

    builder.trace.make["parameters"] = list(first.before.parameters)
    _add_first_update(builder, first, job.settings, series.used_ids)
    series.add_to(builder)
    _add_evaluations(builder, model, job, tokenizer, x, y)
    checkpoint = Checkpoint(model, optimizer, job.settings, job.settings.updates, job.text, torch.get_rng_state())
    return builder.finish(), checkpoint


def _how(job: TrainingJob, tokenizer: Tokenizer) -> dict:
    """How to make the recording again."""
    return {"text": job.text, "validation_text": job.validation_text, "config": job.config.to_json(),
            "settings": job.settings.to_json(), "token_table": TABLE, **environment(tokenizer)}


def environment(tokenizer: Tokenizer) -> dict:
    """What a recording's last digits depend on."""
    return {"tokenizer": tokenizer.name, "torch": torch.__version__.split("+")[0], "tiktoken": version("tiktoken"),
            "kernels": torch.backends.cpu.get_cpu_capability(), "threads": torch.get_num_threads()}


def _add_training_text(builder: TraceBuilder, job: TrainingJob, tokenizer: Tokenizer) -> tuple[Tensor, Tensor]:
    add_vocabulary(builder, tokenizer)
    builder.chapter("text")
    ids = add_text(builder, tokenizer, job.text, "text")
    x, y = add_pairs(builder, tokenizer, ids, "text", ("x", "y"), "tokens")
    builder.trace.make["tracked_id"] = next((i for i in x if i in y), x[0])
    return torch.tensor([x]), torch.tensor([y])


def check_text(text: str, what: str, tokenizer: Tokenizer, config: Config) -> None:
    """Raises `UserError` for an empty text and for one that the context does not hold."""
    if not text:
        raise UserError(f"the {what} is empty: give at least one character")
    count = len(tokenizer.encode(text))
    if count > config.context:
        raise UserError(f"the {what} {text!r} is {count} tokens, the context holds {config.context}: "
                        "shorten it or choose a longer context")


@torch.no_grad()
def evaluation_loss(model: GPT, text: str, tokenizer: Tokenizer) -> float:
    """Mean cross-entropy of `text` with EOS as its last target, in nats a token, in eval mode."""
    check_text(text, "text", tokenizer, model.config)
    x, y = shift(append_eos(tokenizer.encode(text), tokenizer))
    return model.eval()(torch.tensor([x]), torch.tensor([y]))[1].item()


@dataclass
class _FirstUpdate:
    recorder: Recorder
    model: GPT
    before: Snapshot
    backward: Snapshot
    after: Snapshot


def _record_first_update(model: GPT, optimizer, x: Tensor, y: Tensor, series: "_Series") -> _FirstUpdate:
    model.train()
    before = snapshot(model)
    with series, Recorder(model) as recorder:
        recorder.name_input(x, "x")
        recorder.name_input(y, "y")
        _, loss = model(x, y)
        loss.backward()
    series.note_loss(loss.item())
    backward = snapshot(model)
    optimizer.step()
    after = snapshot(model, optimizer)
    optimizer.zero_grad()
    return _FirstUpdate(recorder, model, before, backward, after)


def _add_first_update(builder: TraceBuilder, first: _FirstUpdate, settings: TrainingSettings,
                      used_ids: list[int]) -> None:
    add_parameters(builder, first.model, first.before.parameters)
    run = Pass(first.recorder, first.model)
    add_forward(builder, run, lambda path: _chapter_of(first.model, path))
    builder.chapter("backward")
    add_backward(builder, run, first.backward.gradients)
    builder.chapter("adamw")
    builder.source("used_ids", used_ids, ("used_row",), _used_labels(builder, used_ids))
    for name in first.before.parameters:
        _add_adamw(builder, first, settings, name)


def _chapter_of(model: GPT, path: str) -> str:
    parts = path.split(".")
    return ".".join(parts[:2]) if parts[0] == "blocks" else model.chapters.get(parts[0], parts[0])


def _used_labels(builder: TraceBuilder, used_ids: list[int]) -> dict[str, str]:
    vocabulary = builder.trace.labels["vocabulary"]
    return {"used_row": builder.label("used_rows", [vocabulary[i] for i in used_ids])}


def _add_adamw(builder: TraceBuilder, first: _FirstUpdate, settings: TrainingSettings, name: str) -> None:
    """Moments and the new value of one parameter; of a large one, only the rows in use are held."""
    view = builder.view(f"adamw.{name}")
    state = first.after.state[name]
    parameter = first.before.parameters[name]
    made = {"m": state["exp_avg"], "v": state["exp_avg_sq"], "after": first.after.parameters[name]}
    attributes = {"lr": settings.lr, "beta1": settings.beta1, "beta2": settings.beta2, "eps": settings.eps,
                  "weight_decay": settings.weight_decay if decays(parameter) else 0.0, "step": 1}
    operands = {"gradient": f"grad.{name}", "before": name, "m": f"adamw.{name}.m", "v": f"adamw.{name}.v"}
    reads = {"m": ("gradient",), "v": ("gradient",), "after": ("m", "v", "before")}
    large = parameter.numel() > INLINE_LIMIT
    axes, labels = parameter_axes(first.model)[name], builder.trace.arrays[name].labels
    for target, values in made.items():
        view.steps.append(builder.step(
            f"adamw.{name}.{target}", "adamw", {o: operands[o] for o in reads[target]}, values, axes,
            target=target, attributes=attributes, labels=labels, derived=large))
    if name == TABLE:
        _add_used_rows(builder, view, made)


def _add_used_rows(builder: TraceBuilder, view, made: dict[str, Tensor]) -> None:
    """The rows in use as PyTorch has them: with these the derived tables are checked."""
    used = builder.trace.values("used_ids")
    labels = builder.trace.arrays["used_ids"].labels
    for target, values in made.items():
        view.steps.append(builder.step(f"adamw.{TABLE}.{target}.used", "embedding",
                                       {"table": f"adamw.{TABLE}.{target}", "ids": "used_ids"},
                                       values[used], ("used_row", "feature"), labels=labels))


class _Series:
    """What is kept of every update: the loss, the target probabilities, attention maps, the rows in use.

    Everything is taken from the training forward (dropout on), before that update changes anything.
    """

    def __init__(self, model: GPT, used_ids: list[int]):
        self.model, self.used_ids = model, used_ids
        self.losses: list[float] = []
        self.probabilities: list[Tensor] = []
        self.rows: list[Tensor] = []
        self.attention: dict[str, list[Tensor]] = {}
        self._handles: list = []

    def __enter__(self):
        self._handles.append(self.model.register_forward_pre_hook(self._note_rows))
        self._handles.append(self.model.cross_entropy.register_forward_hook(
            lambda module, args, result: self.probabilities.append(result[3].detach()[0].clone())))
        for number, block in enumerate(self.model.blocks):
            maps = self.attention.setdefault(f"blocks.{number}", [])
            self._handles.append(block.attention.softmax.register_forward_hook(
                lambda module, args, result, maps=maps: maps.append(result.detach()[0].clone())))
        return self

    def __exit__(self, *exception):
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _note_rows(self, module, args) -> None:
        self.rows.append(self.model.token_embedding.weight.detach()[self.used_ids].clone())

    def note_loss(self, loss: float) -> None:
        self.losses.append(loss)

    def add_to(self, builder: TraceBuilder) -> None:
        builder.chapter("updates")
        tokens = {"position": "tokens"}
        pair = {"query_position": "tokens", "key_position": "tokens"}
        used = builder.trace.arrays["used_ids"].labels

        def add(view: str, name: str, values: Tensor, axes: tuple[str, ...], labels: dict) -> None:
            builder.view(view).arrays.append(builder.source(name, values, axes, labels))

        add("series.loss", "series.loss", torch.tensor(self.losses), ("update",), {})
        add("series.loss", "series.target_probability", torch.stack(self.probabilities), ("update", "position"), tokens)
        for block, maps in self.attention.items():
            add("series.attention", f"series.attention.{block}", torch.stack(maps),
                ("update", "head", "query_position", "key_position"), pair)
        add("series.rows", "series.rows", torch.stack(self.rows), ("update", "used_row", "feature"), used)


def _add_evaluations(builder: TraceBuilder, model: GPT, job: TrainingJob, tokenizer: Tokenizer,
                     x: Tensor, y: Tensor) -> None:
    """Forward passes in eval mode with the trained parameters, on each text, without an update."""
    builder.chapter("evaluation")
    add_parameters(builder, model, snapshot(model).parameters, "trained.")
    model.eval()
    _add_evaluation(builder, model, x, y, "training", {"x": "x", "y": "y"}, "tokens")
    ids = add_text(builder, tokenizer, job.validation_text, "validation")
    names = {"x": "validation.x", "y": "validation.y"}
    pair = add_pairs(builder, tokenizer, ids, "validation", tuple(names.values()), "validation.tokens")
    _add_evaluation(builder, model, *(torch.tensor([part]) for part in pair), "validation", names, "validation.tokens")


def _add_evaluation(builder: TraceBuilder, model: GPT, x: Tensor, y: Tensor, name: str, inputs: dict[str, str],
                    tokens: str) -> None:
    with torch.no_grad(), Recorder(model) as recorder:
        recorder.name_input(x, "x")
        recorder.name_input(y, "y")
        model(x, y)
    # All the logits again would be another 2 MB: they follow from the last norm and the table.
    add_forward(builder, Pass(recorder, model, f"evaluation.{name}.", "trained.", inputs, tokens,
                              derived=frozenset({"head"})))
