"""Small random examples of the kinds that Llama has where GPT-2 has others; see `operation_cases`."""

import numpy as np
from operation_case import example, normal, tensor
from torch.nn import functional as F


@example("linear_without_bias")
def linear_without_bias_cases(shape):
    x, weight = normal(*shape, 4), normal(5, 4)
    yield {"x": x, "weight": weight}, {"out": np.einsum("...d,od->...o", x, weight)}


@example("split_grouped_heads")
def split_grouped_heads_cases():
    heads, groups, width, positions = 6, 2, 3, 4
    qkv = normal(positions, (heads + 2 * groups) * width)
    parts = np.split(qkv, [heads * width, (heads + groups) * width], axis=1)
    made = [part.reshape(positions, -1, width).transpose(1, 0, 2) for part in parts]
    yield ({"qkv": qkv}, dict(zip(("query", "key", "value"), made, strict=True)),
           {"heads": heads, "kv_heads": groups, "head_width": width})


@example("repeat_heads")
def repeat_heads_cases():
    x = normal(2, 4, 3)
    yield {"x": x}, {"out": np.stack([x[0], x[0], x[0], x[1], x[1], x[1]])}, {"group": 3}


@example("rotary")
def rotary_cases():
    x, positions = normal(2, 4, 6), np.array([0, 1, 2, 9])
    pairs = x[..., :3] + 1j * x[..., 3:]  # Su et al. 2021: a pair of features is a complex number, multiplied by e^iθ
    turned = pairs * np.exp(1j * positions[:, None] * 100.0 ** (-np.arange(3) / 3))
    yield ({"x": x, "positions": positions}, {"out": np.concatenate([turned.real, turned.imag], axis=-1)},
           {"base": 100.0, "half": 3})


@example("swiglu")
def swiglu_cases(shape):
    x, gate = normal(*shape), normal(*shape) * 3
    yield {"x": x, "gate": gate}, {"out": (F.silu(tensor(gate)) * tensor(x)).numpy()}


@example("rms_norm")
def rms_norm_cases(shape):
    x, weight = normal(*shape, 6) + 2, normal(6)
    yield ({"x": x, "weight": weight}, {"out": F.rms_norm(tensor(x), (6,), tensor(weight), 1e-5).numpy()},
           {"eps": 1e-5})
