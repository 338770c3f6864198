"""The operations of the model, each a module, so that hooks see all of it.

Shapes stand in trailing comments: B is the batch, T the number of positions, S that of keys, D the width, H the
heads, V the vocabulary.

A module here carries `kind`, the name of the operation in `tracer.ops`, and `axes`, the names of the axes of what
it returns (the batch axis apart).  What an operation uses or makes besides its result (a mask, a mean) it leaves
in `details`.  What it is for, where a kind has several uses, is its `role`.  That is all a recording needs to
know of it.
"""

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tracer.model import products
from tracer.model.config import Config
from tracer.model.fused import causal
from tracer.model.random_words import next_word
from tracer.ops import KINDS
from tracer.ops.mcg31m1 import mcg31m1

Module = TypeVar("Module", bound=nn.Module)


def in_role(role: str, module: Module) -> Module:
    """The module, which says from now on what it is for (`tracer.format.roles`)."""
    setattr(module, "role", role)  # noqa: B010  (torch says that attributes of a module are tensors and modules)
    return module


class Positions(nn.Module):
    """The positions of `ids`, of which the first stands at `start`."""

    kind, axes = "positions", ("position",)

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        self.settings = {"start": start}
        return torch.arange(start, start + ids.size(-1), device=ids.device)  # (T,)


class Embedding(nn.Embedding):
    """`nn.Embedding` under the name of its operation; also used with the weight as an input."""

    kind, axes = "embedding", ("position", "feature")
    names = {"weight": "table"}
    parameter_axes = {"weight": ("row", "feature")}

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight)  # (B, T, D)


class Add(nn.Module):
    kind, axes = "add", ("position", "feature")

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b


class Dropout(nn.Module):
    """Inverted dropout (Srivastava et al. 2014); explicit, its mask is the same on every processor.

    That mask is drawn from one word of torch's generator, row-major over all of `x`: 1 keeps, 0 drops.
    A model that is not explicit takes torch's masks, which are cheaper.
    """

    kind = "dropout"
    explicit = True

    def __init__(self, p: float, axes: tuple[str, ...]):
        super().__init__()
        self.p, self.axes = p, axes
        self.outputs = {"word": (), "mask": axes, "out": axes}
        self.settings = {"p": p}
        self.details: dict[str, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        if not self.explicit:
            return F.dropout(x, self.p) if self.training and self.p else x
        if not self.training or self.p == 0:
            self.details = {}
            return x
        word = next_word()
        kept = mcg31m1(word, np.arange(x.numel())) < 1 - self.p
        mask = torch.from_numpy(kept).to(x.dtype).view(x.shape).to(x.device)
        self.details = {"word": torch.tensor(word), "mask": mask}
        return x * (mask / (1 - self.p))


class LayerNorm(nn.LayerNorm):
    """`nn.LayerNorm` that keeps the statistics which its kernel computed."""

    kind, axes = "layer_norm", ("position", "feature")
    outputs = {"mean": ("position",), "rstd": ("position",), "out": axes}
    parameter_axes = {"weight": ("feature",), "bias": ("feature",)}
    explicit = True

    def __init__(self, width: int, eps: float):
        super().__init__(width, eps=eps)
        self.settings = {"eps": self.eps}
        self.details: dict[str, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        if not self.explicit:
            return torch.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        out, mean, rstd = torch.native_layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        self.details = {"mean": mean.squeeze(-1), "rstd": rstd.squeeze(-1)}  # (B, T) each
        return out  # (B, T, D)


class OfKind(nn.Module):
    """Any kind of operation that states its PyTorch form, with the parameters that its equations read.

    Of these `weight` starts at one, all others at zero.
    """

    def __init__(self, kind: str, axes: dict[str, int], settings: dict[str, float]):
        """`axes`: name → length of the axes of what it makes, the last ones of which its parameters may have."""
        super().__init__()
        self.kind, self.axes, own = kind, tuple(axes), KINDS[kind]
        self.settings = {name: settings[name] for name in own.settings("out")}
        letters = [item[1] for item in own.targets["out"][-1].index if item[0] == "letter"]
        axis_of = dict(zip(reversed(letters), reversed(axes), strict=False))
        self.parameter_axes = {name: tuple(axis_of[item[1]] for item in index)
                               for name, index in own.parameters.items()}
        for name, along in self.parameter_axes.items():
            start = torch.ones if name == "weight" else torch.zeros
            self.register_parameter(name, nn.Parameter(start([axes[axis] for axis in along])))

    def forward(self, x: Tensor, **more: Tensor) -> Tensor:
        """`more`: what the kind reads beside x, by name."""
        parameters = {name: getattr(self, name) for name in self.parameter_axes}
        return KINDS[self.kind].in_torch(x, **more, **parameters, **self.settings)


def make_norm(config: Config) -> nn.Module:
    """The normalisation of each position's features that the config names."""
    if config.norm == LayerNorm.kind:
        return LayerNorm(config.width, config.norm_eps)
    return OfKind(config.norm, {"position": config.context, "feature": config.width}, {"eps": config.norm_eps})


class Linear(nn.Linear):
    kind = "linear"

    def __init__(self, inputs: tuple[str, int], outputs: tuple[str, int], bias: bool = True):
        """`inputs` and `outputs`: the name and the length of the axis."""
        super().__init__(inputs[1], outputs[1], bias)
        self.axes = ("position", outputs[0])
        out_axis = outputs[0] if outputs[0] != inputs[0] else "output"
        self.parameter_axes = {"weight": (out_axis, inputs[0])} | ({"bias": (outputs[0],)} if bias else {})

    def forward(self, x: Tensor) -> Tensor:
        return products.linear(x, self.weight, self.bias)  # (B, T, in) → (B, T, out)


class LinearWithoutBias(Linear):
    kind = "linear_without_bias"

    def __init__(self, inputs: tuple[str, int], outputs: tuple[str, int]):
        super().__init__(inputs, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return products.linear(x, self.weight)  # (B, T, in) → (B, T, out)


def make_linear(config: Config, inputs: tuple[str, int], outputs: tuple[str, int]) -> Linear:
    """A linear map with a bias or without, as the config says."""
    return Linear(inputs, outputs) if config.bias else LinearWithoutBias(inputs, outputs)


class SplitHeads(nn.Module):
    kind = "split_heads"
    outputs = {name: ("head", "position", "head_feature") for name in ("query", "key", "value")}

    def __init__(self, heads: int, head_width: int):
        super().__init__()
        self.heads, self.head_width = heads, head_width
        self.settings = {"heads": heads, "head_width": head_width}

    def forward(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        B, T, _ = qkv.shape
        split = (part.view(B, T, self.heads, self.head_width).transpose(1, 2)
                 for part in qkv.split(self.heads * self.head_width, dim=-1))
        query, key, value = split  # (B, H, T, D/H) each
        return query, key, value


class ScaledScores(nn.Module):
    kind, axes = "scaled_scores", ("head", "query_position", "key_position")

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return (query @ key.transpose(-2, -1)) * query.size(-1) ** -0.5  # (B, H, T, S)


class CausalMask(nn.Module):
    """−∞ where a query may not look: at later positions, or where `allowed` (B, 1, T, S) is false."""

    kind, axes = "causal_mask", ("head", "query_position", "key_position")

    def forward(self, scores: Tensor, allowed: Tensor | None = None) -> Tensor:
        if allowed is None:
            allowed = causal(scores.size(-2), scores.size(-1), scores.device)
        return scores.masked_fill(~allowed, float("-inf"))


class Softmax(nn.Module):
    kind = "softmax"

    def __init__(self, axes: tuple[str, ...]):
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        return x.softmax(dim=-1)


class WeightedSum(nn.Module):
    kind, axes = "weighted_sum", ("head", "position", "head_feature")

    def forward(self, weights: Tensor, value: Tensor) -> Tensor:
        return products.weighted_sum(weights, value)  # (B, H, T, D/H)


class ConcatenateHeads(nn.Module):
    kind, axes = "concatenate_heads", ("position", "feature")

    def __init__(self, head_width: int):
        super().__init__()
        self.settings = {"head_width": head_width}

    def forward(self, x: Tensor) -> Tensor:
        B, H, T, d = x.shape
        return x.transpose(1, 2).reshape(B, T, H * d)


class AppendRows(nn.Module):
    """Keys or values of the positions so far, then those of the new ones; explicit, what a cache does."""

    kind, axes = "append_rows", ("head", "key_position", "head_feature")

    def forward(self, past: Tensor, new: Tensor) -> Tensor:
        self.settings = {"length": past.size(2)}
        return torch.cat((past, new), dim=2)  # (B, H, S, D/H)


class GELU(nn.Module):
    """GELU (Hendrycks and Gimpel 2016), exact."""

    kind, axes = "gelu", ("position", "hidden")

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x)


class TanhGELU(nn.Module):
    """GELU in the tanh approximation that GPT-2 was trained with."""

    kind, axes = "gelu_tanh", ("position", "hidden")

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate="tanh")


def make_activation(config: Config) -> nn.Module:
    """The activation of the MLP that the config names."""
    own = {module.kind: module for module in (GELU, TanhGELU)}
    if config.activation in own:
        return own[config.activation]()
    return OfKind(config.activation, {"position": config.context, "hidden": config.hidden_width}, {})


class LastPosition(nn.Module):
    kind, axes = "last_position", ("position", "feature")

    def forward(self, x: Tensor) -> Tensor:
        self.settings = {"position": x.size(1) - 1}
        return x[:, -1:]  # (B, 1, D)


class TiedHead(nn.Module):
    """Logits from a table of one row a token: the token table itself, unless the config says otherwise."""

    kind, axes = "tied_head", ("position", "vocabulary")
    explicit = True

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        return (products.linear if self.explicit else F.linear)(x, table)  # (B, T, V)


class CrossEntropy(nn.Module):
    """Next-token cross-entropy of each position in nats.

    The details only say what went into the loss, and carry no gradient.  torch's own exp and log of an array are
    MKL's, which hang on the processor: so both come from the log-softmax, and the probability from float64,
    rounded to the nearest float32.
    """

    kind, axes = "cross_entropy", ("position",)
    outputs = {name: ("position",) for name in ("log_sum_exp", "target_logit", "out", "target_probability")}
    explicit = True

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        if not self.explicit:
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)
        logarithms = logits.log_softmax(dim=-1)  # z − max − log Σ exp(z − max)  (B, T, V)
        loss = F.nll_loss(logarithms.flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)
        with torch.no_grad():
            self.details = {"log_sum_exp": logits.amax(dim=-1) - logarithms.amax(dim=-1),
                            "target_logit": logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1),
                            "target_probability": (-loss.double()).exp().to(loss.dtype)}  # (B, T) each
        return loss  # (B, T)


class Mean(nn.Module):
    kind, axes = "mean", ()

    def forward(self, x: Tensor) -> Tensor:
        return x.mean()
