"""The shapes of a step's picture as a page holds them, and the recorded numbers beside them."""

import re

import numpy as np
import pytest
from driver import DESK, address, go, visit

from tracer.format.trace import AXES, Trace
from tracer.ops.replay import Replay

SHAPES = """() => document.querySelector("figure.stage").shapes.map(
    ({ kind, x, y, w, h, key, place, text, strength, points, alpha }) => (
        { kind, x, y, w, h, key: key ?? "", place, text: text ?? "", strength: strength ?? null, points, alpha }))"""
NUMBER = re.compile(r"−?\d[\d,]*(?:\.\d+)?(?:e−?\d+)?")
# One step of each family that has a drawing of its own, and the early generation's dice.
STEPS = {
    "training": ["embedding_dropout", "token_embedding", "blocks.0.norm_1", "blocks.0.attention.split",
                 "blocks.0.attention.mask", "blocks.0.attention.softmax", "blocks.0.attention.weighted_sum",
                 "blocks.0.attention.concatenate", "blocks.1.residual_1", "blocks.0.mlp.gelu", "cross_entropy",
                 "grad.cross_entropy", "grad.blocks.1.attention.split", "adamw.token_embedding.weight",
                 "receipt.predicted", "series.loss", "series.candidates", "series.attention", "series.rows",
                 "grad.blocks.1.attention.softmax", "grad.final_norm"],
    "early": ["round4.sampler.temperature", "round4.sampler.top_k", "round4.sampler.draw", "round4.choices",
              "round4.cached.kept", "round3.bytes"],
}


def value(text: str) -> float | None:
    found = NUMBER.fullmatch(text)
    return float(found[0].replace("−", "-").replace(",", "")) if found else None


class Numbers:
    """Recorded numbers, and those that follow from recorded ones."""

    def __init__(self, trace: Trace):
        self.trace, self.replay = trace, Replay(trace, AXES)

    def __call__(self, place: dict) -> float:
        return float(self.array(place["array"])[tuple(place["index"])])

    def array(self, name: str) -> np.ndarray:
        return self.replay.values(name)


@pytest.fixture(scope="module")
def numbers(recordings) -> dict[str, Numbers]:
    return {route: Numbers(recordings[route]) for route in STEPS}


@pytest.fixture(scope="module")
def shapes(site, module_page):
    """Route, step and what is chosen → the shapes of its picture, read once."""
    pages: dict[str, object] = {}
    known: dict[tuple, list] = {}

    def read(route: str, step: str, rest: str = "") -> list[dict]:
        if (route, step, rest) not in known:
            if route not in pages:
                pages[route] = visit(module_page(viewport=DESK, reduced_motion="reduce"), address(site, route))
                pages[route].evaluate("document.querySelector('figure.stage').stage.player.panel.choose('')")
            page = pages[route]
            go(page, f"#step={step}{rest}")
            page.wait_for_function("""(step) => { const { stage } = document.querySelector("figure.stage");
                return stage.drawing && stage.scene.step.id === step; }""", arg=step)
            known[route, step, rest] = page.evaluate(SHAPES)
        return known[route, step, rest]

    return read
