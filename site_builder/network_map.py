"""The network as a graph, found in the steps of a recording: what the map draws.

Nodes are the views of one forward pass, groups are its main steps, edges say who reads whose array.
How many blocks there are, what they hold and where values run past them is nowhere assumed: the
operands of the steps say it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, takewhile

from site_builder.prose import plain_key
from site_builder.strings import Strings
from site_builder.symbols import symbol_text
from tracer.schema import Step, Trace, View

_PASS = re.compile(r"^(?:round\d+|evaluation\.\w+?)\.")
_NUMBERED = re.compile(r"(\w+\.\d+)\.")


@dataclass
class Node:
    """A view, or what flows into the network: an input made before it, a table that several views share.

    `array` is what the node makes or is; `before` are steps outside the forward pass that lead up to it.
    """

    key: str
    kind: str  # "view", "input" or "table"
    opens: str
    array: str
    shape: tuple[int, ...]
    parameters: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Edge:
    """`end` reads `array`, which `start` makes; `symbol` tells the outputs of a view apart that makes several."""

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


def pass_key(name: str) -> str:
    """A view's or an array's name without the round or the evaluation that it belongs to."""
    return _PASS.sub("", name)


def network(trace: Trace, chapter: str = "") -> Network:
    """The network of a recorded forward pass: of training's first update, or of `chapter` (a round)."""
    return _Finder(trace, _split(trace, chapter) if chapter else _main_steps(trace)).network()


def label(strings: Strings, node: Node) -> str:
    """A few letters for a node; where no words are given, the last part of its name."""
    return _words(strings, f"map.{plain_key(node.key)}") or node.key.rpartition(".")[2].replace("_", " ")


def group_title(strings: Strings, group: str) -> str:
    """What a group is called: as the main step is, else by words of its own, else by its name."""
    name, _, number = group.rpartition(".")
    if number.isdigit() and (words := _words(strings, f"chapter.{name}")):
        return words.format(n=int(number) + 1)
    return (_words(strings, f"chapter.{group}") or _words(strings, f"network_map.part.{group}")
            or group.replace("_", " "))


def _words(strings: Strings, key: str) -> str:
    try:
        return strings(key)
    except KeyError:
        return ""


def _main_steps(trace: Trace) -> list[tuple[str, list[View]]]:
    """The chapters of the forward pass: from the first that reads a parameter to the way back."""
    parameters = set(trace.make["parameters"])
    forward = list(takewhile(lambda c: not any(v.id.startswith("grad.") for v in c.views), trace.chapters))
    reads = [any(parameters & set(trace.steps[s].operands.values()) for v in c.views for s in v.steps)
             for c in forward]
    return [(chapter.id, chapter.views) for chapter in forward[reads.index(True):]]


def _split(trace: Trace, chapter: str) -> list[tuple[str, list[View]]]:
    """The views of one round, cut where its parts begin: their names say where."""
    views = next(c.views for c in trace.chapters if c.id == chapter)
    parts = []
    for name, run in groupby(views, _part):
        run = list(run)
        parts.append((name or pass_key(run[0].id), run))
    return parts


def _part(view: View) -> str:
    """`blocks.0` of a view in a numbered part, `sampler` of one in a named part, else nothing."""
    key = pass_key(view.id)
    numbered = _NUMBERED.match(key)
    return numbered[1] if numbered else key.rpartition(".")[0].partition(".")[0]


class _Finder:
    """Finds nodes, edges and roads of one pass."""

    def __init__(self, trace: Trace, groups: list[tuple[str, list[View]]]):
        self.trace, self.views = trace, groups
        self.maker = {step: pass_key(view.id) for _, views in groups for view in views for step in view.steps}
        self.home = {step: view.id for c in trace.chapters for view in c.views for step in view.steps}
        self.given = {name for c in trace.chapters for view in c.views for name in view.arrays}
        self.readers: dict[str, list[str]] = {}  # array from outside → keys of the views that read it
        for key, step, name in self._reads():
            if name not in self.maker and key not in self.readers.setdefault(name, []):
                self.readers[name].append(key)
        self.groups: dict[str, list[str]] = {}
        self.nodes: dict[str, Node] = {}

    def _reads(self) -> Iterator[tuple[str, Step, str]]:
        """Every operand of the pass: the view that reads it, the step, the array."""
        for _, views in self.views:
            for view in views:
                for step in map(self.trace.steps.get, view.steps):
                    for name in step.operands.values():
                        yield pass_key(view.id), step, name

    def network(self) -> Network:
        for group, views in self.views:
            self.groups[group] = []
            for view in views:
                self._add_sources(group, view)
                self._add(group, self._view_node(view))
        edges = self._edges()
        roads = self._roads(edges)
        self._note_what_leads_here()
        return Network(self.groups, self.nodes, [e for e in edges if e not in roads], roads)

    def _add(self, group: str, node: Node) -> None:
        self.nodes[node.key] = node
        self.groups[group].append(node.key)

    def _view_node(self, view: View) -> Node:
        key = pass_key(view.id)
        array = view.id if view.id in view.steps else view.steps[-1]
        owned = [name for name, readers in self.readers.items() if readers[0] == key and self._is_parameter(name)]
        return Node(key, "view", view.id, pass_key(array), self.trace.arrays[array].shape, owned)

    def _is_parameter(self, name: str) -> bool:
        return name not in self.home and name not in self.given

    def _add_sources(self, group: str, view: View) -> None:
        """Nodes for what the view is the first to read: inputs from other chapters, tables with more readers."""
        key = pass_key(view.id)
        for name, readers in self.readers.items():
            if readers[0] != key or self._hands_on(name):
                continue
            shape = self.trace.arrays[name].shape
            if name in self.home:
                self._add(group, Node(name, "input", self.home[name], name, shape))
            elif self._is_parameter(name) and len(readers) > 1:
                self._add(group, Node(self._parameter(name), "table", self._table_step(name, view), name, shape,
                                      [name]))

    def _parameter(self, name: str) -> str:
        """The model's own name of a parameter, which a recording may have in several states."""
        return next((own for own in self.trace.make["parameters"] if name.endswith(f".{own}")), name)

    def _table_step(self, name: str, view: View) -> str:
        """The step that changes a table, where there is one; else the first that reads it."""
        return next((self.home[step.id] for step in self.trace.uses[name] if step.kind == "adamw"), view.id)

    def _hands_on(self, name: str) -> str:
        """The view that reads this array from outside and passes on the very same values, if one does."""
        content = self._content(name)
        return next((key for key, step, read in self._reads()
                     if read == name in self.home and self._content(step.id) == content), "")

    def _content(self, name: str) -> str:
        while same := self.trace.arrays[name].same_as:
            name = same
        return name

    def _source(self, name: str) -> str:
        """The node that an operand comes from, or nothing when no node stands for it."""
        inside = self.maker.get(name) or self._hands_on(name)
        return inside or next((key for key in (name, self._parameter(name)) if key in self.nodes), "")

    def _edges(self) -> list[Edge]:
        found = {}
        for key, _, name in self._reads():
            start = self._source(name)
            if start and start != key:
                found[start, key, name] = None
        outputs: dict[str, set[str]] = {}
        for start, _, name in found:
            outputs.setdefault(start, set()).add(name)
        return [Edge(start, end, name, self._symbol(name) if len(outputs[start]) > 1 else "")
                for start, end, name in found]

    def _symbol(self, name: str) -> str:
        step = self.trace.steps.get(name)
        return symbol_text(step.kind, step.target) if step else ""

    def _roads(self, edges: list[Edge]) -> list[Edge]:
        """Residual roads.  Their mark: an addition whose one operand was also made from the other one."""
        above: dict[str, set[str]] = {}
        for key in self.nodes:
            starts = {edge.start for edge in edges if edge.end == key}
            above[key] = starts.union(*(above.get(start, ()) for start in starts))
        additions = {self.maker[step.id] for _, step, _ in self._reads() if step.kind == "add"}
        roads = []
        for end in additions:
            incoming = [edge for edge in edges if edge.end == end]
            roads += [edge for edge in incoming if any(edge.start in above[other.start] for other in incoming)]
        return sorted(roads, key=edges.index)

    def _note_what_leads_here(self) -> None:
        """Steps before the pass (of any pass) belong to the node through which they enter it."""
        doors = {}
        for key, step, _ in self._reads():
            for operand, name in step.operands.items():
                if name in self.home and name not in self.maker:
                    doors[pass_key(step.id), operand] = self.nodes.get(name, self.nodes[key])
        for step in self.trace.steps.values():
            for operand, name in step.operands.items():
                if node := doors.get((pass_key(step.id), operand)):
                    node.before += [view for view in self._leading_to(name) if view not in node.before]

    def _leading_to(self, name: str) -> list[str]:
        """Views outside every forward pass from which the array was made, the nearest first."""
        found, open_names = {}, [name]
        while open_names:
            view = self.home.get(open_names.pop())
            if view is None or view in found or pass_key(view) in self.nodes:
                continue
            found[view] = None
            open_names += [read for step, home in self.home.items() if home == view
                           for read in self.trace.steps[step].operands.values()]
        return list(found)
