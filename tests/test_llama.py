"""What changes from GPT-2 to Llama: each change by itself and all of them, against `transformers` and by arithmetic."""

import html
from dataclasses import replace

import numpy as np
import pytest
import torch
from drawn import SHAPES
from driver import DESK, address, visit
from torch.utils.flop_counter import FlopCounterMode
from variants import recorded, small

from site_builder.build import build
from site_builder.language import languages
from tracer.errors import UserError
from tracer.format.files import save
from tracer.format.shapes import SHAPES as NAMED
from tracer.format.sizes import cache_bytes, parameter_count
from tracer.format.trace import AXES
from tracer.format.verify import verify
from tracer.library.counting import flops_per_token
from tracer.library.generate import generate
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.kv_cache import KVCache
from tracer.model.sampling import Sampling
from tracer.ops.replay import Replay

BASE = Config(vocabulary=61, context=12, width=24, heads=6, blocks=2, dropout=0.0)
CHANGES = {
    "no bias": {"bias": False},
    "untied": {"tied": False},
    "rms norm": {"norm": "rms_norm"},
    "swiglu": {"activation": "swiglu", "hidden": 40},
    "grouped queries": {"kv_heads": 2},
    "rotary": {"position": "rotary", "rope_base": 100.0},
}
ALL = {name: value for change in CHANGES.values() for name, value in change.items()}
EACH = pytest.mark.parametrize("change", [*CHANGES.values(), ALL], ids=[*CHANGES, "all of them"])


def model(config: Config, explicit: bool = True, seed: int = 3) -> GPT:
    """One whose numbers are large enough to tell everything apart."""
    torch.manual_seed(seed)
    made = GPT(config, explicit)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(5).add_(0.1 * torch.randn_like(parameter))
    return made


def some_ids(config: Config, batch: int = 2, seed: int = 1) -> torch.Tensor:
    return torch.randint(config.vocabulary, (batch, config.context), generator=torch.Generator().manual_seed(seed))


@EACH
def test_both_forms_agree(change):
    config = replace(BASE, **change)
    explicit, fused = model(config).double(), GPT(config, explicit=False).double()
    fused.load_state_dict(explicit.state_dict())
    ids = some_ids(config)
    losses = [one(ids, ids.roll(-1, 1))[1] for one in (explicit, fused)]
    for loss in losses:
        loss.backward()
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-6, atol=0)
    for ours, theirs in zip(fused.parameters(), explicit.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-5, atol=1e-8)


@EACH
def test_every_gradient_is_the_slope(change):
    """A step of each parameter along its gradient, and along a random direction, by central differences."""
    config = replace(BASE, **change, width=12, blocks=1)
    made = model(config).double()
    ids = some_ids(config)
    made(ids, ids.roll(-1, 1))[1].backward()
    draw = torch.Generator().manual_seed(7)
    for name, parameter in made.named_parameters():
        direction = torch.randn(parameter.shape, generator=draw).double()
        losses = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                parameter.add_(step * direction)
                losses.append(made(ids, ids.roll(-1, 1))[1].item())
                parameter.sub_(step * direction)
        slope = (losses[0] - losses[1]) / 2e-5
        assert slope == pytest.approx((parameter.grad * direction).sum().item(), rel=2e-5, abs=1e-7), name


@EACH
@pytest.mark.parametrize("explicit", [True, False])
def test_a_cache_changes_nothing(change, explicit):
    """Position by position, and in two pieces, against one full pass; rows of different length too."""
    config = replace(BASE, **change)
    made = model(config, explicit).double().eval()
    ids = some_ids(config)
    with torch.no_grad():
        full = made(ids)[0]
        for pieces in ([1] * 12, [7, 5]):
            cache = KVCache(config, 2, 12, torch.float64)
            for piece in ids.split(pieces, dim=1):
                logits = made(piece, cache=cache)[0]
            torch.testing.assert_close(logits, full, rtol=1e-6, atol=1e-8)
        padded, padding = torch.cat([torch.zeros_like(ids[:, :4]), ids[:, :8]], dim=1), torch.tensor([4, 4])
        torch.testing.assert_close(made(padded, padding=padding)[0], made(ids[:, :8])[0], rtol=1e-6, atol=1e-8)


@EACH
def test_rows_generate_what_they_do_alone(change):
    config = replace(BASE, **change)
    made = model(config, explicit=False).eval()
    prompts = [[3, 1, 4], [1, 5, 9, 2, 6]]
    together = generate(made, prompts, Sampling(0.0), 5)
    assert together == [generate(made, [prompt], Sampling(0.0), 5, cached=False)[0] for prompt in prompts]


@EACH
def test_what_is_counted_is_there(change):
    config = replace(BASE, **change)
    assert model(config).parameter_count() == parameter_count(config)
    assert KVCache(config, 1, 1).bytes == cache_bytes(config)


@EACH
def test_the_arithmetic_is_what_torch_does(change):
    """Products alone, as torch counts them; the rest is small beside them where a model is wide."""
    config = replace(BASE, width=96, vocabulary=300, **change)
    made, ids = model(config), torch.randint(300, (1, config.context))
    with FlopCounterMode(display=False) as counter:
        made(ids, ids)[1].backward()
    assert counter.get_total_flops() == pytest.approx(flops_per_token(config) * config.context, rel=0.02)


def test_llama_3_8b_has_the_published_size():
    """Grattafiori et al. 2024: 8.03 billion parameters; 128 KiB of cache a token in two bytes a number."""
    config = Config(**NAMED["llama-3-8b"])
    assert parameter_count(config) == 8_030_261_248
    assert cache_bytes(config, 2) == 128 * 1024


def test_without_position_scores_hang_on_distance_alone():
    """Rotary: the same tokens further right in the text have the same attention weights among them."""
    config = replace(BASE, blocks=1, position="rotary", rope_base=100.0)
    made = model(config).double().eval()
    attention, x = made.blocks[0].attention, torch.randn(1, 5, 24, dtype=torch.float64)
    weights = []
    attention.softmax.register_forward_hook(lambda module, given, out: weights.append(out))
    with torch.no_grad():
        for start in (0, 6):
            attention(x, positions=torch.arange(start, start + 5))
    torch.testing.assert_close(weights[1], weights[0], rtol=1e-9, atol=1e-12)
    assert (weights[0] - weights[0].mean(-1, keepdim=True)).abs().max() > 1e-3


@pytest.mark.parametrize(("wrong", "told"), [
    ({"kv_heads": 4}, "6 heads cannot share 4 heads of keys and values: choose a kv_heads that divides 6"),
    ({"kv_heads": -1}, "kv_heads must be at least 0, not -1"), ({"hidden": -8}, "hidden must be at least 0, not -8"),
    ({"width": 18, "position": "rotary"}, "rotary positions turn pairs of features, a head has 3: choose a width"),
    ({"position": "absolute"}, "position must be one of learned, rotary, not 'absolute'"),
    ({"rope_base": 1.0}, "rope_base must be above 1 and at most 1e12, not 1.0"),
    ({"rope_base": float("nan")}, "rope_base must be above 1"),
])
def test_what_cannot_be_is_refused(wrong, told):
    with pytest.raises(UserError, match=f"^{told}"):
        replace(BASE, **wrong)


@EACH
def test_a_change_is_recorded_and_verified(change, tokenizer):
    traces = recorded(small(**{"heads": 4, "width": 16, "context": 8} | change), tokenizer)
    for trace in traces.values():
        assert [check for check in verify(trace) if check.problem and check.name != "outline"] == []
    kinds = {operation.kind for operation in traces["training"].operations.values()}
    wanted = {"no bias": {"linear_without_bias"}, "rms norm": {"rms_norm"}, "swiglu": {"swiglu"},
              "grouped queries": {"split_grouped_heads", "repeat_heads"}, "rotary": {"rotary"}, "untied": set()}
    for name, own in wanted.items():
        assert (own <= kinds) if set(CHANGES[name].items()) <= set(change.items()) else not own & kinds


@pytest.fixture(scope="module")
def shown(tokenizer, tmp_path_factory):
    """A site of the model with all changes, and its recordings."""
    folder = tmp_path_factory.mktemp("llama")
    variant = replace(small(**{"heads": 4, "width": 16, "context": 8} | ALL), past_context=True)
    traces = recorded(variant, tokenizer)
    for route, trace in traces.items():
        save(trace, folder / "traces" / f"{route}.json")
    return build(folder / "traces", folder / "site").parent, traces


def test_all_changes_are_shown(shown):
    site, _ = shown
    for code, language in languages().items():
        page = html.unescape((site / code / "training.html").read_text("utf-8"))
        for key in ("swiglu", "rotary (query)", "repeat_heads", "split_grouped_heads", "linear_without_bias"):
            assert language.prose[key].title in page, key
        for page in (site / code).glob("*.html"):
            said = page.read_text("utf-8")
            tables = ("of the position table", "learned table of absolute", "位置表的", "位置表中")
            assert not any(table in said for table in tables), page


@pytest.mark.parametrize(("step", "array", "operand"), [
    ("blocks.0.attention.key_rotary", "blocks.0.attention.key_rotary", "x"),
    ("grad.blocks.0.attention.key_rotary", "grad.blocks.0.attention.split.key", "d_out")])
def test_arrows_are_turned_as_the_numbers_were(shown, new_page, step, array, operand):
    site, traces = shown
    page = visit(new_page(viewport=DESK, reduced_motion="reduce"), address(site, "training", "en", f"#step={step}"))
    page.wait_for_function("() => document.querySelector('figure.stage').stage.drawing")
    found = page.evaluate(SHAPES)
    tips = {(shape["x"], shape["y"]): shape["place"] for shape in found if shape["kind"] == "dot" and shape["place"]}
    hands = list(dict.fromkeys(tuple(shape["points"]) for shape in found if shape["kind"] == "line"))
    hands = [hand for hand in hands if len(hand) == 4]  # the others are dials
    replay, scales = Replay(traces["training"], AXES), []
    made, read = replay.values(array), replay.values(traces["training"].operations[array].operands[operand])
    for x, y, *tip in hands:
        if tuple(tip) in tips:  # where it points now; the other hand of a dial is where it pointed
            head, t, d = tips[tuple(tip)]["index"]
            pair = np.array([made[head, t, d % 2], made[head, t, d % 2 + 2]])
            scales.append(np.array([tip[0] - x, y - tip[1]]) @ pair / (pair @ pair))
            np.testing.assert_allclose([tip[0] - x, y - tip[1]], pair * scales[-1], atol=1e-4)
            was = next((other[2:] for other in hands if other[:2] == (x, y) and other[2:] != tuple(tip)), tip)
            pair = read[head, t, [d % 2, d % 2 + 2]]
            np.testing.assert_allclose([was[0] - x, y - was[1]], pair * scales[-1], atol=1e-4)
    assert len(scales) == 2 * made.shape[1]
    np.testing.assert_allclose(scales, scales[0], rtol=1e-4)


def test_keys_are_kept_as_they_were_turned(tokenizer):
    """A cached round's keys: those of the full pass, turned at their own positions, not at the new one."""
    trace = recorded(small(position="rotary", heads=2, width=8), tokenizer)["generation"]
    held = trace.operations["round2.cached.blocks.0.attention.key_cache"]
    np.testing.assert_allclose(trace.values(held.id), trace.values("round2.blocks.0.attention.key_rotary"), atol=1e-6)
