"""The passes that the lessons open: each differs from the plain one in its change alone, and can be made again."""

from pathlib import Path

import numpy as np
import pytest

from tracer.cli.commands import commands
from tracer.format.load import load
from tracer.format.verify import verify
from tracer.model.kernel_probe import kernels_used
from tracer.recording.single_pass import record_pass
from tracer.trainer.lesson_models import CHANGES, IDS, LABELS, SETTINGS, TRAINED_ON, trained

FOLDER = Path(__file__).resolve().parent.parent / "traces" / "passes"
KINDS = {"norm": {"rms_norm"}, "rotary": {"rotary"}, "gate": {"swiglu"}, "bias": {"linear_without_bias"},
         "grouped": {"split_grouped_heads", "repeat_heads"}}


@pytest.mark.parametrize("name", CHANGES)
def test_a_pass_is_that_of_its_change(name):
    trace = load(FOLDER / f"{name}.json")
    assert [check for check in verify(trace) if check.problem and check.name != "outline"] == []
    assert trace.make["settings"] == SETTINGS and trace.make["trained_on"] == TRAINED_ON
    assert [trace.label_list("vocabulary")[i] for i in trace.values("ids").tolist()] == [LABELS[i] for i in IDS]
    kinds = {operation.kind for operation in trace.operations.values()}
    for change, own in KINDS.items():
        assert own <= kinds if name in (change, "llama") else not own & kinds
    plain = load(FOLDER / "plain.json").make["config"]
    own = trace.make["config"]
    assert {key: value for key, value in own.items() if plain.get(key) != value} == CHANGES[name]


@pytest.mark.parametrize("name", ["plain", "llama"])
def test_it_can_be_made_again(name):
    """Bit for bit on the kernels that it was recorded with; elsewhere as near as a training keeps two roundings."""
    recorded = load(FOLDER / f"{name}.json")
    made = record_pass(trained(name), IDS, labels=LABELS, trained_on=TRAINED_ON, settings=SETTINGS)
    same = kernels_used() == recorded.make["kernels"]
    for id in recorded.operations:
        if not recorded.arrays[id].derived:
            one, other = made.values(id), recorded.values(id)
            np.testing.assert_array_equal(one, other) if same else np.testing.assert_allclose(one, other, atol=0.05)


def test_the_command_says_what_it_writes():
    assert "passes" in commands.commands
