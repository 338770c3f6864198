"""The figures of the two articles, on the recording made now and on the committed one.

The articles' machine used AVX2 kernels, to which recordings are pinned.  On a processor that has others, a figure may
be as far off as rounding explains: `tests/rounding.py` for the first update; after 120 of them, which amplify
rounding about a million times, see `near`.
"""

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from rounding import spreads
from torch.nn import functional as F

from tracer.format.files import save
from tracer.format.trace import Trace
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.random_words import next_word
from tracer.ops import KINDS, Computation, evaluate, expand_ellipsis
from tracer.ops.rounded import UNIT
from tracer.recording.generation import GenerationJob, past_context_job, record_generation
from tracer.recording.training import TABLE, TrainingJob, record_training

V, D, C, POSITION, TARGET = 50257, 16, 16, 2, 254
IDS = [17250, 220, 19526, 254, 0]


@pytest.fixture(params=["fresh", "committed"])
def training(request) -> Trace:
    if request.param == "fresh":
        return request.getfixturevalue("fresh").training
    return request.getfixturevalue("training_trace")


@pytest.fixture(params=["fresh", "committed"])
def generation(request) -> Trace:
    if request.param == "fresh":
        return request.getfixturevalue("fresh").generation
    return request.getfixturevalue("generation_trace")


def pinned(trace: Trace) -> bool:
    return trace.make["kernels"]["pinned"]


# Of the same 120 updates in float64, where no rounding shows that float32 has (`GPT(Config()).double()`, by hand).
EXACT = {"loss": 0.000943447, "validation": 8.054259, "logit": 16.492168, "improbability": 1.255725e-5}


def near(trace: Trace, what: str, printed: float, rel: float):
    """What a figure after 120 updates may be.

    With pinned kernels: the printed one, to `rel`.  With others, rounding goes another way: they may be four times
    as far from exact arithmetic as the printed one is, on either side.
    """
    if pinned(trace):
        return pytest.approx(printed, rel=rel)
    return pytest.approx(EXACT[what], abs=4 * abs(printed - EXACT[what]))


def number(trace: Trace, name: str, *index: int) -> float:
    return float(trace.values(name)[index])


# The first update ------------------------------------------------------------------------------------

def test_ids_and_the_shift_by_one(training):
    assert training.values("text.ids").tolist() == IDS
    assert training.values("text.with_eos").tolist() == [*IDS, 50256]
    assert training.values("x").tolist() == [17250, 220, 19526, 254, 0]
    assert training.values("y").tolist() == [220, 19526, 254, 0, 50256]
    assert training.make["text"] == "Hi 你!"
    assert training.make["validation_text"] == "Hi 你好!"


def test_first_loss(training):
    # ln Σ exp of 50,257 terms in 8 lanes: the sum is off by at most 4·√(50,257/8)·2⁻²⁴ of itself, but once in
    # three thousand times (Higham and Mary 2019, theorem 2.4).
    assert number(training, "loss") == pytest.approx(10.828178, abs=1e-6 if pinned(training) else 2e-5)
    assert number(training, "series.loss", 0) == number(training, "loss")
    assert np.float32(training.summary["loss"]) == number(training, "loss")


def test_probability_of_a_target_and_the_gradient_of_its_logit(training):
    assert number(training, "cross_entropy.target_probability", POSITION) == pytest.approx(0.00001788837, abs=1e-11)
    assert number(training, "grad.head", POSITION, TARGET) == pytest.approx(-0.19999642, abs=1e-7)
    assert training.summary["target_logit_gradients"][POSITION] == pytest.approx(-0.19999642, abs=1e-7)


def test_one_number_through_its_first_update(training):
    row = training.values("used_ids").tolist().index(220)
    after = number(training, "adamw.token_embedding.weight.after.used", row, 0)
    assert number(training, "token_embedding.weight", 220, 0) == pytest.approx(0.0083439769, abs=5e-9)
    assert number(training, "grad.token_embedding.weight", 220, 0) == pytest.approx(0.1401842982, abs=1e-7)
    assert after == pytest.approx(-0.0116576916, abs=5e-9)
    assert number(training, "series.rows", 1, row, 0) == after  # the second update starts from it
    tracked = training.summary["tracked"]
    assert tracked["parameter"] == "token_embedding.weight[220,0]"
    assert tracked["after"] == pytest.approx(-0.0116576916, abs=5e-9)


def test_settings_are_the_articles(training):
    assert training.make["settings"] == {"seed": 20261012, "updates": 120, "lr": 0.02, "beta1": 0.9, "beta2": 0.95,
                                         "eps": 1e-8, "weight_decay": 0.01}
    assert training.make["config"] == {"vocabulary": V, "context": C, "width": D, "heads": 2, "blocks": 2,
                                       "dropout": 0.1}


def shapes_by_hand() -> dict[str, tuple[int, ...]]:
    shapes = {"token_embedding.weight": (V, D), "position_embedding.weight": (C, D)}
    for block in ("blocks.0.", "blocks.1."):
        shapes |= {block + "norm_1.weight": (D,), block + "norm_1.bias": (D,),
                   block + "attention.qkv.weight": (48, 16), block + "attention.qkv.bias": (48,),
                   block + "attention.projection.weight": (16, 16), block + "attention.projection.bias": (16,),
                   block + "norm_2.weight": (D,), block + "norm_2.bias": (D,),
                   block + "mlp.up.weight": (64, 16), block + "mlp.up.bias": (64,),
                   block + "mlp.down.weight": (16, 64), block + "mlp.down.bias": (16,)}
    return shapes | {"final_norm.weight": (D,), "final_norm.bias": (D,)}


def test_parameters(training):
    shapes = shapes_by_hand()
    assert training.make["parameters"] == list(shapes)
    assert {name: training.arrays[name].shape for name in shapes} == shapes
    count = sum(math.prod(shape) for shape in shapes.values())
    assert count == training.summary["parameters"] == 810_960


def test_the_generator_after_construction():
    torch.manual_seed(20261012)
    GPT(Config())
    assert [next_word(), next_word()] == [99847103, 170195698]


def test_the_first_dropout_words_follow_the_construction(training):
    names = ("embedding_dropout.word", "blocks.0.attention.weights_dropout.word")
    assert [int(training.values(name)) for name in names] == [99847103, 170195698]


# After 120 updates -----------------------------------------------------------------------------------

def test_losses_after_training(training):
    train, validation = (number(training, f"evaluation.{text}.loss") for text in ("training", "validation"))
    assert train == near(training, "loss", 0.00107, rel=0.02)
    assert validation == near(training, "validation", 7.975595, rel=0.001)
    assert training.summary["updates"] == len(training.values("series.loss")) == 120
    assert training.values("validation.ids").tolist() == [17250, 220, 19526, 254, 25001, 121, 0]


def test_first_round(generation):
    logit = number(generation, "round1.head", 0, 220)
    assert logit == near(generation, "logit", 16.329382, rel=0.001)
    first = generation.summary["rounds"][0]
    assert np.float32(first["logit"]) == logit
    assert first["scaled_logit"] == pytest.approx(logit / 0.8, rel=1e-6)
    if pinned(generation):
        assert first["scaled_logit"] == pytest.approx(20.411728, rel=0.001)
        assert first["probability"] == pytest.approx(0.99998498, abs=1e-6)
    # The others' logits are about 11 smaller than this one: an error of one of them is one of the exponent.
    off = 4 * 2 * abs(16.329382 - EXACT["logit"]) / 0.8
    assert math.log((1 - first["probability"]) / EXACT["improbability"]) == pytest.approx(0, abs=off)


def test_rounds(generation):
    rounds = generation.summary["rounds"]
    assert [r["id"] for r in rounds] == [220, 19526, 254, 0, 50256]
    assert [r["new_text"] for r in rounds] == [" ", "", "你", "!", ""]
    assert generation.summary["text"] == "Hi 你!"
    assert generation.values("round2.held").tolist() == list("你".encode()[:2])  # shown in the third round
    assert all(r["probability"] > 0.999 for r in rounds)
    make = generation.make
    assert [make[k] for k in ("prompt", "temperature", "top_k", "seed", "max_new_tokens", "rounds")] == [
        "Hi", 0.8, 5, 7, 10, 5]


# Made again ------------------------------------------------------------------------------------------

def first_update_arrays(trace: Trace) -> list[str]:
    """Everything recorded of the first update and of the same text once more."""
    later = ("series.", "trained.", "evaluation.", "validation")
    return [name for name, array in trace.arrays.items() if not array.derived and not name.startswith(later)]


def allowed(trace: Trace, spread: dict[str, float], name: str) -> np.ndarray | float:
    """How far two recordings may be apart: each as far from exact arithmetic as rounding carries a number of the array.

    AdamW's first step moves a parameter by lr·g/(|g| + eps).  Where g is more than its error δ, that changes the
    step by at most lr·eps·δ/(|g| − δ)²; a gradient that is nothing but rounding (of a key's bias: exactly it is 0)
    gives any step up to lr.
    """
    whole = 2 * spread[name]
    if not name.startswith("adamw.") or ".after" not in name:
        return whole
    parameter = name.removeprefix("adamw.").removesuffix(".used").removesuffix(".after")
    g = trace.values("grad." + parameter)
    g = np.abs(g[trace.values("used_ids")] if name.endswith(".used") else g).astype(float)
    settings, delta = trace.make["settings"], 2 * spread["grad." + parameter]
    step = settings["lr"] * settings["eps"] * delta / np.maximum(g - delta, 1e-30) ** 2
    rounded = 16 * UNIT * (settings["lr"] + np.abs(trace.values(name)))
    return np.minimum(whole, step + 2 * spread[parameter] + rounded)


def test_the_committed_recordings_are_pinned(recordings):
    """Made with the kernels that every machine is asked for, or nobody could make them again."""
    assert all(map(pinned, recordings.values()))
    assert {trace.make["torch"] for trace in recordings.values()} == {torch.__version__.split("+")[0]}


@pytest.fixture(scope="module")
def spread(training_trace) -> dict[str, float]:
    return spreads(training_trace, [*first_update_arrays(training_trace), f"grad.{TABLE}"])


def test_the_recordings_made_again_are_the_committed_ones(fresh, recordings, tokenizer):
    """All 120 updates and what follows from them, bit for bit where the kernels are the pinned ones.

    Others make other bits, or the measurement of the kernels (`tracer.model.kernel_probe`) would be wrong.
    """
    job = past_context_job(GenerationJob(), fresh.checkpoint.text, tokenizer, fresh.checkpoint.model.config)
    long = record_generation(job, fresh.checkpoint, tokenizer, route="long")
    different = []
    for route, ours in {"training": fresh.training, "generation": fresh.generation, "long": long}.items():
        theirs = recordings[route]
        hashed = "checkpoint_sha256"
        assert {**ours.make, "kernels": None, hashed: None} == {**theirs.make, "kernels": None, hashed: None}
        different += [(route, hashed)] * (ours.make.get(hashed) != theirs.make.get(hashed))
        different += [(route, name) for name in {*ours.arrays, *theirs.arrays} if not same_bits(ours, theirs, name)]
    assert bool(different) != pinned(fresh.training), different[:5]


def test_the_first_update_made_again_is_as_near_as_rounding_allows(fresh, training_trace, spread):
    """With whatever kernels.  And the comparison can fail: what hangs on no step of AdamW, by a two-hundredth."""
    assert differences(fresh.training, training_trace, spread) == {}
    names = {name for name in first_update_arrays(training_trace) if training_trace.values(name).any()
             and training_trace.values(name).dtype.kind == "f"
             and not name.startswith(("again.", "receipt.")) and ".after" not in name}
    assert names <= differences(fresh.training, training_trace, spread, off=5e-3).keys()


def differences(ours: Trace, theirs: Trace, spread: dict[str, float], off: float = 0.0) -> dict[str, float]:
    """Arrays of the first update that are farther apart than rounding explains, and by how much.

    `off`: added to one number of ours, as a part of the array's largest.
    """
    names = first_update_arrays(theirs)
    assert names == first_update_arrays(ours)
    assert len(names) > 350
    found = {}
    for name in names:
        a, b = ours.values(name), theirs.values(name)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), name
        if a.dtype.kind == "i" or not np.isfinite(b).any():
            assert np.array_equal(a, b), name
            continue
        finite = np.isfinite(b)
        assert np.array_equal(a[~finite], b[~finite]), name  # −∞ in masked scores
        error = np.where(finite, np.abs(np.where(finite, a, 0).astype(float) - np.where(finite, b, 0)), 0)
        size = np.where(finite, np.abs(b), 0)
        error.reshape(-1)[size.argmax()] += off * size.max()
        beyond = error - allowed(theirs, spread, name)
        if beyond.max() > 0:
            found[name] = float(beyond.max())
    return found


def same_bits(ours: Trace, theirs: Trace, name: str) -> bool:
    if name not in ours.arrays or name not in theirs.arrays:  # another token was drawn
        return False
    if theirs.arrays[name].derived:
        return ours.arrays[name].derived
    a, b = ours.values(name), theirs.values(name)
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_the_recordings_made_again_have_the_committed_steps(fresh, training_trace, generation_trace):
    for ours, theirs in ((fresh.training, training_trace), (fresh.generation, generation_trace)):
        assert [(s.id, s.kind, s.target, s.operands, s.settings) for s in ours.operations.values()] == [
            (s.id, s.kind, s.target, s.operands, s.settings) for s in theirs.operations.values()]
        assert [(a.name, a.shape, a.axes) for a in ours.arrays.values()] == [
            (a.name, a.shape, a.axes) for a in theirs.arrays.values()]


def test_recording_twice_gives_the_same_bytes(fresh, tokenizer, tmp_path):
    training, checkpoint = record_training(TrainingJob(), tokenizer)
    generation = record_generation(GenerationJob(), checkpoint, tokenizer)
    save_both(tmp_path / "second", training, generation)
    save_both(tmp_path / "first", copy.deepcopy(fresh.training), copy.deepcopy(fresh.generation))
    first, second = files(tmp_path / "first"), files(tmp_path / "second")
    assert {"training.json", "generation.json"} < first.keys()
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def save_both(folder: Path, training: Trace, generation: Trace) -> None:
    save(training, folder / "training.json")
    save(generation, folder / "generation.json")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# The examples by hand --------------------------------------------------------------------------------

def compute(kind: str, shape: tuple[int, ...], *, leading: str = "", settings: dict | None = None,
            **operands) -> np.ndarray:
    """The output of `kind` from its operands; `leading`: letters for the axes that ... stands for."""
    equations = expand_ellipsis(KINDS[kind].targets["out"], list(leading))
    arrays = {name: np.asarray(values, dtype=float) for name, values in operands.items()}
    return evaluate(Computation(equations, arrays, settings or {}, shape)).value


def test_embedding_by_hand():
    total = compute("add", (4,), leading="d", a=[0.2, -0.1, 0.5, 0.3], b=[0.01, 0.02, -0.03, 0.04])
    np.testing.assert_allclose(total, [0.21, -0.08, 0.47, 0.34], rtol=1e-12)


def test_attention_row_by_hand():
    scores = np.zeros((1, 5, 5))
    scores[0, 2] = [2, 1, 3, 4, 5]
    masked = compute("causal_mask", (1, 5, 5), scores=scores)
    assert masked[0, 2].tolist() == [2, 1, 3, -math.inf, -math.inf]
    weights = compute("softmax", (1, 5, 5), leading="hi", x=masked)
    np.testing.assert_allclose(weights[0, 2], [0.244728, 0.090031, 0.665241, 0, 0], atol=5e-7)
    value = np.array([10, 20, 30, 40, 50]).reshape(1, 5, 1)
    out = compute("weighted_sum", (1, 5, 1), weights=weights, value=value)
    assert out[0, 2, 0] == pytest.approx(24.2051, abs=5e-5)


def test_gelu_and_dropout_by_hand():
    np.testing.assert_allclose(compute("gelu", (2,), leading="d", x=[1, -1]), [0.8413, -0.1587], atol=5e-5)
    dropped = compute("dropout", (4,), leading="d", x=[2, 4, 6, 8], mask=[1, 0, 1, 0], settings={"p": 0.5})
    assert dropped.tolist() == [4, 0, 12, 0]


def test_loss_of_a_guess():
    losses = compute("cross_entropy", (1,), logits=np.zeros((1, V)), targets=[3])
    assert losses[0] == pytest.approx(10.825, abs=5e-4)
    assert losses[0] == pytest.approx(math.log(V))
    assert [round(math.log(n), 2) for n in (16, 65)] == [2.77, 4.17]


def test_attention_of_the_second_article():
    x = np.array([[[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]]], dtype=float)  # Q = K = V, one head
    scores = compute("scaled_scores", (1, 3, 3), query=x, key=x)
    weights = compute("softmax", (1, 3, 3), leading="hi", x=compute("causal_mask", (1, 3, 3), scores=scores))
    out = compute("weighted_sum", (1, 3, 4), weights=weights, value=x)
    # (1, 1, 0, 0) · each key = 1, 1, 2; divided by √4 and exponentiated: e^½, e^½, e.
    half, one = math.exp(0.5), math.exp(1)
    expected = np.array([half, half, one]) / (2 * half + one)
    np.testing.assert_allclose(weights[0, 2], expected, rtol=1e-12)
    np.testing.assert_allclose(weights[0, 2], [0.27, 0.27, 0.45], atol=5e-3)
    np.testing.assert_allclose(out[0, 2], [0.73, 0.73, 0.27, 0.27], atol=5e-3)
    q = torch.tensor(x, dtype=torch.float32)
    torchs = F.scaled_dot_product_attention(q, q, q, is_causal=True)[0].numpy()
    np.testing.assert_allclose(out[0], torchs, atol=1e-7)


def test_softmax_divided_and_undivided():
    undivided = compute("softmax", (3,), x=[2, 6, 4])
    divided = compute("softmax", (3,), x=compute("temperature", (1, 3), logits=[[2, 6, 4]],
                                                 settings={"temperature": math.sqrt(4)})[0])
    np.testing.assert_allclose(divided, [0.09, 0.67, 0.24], atol=6e-3)
    np.testing.assert_allclose(undivided, [0.016, 0.867, 0.117], atol=6e-4)
