"""The network as a graph, found in the operations of a recording: what the map draws.

Nodes are the steps of one forward pass, groups are its chapters, edges say who reads whose array.
How many blocks there are, what they hold and where values run past them is nowhere assumed: the
operands of the operations say it.
"""

from dataclasses import dataclass, field
from itertools import groupby

from site_builder.symbols import symbol_text
from tracer.format.roles import SAMPLER_STEPS
from tracer.format.trace import Operation, Pass, Step, Trace


@dataclass
class Node:
    """A step, or what flows into the network: an input made before it, a table that several steps share.

    `key`: its name in the graph.  `array` is what the node makes or is; `before` are steps outside of every pass that
    lead up to it; `step` is the step that it shows; of another node `role` says what it is.
    """

    key: str
    kind: str  # "step", "input" or "table"
    opens: str
    array: str
    shape: tuple[int, ...]
    parameters: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    step: Step | None = None
    role: str = ""
    place: str = ""  # where its step stands in the model, the same in every pass


def place(trace: Trace, step: Step) -> str:
    """Block, kind and role of a step in one word: what it shows in one pass, it shows in every pass.

    With a cache a step shows several modules: it stands where its last operation does, if that is the only one of its
    kind there.  The losses of all updates stand where the loss does.
    """
    kind, role = step.kind, step.role
    if step.pass_ == "cached" and not kind and step.operations:
        kind, role = trace.operations[step.operations[-1]].kind, ""
    if role == "series_loss":
        kind, role = "mean", "loss"
    return "/".join(("" if step.block is None else str(step.block), kind, role))


@dataclass(frozen=True)
class Group:
    """A part of the network: a chapter of the forward pass, or a part of a round.  `block`: the block that it is."""

    name: str
    block: int | None = None


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

    groups: dict[Group, list[str]]
    nodes: dict[str, Node]
    edges: list[Edge]
    roads: list[Edge]


def network(trace: Trace) -> Network:
    """The network of the first recorded pass: of training's first update, or of the first round."""
    first = trace.passes[0]
    return _Finder(trace, _rounds_parts(trace, first) if first.kind == "round" else _chapters(trace, first)).network()


def _chapters(trace: Trace, of: Pass) -> list[tuple[Group, list[Step]]]:
    """The chapters of the forward pass."""
    found = [(Group(chapter.kind, chapter.block), [step for step in chapter.steps if _is_forward(trace, step, of)])
             for chapter in trace.chapters]
    return [(group, steps) for group, steps in found if steps]


def _is_forward(trace: Trace, step: Step, of: Pass) -> bool:
    return step.direction != "backward" and trace.pass_of(step) is of


def _rounds_parts(trace: Trace, of: Pass) -> list[tuple[Group, list[Step]]]:
    """The steps of a round: before the blocks, block by block, after them, the sampler, what follows the draw."""
    steps = [step for step in trace.steps() if _is_forward(trace, step, of)]
    runs = [(group, list(run)) for group, run in groupby(steps, _part)]
    return [(group if group.name else Group(_name(run[0])), run) for group, run in runs]


def _part(step: Step) -> Group:
    if step.block is not None:
        return Group("block", step.block)
    return Group("sampler" if (step.kind, step.role) in SAMPLER_STEPS else "")


def _name(first: Step) -> str:
    """What a part is called that begins with this step."""
    return first.role or first.kind


class _Finder:
    """Finds nodes, edges and roads of one pass."""

    def __init__(self, trace: Trace, groups: list[tuple[Group, list[Step]]]):
        self.trace, self.steps = trace, groups
        self.parameters = {name: one.name for one in trace.parameters
                           for role, name in one.arrays.items() if role in ("initial", "trained")}
        self.given = {name: role for role, name in trace.passes[0].arrays.items()}
        self.step_of = {name: step for step in trace.steps() for name in step.operations}
        self.own = {step.id for _, steps in groups for step in steps}
        self.places = {place(trace, step): step.id for _, steps in groups for step in steps}
        makes = [(step.id, trace.operations[name]) for _, steps in groups for step in steps
                 for name in step.operations]
        # Every operand of the pass: the step that reads it, the operation, the operand's name, the array.
        self.reads: list[tuple[str, Operation, str, str]] = [
            (key, operation, operand, name) for key, operation in makes
            for operand, name in operation.operands.items()]
        self.maker = {operation.id: key for key, operation in makes}
        self.maker |= self._handed_on()
        self.readers: dict[str, list[str]] = {}  # array from outside → the steps that read it
        for key, _, _, name in self.reads:
            if name not in self.maker and key not in self.readers.setdefault(name, []):
                self.readers[name].append(key)
        self.groups: dict[Group, list[str]] = {}
        self.nodes: dict[str, Node] = {}
        self.source: dict[str, str] = dict(self.maker)  # array → key of the node that it comes from

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

    def _add(self, group: Group, node: Node, *arrays: str) -> None:
        self.nodes[node.key] = node
        self.groups[group].append(node.key)
        self.source |= dict.fromkeys(arrays, node.key)

    def _step_node(self, step: Step) -> Node:
        array = main_array(self.trace, step)
        owned = [self.parameters[name] for name, readers in self.readers.items()
                 if readers[0] == step.id and name in self.parameters]
        return Node(step.id, "step", step.id, array, self.trace.arrays[array].shape, owned, step=step,
                    place=place(self.trace, step))

    def _add_sources(self, group: Group, step: Step) -> None:
        """Nodes for what the step is the first to read: inputs from other chapters, tables with more readers."""
        for name in [name for name, readers in self.readers.items() if readers[0] == step.id]:
            shape = self.trace.arrays[name].shape
            home = self.step_of.get(name)
            if home and not home.pass_:
                self._add(group, Node(name, "input", home.id, name, shape, role=self.given.get(name, "")), name)
            elif name in self.parameters and len(self.readers[name]) > 1:
                own = self.parameters[name]
                role = next(one.role for one in self.trace.parameters if one.name == own)
                self._add(group, Node(own, "table", self._table_step(name, step), name, shape, [own], role=role), name)

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
            key = self.places.get(place(self.trace, step)) if step.pass_ else None
            for operand, read in self.trace.operations[name].operands.items() if key else ():
                if key and (node := doors.get((key, operand))):
                    node.before += [lead for lead in self._leading_to(read) if lead not in node.before]

    def _leading_to(self, name: str) -> list[str]:
        """Steps outside every forward pass from which the array was made, the nearest first."""
        found: dict[str, None] = {}
        names = [name]
        while names:
            step = self.step_of.get(names.pop())
            if step and step.id not in found and not step.pass_:
                found[step.id] = None
                names += [read for one in step.operations for read in self.trace.operations[one].operands.values()]
        return list(found)


def main_array(trace: Trace, step: Step) -> str:
    """What a step is about: what its operations return, the gradient that goes on, else the first array."""
    targets = {trace.operations[name].target: name for name in reversed(step.operations)}
    return targets.get("out") or targets.get("d_x") or (step.operations or step.arrays)[0]
