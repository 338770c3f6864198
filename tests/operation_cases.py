"""Small random examples of every kind of operation, with what it must compute worked out by other means."""

import itertools
import math

import llama_cases  # noqa: F401  (which adds its own)
import numpy as np
import torch
from operation_case import CASES, example, kept_by_mcg31m1, normal, normal_cdf, random, tensor, torch_adamw
from torch.nn import functional as F

__all__ = ["CASES"]  # which the functions below fill

# What each kind must compute -------------------------------------------------------------------------

@example("add")
def add_cases(shape):
    a, b = normal(*shape), normal(*shape)
    yield {"a": a, "b": b}, {"out": np.array([x + y for x, y in zip(a.flat, b.flat, strict=True)]).reshape(shape)}


@example("gradient_sum")
def gradient_sum_cases(shape):
    first, second = normal(*shape), normal(*shape)
    yield {"first": first, "second": second}, {"out": np.sum([first, second], axis=0)}


@example("linear")
def linear_cases(shape):
    x, weight, bias = normal(*shape, 4), normal(5, 4), normal(5)
    yield ({"x": x, "weight": weight, "bias": bias},
           {"out": F.linear(tensor(x), tensor(weight), tensor(bias)).numpy()})


@example("tied_head")
def tied_head_cases():
    x, table = normal(3, 4), normal(7, 4)
    yield {"x": x, "table": table}, {"out": np.array([[row @ entry for entry in table] for row in x])}


@example("last_position")
def last_position_cases():
    x = normal(4, 3)
    yield {"x": x}, {"out": x[-1:]}, {"position": 3}


@example("positions")
def positions_cases():
    for start in (0, 3):
        yield {}, {"out": np.arange(start, start + 6)}, {"start": start}


@example("embedding")
def embedding_cases():
    table, ids = normal(6, 3), np.array([2, 0, 2, 5])  # row 2 is looked up twice, 1 never
    yield {"table": table, "ids": ids}, {"out": np.stack([table[i] for i in ids])}


@example("scaled_scores")
def scaled_scores_cases():
    query, key = normal(2, 4, 3), normal(2, 5, 3)
    out = np.stack([q @ k.T / math.sqrt(3) for q, k in zip(query, key, strict=True)])
    yield {"query": query, "key": key}, {"out": out}


@example("causal_mask")
def causal_mask_cases():
    scores = normal(2, 4, 4)
    yield {"scores": scores}, {"out": np.where(np.tril(np.ones((4, 4))), scores, -np.inf)}


@example("weighted_sum")
def weighted_sum_cases():
    weights, value = random.random(size=(2, 4, 5)), normal(2, 5, 3)
    yield {"weights": weights, "value": value}, {"out": np.matmul(weights, value)}


@example("split_heads")
def split_heads_cases():
    heads, width, positions = 2, 3, 4
    qkv = normal(positions, 3 * heads * width)
    parts = [part.reshape(positions, heads, width).transpose(1, 0, 2) for part in np.split(qkv, 3, axis=1)]
    yield ({"qkv": qkv}, dict(zip(("query", "key", "value"), parts, strict=True)),
           {"heads": heads, "head_width": width})


@example("concatenate_heads")
def concatenate_heads_cases():
    x = normal(2, 4, 3)
    yield {"x": x}, {"out": np.concatenate(list(x), axis=1)}, {"head_width": 3}


@example("softmax")
def softmax_cases(shape):
    x = normal(*shape, 5) * 3
    masked = np.where(np.arange(5) < 3, x, -np.inf)
    for values in (x, x + 1000, masked):  # the second overflows a plain exp
        yield {"x": values}, {"out": torch.softmax(tensor(values), dim=-1).numpy()}


@example("token_probability")
def token_probability_cases(shape):
    x = normal(*shape, 5) * 3
    total = torch.logsumexp(tensor(x), dim=-1).numpy()
    yield {"logits": x[..., :3], "log_sum_exp": total}, {"out": torch.softmax(tensor(x), dim=-1).numpy()[..., :3]}


@example("gelu")
def gelu_cases(shape):
    x = normal(*shape) * 2
    # x·Φ(x), with Φ from its integral: Simpson's rule over the normal density.
    yield {"x": x}, {"out": np.vectorize(lambda value: value * normal_cdf(value))(x)}


@example("gelu_tanh")
def gelu_tanh_cases(shape):
    x = normal(*shape) * 2
    yield {"x": x}, {"out": F.gelu(tensor(x), approximate="tanh").numpy()}


@example("layer_norm")
def layer_norm_cases(shape):
    eps = 1e-5
    x, weight, bias = normal(*shape, 6) + 2, normal(6), normal(6)
    out = F.layer_norm(tensor(x), (6,), tensor(weight), tensor(bias), eps).numpy()
    yield ({"x": x, "weight": weight, "bias": bias},
           {"mean": np.mean(x, axis=-1), "rstd": (np.var(x, axis=-1) + eps) ** -0.5, "out": out}, {"eps": eps})


@example("dropout")
def dropout_cases(shape):
    x = normal(*shape)
    # 0 and the modulus itself start the stream at 1; a 32-bit word may exceed the modulus.
    for word in (99847103, 0, 2**31 - 1, 2**32 - 1):
        mask = np.array(kept_by_mcg31m1(word, math.prod(shape), 0.3)).reshape(shape)
        yield {"x": x, "word": np.array(word)}, {"mask": mask, "out": np.where(mask == 1, x / 0.7, 0)}, {"p": 0.3}


@example("cross_entropy")
def cross_entropy_cases():
    logits, targets = normal(4, 7) * 3, np.array([6, 0, 3, 3])
    chosen = logits[np.arange(4), targets]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    yield ({"logits": logits, "targets": targets},
           {"log_sum_exp": np.log(np.exp(logits).sum(axis=1)), "target_logit": chosen,
            "out": F.cross_entropy(tensor(logits), tensor(targets), reduction="none").numpy(),
            "target_probability": probabilities[np.arange(4), targets]})


@example("mean")
def mean_cases():
    x = normal(5)
    yield {"x": x}, {"out": np.array(math.fsum(x) / 5)}


@example("loss_seed")
def loss_seed_cases():
    yield {}, {"out": np.array(1.0)}


@example("adamw")
def adamw_cases(shape):
    before, gradient = normal(*shape), normal(*shape)
    zeros = {"m_before": np.zeros(shape), "v_before": np.zeros(shape)}
    moments = {"m_before": normal(*shape), "v_before": normal(*shape) ** 2}
    for update, known, weight_decay in ((1, zeros, 0.01), (1, zeros, 0.0), (2, moments, 0.01), (70, moments, 0.0)):
        settings = {"lr": 0.02, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": weight_decay,
                    "update": update}
        yield ({"before": before, "gradient": gradient, **known},
               torch_adamw(before, gradient, known, **settings), settings)


@example("initial_moments")
def initial_moments_cases(shape):
    yield {}, {"m_before": np.zeros(shape), "v_before": np.zeros(shape)}


@example("predicted_change")
def predicted_change_cases(shape):
    gradient, before, after, previous = (normal(*part) for part in (shape, shape, shape, ()))
    promised = math.fsum(g * (new - old) for g, new, old in zip(gradient.flat, after.flat, before.flat, strict=True))
    yield ({"gradient": gradient, "before": before, "after": after, "previous": previous},
           {"first": np.array(promised), "running": previous + promised})


@example("difference")
def difference_cases():
    yield {"after": np.array(10.5), "before": np.array(10.75)}, {"out": np.array(-0.25)}


@example("change")
def change_cases(shape):
    before, after = normal(*shape), normal(*shape)
    changes = [new - old for new, old in zip(after.flat, before.flat, strict=True)]
    yield {"after": after, "before": before}, {"out": np.array(changes).reshape(shape)}


@example("largest_difference")
def largest_difference_cases(shape):
    a, b = normal(*shape), normal(*shape)
    yield {"a": a, "b": b}, {"out": np.array(max(abs(x - y) for x, y in zip(a.flat, b.flat, strict=True)))}


@example("append_rows")
def append_rows_cases():
    for length in (1, 4):
        past, new = normal(2, length, 3), normal(2, 1, 3)
        yield {"past": past, "new": new}, {"out": np.concatenate([past, new], axis=1)}, {"length": length}


@example("drop_rows")
def drop_rows_cases():
    past = normal(2, 5, 3)
    yield {"past": past}, {"out": past[:, 1:]}, {"count": 1}


@example("kept_rows")
def kept_rows_cases():
    """One number of the row of head 0 and token 1 has changed, all of head 1 and token 2 have."""
    for shift in (0, 1):
        rows = normal(2, 3, 4)
        before = np.concatenate([normal(2, shift, 4), rows], axis=1)
        now = np.concatenate([rows, normal(2, 1, 4)], axis=1)
        now[0, 1, 2] += 0.5
        now[1, 2] -= [1, 2, 4, 3]
        yield ({"before": before, "now": now}, {"equal": np.array([[4, 3, 4], [4, 4, 0]]),
               "apart": np.array([[0, 0.5, 0], [0, 0, 4.0]])}, {"shift": shift})


@example("temperature")
def temperature_cases():
    logits = normal(1, 6)
    yield {"logits": logits}, {"out": np.array([[z / 0.8 for z in logits[0]]])}, {"temperature": 0.8}


@example("top_k")
def top_k_cases():
    logits = np.array([[1.0, 3.0, 2.0, 3.0, -1.0, 3.0, 2.0]])  # ties go to the lower id
    for k in (1, 4, 7):
        ids = sorted(range(7), key=lambda i: (-logits[0, i], i))[:k]
        yield {"logits": logits}, {"ids": np.array(ids), "kept": np.array([logits[0, i] for i in ids])}


@example("top_p")
def top_p_cases():
    """As few candidates as hold top_p together: the one that reaches it still belongs to them."""
    probabilities = np.array([0.5, 0.25, 0.15, 0.1])
    for top_p, kept in ((0.4, 1), (0.5, 1), (0.6, 2), (0.75, 2), (0.8, 3), (1.0, 4)):
        inside = probabilities * (np.arange(4) < kept)
        yield {"probabilities": probabilities}, {"out": inside / inside.sum()}, {"top_p": top_p}
    probabilities = np.array([0.5, 0.3, 0.1, 0.1])  # 0.8 − 0.3 < 0.5 in float64: a difference would keep one more
    yield {"probabilities": probabilities}, {"out": np.array([0.625, 0.375, 0, 0])}, {"top_p": 0.8}


@example("greedy")
def greedy_cases():
    for logits, largest in (([0.5, 2.0, -1.0, 2.0], 1), ([-3.0], 0)):  # ties go to the lower id
        yield {"logits": np.array([logits])}, {"out": np.array(largest)}


@example("is_end")
def is_end_cases():
    for token, ended in ((50256, 1), (0, 0)):
        yield {"token": np.array(token), "eos": np.array(50256)}, {"out": np.array(ended)}


@example("cumulative")
def cumulative_cases():
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    yield {"probabilities": probabilities}, {"out": np.array(list(itertools.accumulate(probabilities)))}


@example("draw")
def draw_cases():
    """Also exactly at a limit, and above the last one, where rounding has left a gap to 1: never probability 0."""
    ids = np.array([40, 7, 19, 3])
    for probabilities in ([0.5, 0.25, 0.125, 0.115], [0.5, 0.25, 0.24, 0.0], [0.99, 0.0, 0.0, 0.0]):
        cumulative, last = np.cumsum(probabilities), np.flatnonzero(probabilities).max()
        for uniform in (0.0, 0.3, 0.5, 0.7499, 0.75, 0.9, 0.995):
            choice = min(int(np.searchsorted(cumulative, uniform, side="right")), last)
            yield ({"uniform": np.array(uniform), "cumulative": cumulative, "ids": ids},
                   {"choice": np.array(choice), "token": ids[choice]})


@example("byte_tokens")
def byte_tokens_cases():
    table, raw = random.permutation(256), list("Hi 你".encode())
    yield {"bytes": np.array(raw), "byte_table": table}, {"out": np.array([table[b] for b in raw])}


@example("bpe_merge")
def bpe_merge_cases():
    before = [5, 3, 8, 8, 2]
    for position in range(4):
        after = [*before[:position], 99, *before[position + 2:]]
        yield {"before": np.array(before)}, {"out": np.array(after)}, {"position": position, "merged": 99}


@example("append")
def append_cases():
    for before in ([5, 3, 8], [4]):
        yield ({"before": np.array(before), "token": np.array(50256)}, {"out": np.array([*before, 50256])},
               {"length": len(before)})


@example("window")
def window_cases():
    ids = [5, 3, 8, 9]
    for offset, part in ((0, ids[:3]), (1, ids[1:]), (0, ids)):
        yield {"ids": np.array(ids)}, {"out": np.array(part)}, {"offset": offset}


@example("join_bytes")
def join_bytes_cases():
    held, new = [228, 189], [160, 33]
    yield {"held": np.array(held), "new": np.array(new)}, {"out": np.array(held + new)}, {"length": 2}


@example("complete_bytes")
def complete_bytes_cases():
    for text, complete in ((b"\xe4\xbd", 0), (b"a\xe4\xbd", 1), ("你".encode(), 3), (b"\xe4a", 2), (b"\xf4\x90", 2)):
        yield {"bytes": np.array(list(text))}, {"out": np.array(complete)}
