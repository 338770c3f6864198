"""The map: the whole network as one drawing, with words, titles and links; `templates/map.svg.html` writes it."""

from dataclasses import dataclass

from site_builder.keys import general, key
from site_builder.map_layout import PANEL, Box, Joint, Line, tall, wide
from site_builder.network_graph import Group, Network, Node, network
from site_builder.prose import name_of
from site_builder.strings import Strings
from tracer.format.trace import Pass, Trace


@dataclass
class MapNode:
    """A box with its words: a link to the step `opens`."""

    box: Box
    label: str
    subscript: str
    title: str
    shape: str
    text: float  # where the label stands

    @property
    def node(self) -> Node:
        return self.box.node

    @property
    def text_y(self) -> float:
        return self.box.y + 16

    @property
    def shape_x(self) -> float:
        return self.box.right - 8

    @property
    def style(self) -> str:
        return f"node {self.node.kind}-node" + ("" if self.box.alone else " cell")


@dataclass
class MapPanel:
    """A group of nodes under its title."""

    title: str
    text: float  # where the title stands
    x: float
    y: float
    width: float
    height: float
    nodes: list[MapNode]

    @property
    def title_y(self) -> float:
        return self.y + 18


@dataclass
class Map:
    """A drawing and what it says."""

    width: float
    height: float
    panels: list[MapPanel]
    lines: list[Line]
    joints: list[Joint]
    first: Pass  # which it shows before a step of another is chosen


def network_map(trace: Trace, titles: dict[str, str], strings: Strings, *, columns: bool = False) -> Map:
    """The map of a route's forward pass: training's first update, or the first round of generation.

    `titles`: step → its full title.  `columns`: side by side, for a whole page, not for a narrow column.
    """
    found = network(trace)
    drawing = wide(found) if columns else tall(found)
    panels = [MapPanel(group_title(strings, panel.group), panel.x + drawing.left, panel.x, panel.y, PANEL, panel.height,
                       [_node(box, panel.x + drawing.left, found, titles, strings) for box in panel.boxes])
              for panel in drawing.panels]
    for line in drawing.lines:
        if line.letter and line.kind == "long" and (node := found.nodes[line.edge.start]).kind == "table":
            line.letter = (*line.letter[:2], label(strings, node))  # the name of the table where it comes back
    return Map(drawing.width, drawing.height, panels, drawing.lines, drawing.joints, trace.passes[0])


def _node(box: Box, left: float, found: Network, titles: dict[str, str], strings: Strings) -> MapNode:
    text, _, subscript = label(strings, box.node).partition("_")
    return MapNode(box, text, subscript, _title(box.node, found, titles, strings),
                   "×".join(f"{length:,}" for length in box.node.shape), left + 10 if box.alone else box.cx)


def _title(node: Node, found: Network, titles: dict[str, str], strings: Strings) -> str:
    if node.kind != "table":
        return titles[node.opens]
    readers = [titles[found.nodes[edge.end].opens] for edge in found.edges if edge.start == node.key]
    return strings("network_map.shared", steps=strings("semicolon").join(readers))


def label(strings: Strings, node: Node) -> str:
    """A few letters for a node, a subscript after `_`; where no words are given, the name of its kind or its own."""
    if not node.step:
        return strings.get(f"map.{node.role}") or node.key.replace("_", " ")
    words = (strings.get(f"map.{written}") for written in general(key(node.step.kind, node.step.role)))
    return next(filter(None, words), "") or name_of(strings.language, node.step.kind)


def group_title(strings: Strings, group: Group) -> str:
    """What a group is called: as its chapter is, else by words of its own, else by its name."""
    if group.block is not None:
        return strings("chapter.block", n=group.block)
    return (strings.get(f"chapter.{group.name}") or strings.get(f"network_map.part.{group.name}")
            or group.name.replace("_", " "))
