"""Turn what the recorder saw into a trace: named arrays and the operations that made them."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from tracer.errors import UserError
from tracer.format.summary import summarise
from tracer.format.trace import AXES, Array, Chapter, Operation, Pass, Step, Trace, content_hash
from tracer.format.validation import validate
from tracer.format.verify import Check, beyond_float32, compare, find_rounding
from tracer.ops import KINDS
from tracer.ops.replay import Replay


def to_numpy(tensor: Tensor) -> np.ndarray:
    """float32 for every floating dtype (bfloat16 has no NumPy twin), int64 for whole numbers.

    Raises `UserError` for numbers that these do not hold.
    """
    tensor = tensor.detach()
    if kind := _not_held(tensor):
        raise UserError(f"{kind} numbers cannot be recorded: a recording holds dense float32 and int64")
    tensor = tensor.cpu().resolve_neg()
    if tensor.dtype == torch.uint64:
        return _as_int64(tensor.numpy())
    if not tensor.is_floating_point():
        return tensor.to(torch.int64).numpy()
    numbers = tensor.to(torch.float32)
    if tensor.dtype == torch.float64 and bool((numbers.isinf() & tensor.isfinite()).any()):
        raise UserError("float64 numbers beyond the range of float32 cannot be recorded")
    return numbers.numpy()


def _not_held(tensor: Tensor) -> str | None:
    """What kind of tensor it is, when a recording has none of that kind."""
    for kind in ("nested", "meta"):
        if getattr(tensor, f"is_{kind}"):
            return kind
    if tensor.layout != torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    return str(tensor.dtype).removeprefix("torch.") if tensor.is_complex() or tensor.is_quantized else None


def _as_int64(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.uint64 and array.max(initial=0) > np.iinfo(np.int64).max:
        raise UserError("whole numbers beyond the range of int64 cannot be recorded")
    return array.astype(np.int64)


class TraceBuilder:
    """Collects arrays, operations and steps in the order in which a learner meets them."""

    def __init__(self, route: str, make: dict[str, Any]):
        self.trace = Trace(route, make, {}, {}, [], {}, {})
        self._kept: dict[str, np.ndarray] = {}  # numbers of derived arrays: checked, not written

    def chapter(self, chapter_id: str, kind: str = "", block: int | None = None, round: int | None = None) -> None:
        """Open a chapter: the steps that follow are in it."""
        self.trace.chapters.append(Chapter(chapter_id, [], kind, block, round))

    def step(self, step_id: str, kind: str = "", role: str = "", of_pass: Pass | None = None,
             **place: Any) -> Step:
        """The step of that name in the open chapter; when it is not there, made with all that `Step` says of it."""
        steps = self.trace.chapters[-1].steps
        found = next((step for step in steps if step.id == step_id), None)
        if found is None:
            if of_pass:
                place |= {"pass_": of_pass.kind, "split": of_pass.split, "round": of_pass.round}
            found = Step(step_id, kind=kind, role=role, **place)
            steps.append(found)
        return found

    def add_pass(self, kind: str, split: str = "", round: int | None = None, **arrays: str) -> Pass:
        """A pass through the model, and of its arrays by role those that are there before it."""
        self.trace.passes.append(Pass(kind, split, round, arrays))
        return self.trace.passes[-1]

    def label(self, name: str, labels: list[str]) -> str:
        self.trace.labels[name] = labels
        return name

    def source(self, name: str, values: Tensor | ArrayLike, axes: tuple[str, ...] = (),
               labels: dict[str, str] | None = None) -> str:
        """An array at the start of a computation: nothing recorded made it, its hash holds it."""
        data = _as_array(values)
        self._add(Array(name, data.shape, data.dtype.name, axes, labels or {}, data,
                        sha256=content_hash(data)))
        return name

    def operation(self, name: str, kind: str, operands: dict[str, str], values: Tensor | ArrayLike | None,
                  axes: tuple[str, ...] = (), *, target: str = "out", settings: dict[str, float] | None = None,
                  labels: dict[str, str] | None = None, derived: bool = False, shape: tuple[int, ...] = ()) -> str:
        """An array that `kind` made from `operands`.

        Of `settings` those are kept that the equations read.  A derived one keeps its numbers only to be
        checked; where PyTorch gives none (`values` None, with the `shape`), what is made from it is checked
        instead.
        """
        data = None if values is None else _as_array(values)
        if data is not None:
            shape = data.shape
        self._add(Array(name, shape, "float32" if data is None else data.dtype.name, axes, labels or {},
                        None if derived else data, derived=derived))
        if derived and data is not None:
            self._kept[name] = data
        needed = {setting: (settings or {})[setting] for setting in KINDS[kind].settings(target)}
        self.trace.operations[name] = Operation(name, kind, target, operands, needed)
        return name

    def _add(self, array: Array) -> None:
        if array.name in self.trace.arrays:
            raise ValueError(f"array {array.name} is recorded twice")
        self.trace.arrays[array.name] = array

    def finish(self) -> Trace:
        """The whole trace, checked: what is written has been recomputed once already.

        Raises `UserError` for one that `load` would refuse.
        """
        trace = self.trace
        validate(trace)
        replay = Replay(trace, AXES)
        for operation in trace.operations.values():
            if trace.arrays[operation.id].derived:
                self._check_derived(replay, operation)
            elif self._check_held(replay, operation):
                replay = Replay(trace, AXES)
            replay.forget_after(operation.id)
        trace.summary = summarise(trace)
        return trace

    def _check_held(self, replay: Replay, operation: Operation) -> bool:
        """Whether operands had to be held for it.  Raises `ArithmeticError` for what does not follow all the same."""
        check = self._settle(replay, operation)
        held = bool(check.problem) and self._hold_operands(operation)
        if held:
            check = self._settle(Replay(self.trace, AXES), operation)
        if check.problem:
            raise ArithmeticError(f"operation {operation.id} ({check.kind}) does not follow from its operands: "
                                  f"{check.problem}")
        return held

    def _settle(self, replay: Replay, operation: Operation) -> Check:
        """Note the rounding that the step's numbers carry, and check them."""
        recorded, computed = self.trace.values(operation.id).reshape(-1), replay.compute(operation)
        operation.rounding = find_rounding(recorded, computed)
        return compare(operation, recorded, computed)

    def _hold_operands(self, operation: Operation) -> bool:
        """Write the derived numbers that an order follows from after all; whether there were any.

        Numbers that are nearly equal may stand the other way round when they are computed again.
        """
        trace = self.trace
        origins = self._derived_origins(operation) if trace.arrays[operation.id].dtype == "int64" else []
        for name in origins:
            trace.arrays[name] = replace(trace.arrays[name], data=self._kept[name], derived=False)
            self._settle(Replay(trace, AXES), trace.operations[name])
        return bool(origins)

    def _derived_origins(self, operation: Operation) -> list[str]:
        """The derived arrays that the operation follows from and that follow from held ones alone."""
        derived = [name for name in operation.operands.values()
                   if self.trace.arrays[name].derived and name in self._kept]
        return [origin for name in derived for origin in self._derived_origins(self.trace.operations[name]) or [name]]

    def _check_derived(self, replay: Replay, operation: Operation) -> None:
        if operation.id not in self._kept:
            return
        wrong = beyond_float32(self._kept[operation.id].reshape(-1), replay.derive(operation.id))
        if wrong.any():
            raise ArithmeticError(f"derived array {operation.id}: {int(wrong.sum())} values differ from PyTorch's")


def _as_array(values: Tensor | ArrayLike) -> np.ndarray:
    if isinstance(values, Tensor):
        return to_numpy(values)
    array = np.asarray(values)
    return _as_int64(array) if array.dtype.kind in "iub" else to_numpy(torch.from_numpy(array))
