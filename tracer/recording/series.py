"""What is kept of every update, not only of the first."""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from tracer.model.gpt import GPT, Block
from tracer.model.layers import CrossEntropy
from tracer.recording.trace_builder import TraceBuilder


class Series:
    """What is kept of every update: the loss, the target probabilities, attention maps, the rows in use.

    Everything is taken from the training forward (dropout on), before that update changes anything; a forward pass
    in eval mode between two updates leaves no trace.
    """

    def __init__(self, model: GPT, used_ids: list[int]):
        self.model, self.used_ids = model, used_ids
        self.losses: list[float] = []
        self.probabilities: list[Tensor] = []
        self.rows: list[Tensor] = []
        self.attention: dict[str, list[Tensor]] = {}
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> "Series":
        self._handles.append(self.model.register_forward_pre_hook(self._note_rows))
        self._handles.append(self.model.cross_entropy.register_forward_hook(self._note_probability))
        for number, block in enumerate(self.model.blocks):
            assert isinstance(block, Block)
            maps = self.attention.setdefault(f"blocks.{number}", [])
            self._handles.append(block.attention.softmax.register_forward_hook(partial(self._note_map, maps)))
        return self

    def __exit__(self, *exception: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _note_rows(self, _module: object, _given: object) -> None:
        if self.model.training:
            self.rows.append(self.model.token_embedding.weight.detach()[self.used_ids].clone())

    def _note_probability(self, module: CrossEntropy, _given: object, _result: object) -> None:
        if self.model.training:
            self.probabilities.append(module.details["target_probability"][0])

    def _note_map(self, maps: list[Tensor], _module: object, _given: object, result: Tensor) -> None:
        if self.model.training:
            maps.append(result.detach()[0].clone())

    def note_loss(self, loss: float) -> None:
        self.losses.append(loss)

    def add_to(self, builder: TraceBuilder) -> None:
        """The chapter of all updates."""
        builder.chapter("updates", "updates")
        tokens = {"position": "tokens"}
        pair = {"query_position": "tokens", "key_position": "tokens"}
        used = builder.trace.arrays["used_ids"].labels

        def add(what: str, name: str, values: Tensor, axes: tuple[str, ...], labels: dict[str, Any]) -> str:
            builder.step(f"series.{what}", role=f"series_{what}").arrays.append(
                builder.source(name, values, axes, labels))
            return name

        roles = builder.trace.roles
        roles["series_loss"] = add("loss", "series.loss", torch.tensor(self.losses), ("update",), {})
        roles["series_probability"] = add("loss", "series.target_probability", torch.stack(self.probabilities),
                                          ("update", "position"), tokens)
        for block, maps in self.attention.items():
            add("attention", f"series.attention.{block}", torch.stack(maps),
                ("update", "head", "query_position", "key_position"), pair)
        roles["series_rows"] = add("rows", "series.rows", torch.stack(self.rows), ("update", "used_row", "feature"),
                                   used)
