"""What an operation is about where its kind has several uses: the key of its symbols and of its source.

A kind says what is computed.  The rows of a table may be those of tokens, of positions or of a moment; an
addition may be a residual connection or the sum of two embeddings.  What the operands are tells which.  Of keys,
`site_builder/keys.py`.
"""

from site_builder.keys import general, key
from site_builder.language import Language
from tracer.format.trace import Operation, Trace
from tracer.ops import KINDS


class Notation:
    """``notation(operation)``: its kind, with the role that it has there where it matters: ``embedding (position)``."""

    def __init__(self, trace: Trace):
        self.trace = trace
        operands = [operation.operands for operation in trace.operations.values()]
        self.targets = {read["targets"] for read in operands if "targets" in read}
        self.embeddings = {name for step in trace.steps() if (step.kind, step.role) == ("add", "embedding")
                           for name in step.operations}
        self.shifted = {trace.operations[name].operands.get("ids") for name in self.targets if name in trace.operations}

    def __call__(self, operation: Operation) -> str:
        return key(operation.kind, getattr(self, f"_{operation.kind}", lambda operation: "")(operation))

    def _maker(self, name: str) -> Operation | None:
        return self.trace.operations.get(name)

    def _embedding(self, operation: Operation) -> str:
        ids, table = (self._maker(operation.operands.get(name, "")) for name in ("ids", "table"))
        if table and table.kind == "adamw" and self.trace.arrays[operation.id].axes[0] == "used_row":
            return table.target
        return "position" if ids and ids.kind == "positions" else ""

    def _add(self, operation: Operation) -> str:
        """The sum of the embeddings; a gradient of it is shown in the step that goes back through that sum."""
        makers = [self._maker(name) for name in operation.operands.values()]
        found = (operation.id in self.embeddings if operation.target.startswith("d_") else
                 all(maker and maker.kind == "embedding" for maker in makers))
        return "embedding" if found else ""

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
        return "value" if self._part_of(operation) == "value" else ""

    _append_rows = _drop_rows = _kept_rows = _rows_of

    def _part_of(self, operation: Operation) -> str:
        """Query, key or value, from which the rows come; "" of a gradient."""
        maker: Operation | None = operation
        while maker and maker.target not in ("query", "key", "value"):
            maker = self._maker(next((maker.operands[name] for name in ("past", "before", "x")
                                      if name in maker.operands), ""))
        return maker.target if maker else ""

    _rotary = _repeat_heads = _part_of


def source(notation: str, language: Language) -> str:
    """Where the equations of an operation come from, in words."""
    notation, kind = general(notation)
    return language.sources.get(notation) or language.sources.get(kind) or KINDS[kind].source
