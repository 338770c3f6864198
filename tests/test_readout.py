"""What the stream would answer at each station: computed on the page, held to NumPy here."""

import re

import numpy as np
import pytest
from driver import DESK, PHONE, address, visit
from picture_checks import prepare

STREAM = ["embedding_sum", "blocks.0.residual_1", "blocks.0.residual_2", "blocks.1.residual_1", "blocks.1.residual_2"]
ANSWERS = """() => document.querySelector("figure.stage").shapes.map(({ text }) => text ?? "")
    .filter((text) => text.startsWith("→ "))"""


def answer(trace, number: int, station: str, t: int) -> tuple[str, float]:
    """The likeliest token, by layer norm, table and softmax in float64."""
    x = trace.values(f"round{number}.{station}")[t].astype(float)
    weight, bias = (trace.values(f"trained.final_norm.{name}").astype(float) for name in ("weight", "bias"))
    normalised = (x - x.mean()) / np.sqrt(x.var() + 1e-5) * weight + bias
    logits = trace.values("trained.token_embedding.weight").astype(float) @ normalised
    shares = np.exp(logits - logits.max())
    return trace.label_list("vocabulary")[logits.argmax()], float(1 / shares.sum())


@pytest.mark.parametrize(("viewport", "shown"), [(DESK, 5), (PHONE, 4)])
def test_each_station_is_read_by_the_last_norm_and_the_table(new_page, site, recordings, viewport, shown):
    page = prepare(visit(new_page(viewport=viewport), address(
        site, "early", "en", "#step=round4.blocks.1.residual_2&of=round4.blocks.1.residual_2&t=2&d=1")))
    page.wait_for_function(f"(n) => ({ANSWERS})().length === n", arg=shown)
    said = page.evaluate(ANSWERS)
    stations = STREAM if shown == 5 else [STREAM[0], *STREAM[2:]]
    for text, station in zip(said, stations, strict=True):
        token, share = answer(recordings["early"], 4, station, 2)
        found = re.fullmatch(r"→ ([\d.e−]+) (.+)", text)
        assert found[2] == token and float(found[1].replace("−", "-")) == pytest.approx(share, rel=0.05), station
    assert [text.split()[2] for text in (said[0], said[-1])] == ["E4·BD", "A0"]  # itself, and what comes next
    assert page.evaluate("""() => { const { stage } = document.querySelector("figure.stage");
        return pictures.problems(stage.shapes, stage.width, stage.height); }""") == []


def test_the_last_station_answers_as_the_head_does(recordings):
    early = recordings["early"]
    logits = early.values("round4.head")[0].astype(float)
    token, share = answer(early, 4, STREAM[-1], 3)
    assert token == early.label_list("vocabulary")[logits.argmax()]
    assert share == pytest.approx(1 / np.exp(logits - logits.max()).sum(), rel=1e-4)
