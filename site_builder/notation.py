"""What a step is about where its kind has several uses: a name for its symbols and its source.

A kind says what is computed.  The rows of a table may be those of tokens, of positions or of a moment; an
addition may be a residual connection or the sum of two embeddings.  What the operands are tells which.
"""

from site_builder.language import Language
from tracer.format.schema import Step, Trace
from tracer.ops import KINDS


class Notation:
    """``notation(step)``: the step's kind, with its use after a colon where it has one ("embedding:positions")."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.targets = {step.operands["targets"] for step in trace.steps.values() if "targets" in step.operands}
        self.shifted = {trace.steps[name].operands.get("ids") for name in self.targets if name in trace.steps}

    def __call__(self, step: Step) -> str:
        use = getattr(self, f"_{step.kind}", lambda step: "")(step)
        return f"{step.kind}:{use}" if use else step.kind

    def _maker(self, name: str) -> Step | None:
        return self.trace.steps.get(name)

    def _embedding(self, step: Step) -> str:
        ids, table = (self._maker(step.operands.get(name, "")) for name in ("ids", "table"))
        if table and table.kind == "adamw" and self.trace.arrays[step.id].axes[0] == "used_row":
            return table.target
        return "positions" if ids and ids.kind == "positions" else ""

    def _add(self, step: Step) -> str:
        """A gradient's name says of which summand it is."""
        read = [step.id.removeprefix("grad.").partition("@")[0]] if step.target.startswith("d_") else (
            step.operands.values())
        makers = [self._maker(name) for name in read]
        return "embeddings" if all(maker and maker.kind == "embedding" for maker in makers) else ""

    def _gradient_sum(self, step: Step) -> str:
        return "table" if self.trace.arrays[step.id].axes[0] == "row" else ""

    def _softmax(self, step: Step) -> str:
        return "candidates" if self.trace.arrays[step.id].axes[-1] == "candidate" else ""

    def _window(self, step: Step) -> str:
        if self.trace.arrays[step.id].axes == ("byte",):
            return "bytes"
        if step.id in self.targets:
            return "targets"
        return "inputs" if step.operands["ids"] in self.shifted else ""

    def _rows_of(self, step: Step) -> str:
        """Keys or values: what the split into heads called them."""
        while step and step.kind != "split_heads":
            step = self._maker(step.operands[next(name for name in ("past", "before") if name in step.operands)])
        return "values" if step and step.target == "value" else ""

    _append_rows = _drop_rows = _kept_rows = _rows_of


def source(notation: str, language: Language) -> str:
    """Where the equations of a step come from, in words."""
    kind = notation.partition(":")[0]
    return language.sources.get(notation) or language.sources.get(kind) or KINDS[kind].source
