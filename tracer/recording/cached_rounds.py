"""The same round with a key-value cache: one new position is computed, and compared with the full pass."""

import torch
from torch import Tensor

from tracer.format.trace import Pass
from tracer.model.gpt import GPT
from tracer.model.kv_cache import KVCache
from tracer.model.sampling import Sampler
from tracer.recording.forward import BLOCKS, RecordedPass, add_forward, block_of
from tracer.recording.recorder import Recorder
from tracer.recording.trace_builder import TraceBuilder

PARTS = ("key", "value")


class CachedRounds:
    """A real cache beside the full passes, filled by the first round, one row a round from then on.

    When the context is full, the oldest row is dropped and the rest keep what they are.  That is what a
    careless program would do: the rows still hold their old positions, and the comparison shows it.
    """

    def __init__(self, builder: TraceBuilder, model: GPT, sampler: Sampler):
        self.builder, self.model, self.sampler = builder, model, sampler
        self.cache = KVCache(model.config, batch=1, capacity=model.config.context)
        self.held: dict[str, str] = {}  # "blocks.0.attention.key" → the array that holds what is cached of it
        self.full: dict[str, str] = {}  # the same of the last full pass
        self.now = Pass("cached")  # of the round that is being recorded

    def run(self, number: int, ids: list[int], tokens: str, uniform: Tensor) -> None:
        """Record round `number` with the cache; the first round only fills it."""
        prefix = f"round{number}"
        full = {f"{block}.{part}": f"{prefix}.{block}.{self._made_by(part)}" for block in self._attentions()
                for part in PARTS}
        if number == 1:
            with torch.no_grad():
                self.model(torch.tensor([ids]), cache=self.cache)
            self.held = full
        else:
            self.builder.chapter(f"cached{number}", "cached", round=number)
            self.now = self.builder.add_pass("cached", round=number, uniform=f"{prefix}.uniform")
            self._add_kept(prefix, full)
            self._make_room(f"{prefix}.cached", tokens)
            self._add_pass(prefix, ids, tokens, uniform)
            self._compare(prefix)
        self.full = full

    def _made_by(self, part: str) -> str:
        """What a cache keeps of a full pass: of rotary positions, keys after they were turned."""
        return f"{part}_rotary" if part == "key" and self.model.config.position == "rotary" else f"split.{part}"

    def _attentions(self) -> list[str]:
        return [f"blocks.{n}.attention" for n in range(self.model.config.blocks)]

    def _add_kept(self, prefix: str, full: dict[str, str]) -> None:
        """Keys and values of the tokens that the round before had too: how many numbers are the same, how far apart.

        Equal in exact arithmetic; in float32 a product of other shape may be summed in another order.
        """
        step = self.builder.step(f"{prefix}.cached.kept", "kept_rows", of_pass=self.now)
        for path, now in full.items():
            before, after = self.builder.trace.values(self.full[path]), self.builder.trace.values(now)
            shift = before.shape[1] + 1 - after.shape[1]
            before, after = before[:, shift:], after[:, : before.shape[1] - shift]
            tokens = self.builder.label(f"{prefix}.before",
                                        self.builder.trace.label_list(f"{prefix}.tokens")[: after.shape[1]])
            for output, values in (("equal", (before == after).sum(axis=-1)),
                                   ("apart", abs(after - before).max(axis=-1))):
                step.operations.append(self.builder.operation(
                    f"{prefix}.cached.{path}.{output}", "kept_rows", {"before": self.full[path], "now": now}, values,
                    ("head", "key_position"), target=output, settings={"shift": shift},
                    labels={"key_position": tokens}))

    def _make_room(self, prefix: str, tokens: str) -> None:
        """Drop the oldest row of a full cache."""
        if self.cache.length < self.cache.capacity:
            return
        step = self.builder.step(f"{prefix}.slide", "drop_rows", of_pass=self.now)
        labels = self.builder.label(f"{prefix}.slide", self.builder.trace.label_list(tokens)[:-1])
        for block, layer in zip(self._attentions(), self.cache.layers, strict=True):
            for part, store in zip(PARTS, layer.store, strict=True):  # (B, H, capacity, D/H) each
                store[:, :, :-1] = store[:, :, 1:].clone()
                path = f"{block}.{part}"
                self.held[path] = self.builder.operation(
                    f"{prefix}.{path}.slid", "drop_rows", {"past": self.held[path]}, store[0, :, :-1].clone(),
                    ("head", "key_position", "head_feature"), settings={"count": 1}, labels={"key_position": labels})
                step.operations.append(self.held[path])
            layer.length -= 1

    def _add_pass(self, prefix: str, ids: list[int], tokens: str, uniform: Tensor) -> None:
        """The newest id alone through the model, and the draw with the same number."""
        new = torch.tensor([ids[-1:]])
        with torch.no_grad(), Recorder(self.model) as recorder:
            recorder.name_input(new, "ids")
            logits, _ = self.model(new, cache=self.cache)
        inputs = {"ids": self._newest(prefix, ids, tokens)}
        for path, name in self.held.items():
            inputs[f"{path}_cache:past"] = name
        # The logits follow from the last norm and the table: they are checked, and not held a second time.
        run = RecordedPass(recorder, self.model, self.now, f"{prefix}.cached.", "trained.{}", inputs, tokens,
                           derived=frozenset({"head"}), shown_in=_part_of_model)
        add_forward(self.builder, run)
        self.held = {path: f"{prefix}.cached.{path}_cache" for path in self.held}
        self._draw(prefix, logits[:, -1], uniform, tokens)

    def _newest(self, prefix: str, ids: list[int], tokens: str) -> str:
        step = self.builder.step(f"{prefix}.cached.embedding", role="embedding", of_pass=self.now,
                                 direction="forward")
        self.now.arrays["ids"] = f"{prefix}.cached.ids"
        labels = {"position": self.builder.label(f"{tokens}.last", self.builder.trace.label_list(tokens)[-1:])}
        step.operations.append(self.builder.operation(
            f"{prefix}.cached.ids", "window", {"ids": f"{prefix}.ids"}, ids[-1:], ("position",),
            settings={"offset": len(ids) - 1}, labels=labels))
        return f"{prefix}.cached.ids"

    def _draw(self, prefix: str, logits: Tensor, uniform: Tensor, tokens: str) -> None:
        with Recorder(self.sampler) as recorder:
            recorder.name_input(logits, "logits")
            recorder.name_input(uniform, "uniform")
            self.sampler(logits, uniform)
        inputs = {"logits": f"{prefix}.cached.head", "uniform": f"{prefix}.uniform"}
        add_forward(self.builder, RecordedPass(
            recorder, self.sampler, self.now, f"{prefix}.cached.sampler.", inputs=inputs, tokens=tokens,
            derived=frozenset({"temperature"}), shown_in=lambda path: ("draw", "draw")))

    def _compare(self, prefix: str) -> None:
        """The largest difference that the cache makes, in what the last position sends to the head."""
        step = self.builder.step(f"{prefix}.cached.compare", "largest_difference", of_pass=self.now)
        self.now.arrays["difference"] = f"{prefix}.cached.difference"
        pair = {"a": f"{prefix}.last_position", "b": f"{prefix}.cached.last_position"}
        full, cached = (self.builder.trace.values(name) for name in pair.values())
        step.operations.append(self.builder.operation(f"{prefix}.cached.difference", "largest_difference", pair,
                                            abs(full - cached).max()))


def _part_of_model(path: str) -> tuple[str, str]:
    """Name and role of the step: the block that a module is in, or what stands before and after the blocks."""
    block = block_of(path)
    if block is not None:
        return f"{BLOCKS}.{block}", "block"
    return ("head", "head") if path in ("final_norm", "last_position", "head") else ("embedding", "embedding")
