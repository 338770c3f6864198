"""The main line, for recordings of every shape: what their structure says is compared with what their names say."""

from collections import defaultdict

import pytest
from driver import does, steps_of, stops_of
from variants import VARIANTS, recorded, small

from site_builder.main_line import Member, main_line
from tracer.format.trace import Trace

MOST = 61  # steps: about sixty can be walked


@pytest.fixture(scope="module")
def traces(tokenizer, recordings) -> dict[str, Trace]:
    """The committed recordings, and others: one block and twelve, one round and seven, with dropout and without."""
    others = VARIANTS | {"twelve blocks": small(blocks=12), "no dropout": small(dropout=0.0, blocks=3)}
    found = {f"{name}, {route}": trace for name, variant in others.items()
             for route, trace in recorded(variant, tokenizer).items()}
    return found | recordings


def test_stops_are_the_first_of_what_repeats_and_what_further_passes_are_run_for(traces):
    for name, trace in traces.items():
        assert [stop.step.id for stop in main_line(trace).stops] == stops_of(trace), name


def test_no_line_is_longer_than_one_can_walk(traces):
    lengths = {name: len(main_line(trace).stops) for name, trace in traces.items()}
    assert max(lengths.values()) <= MOST
    assert lengths["twelve blocks, training"] == lengths["no decay, cold, training"]  # of one block
    assert lengths["full context, generation"] == lengths["no decay, cold, generation"] + 1  # a cache that slides


def test_families_are_what_the_names_say(traces):
    for name, trace in traces.items():
        line = main_line(trace)
        named = defaultdict(list)
        for step in steps_of(trace):
            named[does(step)].append(step)
        assert [[one.step.id for one in family.members] for family in line.families] == list(named.values()), name
        assert list(line.members) == steps_of(trace)


def test_a_step_is_told_from_its_variants_by_where_it_is(traces):
    for name, trace in traces.items():
        for family in main_line(trace).families:
            places = [tuple(one.at.items()) for one in family.members]
            assert len(set(places)) == len(places), (name, places)
            assert all(len(family.values(axis)) > 1 for one in family.members for axis in one.at)


def members(traces, name: str) -> dict[str, Member]:
    return main_line(traces[name]).members


def test_axes_of_the_committed_training(traces):
    found = members(traces, "training")
    assert found["again.blocks.1.attention.scores"].at == {"pass": "again", "block": 1}
    assert found["evaluation.validation.head"].at == {"pass": "evaluation.validation"}
    assert found["blocks.0.mlp.dropout"].at == {"pass": "first", "block": 0, "role": "mlp_output"}
    assert found["embedding_dropout"].at == {"pass": "first", "role": "embedding"}
    assert found["adamw.blocks.0.mlp.up.bias"].at == {"parameter": "blocks.0.mlp.up.bias"}
    assert found["validation.merges"].at == {"text": "validation"}
    assert found["grad.blocks.0.mlp.gelu"].at == {"block": 0}
    assert found["series.rows"].at == {}
    assert found["adamw.final_norm.bias"].family.members[0].step.id == "adamw.token_embedding.weight"


def test_axes_of_rounds(traces):
    found = members(traces, "generation")
    assert found["round4.blocks.1.mlp.up"].at == {"round": 4, "block": 1}
    family = found["round4.cached.blocks.1"].family
    assert family.axes == ["round", "block"]
    assert family.values("round") == [2, 3, 4, 5]


def test_blocks_are_in_order_on_the_way_back_too(traces):
    family = members(traces, "training")["grad.blocks.0.mlp.up"].family
    assert family.members[0].step.id == "grad.blocks.1.mlp.up"
    assert family.values("block") == [0, 1]


def test_where_a_step_stands_on_the_line(traces):
    found = members(traces, "training")
    line = stops_of(traces["training"])
    for step in ("blocks.1.attention.softmax", "again.blocks.0.attention.softmax"):
        assert found[step].place == line.index("blocks.0.attention.softmax")
    assert found["blocks.1.attention.weights_dropout"].place == line.index("blocks.0.attention.softmax") + 0.5
    assert found["grad.blocks.0.attention.dropout"].place == line.index("grad.blocks.1.residual_1") + 0.5
    assert found["evaluation.validation.loss"].place == line.index("evaluation.training.loss") == len(line) - 1
    assert found["again.loss"].place > found["receipt.predicted"].place > found["loss"].place


def test_variants_of_the_stops_are_all_other_steps(traces):
    for name, trace in traces.items():
        line = main_line(trace)
        found = [stop.step.id for stop in line.stops]
        found += [one.step.id for stop in line.stops for one in stop.variants]
        assert sorted(found) == sorted(steps_of(trace)), name


def test_chapters_that_repeat_stand_in_the_first(traces):
    line = main_line(traces["generation"])
    assert [chapter.id for chapter in line.chapters] == ["prompt", "round1", "cached2", "parameters"]
    assert [[one.id for one in line.folded(chapter)] for chapter in line.chapters] == [
        ["prompt"], [f"round{n}" for n in range(1, 6)], [f"cached{n}" for n in range(2, 6)], ["parameters"]]
    line = main_line(traces["twelve blocks, training"])
    blocks = next(chapter for chapter in line.chapters if chapter.kind == "block")
    assert [chapter.block for chapter in line.folded(blocks)] == list(range(12))
