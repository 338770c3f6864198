"""The network as a graph, found in the operations of a recording: what the map draws.

Nodes are the steps of one forward pass, groups are its chapters, edges say who reads whose array.
How many blocks there are, what they hold and where values run past them is nowhere assumed: the
operands of the operations say it.
"""

import re
from dataclasses import dataclass, field
from itertools import groupby, takewhile

from site_builder.prose import kind_of
from site_builder.symbols import symbol_text
from tracer.format.trace import Step, Trace

_NUMBERED = re.compile(r"(\w+\.\d+)\.")


@dataclass
class Node:
    """A step, or what flows into the network: an input made before it, a table that several steps share.

    `array` is what the node makes or is; `before` are steps outside the forward pass that lead up to it;
    `module` is the kind of module that a step shows.
    """

    key: str
    kind: str  # "step", "input" or "table"
    opens: str
    array: str
    shape: tuple[int, ...]
    parameters: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    module: str = ""


@dataclass(frozen=True)
class Edge:
    """`end` reads `array`, which `start` makes; `symbol` tells the outputs of a step apart that makes several."""

    start: str
    end: str
    array: str
    symbol: str = ""


@dataclass
class Network:
    """Nodes by key in the order of the pass, the groups they stand in, and what joins them.

    A road is a residual connection: an edge that leads to an addition past everything between.
    """

    groups: dict[str, list[str]]
    nodes: dict[str, Node]
    edges: list[Edge]
    roads: list[Edge]


def network(trace: Trace, chapter: str = "") -> Network:
    """The network of a recorded forward pass: of training's first update, or of `chapter` (a round)."""
    prefix = f"{chapter}." if chapter else ""
    return _Finder(trace, _split(trace, chapter, prefix) if chapter else _chapters_of_the_pass(trace), prefix).network()


def _chapters_of_the_pass(trace: Trace) -> list[tuple[str, list[Step]]]:
    """The chapters of the forward pass: from the first that reads a parameter to the way back."""
    parameters = set(trace.make["parameters"])
    forward = list(takewhile(lambda c: not any(v.id.startswith("grad.") for v in c.steps), trace.chapters))
    reads = [any(parameters & set(trace.operations[s].operands.values()) for v in c.steps for s in v.operations)
             for c in forward]
    return [(chapter.id, chapter.steps) for chapter in forward[reads.index(True):]]


def _split(trace: Trace, chapter: str, prefix: str) -> list[tuple[str, list[Step]]]:
    """The steps of one round, cut where its parts begin: their names say where."""
    steps = next(c.steps for c in trace.chapters if c.id == chapter)
    runs = [(name, list(run)) for name, run in groupby(steps, lambda step: _part(step.id.removeprefix(prefix)))]
    return [(name or run[0].id.removeprefix(prefix), run) for name, run in runs]


def _part(key: str) -> str:
    """`blocks.0` of a step in a numbered part, `sampler` of one in a named part, else nothing."""
    numbered = _NUMBERED.match(key)
    return numbered[1] if numbered else key.rpartition(".")[0].partition(".")[0]


class _Finder:
    """Finds nodes, edges and roads of one pass."""

    def __init__(self, trace: Trace, groups: list[tuple[str, list[Step]]], prefix: str):
        self.trace, self.steps, self.prefix = trace, groups, prefix
        self.parameters = set(trace.make["parameters"])
        self.step_of = {operation: step for c in trace.chapters for step in c.steps for operation in step.operations}
        self.own = {step.id for _, steps in groups for step in steps}
        self.keys = set(map(self.key, self.own))
        makes = [(self.key(step.id), trace.operations[name]) for _, steps in groups for step in steps
                 for name in step.operations]
        # Every operand of the pass: the step that reads it, the operation, the operand's name, the array.
        self.reads = [(key, operation, operand, name) for key, operation in makes
                      for operand, name in operation.operands.items()]
        self.maker = {operation.id: key for key, operation in makes}
        self.maker |= self._handed_on()
        self.readers: dict[str, list[str]] = {}  # array from outside → keys of the steps that read it
        for key, _, _, name in self.reads:
            if name not in self.maker and key not in self.readers.setdefault(name, []):
                self.readers[name].append(key)
        self.groups: dict[str, list[str]] = {}
        self.nodes: dict[str, Node] = {}
        self.source: dict[str, str] = dict(self.maker)  # array → key of the node that it comes from

    def key(self, name: str) -> str:
        return name.removeprefix(self.prefix)

    def _known_key(self, name: str) -> str:
        """The key of the node that a step of any pass belongs to, or nothing: a pass stands before its names."""
        parts = name.split(".")
        return next((key for i in range(len(parts)) if (key := ".".join(parts[i:])) in self.keys), "")

    def _handed_on(self) -> dict[str, str]:
        """Arrays from outside that a step passes on as they are: the step stands for them."""
        return {name: key for key, operation, _, name in self.reads if name not in self.maker and name in self.step_of
                and self._content(operation.id) == self._content(name)}

    def _made_here(self, name: str) -> bool:
        return name in self.step_of and self.step_of[name].id in self.own

    def _content(self, name: str) -> str:
        while same := self.trace.arrays[name].same_as:
            name = same
        return name

    def network(self) -> Network:
        for group, steps in self.steps:
            self.groups[group] = []
            for step in steps:
                self._add_sources(group, step)
                self._add(group, self._step_node(step))
        edges = self._edges()
        roads = self._roads(edges)
        self._note_what_leads_here()
        return Network(self.groups, self.nodes, [e for e in edges if e not in roads], roads)

    def _add(self, group: str, node: Node, *arrays: str) -> None:
        self.nodes[node.key] = node
        self.groups[group].append(node.key)
        self.source |= dict.fromkeys(arrays, node.key)

    def _step_node(self, step: Step) -> Node:
        key = self.key(step.id)
        array = step.id if step.id in step.operations else (step.operations or step.arrays)[0]
        owned = [name for name, readers in self.readers.items() if readers[0] == key and name in self.parameters]
        return Node(key, "view", step.id, self.key(array), self.trace.arrays[array].shape, owned,
                    module=kind_of(self.trace, step))

    def _add_sources(self, group: str, step: Step) -> None:
        """Nodes for what the step is the first to read: inputs from other chapters, tables with more readers."""
        key = self.key(step.id)
        for name in [name for name, readers in self.readers.items() if readers[0] == key]:
            shape = self.trace.arrays[name].shape
            home = self.step_of.get(name)
            if home and not self._known_key(home.id):
                self._add(group, Node(name, "input", home.id, name, shape), name)
            elif name in self.parameters and len(self.readers[name]) > 1:
                own = name[max(name.find(f"{key}."), 0):]  # its name in the model
                self._add(group, Node(own, "table", self._table_step(name, step), name, shape, [name]), name)

    def _table_step(self, name: str, step: Step) -> str:
        """The step that changes a table, where there is one; else the first that reads it."""
        users = self.trace.uses[name]
        return next((self.step_of[user.id].id for user in users if user.kind == "adamw"), step.id)

    def _edges(self) -> list[Edge]:
        found = {(self.source[name], key, name): None for key, _, _, name in self.reads
                 if self.source.get(name, key) != key}
        outputs: dict[str, set[str]] = {}
        for start, _, name in found:
            outputs.setdefault(start, set()).update({name} if self._made_here(name) else ())
        return [Edge(start, end, name, self._symbol(name) if len(outputs[start]) > 1 else "")
                for start, end, name in found]

    def _symbol(self, name: str) -> str:
        operation = self.trace.operations[name]
        return symbol_text(operation.kind, operation.target)

    def _roads(self, edges: list[Edge]) -> list[Edge]:
        """Residual roads.  Their mark: an addition one operand of which was also made from the other one."""
        above: dict[str, set[str]] = {}
        for key in self.nodes:
            starts = {edge.start for edge in edges if edge.end == key}
            above[key] = starts.union(*(above[start] for start in starts))
        additions = {key for key, operation, _, _ in self.reads if operation.kind == "add"}
        return [edge for edge in edges if edge.end in additions
                and any(edge.start in above[other.start] for other in edges if other.end == edge.end)]

    def _note_what_leads_here(self) -> None:
        """Steps that come before a pass (before any pass) belong to the node through which they enter it."""
        doors = {(key, operand): self.nodes[self.source.get(name, key)] for key, _, operand, name in self.reads
                 if name in self.step_of and not self._made_here(name)}
        for name, step in self.step_of.items():
            key = self._known_key(step.id)
            for operand, read in self.trace.operations[name].operands.items():
                if node := doors.get((key, operand)):
                    node.before += [lead for lead in self._leading_to(read) if lead not in node.before]

    def _leading_to(self, name: str) -> list[str]:
        """Steps outside every forward pass from which the array was made, the nearest first."""
        found, names = {}, [name]
        while names:
            step = self.step_of.get(names.pop())
            if step and step.id not in found and not self._known_key(step.id):
                found[step.id] = None
                names += [read for one in step.operations for read in self.trace.operations[one].operands.values()]
        return list(found)
