"""What the drawings say in words: counts, spreads and names are those of the recording."""

import math
import re

import numpy as np
import pytest
from driver import WORDS


def test_adamw_says_what_it_leaves_out(shapes, numbers):
    """Weights with a gradient, evenly spread, and how many have none, of every kind of parameter."""
    trace = numbers["training"].trace
    for name in ("token_embedding.weight", "position_embedding.weight", "blocks.0.norm_1.weight"):
        gradient = trace.values(next(p for p in trace.parameters if p.name == name).arrays["gradient"]).ravel()
        found = shapes("training", f"adamw.{name}", f"&of=adamw.{name}.after")
        points = [int(shape["key"].split()[1]) for shape in found if shape["key"].startswith("point ")]
        moved = np.flatnonzero(gradient)
        assert points == moved[::math.ceil(len(moved) / 3000)].tolist()
        said = " ".join(shape["text"] for shape in found if shape["kind"] == "text")
        still, of_all = (WORDS["en"](f"picture.adamw.{key}", n=f"{n:,}")
                         for key, n in (("without", gradient.size - len(moved)), ("sample", len(moved))))
        assert (still in said) == (len(moved) < gradient.size)
        assert (of_all in said) == (len(points) < len(moved))


def test_layer_norm_says_the_spread_that_is_there(shapes, numbers):
    """After the division it is not quite one: of numbers as small as these, ε takes its share."""
    found = shapes("training", "blocks.0.norm_1", "&of=blocks.0.norm_1&t=1&d=3")
    x = numbers["training"].array("embedding_dropout")[1].astype(np.float64)
    spreads = [x.std(), x.std(), x.std() / math.sqrt(x.var() + 1e-5)]
    said = [re.search(r"spread ([\d.e−]+)$", shape["text"]) for shape in found]
    assert [float(one[1].replace("−", "-")) for one in said if one] == pytest.approx(spreads, rel=6e-3)
    assert spreads[2] < 0.9995


def test_candidates_are_called_by_their_tokens(shapes, numbers):
    found = shapes("early", "round4.sampler.softmax")
    trace = numbers["early"].trace
    names = [trace.label_list("vocabulary")[i] for i in trace.values(trace.arrays_of("round", round=4)["candidates"])]
    written = {shape["text"] for shape in found if shape["kind"] == "text"}
    assert {name.strip("␣") or name for name in names[:2]} & {text.strip("␣") or text for text in written}
    assert not {"0", "1", "2", "3", "4"} - {"0", "1"} & written
