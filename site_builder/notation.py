"""What a step is about where its kind has several uses: a name for its symbols and its source.

A kind says what is computed.  The rows of a table may be those of tokens, of positions or of a moment; an
addition may be a residual connection or the sum of two embeddings.  What the operands are tells which.
"""

from site_builder.language import Language
from tracer.format.trace import Operation, Trace
from tracer.ops import KINDS


class Notation:
    """``notation(step)``: the step's kind, with its use after a colon where it has one ("embedding:positions")."""

    def __init__(self, trace: Trace):
        self.trace = trace
        operands = [operation.operands for operation in trace.operations.values()]
        self.embeddings = {name for step in trace.steps() if (step.kind, step.role) == ("add", "embedding")
                           for name in step.operations}
        self.targets = {read["targets"] for read in operands if "targets" in read}
        self.shifted = {trace.operations[name].operands.get("ids") for name in self.targets if name in trace.operations}

    def __call__(self, operation: Operation) -> str:
        use = getattr(self, f"_{operation.kind}", lambda operation: "")(operation)
        return f"{operation.kind}:{use}" if use else operation.kind

    def _maker(self, name: str) -> Operation | None:
        return self.trace.operations.get(name)

    def _embedding(self, operation: Operation) -> str:
        ids, table = (self._maker(operation.operands.get(name, "")) for name in ("ids", "table"))
        if table and table.kind == "adamw" and self.trace.arrays[operation.id].axes[0] == "used_row":
            return table.target
        return "positions" if ids and ids.kind == "positions" else ""

    def _add(self, operation: Operation) -> str:
        """The sum of the embeddings; a gradient of it is shown in the step that goes back through that sum."""
        makers = [self._maker(name) for name in operation.operands.values()]
        found = (operation.id in self.embeddings if operation.target.startswith("d_") else
                 all(maker and maker.kind == "embedding" for maker in makers))
        return "embeddings" if found else ""

    def _gradient_sum(self, operation: Operation) -> str:
        return "table" if self.trace.arrays[operation.id].axes[0] == "row" else ""

    def _softmax(self, operation: Operation) -> str:
        return "candidates" if self.trace.arrays[operation.id].axes[-1] == "candidate" else ""

    def _window(self, operation: Operation) -> str:
        if self.trace.arrays[operation.id].axes == ("byte",):
            return "bytes"
        if operation.id in self.targets:
            return "targets"
        return "inputs" if operation.operands["ids"] in self.shifted else ""

    def _rows_of(self, operation: Operation) -> str:
        """Keys or values: what the split into heads called them."""
        while operation and operation.kind != "split_heads":
            operands = operation.operands
            operation = self._maker(operands["past" if "past" in operands else "before"])
        return "values" if operation and operation.target == "value" else ""

    _append_rows = _drop_rows = _kept_rows = _rows_of


def source(notation: str, language: Language) -> str:
    """Where the equations of a step come from, in words."""
    kind = notation.partition(":")[0]
    return language.sources.get(notation) or language.sources.get(kind) or KINDS[kind].source
