"""Addresses of steps and numbers that were shared before a recording said what its steps are lead where they led."""

import random

import numpy as np
import pytest
from driver import UNLIKE_ROUTES, address, fragment_of, opened, place, same, stops_of, visit

from tracer.format.trace import Trace

# As they stood in browsers' bars: route, what is behind the #, step, array, index.
SHARED = [
    ("training", "step=blocks.0.norm_1&of=blocks.0.norm_1&t=2&d=7&digits=6", "blocks.0.norm_1", (2, 7)),
    ("training", "step=blocks.1.attention.scores&of=blocks.1.attention.scores&h=1&i=2&j=0",
     "blocks.1.attention.scores", (1, 2, 0)),
    ("training", "step=grad.blocks.0.mlp.up&of=grad.blocks.0.mlp.up.weight&f=3&d=4",
     "grad.blocks.0.mlp.up.weight", (3, 4)),
    ("training", "step=adamw.final_norm.weight&of=adamw.final_norm.weight.after&d=5",
     "adamw.final_norm.weight.after", (5,)),
    ("training", "step=evaluation.training.final_norm&of=evaluation.training.final_norm&t=1&d=3",
     "evaluation.training.final_norm", (1, 3)),
    ("training", "step=again.blocks.0.residual_1&of=again.blocks.0.residual_1&t=1&d=2",
     "again.blocks.0.residual_1", (1, 2)),
    ("generation", "step=round2.blocks.0.attention.weighted_sum&of=round2.blocks.0.attention.weighted_sum&h=0&t=1&d=3",
     "round2.blocks.0.attention.weighted_sum", (0, 1, 3)),
    ("generation", "step=round1.sampler.softmax&of=round1.sampler.softmax&c=2", "round1.sampler.softmax", (2,)),
    ("generation", "step=text.merges&of=text.ids&n=0", "text.ids", (0,)),
    ("long", "step=round1.final_norm&of=round1.final_norm&t=9&d=7", "round1.final_norm", (9, 7)),
]


def value_of(trace: Trace, array: str, index: tuple[int, ...]) -> np.generic:
    return trace.values(array)[index]


@pytest.mark.parametrize(("route", "fragment", "array", "index"), SHARED, ids=[one[2] for one in SHARED])
def test_an_old_address_leads_to_its_number(page, site, recordings, route, fragment, array, index):
    visit(page, address(site, route, "en", f"#{fragment}"))
    number = opened(page)
    assert (number["array"], tuple(number["index"])) == (array, index)
    assert same(number["big"], value_of(recordings[route], array, index))
    there = place(page)
    assert there["step"] == fragment.partition("&")[0].removeprefix("step=")
    assert there["notice"] == ""


FOLLOW = """async (links) => {
    const seen = [];
    for (const link of links) {
        await tools.goTo(link);
        while (!tools.opened()) await new Promise((done) => setTimeout(done)); // sooner than the next frame
        const [{ dataset }, ...others] = document.querySelectorAll("section.step.current");
        seen.push([dataset.step, others.length, document.querySelector("#number .big").textContent,
            document.querySelector("#number .name").textContent, document.getElementById("notice").textContent]);
    }
    return seen;
}"""


@pytest.mark.parametrize("route", UNLIKE_ROUTES)
def test_the_address_of_every_step_leads_to_it_and_to_its_number(page, site, recordings, route):
    """On the main line or folded into it: that step and no other stands there, with that number open.

    The tables are folded away: test_numbers.py opens a stored number of every kind with them in sight.
    """
    trace, draw = recordings[route], random.Random(13)
    wanted = []
    for step in trace.steps():
        names = [name for name in (*step.operations, *step.arrays) if trace.arrays[name].size]
        array = draw.choice([name for name in names if not trace.arrays[name].derived] or names)
        wanted.append((step.id, array, tuple(draw.randrange(length) for length in trace.arrays[array].shape)))
    page.add_init_script("localStorage['two-routes.panel'] = ''")
    visit(page, address(site, route))
    seen = page.evaluate(FOLLOW, [fragment_of(trace, array, index, step) for step, array, index in wanted])
    assert len(wanted) > 2 * len(stops_of(trace))
    for (step, array, index), (there, others, big, name, notice) in zip(wanted, seen, strict=True):
        assert (there, others, notice) == (step, 0, ""), step
        assert name.startswith(array) and (not index or name.endswith(f"[{', '.join(map(str, index))}]")), (step, name)
        if not trace.arrays[array].derived:
            assert same(big, value_of(trace, array, index)), (step, array, index)
