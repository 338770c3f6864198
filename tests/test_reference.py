"""The figures of the two articles, on the recording made now and on the committed one.

Where a figure depends on the processor's kernels the tolerance says so: 120 updates amplify float32
rounding about a million times, and the articles' machine used AVX2.
"""

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tracer import schema
from tracer.model import GPT, Config
from tracer.ops import KINDS, Computation, evaluate, expand_ellipsis
from tracer.random_words import next_word
from tracer.record_generation import GenerationJob, record_generation
from tracer.record_training import TrainingJob, record_training
from tracer.schema import Trace

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


def avx2(trace: Trace) -> bool:
    return trace.make["kernels"] == "AVX2"


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
    assert number(training, "loss") == pytest.approx(10.828178, abs=1e-6 if avx2(training) else 2e-6)
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
    exact = avx2(training)
    assert train == pytest.approx(0.00107, rel=0.02 if exact else 0.1)
    assert validation == pytest.approx(7.975595, rel=0.001 if exact else 0.01)
    assert training.summary["updates"] == len(training.values("series.loss")) == 120
    assert training.values("validation.ids").tolist() == [17250, 220, 19526, 254, 25001, 121, 0]


def test_first_round(generation):
    exact = avx2(generation)
    logit = number(generation, "round1.head", 0, 220)
    assert logit == pytest.approx(16.329382, rel=0.001 if exact else 0.01)
    first = generation.summary["rounds"][0]
    assert np.float32(first["logit"]) == logit
    assert first["scaled_logit"] == pytest.approx(20.411728, rel=0.001 if exact else 0.01)
    assert first["scaled_logit"] == pytest.approx(logit / 0.8, rel=1e-6)
    assert first["probability"] == pytest.approx(0.99998498, abs=1e-6 if exact else 1e-4)


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
    """Everything recorded up to the first update; what follows it hangs on ill-determined steps too."""
    later = ("again.", "receipt.", "series.", "trained.", "evaluation.", "validation")
    return [name for name, array in trace.arrays.items() if not array.derived and not name.startswith(later)]


def well_determined(trace: Trace, name: str, tolerance: float) -> np.ndarray | bool:
    """Where AdamW's first step does not hang on the last digits of a gradient.

    It moves a parameter by lr·g/(|g| + eps), so an error δ of g moves it by at most lr·eps·δ/(|g| − δ)².
    A gradient that is nothing but rounding (of a key's bias: exactly it is 0) gives any step up to lr.
    """
    if not name.startswith("adamw.") or ".after" not in name:
        return True
    settings = trace.make["settings"]
    g = trace.values("grad." + name.removeprefix("adamw.").removesuffix(".used").removesuffix(".after"))
    g = np.abs(g[trace.values("used_ids")] if name.endswith(".used") else g).astype(float)
    delta = tolerance * g.max()
    moved = settings["lr"] * settings["eps"] * delta / np.maximum(g - delta, 1e-30) ** 2
    return (moved < tolerance / 2 * np.abs(trace.values(name)).max()) | (g == 0)


def test_the_first_update_made_again_is_the_committed_one(fresh, training_trace):
    """Array by array, to 2·10⁻⁶ of its largest number where the kernels are the same.

    On one machine the arrays are equal bit for bit.  Another AVX2 processor may choose other block sizes
    for a matrix product, which rounds sums of at most 50,257 terms differently: some 10⁻⁷ of the largest
    number, a few times that after backward.  Other kernels get ten times as much.
    """
    names = first_update_arrays(training_trace)
    assert names == first_update_arrays(fresh.training)
    assert len(names) > 200
    tolerance = 2e-6 if training_trace.make["kernels"] == fresh.training.make["kernels"] else 2e-5
    for name in names:
        ours, theirs = fresh.training.values(name), training_trace.values(name)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
        if ours.dtype.kind == "i":
            assert np.array_equal(ours, theirs), name
            continue
        finite = np.isfinite(theirs)
        assert np.array_equal(ours[~finite], theirs[~finite]), name  # −∞ in masked scores
        compared = well_determined(training_trace, name, tolerance) & finite
        assert compared.mean() > 0.4, name
        error = np.abs(ours[compared] - theirs[compared]).max(initial=0)
        assert error <= tolerance * np.abs(theirs[finite]).max(initial=0), name
    assert number(fresh.training, "again.loss") == pytest.approx(number(training_trace, "again.loss"), rel=1e-5)


def test_the_recordings_made_again_have_the_committed_steps(fresh, training_trace, generation_trace):
    for ours, theirs in ((fresh.training, training_trace), (fresh.generation, generation_trace)):
        assert [(s.id, s.kind, s.target, s.operands, s.attributes) for s in ours.steps.values()] == [
            (s.id, s.kind, s.target, s.operands, s.attributes) for s in theirs.steps.values()]
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
    schema.save(training, folder / "training.json")
    schema.save(generation, folder / "generation.json")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# The examples by hand --------------------------------------------------------------------------------

def compute(kind: str, shape: tuple[int, ...], *, leading: str = "", attributes: dict | None = None,
            **operands) -> np.ndarray:
    """The output of `kind` from its operands; `leading`: letters for the axes that ... stands for."""
    equations = expand_ellipsis(KINDS[kind].targets["out"], list(leading))
    arrays = {name: np.asarray(values, dtype=float) for name, values in operands.items()}
    return evaluate(Computation(equations, arrays, attributes or {}, shape)).value


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
    dropped = compute("dropout", (4,), leading="d", x=[2, 4, 6, 8], mask=[1, 0, 1, 0], attributes={"p": 0.5})
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
                                                 attributes={"temperature": math.sqrt(4)})[0])
    np.testing.assert_allclose(divided, [0.09, 0.67, 0.24], atol=6e-3)
    np.testing.assert_allclose(undivided, [0.016, 0.867, 0.117], atol=6e-4)
