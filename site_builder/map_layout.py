"""Where everything stands on the map: boxes, roads and wires, in the units of an SVG.

Each group of the network is a panel, rows from top to bottom in the order of the computation.  Panels
stand one below the other (`tall`), or side by side like the columns of a page (`wide`).  On the left of
a panel run its residual roads; on its right, lanes for values that pass over some rows; and outside, at
the left, lines that pass over whole panels.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from site_builder.map_paths import arrow_head, svg_path
from site_builder.network_graph import Edge, Group, Network, Node

PANEL, NODE = 214, 24  # width of a panel, height of a node: a target that a finger can hit
TITLE, FOOT, PANEL_GAP = 29, 11, 12  # in a panel above the first row and below the last; between panels
GAP, LABELLED_GAP, CELL_GAP = 10, 17, 4  # between rows, where wires carry letters, within a row
TABLE = 30  # width of a table's node in a row with others
ROAD, SIDE, LONG = 14, 8, 6  # from lane to lane
GUTTER, BAND, ROW_GAP = 26, 20, 16  # between columns, above and below a row of columns, between these
LONGEST_ROW = 4  # columns side by side


@dataclass
class Box:
    """A node's place.  `cx` is where a wire meets it: the middle of its label, roads apart."""

    node: Node
    x: float
    y: float
    w: float
    cx: float
    alone: bool
    h: float = NODE

    @property
    def cy(self) -> float:
        return self.y + self.h / 2

    @property
    def bottom(self) -> float:
        return self.y + self.h

    @property
    def right(self) -> float:
        return self.x + self.w


@dataclass
class Panel:
    """A group of nodes; `column` and `row` say where among the panels it stands."""

    group: Group
    rows: list[list[str]]
    column: int = -1
    row: int = -1
    x: float = 0
    y: float = 0
    height: float = 0
    boxes: list[Box] = field(default_factory=list)


@dataclass
class Line:
    """A wire, or a road: an SVG path, with an arrow head at its end and perhaps a letter beside it."""

    kind: str  # "wire", "lane", "long" or "road"
    edge: Edge
    path: str
    arrow: str = ""
    letter: tuple[float, float, str] | None = None

    @property
    def has_letter(self) -> bool:
        return bool(self.letter and self.letter[2])


@dataclass
class Joint:
    """Where a residual road starts, or ends in an addition."""

    x: float
    y: float
    adds: bool

    @property
    def radius(self) -> float:
        return 7.5 if self.adds else 4.5


@dataclass
class Drawing:
    """A whole map, ready to be written."""

    width: float
    height: float
    left: float  # of the nodes in a panel
    panels: list[Panel]
    lines: list[Line]
    joints: list[Joint]


def tall(network: Network) -> Drawing:
    """All panels one below the other: a column beside the step."""
    return _Layout(network, wide=False).drawing()


def wide(network: Network) -> Drawing:
    """Panels side by side, small ones stacked, in as many rows as it takes."""
    return _Layout(network, wide=True).drawing()


class _Layout:
    def __init__(self, network: Network, wide: bool):
        self.network, self.wide = network, wide
        self.panels = [Panel(group, _rows(network, keys)) for group, keys in network.groups.items()]
        self.panel_of = {key: panel for panel in self.panels for row in panel.rows for key in row}
        ranks = [key_row for panel in self.panels for key_row in panel.rows]
        self.rank = {key: number for number, row in enumerate(ranks) for key in row}
        self.passable = [len(row) == 1 and network.nodes[row[0]].kind == "input" for row in ranks]
        kinds = {edge: self._kind(edge) for edge in network.edges}
        self.wires, self.sides, self.longs = ([e for e, k in kinds.items() if k == kind]
                                              for kind in ("wire", "lane", "long"))
        self.lanes = {edge: lane for edges in (network.roads, self.sides, self.longs)
                      for edge, lane in zip(edges, _lanes(map(self._span, edges)), strict=True)}
        self.left = 14 + ROAD * self._count(network.roads)
        self.right = PANEL - 8 - SIDE * self._count(self.sides)
        self.margin = 4 + LONG * self._count(self.longs)
        self.place()
        self.boxes = {box.node.key: box for panel in self.panels for box in panel.boxes}

    def _span(self, edge: Edge) -> tuple[int, int]:
        return self.rank[edge.start], self.rank[edge.end]

    def _count(self, edges: list[Edge]) -> int:
        return max((self.lanes[edge] + 1 for edge in edges), default=0)

    def _kind(self, edge: Edge) -> str:
        """A straight wire where nothing stands in between; else a lane beside the rows or the panels."""
        start, end = self._span(edge)
        if all(self.passable[start + 1:end]):
            return "wire"
        return "lane" if self.panel_of[edge.start] is self.panel_of[edge.end] else "long"

    # Places ----------------------------------------------------------------------------------------

    def place(self) -> None:
        for panel in self.panels:
            panel.height = self._fill(panel)
        columns = self._columns()
        across = -(-len(columns) // -(-len(columns) // LONGEST_ROW)) if self.wide else 1
        self.gutter = GUTTER + LONG * self._count(self.longs)
        top: float = BAND if self.wide else 2
        for row, first in enumerate(range(0, len(columns), across)):
            for column, panels in enumerate(columns[first:first + across]):
                self._stack(panels, row, column, top)
            top = self._bottom(row) + BAND + ROW_GAP + LONG * self._count(self.longs) + BAND
        self.width = self.margin + across * PANEL + (across - 1) * self.gutter
        self.height = self._bottom(row) + (BAND + LONG * self._count(self.longs) if self.wide else 2)

    def _columns(self) -> list[list[Panel]]:
        """Panels that share a column: all of them, or as many as are no taller than the tallest."""
        if not self.wide:
            return [self.panels]
        columns: list[list[Panel]] = []
        limit = max(panel.height for panel in self.panels)
        for panel in self.panels:
            if columns and sum(p.height + PANEL_GAP for p in columns[-1]) + panel.height <= limit:
                columns[-1].append(panel)
            else:
                columns.append([panel])
        return columns

    def _stack(self, panels: list[Panel], row: int, column: int, top: float) -> None:
        for panel in panels:
            panel.row, panel.column = row, column
            panel.x, panel.y = self.margin + column * (PANEL + self.gutter), top
            for box in panel.boxes:
                box.x, box.cx, box.y = box.x + panel.x, box.cx + panel.x, box.y + top
            top += panel.height + PANEL_GAP

    def _bottom(self, row: int, columns: range | None = None) -> float:
        return max(p.y + p.height for p in self.panels if p.row == row and (columns is None or p.column in columns))

    def _fill(self, panel: Panel) -> float:
        """Boxes at their places in the panel; returns its height."""
        y, letters = TITLE, {self.rank[edge.end] for edge in self.wires if edge.symbol}
        for number, row in enumerate(panel.rows):
            if number:
                y += NODE + (LABELLED_GAP if self.rank[row[0]] in letters else GAP)
            panel.boxes += self._cells(row, y)
        return y + NODE + FOOT

    def _cells(self, row: list[str], y: float) -> list[Box]:
        nodes = [self.network.nodes[key] for key in row]
        width = self.right - self.left
        if len(nodes) == 1:
            return [self._single(nodes[0], y, width)]
        tables = sum(node.kind == "table" for node in nodes)
        share = (width - TABLE * tables - CELL_GAP * (len(nodes) - 1)) / max(len(nodes) - tables, 1)
        boxes: list[Box] = []
        x: float = self.left
        for node in nodes:
            w: float = TABLE if node.kind == "table" else share
            boxes.append(Box(node, x, y, w, x + w / 2, False))
            x += w + CELL_GAP
        return boxes

    def _single(self, node: Node, y: float, width: float) -> Box:
        middle = self.left + width / 2
        if node.kind == "input":  # beside the wire that passes
            return Box(node, middle + CELL_GAP, y, width / 2 - CELL_GAP, middle + CELL_GAP + width / 4, False)
        lanes = [self.lanes[road] for road in self.network.roads if node.key in (road.start, road.end)]
        x = min((self._road_x(lane) - ROAD / 2 - 1 for lane in lanes), default=self.left)
        return Box(node, x, y, self.right - x, middle, True)

    @staticmethod
    def _road_x(lane: int) -> float:
        return 14 + ROAD * lane

    # Lines -----------------------------------------------------------------------------------------

    def drawing(self) -> Drawing:
        lines = [*map(self._long, self.longs), *map(self._side, self.sides), *self._wires(),
                 *map(self._road, self.network.roads)]
        joints = [joint for road in self.network.roads for joint in self._joints(road)]
        return Drawing(self.width, self.height, self.left, self.panels, lines, joints)

    def _ends(self, edge: Edge) -> tuple[Box, Box, Panel, Panel]:
        return self.boxes[edge.start], self.boxes[edge.end], self.panel_of[edge.start], self.panel_of[edge.end]

    def _over(self, x: float, start: Panel, end: Panel, to: float) -> list[tuple[float, float]]:
        """From `x` at the foot of one column to `to` at the head of another one; nothing within one column."""
        if (start.row, start.column) == (end.row, end.column):
            return []
        head = min(p.y for p in self.panels if p.row == end.row) - BAND / 2
        if start.row != end.row:
            between = head - BAND / 2 - ROW_GAP / 2
            return [(x, between), (to, between)]
        foot = self._bottom(start.row, range(start.column, end.column)) + BAND / 2
        gutter = end.x - self.gutter + GUTTER / 2 - 2
        return [(x, foot), (gutter, foot), (gutter, head), (to, head)]

    def _road(self, road: Edge) -> Line:
        a, b, start, end = self._ends(road)
        x, to = (self._road_x(self.lanes[road]) + panel.x for panel in (start, end))
        return Line("road", road, svg_path([(x, a.cy), *self._over(x, start, end, to), (to, b.cy)]))

    def _joints(self, road: Edge) -> list[Joint]:
        a, b, start, end = self._ends(road)
        x = self._road_x(self.lanes[road])
        ends = {other.end for other in self.network.roads}
        return [Joint(x + end.x, b.cy, True), *([] if road.start in ends else [Joint(x + start.x, a.cy, False)])]

    def _wires(self) -> list[Line]:
        together: dict[tuple[str, str], list[Edge]] = {}
        for edge in self.wires:
            together.setdefault((edge.start, edge.end), []).append(edge)
        return [self._wire(edge, 44 * (number - (len(edges) - 1) / 2))
                for edges in together.values() for number, edge in enumerate(edges)]

    def _wire(self, edge: Edge, shift: float) -> Line:
        a, b, start, end = self._ends(edge)
        points = self._wire_start(edge, a, b, start, end)
        points = [(x + shift, y) for x, y in [*points, (points[-1][0], b.y)]]
        x, y = points[-1]
        letter = (x + 4, (points[0][1] + y) / 2 + 2.5, edge.symbol) if edge.symbol else None
        return Line("wire", edge, svg_path(points), arrow_head(x, y, 0, 1), letter)

    def _wire_start(self, edge: Edge, a: Box, b: Box, start: Panel, end: Panel) -> list[tuple[float, float]]:
        """The way of a wire up to the last straight down: from its node, or off the road that comes along."""
        if (start.row, start.column) != (end.row, end.column):
            over = self._over(a.cx, start, end, b.cx)
            road = next((r for r in self.network.roads if r.start == edge.start and r.array == edge.array
                         and (self.panel_of[r.end].row, self.panel_of[r.end].column) == (end.row, end.column)), None)
            if road:
                return [(self._road_x(self.lanes[road]) + end.x, over[-1][1]), over[-1]]
            return [(a.cx, a.bottom), *over]
        x = min(max(a.cx, b.x + 10), b.right - 10)
        if a.x + 8 <= x <= a.right - 8:
            return [(x, a.bottom)]
        middle = (a.bottom + b.y) / 2
        return [(a.cx, a.bottom), (a.cx, middle), (b.cx, middle)]

    def _side(self, edge: Edge) -> Line:
        a, b, panel, _ = self._ends(edge)
        lane = panel.x + self.right + SIDE * (self.lanes[edge] + 1) - 1
        above, below = a.cy + NODE / 6, b.cy - NODE / 6
        letter = (lane - 3, (a.bottom + self._below(a)) / 2 + 3, edge.symbol) if edge.symbol else None
        return Line("lane", edge, svg_path([(a.right, above), (lane, above), (lane, below), (b.right, below)]),
                    arrow_head(b.right, below, -1, 0), letter)

    def _below(self, box: Box) -> float:
        """Where the row below a box begins."""
        return min((other.y for other in self.panel_of[box.node.key].boxes if other.y > box.y), default=box.bottom)

    def _long(self, edge: Edge) -> Line:
        a, b, start, end = self._ends(edge)
        lane = LONG * self.lanes[edge] + 6
        out, back = start.x - lane, end.x - lane
        first = [(a.x, a.cy), (out, a.cy)]
        if any(box.y == a.y and box.x < a.x for box in start.boxes):  # over what stands to the left
            first = [(a.cx, a.y), (a.cx, a.y - 5), (out, a.y - 5)]
        around = []
        if (start.row, start.column) != (end.row, end.column) and end.column:
            foot = self._bottom(end.row) + BAND / 2 + 3 + lane
            around = [(out, foot), (back, foot)]
        return Line("long", edge, svg_path([*first, *around, (back, b.cy), (b.x, b.cy)]), arrow_head(b.x, b.cy, 1, 0),
                    (b.x - 7, b.cy - 5, ""))


def _rows(network: Network, keys: list[str]) -> list[list[str]]:
    """Nodes by row: each below what it reads, and no higher than what reads it needs."""
    edges = [e for e in [*network.edges, *network.roads] if e.start in keys and e.end in keys]
    joined = {key for edge in [*network.edges, *network.roads] for key in (edge.start, edge.end)}
    row: dict[str, int] = {}
    for number, key in enumerate(keys):
        above = [row[edge.start] for edge in edges if edge.end == key]
        if key not in joined and number:  # tied to nothing: where the order has it
            above = [row[keys[number - 1]]]
        row[key] = max(above, default=-1) + 1
    for key in reversed(keys):
        below = [row[edge.end] for edge in edges if edge.start == key]
        row[key] = min(below, default=row[key] + 1) - 1
    found = [[key for key in keys if row[key] == number] for number in range(max(row.values()) + 1)]
    return [sorted(line, key=lambda key: network.nodes[key].kind != "table") for line in found if line]


def _lanes(spans: Iterable[tuple[int, int]]) -> list[int]:
    """The lowest lane for each span in which it meets no earlier one."""
    taken: list[list[tuple[int, int]]] = []
    lanes = []
    for start, end in spans:
        lane = next((i for i, others in enumerate(taken) if all(end <= a or b <= start for a, b in others)), len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((start, end))
        lanes.append(lane)
    return lanes
