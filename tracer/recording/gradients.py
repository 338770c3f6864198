"""Read from autograd's graph what comes back to each value, and through each use of it.

Every operation on tensors leaves a node in the graph, numbered in the order in which they were made;
its edges lead to the nodes that made what it read.  While `backward` runs, a node is handed the
gradient of what it made, and sends one gradient along each edge.  Both are only looked at.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge
from torch.utils.hooks import RemovableHandle

from tracer.errors import UserError

Use = tuple[str, str]  # path of a call, argument
K = TypeVar("K", bound=Hashable)
# Torch has no public name for these, nor for `Node._sequence_nr`.
next_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
backward_pass, NO_PASS = torch._C._current_graph_task_id, -1


@dataclass(slots=True)
class Span:
    """The nodes numbered from `begun` up to `ended` were made in one call, inside the call `outer`.

    `reads`: (node, which of its outputs) that made a value which the call was given → argument, name.
    """

    path: str
    outer: "Span | None"
    begun: int
    ended: float = math.inf  # while it runs
    reads: dict[tuple[Node, int], tuple[str, str]] = field(default_factory=dict)


class Gradients:
    """Gradients of values by name (`totals`), and the parts of them through each use (`parts`).

    `pieces`: in how many pieces autograd got the part of a use, where there were several.  They are
    added here, as they came; autograd adds each to the total by itself.
    """

    def __init__(self) -> None:
        self.totals: dict[str, Tensor] = {}
        self.parts: dict[Use, Tensor] = {}
        self.pieces: Counter[Use] = Counter()
        self._arrived: dict[tuple[int, str], list[Tensor]] = {}  # (backward pass, name) → pieces so far
        self._read: set[str] = set()  # names of what calls were given and did not hand on
        self._sums: list[tuple[str, list[Tensor], Tensor]] = []
        self._spans: list[Span] = []  # of the outermost call that runs, in the order in which they began
        self._made: list[Node] = []
        self._handles: list[RemovableHandle] = []
        self.watches = False  # whether any value has a gradient

    def begin(self, path: str, outer: Span | None) -> Span:
        span = Span(path, outer, next_number())
        self._spans.append(span)
        return span

    def end(self, span: Span, handed_on: Collection[str]) -> None:
        """The call ends.  `handed_on`: names of what it returns as it got it."""
        span.ended = next_number()
        self._read.update(name for _, name in span.reads.values() if name not in handed_on)

    def read(self, span: Span, tensor: Tensor, argument: str, name: str) -> None:
        """The call is given `tensor`.  What it is given twice is one use, under the first argument."""
        node, output = tensor.grad_fn, tensor.output_nr
        if node is None:
            if torch.is_inference_mode_enabled():
                return
            node, output = _edge_of_leaf(tensor)
        span.reads.setdefault((node, output), (argument, name))

    def watch(self, tensor: Tensor, name: str) -> None:
        """Keep the gradient of `tensor` as it is now: after a change in place another node makes it."""
        node, output = tensor.grad_fn, tensor.output_nr
        self.watches = True
        if node is None:
            self._handles.append(tensor.register_hook(lambda gradient: self._keep_total(name, gradient)))
            return
        self._made.append(node)
        self._handles.append(node.register_prehook(lambda gradients: self._keep_total(name, gradients[output])))

    def watch_uses(self, kept: Iterable[Tensor]) -> None:
        """At the end of the outermost call: find the nodes that send parts back to what calls were given.

        They are found from what calls made, and from what modules keep.
        """
        begun = [span.begun for span in self._spans]
        seen = {*self._made, *(tensor.grad_fn for tensor in kept if tensor.grad_fn is not None)}
        todo = list(seen)
        while todo:
            node = todo.pop()
            span = self._maker(node, begun)
            if span is None:
                continue
            uses = []
            for i, (before, output) in enumerate(node.next_functions):
                if before is None:
                    continue
                if (before, output) in span.reads:
                    argument, name = span.reads[before, output]
                    uses.append((i, (span.path, argument), name))
                if before not in seen:
                    seen.add(before)
                    todo.append(before)
            if uses:
                self._watch_sent(node, uses)
        self._spans.clear()
        self._made.clear()

    def _maker(self, node: Node, begun: list[int]) -> Span | None:
        """The innermost call in which the node was made; None for one that was made before."""
        number = node._sequence_nr()
        last = bisect_right(begun, number) - 1
        span = self._spans[last] if last >= 0 else None
        while span is not None and not number < span.ended:
            span = span.outer
        return span

    def _watch_sent(self, node: Node, uses: list[tuple[int, Use, str]]) -> None:
        """Keep what the node sends along its edges of these numbers, as parts through the uses of named values."""
        for _, use, _ in uses:
            self.pieces[use] += 1

        def keep(sent: tuple[Tensor | None, ...], _: object) -> None:
            for i, use, name in uses:
                if (part := sent[i]) is not None:
                    piece = _add(self.parts, use, part)
                    self._arrived.setdefault((backward_pass(), name), []).append(piece)
        self._handles.append(node.register_hook(keep))

    def _keep_total(self, name: str, gradient: Tensor | None) -> None:
        if gradient is not None:
            pieces = self._arrived.pop((backward_pass(), name), [])
            self._sums.append((name, pieces, _add(self.totals, name, gradient)))

    def close(self) -> None:
        """Take every hook off the graph, which may live on."""
        for handle in self._handles:
            handle.remove()
        for store in (self._handles, self._spans, self._made, self._arrived):
            store.clear()

    def incomplete(self) -> Iterator[str]:
        """Names of values whose gradient is not what came back through the uses that are known.

        Pieces are added here in the order in which autograd added them, so that even the last bit tells.
        Of a value that no call was given, nothing is known.
        """
        for name, pieces, total in self._sums:
            if not same_numbers(sum(pieces[1:], pieces[0]), total) if pieces else name in self._read:
                yield name


@torch.enable_grad()
def _edge_of_leaf(tensor: Tensor) -> tuple[Node, int]:
    """The node that adds up the gradient of a leaf.

    `get_gradient_edge` takes a view of it, which a sparse one has not; a copy leads to the same node.
    """
    if tensor.layout == torch.strided:
        edge = get_gradient_edge(tensor)
        return edge.node, edge.output_nr
    copy = tensor.clone().grad_fn
    assert copy is not None  # gradients are enabled, and the tensor requires one
    node, output = copy.next_functions[0]
    assert node is not None
    return node, output


def _add(store: dict[K, Tensor], key: K, gradient: Tensor) -> Tensor:
    """A copy of `gradient`, which somebody may change in place later; `store` gets it, or the sum with it."""
    check_numbers(gradient, "a gradient")
    new = gradient.detach().clone() if gradient.requires_grad else gradient.clone()
    store[key] = store[key] + new if key in store else new
    return new


def check_numbers(tensor: Tensor, name: str) -> None:
    """Raises `UserError` for a tensor that stands for many, or for none."""
    if tensor.layout == torch.strided:
        try:
            tensor.data_ptr()
        except RuntimeError as error:
            raise UserError(f"{name} has no numbers of its own: record the model itself, "
                            "not what torch.func, vmap or a fake mode makes of it") from error


def same_numbers(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors hold the same, NaN included."""
    if a.is_nested and b.is_nested:
        parts, others = a.unbind(), b.unbind()
        return len(parts) == len(others) and all(map(same_numbers, parts, others))
    if torch.equal(a, b):
        return True
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
