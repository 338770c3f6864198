"""What the drawings show is what was recorded: every written number, every colour, every length and place.

All shapes of the step of each kind are read from the page; what they must be is worked out here from the recording.
"""

import itertools
import math
import re

import numpy as np
import pytest
from drawn import STEPS, value

PIXEL = 0.51  # px: positions are not rounded but for seams
EACH = pytest.mark.parametrize(("route", "step"), [(route, step) for route, steps in STEPS.items() for step in steps])


@EACH
def test_every_number_that_is_written_is_the_recorded_one(shapes, numbers, route, step):
    """As far as it is written: half a unit of its last digit."""
    checked = 0
    for shape in shapes(route, step):
        written = value(shape["text"])
        if not shape["place"] or written is None or numbers[route].array(shape["place"]["array"]).dtype.kind == "i":
            continue
        digits = re.sub(r"e.*|[^\d.]", "", shape["text"])
        places = len(digits.partition(".")[2])
        unit = 10 ** (int(shape["text"].replace("−", "-").partition("e")[2] or 0) - places)
        assert abs(numbers[route](shape["place"]) - written) <= 0.5000001 * unit, shape
        checked += 1
    least = {"embedding_dropout": 80, "blocks.0.attention.mask": 15, "blocks.0.attention.softmax": 20}
    assert checked >= least.get(step, 0)


@EACH
def test_cells_are_coloured_by_their_numbers(shapes, numbers, route, step):
    """By the sign, and as strongly as (|value| / largest) ** 0.6: one largest for all cells of an array."""
    by_array: dict[str, list[tuple[float, float]]] = {}
    for shape in shapes(route, step):
        if shape["kind"] == "cell" and shape["place"] and shape["strength"] is not None:
            by_array.setdefault(shape["place"]["array"], []).append((numbers[route](shape["place"]), shape["strength"]))
    for name, pairs in by_array.items():
        values, strengths = np.array(pairs).T
        finite = np.isfinite(values)
        values, strengths = values[finite], strengths[finite]
        assert (np.sign(values)[np.abs(values) > 1e-12] == np.sign(strengths)[np.abs(values) > 1e-12]).all(), name
        open_ones = (np.abs(strengths) < 0.999) & (np.abs(strengths) > 1e-3)
        scale = np.abs(values[open_ones]) / np.abs(strengths[open_ones]) ** (1 / 0.6)
        if len(scale) > 3 and len({*np.round(scale, 6)}) > len(scale) / 2:  # else several largest, one for each row
            assert scale.std() < 1e-3 * scale.mean(), name


# Lengths and places ----------------------------------------------------------------------------------

def of(found: list[dict], array: str, kind: str = "", key: str = "") -> list[dict]:
    return [shape for shape in found if shape["place"] and shape["place"]["array"] == array
            and (not kind or shape["kind"] == kind) and shape["key"].startswith(key)]


def proportional(lengths, values) -> None:
    lengths, values = np.array(lengths), np.abs(np.array(values))
    scale = lengths.max() / values[lengths.argmax()]
    assert np.abs(lengths - np.maximum(values * scale, np.minimum(lengths, 1))).max() <= 2 * PIXEL


def linear(places, values) -> None:
    """The places lie on a straight line over the values."""
    slope, start = np.polyfit(values, places, 1)
    assert np.abs(slope * np.array(values) + start - places).max() <= PIXEL and slope


def test_softmax_lays_the_shares_end_to_end(shapes, numbers):
    found = shapes("training", "blocks.0.attention.softmax", "&of=blocks.0.attention.softmax&h=1&i=4&j=2")
    row = numbers["training"].array("blocks.0.attention.mask")[1, 4].astype(np.float64)
    shares = np.exp(row) / np.exp(row).sum()
    ruler = of(found, "blocks.0.attention.softmax", "cell", "blocks.0.attention.softmax")
    assert len(ruler) == 5
    proportional([one["w"] + 1.5 for one in ruler], shares)
    assert np.abs(np.diff([one["x"] for one in ruler]) - [one["w"] + 1.5 for one in ruler][:-1]).max() < PIXEL
    scores = of(found, "blocks.0.attention.mask", "cell")
    proportional([one["h"] for one in scores], row)


def test_layer_norm_moves_the_dots_as_the_numbers_move(shapes, numbers):
    found = shapes("training", "blocks.0.norm_1", "&of=blocks.0.norm_1&t=1&d=3")
    x = numbers["training"].array("embedding_dropout")[1].astype(np.float64)
    linear([dot["x"] for dot in of(found, "embedding_dropout", "dot")], x)
    centred = [shape["x"] for shape in found if " centred " in shape["key"]]
    linear(centred, x - x.mean())
    linear([dot["x"] for dot in of(found, "blocks.0.norm_1", "dot")], (x - x.mean()) / np.sqrt(x.var() + 1e-5))


def test_the_way_back_through_softmax_is_a_level_of_all(shapes, numbers):
    """Heights by the gradients, the level by their mean weighted with the shares, what is left by NumPy."""
    name = "grad.blocks.1.attention.softmax"
    array = numbers["training"].trace.operations
    made = next(one for one in numbers["training"].trace.steps() if one.id == name).operations[0]
    operands = array[made].operands
    found = shapes("training", name, f"&of={made}&h=0&i=3&j=1")
    shares, gradients = (numbers["training"].array(operands[key])[0, 3].astype(float) for key in ("out", "d_out"))
    level = (shares * gradients).sum()
    upper, lower = of(found, operands["d_out"], "cell"), of(found, made, "cell")
    proportional([bar["h"] for bar in upper], gradients)
    proportional([bar["h"] for bar in lower], shares * (gradients - level))
    [line] = [shape for shape in found if shape["key"] == "level"]
    zero = upper[0]["y"] + (upper[0]["h"] if gradients[0] > 0 else 0)
    unit = max(bar["h"] for bar in upper) / np.abs(gradients).max()
    assert zero - line["points"][1] == pytest.approx(level * unit, abs=1)


def test_the_way_back_through_a_norm_takes_two_things_off(shapes, numbers):
    read = numbers["training"].array
    found = shapes("training", "grad.final_norm", "&of=grad.blocks.1.residual_2&t=3&d=5")
    x, weight = read("blocks.1.residual_2")[3].astype(float), read("final_norm.weight").astype(float)
    back = next(one for one in numbers["training"].trace.operations.values()
                if one.kind == "layer_norm" and one.target == "d_x" and "final_norm.mean" in one.operands.values())
    g = read(back.operands["d_out"])[3].astype(float) * weight
    normalised = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    lines = {key: [shape["x"] for shape in found if shape["key"].startswith(f"{back.id} {key} ")]
             for key in ("come", "shifted", "stretched")}
    linear(lines["come"], g)
    linear(lines["shifted"], g - g.mean())
    linear(lines["stretched"], g - g.mean() - normalised * (g * normalised).mean())
    linear([dot["x"] for dot in of(found, back.id, "dot")], read(back.id)[3])


def test_of_an_array_over_all_updates_the_chosen_number_has_its_way(shapes, numbers):
    found = shapes("training", "series.attention", "&of=series.attention.blocks.0&s=30&h=1&i=3&j=2")
    way = numbers["training"].array("series.attention.blocks.0")[:, 1, 3, 2]
    dots = of(found, "series.attention.blocks.0", "dot")
    assert [dot["place"]["index"] for dot in dots] == [[u, 1, 3, 2] for u in range(120)]
    linear([dot["y"] for dot in dots], way)


def test_gelu_lets_the_dots_fall_onto_the_curve(shapes, numbers):
    found = shapes("training", "blocks.0.mlp.gelu")
    dots = of(found, "blocks.0.mlp.gelu", "dot")
    x = np.array([numbers["training"].array("blocks.0.mlp.up")[tuple(dot["place"]["index"])] for dot in dots], float)
    linear([dot["x"] for dot in dots], x)
    linear([dot["y"] for dot in dots], [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x])


@pytest.mark.parametrize(("step", "whole", "parts"), [
    ("blocks.0.attention.split", "blocks.0.attention.qkv", ["query", "key", "value"]),
    ("blocks.0.attention.concatenate", "blocks.0.attention.concatenate", None)])
def test_heads_are_cut_and_joined_without_a_change(shapes, numbers, step, whole, parts):
    """Cell by cell from left to right: the same number above and below, in the place that NumPy's reshape gives it."""
    found = shapes("training", step)
    above = of(found, whole, "cell")
    names = [f"{step}.{part}" for part in parts] if parts else ["blocks.0.attention.weighted_sum"]
    below = [shape for name in names for shape in of(found, name, "cell")]
    own, rows = numbers["training"].array(whole), {}
    for shape in below:
        rows.setdefault(shape["place"]["index"][1], []).append((shape["x"], numbers["training"](shape["place"])))
    assert len(above) == len(below) == own.size
    for t, row in rows.items():
        assert [number for _, number in sorted(row)] == own[t].tolist()


def test_the_loss_is_the_distance_to_the_level_of_all_logits(shapes, numbers):
    found = shapes("training", "cross_entropy", "&of=cross_entropy&t=1")
    [target] = of(found, "head", "dot")
    [level] = of(found, "cross_entropy.log_sum_exp", "dot")
    logits = numbers["training"].array("head")[1].astype(np.float64)
    area = next(shape for shape in found if shape["kind"] == "area")
    xs, ys = np.array(area["points"]).reshape(-1, 2).T
    scale = (xs.max() - xs.min()) / (logits.max() - logits.min())  # px a unit: the density reaches from end to end
    loss = np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[target["place"]["index"][1]]
    assert level["x"] - target["x"] == pytest.approx(loss * scale, abs=2)
    counts, _ = np.histogram(logits, bins=90)
    tall = (ys.max() - ys)[1:-1:2]
    proportional(tall ** 2, counts / counts.max() * tall.max() ** 2) if len(tall) == 90 else pytest.fail(str(len(tall)))


def test_adamw_places_a_weight_by_its_gradient_and_its_step(shapes, numbers):
    name = "token_embedding.weight"
    found = shapes("training", f"adamw.{name}", f"&of=adamw.{name}.after&r=220&d=0")
    [dot] = of(found, f"adamw.{name}.after", "dot")
    gradient = abs(float(numbers["training"].array(f"grad.{name}")[220, 0]))
    ticks = {int(shape["text"][2:].replace("−", "-")): shape["x"] for shape in found
             if re.fullmatch(r"1e−?\d+", shape["text"])}
    decade, start = np.polyfit(list(ticks), list(ticks.values()), 1)  # the last tick may stand before the end
    assert dot["x"] == pytest.approx(start + decade * math.log10(gradient), abs=12)


def test_the_receipt_adds_up(shapes, numbers):
    """Each bar begins where the one before ended; the last ends at the sum of all."""
    found = [shape for shape in shapes("training", "receipt.predicted") if shape["place"] and shape["kind"] == "cell"]
    steps = [shape for shape in found if shape["place"]["array"].startswith("receipt.predicted")]
    running = [numbers["training"](shape["place"]) for shape in steps]
    linear([shape["y"] + shape["h"] for shape in steps], running)  # all fall: the lower end is the sum so far
    for before, now in itertools.pairwise(steps):
        assert now["y"] == pytest.approx(before["y"] + before["h"], abs=PIXEL)
    [change] = [shape for shape in found if shape["place"]["array"] == "receipt.change"]
    top = steps[0]["y"]
    unit = (steps[-1]["y"] + steps[-1]["h"] - top) / running[-1]
    assert change["h"] == pytest.approx(unit * numbers["training"](change["place"]), abs=2)


def test_curves_of_all_updates_pass_through_their_numbers(shapes, numbers):
    found = shapes("training", "series.loss", "&s=39")
    losses = numbers["training"].array("series.loss")
    dots = of(found, "series.loss", "dot")
    assert len(dots) == len(losses) == 120
    linear([dot["y"] for dot in dots], losses)
    linear([dot["x"] for dot in dots], range(120))


def test_candidates_of_all_moments_share_one_whole(shapes, numbers):
    found = shapes("training", "series.candidates", "&u=20")
    cells = of(found, "series.candidate_probability", "cell")
    strip = [cell for cell in cells if cell["place"]["index"][1] == 0 and not cell["key"]]
    proportional([cell["h"] for cell in strip], [numbers["training"](cell["place"]) for cell in strip])
    bars = [cell for cell in cells if cell["key"].startswith("token")]
    assert len(bars) == 5
    proportional([bar["w"] for bar in bars], [numbers["training"](bar["place"]) for bar in bars])


def test_the_dice_fall_on_a_ruler_of_chances(shapes, numbers):
    found = shapes("early", "round4.sampler.draw")
    p = numbers["early"].array("round4.sampler.softmax").astype(float)
    bars, ruler = (of(found, "round4.sampler.softmax", "cell", key) for key in ("share", "ruler"))
    proportional([bar["w"] for bar in bars], p)
    whole = max(shape["w"] for shape in found if shape["kind"] == "cell" and not shape["place"])
    for k, cell in enumerate(ruler):
        assert cell["x"] - ruler[0]["x"] == pytest.approx(whole * p[:k].sum(), abs=PIXEL)
        assert cell["w"] == pytest.approx(max(0.5, whole * p[k] - 1.5), abs=PIXEL)
    [needle] = of(found, "round4.uniform", "dot")
    uniform = float(numbers["early"].array("round4.uniform"))
    assert needle["x"] - ruler[0]["x"] == pytest.approx(whole * uniform, abs=PIXEL)
    chosen = int(np.searchsorted(np.cumsum(p), uniform, side="right"))
    assert ruler[chosen]["x"] <= needle["x"] <= ruler[chosen]["x"] + ruler[chosen]["w"] + 1.5


def test_temperature_and_top_k_show_what_becomes_of_each_logit(shapes, numbers):
    logits = numbers["early"].array("round4.head")[0].astype(float)
    found = shapes("early", "round4.sampler.temperature")
    before, after = of(found, "round4.head", "cell"), of(found, "round4.sampler.temperature", "cell")
    ids = [bar["place"]["index"][1] for bar in before]
    assert ids == np.argsort(-logits, kind="stable")[:5].tolist()
    largest = max(bar["w"] for bar in after) / (logits[ids[0]] / 0.8)
    for one, other, i in zip(before, after, ids, strict=True):
        assert (one["w"], other["w"]) == pytest.approx((logits[i] * largest, logits[i] / 0.8 * largest), abs=PIXEL)
    found = shapes("early", "round4.sampler.top_k")
    dots = of(found, "round4.sampler.temperature", "dot")
    linear([dot["x"] for dot in dots], [logits[i] / 0.8 for i in ids])
    assert "50,252 are out" in [shape["text"] for shape in found]
    assert min(dot["x"] for dot in dots) > max(shape["x"] for shape in found if shape["kind"] == "area")


def test_the_three_ways_to_choose_stand_at_what_they_chose(shapes, numbers):
    found = shapes("early", "round4.choices")
    taken = {"drawn": "round4.sampler.draw.token", "largest": "round4.greedy", "torch": "round4.multinomial"}
    rows = {shape["key"].partition(" ")[2]: shape["y"] for shape in found if shape["key"].startswith("share ")}
    for way, array in taken.items():
        [chip] = [shape for shape in found if shape["key"] == way]
        assert chip["y"] == pytest.approx(rows[str(int(numbers["early"].array(array)))], abs=2), way


def test_kept_rows_are_counted(shapes, numbers):
    """In head 0 of the first block: so many rows hold the same bits as in the round before."""
    found = shapes("early", "round4.cached.kept")
    texts = [shape["text"] for shape in found]
    equal = numbers["early"].array("round4.cached.blocks.0.attention.key.equal")[0]
    said = next(text for text in texts if text.startswith("Head 0: "))
    assert said.startswith(f"Head 0: {len(equal)} of {len(equal) + 1} rows")


def test_bytes_wait_for_the_rest_of_their_character(shapes, numbers):
    """你 is E4 BD A0 in UTF-8: the first two waited, the third completes it."""
    texts = [shape["text"] for shape in shapes("early", "round3.bytes")]
    assert [text for text in texts if text in ("E4", "BD", "A0")] == [f"{byte:02X}" for byte in "你".encode()]
    assert any("你" in text for text in texts)
