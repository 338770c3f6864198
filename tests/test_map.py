"""The map: every step of a forward pass once, roads and wires as the steps say, lit wherever the learner is."""

import html.parser
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from driver import LANGUAGES

from site_builder import keys
from site_builder.build import ROUTES
from site_builder.map_layout import NODE, tall, wide
from site_builder.network_graph import Edge, Group, Network, Node, network
from site_builder.network_map import group_title, label, network_map
from site_builder.strings import Strings
from tracer.format.trace import Step, Trace
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.training import TrainingJob, record_training

ONE = Config(blocks=1, heads=4, width=32, dropout=0.0)
SIX = Config(blocks=6)


def titles(trace: Trace) -> dict[str, str]:
    return {step.id: f"title of {step.id}" for chapter in trace.chapters for step in chapter.steps}


def forward_steps(trace: Trace) -> list[str]:
    """The steps that the map must show: those of the first pass with parameters."""
    shown = r"embedding|blocks\.\d+|head|loss" if trace.route == "training" else "round1"
    return [step.id for chapter in trace.chapters if re.fullmatch(shown, chapter.id) for step in chapter.steps]


# What the pages hold ---------------------------------------------------------------------------------

@dataclass
class Reader(html.parser.HTMLParser):
    """The maps of a page: their nodes with title, label and attributes, and their roads."""

    nodes: list[dict] = field(default_factory=list)
    roads: list[tuple[str, str]] = field(default_factory=list)
    maps: int = 0
    inside: str = ""

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        classes = (given.get("class") or "").split()
        self.maps += tag == "nav" and classes == ["map"]
        if tag == "a" and "node" in classes:
            self.nodes.append({**given, "title": "", "text": ""})
        self.inside = "title" if tag == "title" else "text" if tag == "text" and "label" in classes else self.inside

    def handle_startendtag(self, tag, attributes):
        given = dict(attributes)
        if given.get("class") == "road" and "data-from" in given:
            self.roads.append((given["data-from"], given["data-to"]))

    def handle_data(self, text):
        if self.inside and self.nodes:
            self.nodes[-1][self.inside] += text

    def handle_endtag(self, tag):
        self.inside = "" if tag in ("title", "text") else self.inside


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text("utf-8"))
    return reader


@pytest.fixture(params=LANGUAGES, scope="module")
def language(request) -> str:
    return request.param


@pytest.fixture(params=ROUTES, scope="module")
def trace(request, training_trace, generation_trace) -> Trace:
    return {"training": training_trace, "generation": generation_trace}[request.param]


def test_every_step_of_the_pass_stands_once(site, language, trace):
    page = read(site / language / f"{trace.route}.html")
    steps = [node for node in page.nodes if "step-node" in node["class"].split()]
    assert page.maps == 1
    assert sorted(node["data-step"] for node in steps) == sorted(forward_steps(trace))
    assert len({node["data-key"] for node in page.nodes}) == len(page.nodes)


def test_nodes_lead_to_steps(site, language, trace):
    steps = {step.id for chapter in trace.chapters for step in chapter.steps}
    for node in read(site / language / f"{trace.route}.html").nodes:
        assert node["href"] == f"#step={node['data-step']}"
        assert node["data-step"] in steps
        assert set((node.get("data-before") or "").split()) <= steps


def test_the_home_page_leads_into_training(site, language, training_trace):
    page = read(site / language / "index.html")
    assert page.maps == 2  # a wide one, and one for narrow windows
    steps = [node["data-step"] for node in page.nodes if "step-node" in node["class"].split()]
    assert sorted(steps) == sorted(2 * forward_steps(training_trace))
    assert all(node["href"] == f"training.html#step={node['data-step']}" for node in page.nodes)


def test_nodes_have_the_title_of_their_step_and_a_short_label(site, language, trace):
    path = site / language / f"{trace.route}.html"
    said = dict(re.findall(r'<h2 id="title=([^"]+)" tabindex="-1">([^<]+)</h2>', path.read_text("utf-8")))
    for node in read(path).nodes:
        assert node["text"].strip() == node["aria-label"]
        assert 0 < len(node["text"]) <= 16
        if node["class"].split()[1] == "step-node":
            assert node["title"] == html.unescape(said[node["data-step"]])


@pytest.mark.parametrize("words", [Strings(language) for language in LANGUAGES], ids=LANGUAGES)
def test_every_node_and_group_has_words_of_its_own(trace, words):
    found = network(trace)
    for node in found.nodes.values():
        own = keys.key(node.step.kind, node.step.role) if node.step else node.role
        assert label(words, node) == words(f"map.{own}")
    said = [group_title(words, group) for group in found.groups]
    assert len(set(said)) == len(said)
    assert not set(said) & {group.name for group in found.groups}


def test_without_words_the_name_of_the_kind_is_the_label():
    node = Node("a", "step", "a", "a", (), step=Step("a", kind="turn_pairs", role="query"))
    assert label(Strings("en"), node) == "turn pairs"
    node.step.kind = "layer_norm"  # of a kind that has words, in a role that has none
    assert label(Strings("en"), node) == "layer norm" and label(Strings("zh"), node) == "层归一化"
    assert group_title(Strings("en"), Group("tail_end")) == "tail end"


# What the steps say ----------------------------------------------------------------------------------

@pytest.fixture(scope="module", params=[ONE, SIX], ids=["one block", "six blocks"])
def other(request, tokenizer) -> tuple[Config, Trace, Trace]:
    """Recordings of other shapes, one update long."""
    training, checkpoint = record_training(TrainingJob(config=request.param, settings=TrainingSettings(updates=1)),
                                           tokenizer)
    return request.param, training, record_generation(GenerationJob(max_new_tokens=1), checkpoint, tokenizer)


def first_pass(trace: Trace) -> str:
    """What stands before the names of the steps that the map shows."""
    return "round1." if trace.route == "generation" else ""


def roads_of(blocks: int, start: str, prefix: str) -> list[tuple[str, str]]:
    stops = [start, *(f"blocks.{block}.residual_{n}" for block in range(blocks) for n in (1, 2))]
    return list(pairwise(prefix + stop for stop in stops))


def test_two_roads_a_block(site, trace):
    start = "embedding_dropout" if trace.route == "training" else "embedding_sum"
    expected = roads_of(trace.make["config"]["blocks"], start, first_pass(trace))
    assert read(site / "en" / f"{trace.route}.html").roads == expected


def test_roads_run_from_what_is_added_to_its_addition(trace):
    found = network(trace)
    prefix = first_pass(trace)
    for road in found.roads:
        step = trace.operations[road.end]
        assert step.kind == "add"
        assert road.array in step.operands.values()
        assert road.array in next(v.operations for c in trace.chapters for v in c.steps if v.id == road.start)
    additions = {road.end for road in found.roads}
    others = [s for s in trace.operations.values() if s.kind == "add" and s.target == "out" and s.id.startswith(prefix)
              and s.id in forward_steps(trace) and s.id not in additions]
    assert [step.id for step in others] == [f"{prefix}embedding_sum"]  # two branches meet there; neither goes round


def test_other_shapes(other):
    config, training, generation = other
    for trace in (training, generation):
        found = network(trace)
        steps = [node.opens for node in found.nodes.values() if node.kind == "step"]
        assert steps == forward_steps(trace)
        start = "embedding_dropout" if config.dropout and trace is training else "embedding_sum"
        assert [(road.start, road.end) for road in found.roads] == roads_of(config.blocks, start, first_pass(trace))
        assert sum(group.name == "block" for group in found.groups) == config.blocks
        for drawing in (tall(found), wide(found)):
            check(drawing, found)


def check(drawing, found: Network) -> None:
    """Every node once, inside its panel, large enough and off the others; panels inside the drawing."""
    boxes = [box for panel in drawing.panels for box in panel.boxes]
    assert sorted(box.node.key for box in boxes) == sorted(found.nodes)
    for panel in drawing.panels:
        assert 0 <= panel.x < drawing.width
        assert panel.y + panel.height <= drawing.height
        assert all(panel.x < box.x and panel.y < box.y and box.bottom < panel.y + panel.height for box in panel.boxes)
    for i, a in enumerate(boxes):
        assert a.h == NODE >= 24
        assert a.w >= 24
        assert all(a.right < b.x or b.right < a.x or a.bottom < b.y or b.bottom < a.y for b in boxes[i + 1:])
    assert len(drawing.lines) == len(found.edges) + len(found.roads)
    assert sum(joint.adds for joint in drawing.joints) == len(found.roads)


def test_the_map_of_other_shapes_has_words(other):
    _, training, generation = other
    for trace in (training, generation):
        for columns in (False, True):
            drawn = network_map(trace, titles(trace), Strings("zh"), columns=columns)
            nodes = [item for panel in drawn.panels for item in panel.nodes]
            assert all(item.label and item.title for item in nodes)
            assert {item.node.opens for item in nodes} >= set(forward_steps(trace))


def test_the_shared_table_feeds_both_ends(trace):
    found = network(trace)
    tables = [node for node in found.nodes.values() if node.kind == "table"]
    assert [node.key for node in tables] == ["token_embedding.weight"]
    assert [edge.end for edge in found.edges if edge.start == tables[0].key] == [
        first_pass(trace) + name for name in ("token_embedding", "head")]


def test_values_go_past_the_scores(training_trace):
    found = network(training_trace)
    edges = [(e.start, e.end, e.symbol) for e in found.edges if e.start == "blocks.0.attention.split"]
    at = "blocks.0.attention."
    assert edges == [(f"{at}split", f"{at}scores", "Q"), (f"{at}split", f"{at}scores", "K"),
                     (f"{at}split", f"{at}weighted_sum", "V")]
    kinds = {line.edge.symbol: line.kind for line in tall(found).lines if line.edge.start == f"{at}split"}
    assert kinds == {"Q": "wire", "K": "wire", "V": "lane"}


def test_branches_stand_side_by_side_and_roads_in_roads_have_lanes():
    """A network that no recording has: three projections at once, and one residual road around another."""
    keys = ["in", "q", "k", "v", "mix", "inner", "outer"]
    nodes = {key: Node(key, "step", key, key, (1,)) for key in keys}
    edges = [Edge(a, b, a) for a, b in (("in", "q"), ("in", "k"), ("in", "v"), ("q", "mix"), ("k", "mix"),
                                        ("v", "mix"), ("mix", "inner"), ("inner", "outer"))]
    roads = [Edge("in", "inner", "in"), Edge("in", "outer", "in")]
    drawing = tall(Network({"only": keys}, nodes, edges, roads))
    check(drawing, Network({"only": keys}, nodes, edges, roads))
    boxes = {box.node.key: box for box in drawing.panels[0].boxes}
    assert boxes["q"].y == boxes["k"].y == boxes["v"].y
    assert boxes["q"].right < boxes["k"].x < boxes["v"].x
    starts = {line.path.split(" ")[0] for line in drawing.lines if line.kind == "road"}
    assert len(starts) == 2


def test_steps_before_the_pass_belong_to_its_inputs(training_trace, generation_trace):
    nodes = network(training_trace).nodes
    for name in ("x", "y"):
        assert {"text", "text.merges", "text.eos", "text.shift", "validation.shift"} <= set(nodes[name].before)
    assert network(generation_trace).nodes["round1.ids"].before == ["text.merges", "text"]
