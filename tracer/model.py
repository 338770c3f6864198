"""A GPT-2-style language model in which every step is a module, so that hooks see all of it.

Read `GPT.forward` and `Block.forward` first; shapes stand in trailing comments.  B is the batch,
T the number of positions, D the width, H the heads, V the vocabulary.

Modules that compute one step carry `kind`, the name of the operation in `tracer.ops`, and `axes`,
the names of the axes of what they return (the batch axis apart).  What a step uses or makes besides
its result (a mask, a mean) it leaves in `details`.  That is all a recording needs to know of it.

A model is `explicit` or not.  Explicit, every step is a module call, and `details` are kept: what a
recording needs, and the form whose bits the recordings hold.  Otherwise a block is a few kernels
(`tracer.fused`), dropout is torch's own, and nothing is kept: the same function, faster.  Hooks then see
a block as a whole.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tracer import products
from tracer.cache import Cache, LayerCache
from tracer.errors import UserError
from tracer.fused import FusedBlock, causal
from tracer.ops.mcg31m1 import mcg31m1
from tracer.random_words import next_word
from tracer.shapes import LARGEST

# Config.activation → the `approximate` of torch's GELU.  GPT-2 was trained with the tanh form.
ACTIVATIONS = {"gelu": "none", "gelu_tanh": "tanh"}


@dataclass(frozen=True)
class Config:
    """The shape of a model.  The defaults are the teaching model: 810,960 parameters."""

    vocabulary: int = 50257
    context: int = 16
    width: int = 16
    heads: int = 2
    blocks: int = 2
    dropout: float = 0.1
    activation: str = "gelu"  # one of ACTIVATIONS
    tied: bool = True  # whether the token table also makes the logits
    norm_eps: float = 1e-5

    def __post_init__(self):
        for name in ("vocabulary", "context", "width", "heads", "blocks"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
            if getattr(self, name) > LARGEST:
                raise UserError(f"{name} must be at most {LARGEST:,}, not {getattr(self, name)}")
        if self.width % self.heads:
            raise UserError(f"width {self.width} cannot be cut into {self.heads} heads: "
                            f"choose a width that {self.heads} divides")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout must be at least 0 and below 1, not {self.dropout}")
        if self.activation not in ACTIVATIONS:
            raise UserError(f"activation must be one of {', '.join(ACTIVATIONS)}, not {self.activation!r}")
        if not 0 < self.norm_eps < 1:
            raise UserError(f"norm_eps must be between 0 and 1, not {self.norm_eps}")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    def to_json(self) -> dict:
        """The sizes and the dropout; of what most models have in common only what differs."""
        common = {field.name: field.default for field in fields(self)[-3:]}
        return {name: value for name, value in asdict(self).items() if common.get(name) != value}


class Positions(nn.Module):
    """The positions of `ids`, of which the first stands at `start`."""

    kind, axes = "positions", ("position",)

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        self.attributes = {"start": start}
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
        self.attributes, self.details = {"p": p}, {}

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
        self.attributes, self.details = {"eps": self.eps}, {}

    def forward(self, x: Tensor) -> Tensor:
        if not self.explicit:
            return torch.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        out, mean, rstd = torch.native_layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        self.details = {"mean": mean.squeeze(-1), "rstd": rstd.squeeze(-1)}  # (B, T) each
        return out  # (B, T, D)


class Linear(nn.Linear):
    kind = "linear"

    def __init__(self, inputs: tuple[str, int], outputs: tuple[str, int]):
        """`inputs` and `outputs`: the name and the length of the axis."""
        super().__init__(inputs[1], outputs[1])
        self.axes = ("position", outputs[0])
        out_axis = outputs[0] if outputs[0] != inputs[0] else "output"
        self.parameter_axes = {"weight": (out_axis, inputs[0]), "bias": (outputs[0],)}

    def forward(self, x: Tensor) -> Tensor:
        return products.linear(x, self.weight, self.bias)  # (B, T, in) → (B, T, out)


class SplitHeads(nn.Module):
    kind = "split_heads"
    outputs = {name: ("head", "position", "head_feature") for name in ("query", "key", "value")}

    def __init__(self, heads: int, head_width: int):
        super().__init__()
        self.heads, self.head_width = heads, head_width
        self.attributes = {"heads": heads, "head_width": head_width}

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
        self.attributes = {"head_width": head_width}

    def forward(self, x: Tensor) -> Tensor:
        B, H, T, d = x.shape
        return x.transpose(1, 2).reshape(B, T, H * d)


class AppendRows(nn.Module):
    """Keys or values of the positions so far, then those of the new ones; explicit, what a cache does."""

    kind, axes = "append_rows", ("head", "key_position", "head_feature")

    def forward(self, past: Tensor, new: Tensor) -> Tensor:
        self.attributes = {"length": past.size(2)}
        return torch.cat((past, new), dim=2)  # (B, H, S, D/H)


class Attention(nn.Module):
    """Causal multi-head self-attention with one fused product for Q, K and V."""

    def __init__(self, config: Config):
        super().__init__()
        D, feature = config.width, ("feature", config.width)
        weights = ("head", "query_position", "key_position")
        self.qkv = Linear(feature, ("qkv", 3 * D))
        self.split = SplitHeads(config.heads, config.head_width)
        self.key_cache, self.value_cache = AppendRows(), AppendRows()
        self.scores = ScaledScores()
        self.mask = CausalMask()
        self.softmax = Softmax(weights)
        self.weights_dropout = Dropout(config.dropout, weights)
        self.weighted_sum = WeightedSum()
        self.concatenate = ConcatenateHeads(config.head_width)
        self.projection = Linear(feature, feature)
        self.dropout = Dropout(config.dropout, ("position", "feature"))

    def forward(self, x: Tensor, cache: LayerCache | None = None, allowed: Tensor | None = None) -> Tensor:
        query, key, value = self.split(self.qkv(x))                         # (B, H, T, D/H) each
        if cache is not None:
            key, value = self._with_cached(cache, key, value)               # (B, H, S, D/H) each
        scores = self.scores(query, key)                                    # (B, H, T, S)
        if allowed is not None:
            scores = self.mask(scores, allowed)
        elif query.size(2) > 1 or key.size(2) == 1:  # one new position may see all that are cached
            scores = self.mask(scores)
        weights = self.softmax(scores)                                      # (B, H, T, S)
        heads = self.weighted_sum(self.weights_dropout(weights), value)     # (B, H, T, D/H)
        return self.dropout(self.projection(self.concatenate(heads)))       # (B, T, D)

    def _with_cached(self, cache: LayerCache, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        past_key, past_value = cache.so_far()
        cache.append(torch.stack((key, value)))
        if past_key.size(2) == 0:
            return key, value
        return self.key_cache(past_key, key), self.value_cache(past_value, value)


class GELU(nn.Module):
    """GELU (Hendrycks and Gimpel 2016), exact or in the tanh approximation that GPT-2 was trained with."""

    axes = ("position", "hidden")

    def __init__(self, activation: str):
        super().__init__()
        self.kind, self.approximate = activation, ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate=self.approximate)


class MLP(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        feature, hidden = ("feature", config.width), ("hidden", 4 * config.width)
        self.up = Linear(feature, hidden)
        self.gelu = GELU(config.activation)
        self.down = Linear(hidden, feature)
        self.dropout = Dropout(config.dropout, ("position", "feature"))

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(self.gelu(self.up(x))))               # (B, T, D) → (B, T, 4D) → (B, T, D)


class Block(nn.Module):
    explicit = True

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.norm_1 = LayerNorm(config.width, config.norm_eps)
        self.attention = Attention(config)
        self.residual_1 = Add()
        self.norm_2 = LayerNorm(config.width, config.norm_eps)
        self.mlp = MLP(config)
        self.residual_2 = Add()

    def forward(self, x: Tensor, cache: LayerCache | None = None, allowed: Tensor | None = None) -> Tensor:
        if not self.explicit:
            return self.fused()(x, cache, allowed)
        x = self.residual_1(x, self.attention(self.norm_1(x), cache, allowed))
        return self.residual_2(x, self.mlp(self.norm_2(x)))

    def fused(self) -> FusedBlock:
        """The same function in a few kernels, with the parameters and the mode of now."""
        config, attention, mlp = self.config, self.attention, self.mlp
        modules = (self.norm_1, attention.qkv, attention.projection, self.norm_2, mlp.up, mlp.down)
        return FusedBlock(config.heads, config.head_width, config.norm_eps, ACTIVATIONS[config.activation],
                          config.dropout if self.training else 0.0, *((m.weight, m.bias) for m in modules))


class LastPosition(nn.Module):
    kind, axes = "last_position", ("position", "feature")

    def forward(self, x: Tensor) -> Tensor:
        self.attributes = {"position": x.size(1) - 1}
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


class GPT(nn.Module):
    """Token ids to logits, and with targets the loss.  Radford et al. 2019, with dropout and exact GELU."""

    parameter_axes = {"head_table": ("row", "feature")}
    # The main step that each part of the model belongs to; a part not named here is one of its own.
    chapters = {"positions": "embedding", "token_embedding": "embedding", "position_embedding": "embedding",
                "embedding_sum": "embedding", "embedding_dropout": "embedding", "final_norm": "head",
                "last_position": "head", "cross_entropy": "loss"}

    def __init__(self, config: Config, explicit: bool = True):
        super().__init__()
        self.config = config
        self.positions = Positions()
        self.token_embedding = Embedding(config.vocabulary, config.width)
        self.position_embedding = Embedding(config.context, config.width)
        self.embedding_sum = Add()
        self.embedding_dropout = Dropout(config.dropout, ("position", "feature"))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.final_norm = LayerNorm(config.width, config.norm_eps)
        self.last_position = LastPosition()
        self.head = TiedHead()
        self.head_table = None if config.tied else nn.Parameter(torch.empty(config.vocabulary, config.width))
        self.cross_entropy = CrossEntropy()
        self.loss = Mean()
        self.explicit = explicit
        initialise(self)

    @property
    def explicit(self) -> bool:
        """Whether every step is a module call, as a recording needs it, and dropout draws our own masks."""
        return self._explicit

    @explicit.setter
    def explicit(self, explicit: bool) -> None:
        self._explicit = explicit
        for module in self.modules():
            if hasattr(type(module), "explicit") and module is not self:
                module.explicit = explicit

    @property
    def output_table(self) -> Tensor:
        """The table (V, D) that makes the logits."""
        return self.token_embedding.weight if self.head_table is None else self.head_table

    def forward(self, ids: Tensor, targets: Tensor | None = None, cache: Cache | None = None,
                padding: Tensor | None = None,
                blocks: Sequence[FusedBlock] | None = None) -> tuple[Tensor, Tensor | None]:
        """Logits and mean loss.

        `ids`, `targets`: (B, T) int64.  With targets, the logits of all positions (B, T, V) and the
        loss; without, the logits of the last position (B, 1, V), all that generation needs, and None.
        With a `cache`, `ids` follow what it holds, and are added to it.  `padding`: (B,) int64, how many
        ids at the start of each row (the cached ones counted) only fill it up; nothing looks at them.
        `blocks`: the fused forms of the blocks, from who has looked them up before (`fused_blocks`).
        Raises `UserError` when the positions exceed the context or the cache.
        """
        T, past = ids.size(1), 0 if cache is None else cache.length
        self._check_length(past + T, cache)
        tokens = self.token_embedding(ids)                                    # (B, T, D)
        places = self._places(ids, past, padding)                             # (T, D) or (B, T, D)
        x = self.embedding_dropout(self.embedding_sum(tokens, places))        # (B, T, D)
        layers: Iterable = [None] * len(self.blocks) if cache is None else cache.layers
        allowed = None if padding is None else seen(padding, T, past + T)     # (B, 1, T, S)
        for block, layer in zip(blocks or self.blocks, layers, strict=True):
            x = block(x, layer, allowed)
        x = self.final_norm(x)
        if targets is None:
            last = self.last_position(x) if self.explicit else x[:, -1:]      # (B, 1, D)
            return self.head(last, self.output_table), None                   # (B, 1, V)
        logits = self.head(x, self.output_table)                              # (B, T, V)
        return logits, self.loss(self.cross_entropy(logits, targets))

    def fused_blocks(self) -> list[FusedBlock] | None:
        """The blocks' fused forms, for many calls between which no parameter is replaced; None when `explicit`."""
        return None if self._explicit else [block.fused() for block in self.blocks]

    def _check_length(self, length: int, cache: Cache | None) -> None:
        if length > self.config.context:
            raise UserError(f"{length} tokens do not fit the context of {self.config.context}: "
                            "shorten the text or choose a longer context")
        if cache is not None and length > cache.capacity:
            raise UserError(f"{length} tokens do not fit a cache of {cache.capacity}: make a larger one")

    def _places(self, ids: Tensor, past: int, padding: Tensor | None) -> Tensor:
        """The rows of the position table for `ids`, of which the first stands at position `past`."""
        if padding is not None:  # each row counts from its own first token
            places = torch.arange(past, past + ids.size(1), device=ids.device) - padding.unsqueeze(1)
            return self.position_embedding(places.clamp(min=0))               # (B, T, D)
        if self.explicit:
            return self.position_embedding(self.positions(ids, past))         # (T, D)
        return self.position_embedding.weight[past:past + ids.size(1)]        # (T, D)

    def crop_context(self, context: int) -> None:
        """Keep the first `context` positions only; a shorter context is cheaper.  Changes the model in place.

        Raises `UserError` for a context longer than the model has.
        """
        if not 1 <= context <= self.config.context:
            raise UserError(f"a context of {self.config.context} can be cropped to 1 … {self.config.context} "
                            f"positions, not to {context}")
        self.config = replace(self.config, context=context)
        table = self.position_embedding
        table.weight = nn.Parameter(table.weight.detach()[:context].clone())
        table.num_embeddings = context

    def parameter_count(self) -> int:
        """Independent trainable numbers; the table that embeds and predicts counts once."""
        return sum(p.numel() for p in self.parameters())


def seen(padding: Tensor, queries: int, keys: int) -> Tensor:
    """Which positions each of the last `queries` may see when row b starts with padding[b] of no meaning.

    Padding sees itself alone, since a softmax over nothing is not a number.  Returns bool (B, 1, T, S).
    """
    position = torch.arange(keys, device=padding.device)
    real = position >= padding.view(-1, 1, 1)                                   # (B, 1, S)
    itself = position == position[keys - queries:].view(-1, 1)                  # (T, S)
    return (causal(queries, keys, padding.device) & (real | itself)).unsqueeze(1)


@torch.no_grad()
def initialise(model: GPT) -> None:
    """N(0, 0.02²) weights, zero biases, residual projections divided by √(2L) (Radford et al. 2019).

    The order of the draws is part of the recipe: a seed then gives the same model everywhere.  The
    table of the head is drawn at the end; when it is the shared one, that is its second draw.
    """
    table = model.token_embedding.weight
    nn.Linear(table.size(1), table.size(0), bias=False)  # a head of its own would draw its default here
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
    nn.init.normal_(model.output_table, std=0.02)
    for block in model.blocks:
        for projection in (block.attention.projection, block.mlp.down):
            nn.init.normal_(projection.weight, std=0.02 / (2 * len(model.blocks)) ** 0.5)
