"""A GPT-2-style language model in which every step is a module, so that hooks see all of it.

Read `GPT.forward` and `Block.forward` first; shapes stand in trailing comments.  B is the batch,
T the number of positions, D the width, H the heads, V the vocabulary.

Modules that compute one step carry `kind`, the name of the operation in `tracer.ops`, and `axes`,
the names of the axes of what they return (the batch axis apart).  What a step uses or makes besides
its result (a mask, a mean) it leaves in `details`.  That is all a recording needs to know of it.
"""

from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tracer.errors import UserError
from tracer.ops.mcg31m1 import mcg31m1
from tracer.random_words import next_word


@dataclass(frozen=True)
class Config:
    """The shape of a model.  The defaults are the teaching model: 810,960 parameters."""

    vocabulary: int = 50257
    context: int = 16
    width: int = 16
    heads: int = 2
    blocks: int = 2
    dropout: float = 0.1

    def __post_init__(self):
        for name in ("vocabulary", "context", "width", "heads", "blocks"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.width % self.heads:
            raise UserError(f"width {self.width} cannot be cut into {self.heads} heads: "
                            f"choose a width that {self.heads} divides")
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout must be at least 0 and below 1, not {self.dropout}")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    def to_json(self) -> dict:
        return asdict(self)


class Positions(nn.Module):
    kind, axes = "positions", ("position",)

    def forward(self, ids: Tensor) -> Tensor:
        return torch.arange(ids.size(-1), device=ids.device)  # (T,)


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
    """Inverted dropout (Srivastava et al. 2014) whose mask is the same on every processor.

    The mask is drawn from one word of torch's generator, row-major over all of `x`: 1 keeps, 0 drops.
    """

    kind = "dropout"

    def __init__(self, p: float, axes: tuple[str, ...]):
        super().__init__()
        self.p, self.axes = p, axes
        self.outputs = {"word": (), "mask": axes, "out": axes}
        self.attributes, self.details = {"p": p}, {}

    def forward(self, x: Tensor) -> Tensor:
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

    def __init__(self, width: int):
        super().__init__(width, eps=1e-5)
        self.attributes, self.details = {"eps": self.eps}, {}

    def forward(self, x: Tensor) -> Tensor:
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
        return F.linear(x, self.weight, self.bias)  # (B, T, in) → (B, T, out)


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
        return (query @ key.transpose(-2, -1)) * query.size(-1) ** -0.5  # (B, H, T, T)


class CausalMask(nn.Module):
    kind, axes = "causal_mask", ("head", "query_position", "key_position")

    def forward(self, scores: Tensor) -> Tensor:
        T = scores.size(-1)
        allowed = torch.ones(T, T, dtype=torch.bool, device=scores.device).tril()
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
        return weights @ value  # (B, H, T, D/H)


class ConcatenateHeads(nn.Module):
    kind, axes = "concatenate_heads", ("position", "feature")

    def __init__(self, head_width: int):
        super().__init__()
        self.attributes = {"head_width": head_width}

    def forward(self, x: Tensor) -> Tensor:
        B, H, T, d = x.shape
        return x.transpose(1, 2).reshape(B, T, H * d)


class Attention(nn.Module):
    """Causal multi-head self-attention with one fused product for Q, K and V."""

    def __init__(self, config: Config):
        super().__init__()
        D, feature = config.width, ("feature", config.width)
        weights = ("head", "query_position", "key_position")
        self.qkv = Linear(feature, ("qkv", 3 * D))
        self.split = SplitHeads(config.heads, config.head_width)
        self.scores = ScaledScores()
        self.mask = CausalMask()
        self.softmax = Softmax(weights)
        self.weights_dropout = Dropout(config.dropout, weights)
        self.weighted_sum = WeightedSum()
        self.concatenate = ConcatenateHeads(config.head_width)
        self.projection = Linear(feature, feature)
        self.dropout = Dropout(config.dropout, ("position", "feature"))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.split(self.qkv(x))                     # (B, H, T, D/H) each
        weights = self.softmax(self.mask(self.scores(query, key)))      # (B, H, T, T)
        heads = self.weighted_sum(self.weights_dropout(weights), value)  # (B, H, T, D/H)
        return self.dropout(self.projection(self.concatenate(heads)))   # (B, T, D)


class GELU(nn.Module):
    """Exact (erf) GELU; historical GPT-2 used the tanh approximation."""

    kind, axes = "gelu", ("position", "hidden")

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x)


class MLP(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        feature, hidden = ("feature", config.width), ("hidden", 4 * config.width)
        self.up = Linear(feature, hidden)
        self.gelu = GELU()
        self.down = Linear(hidden, feature)
        self.dropout = Dropout(config.dropout, ("position", "feature"))

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(self.gelu(self.up(x))))  # (B, T, D) → (B, T, 4D) → (B, T, D)


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.norm_1 = LayerNorm(config.width)
        self.attention = Attention(config)
        self.residual_1 = Add()
        self.norm_2 = LayerNorm(config.width)
        self.mlp = MLP(config)
        self.residual_2 = Add()

    def forward(self, x: Tensor) -> Tensor:
        x = self.residual_1(x, self.attention(self.norm_1(x)))
        return self.residual_2(x, self.mlp(self.norm_2(x)))


class LastPosition(nn.Module):
    kind, axes = "last_position", ("position", "feature")

    def forward(self, x: Tensor) -> Tensor:
        self.attributes = {"position": x.size(1) - 1}
        return x[:, -1:]  # (B, 1, D)


class TiedHead(nn.Module):
    """Logits from the token table itself; a head has no parameter of its own."""

    kind, axes = "tied_head", ("position", "vocabulary")

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        return F.linear(x, table)  # (B, T, V)


class CrossEntropy(nn.Module):
    """Next-token cross-entropy of each position in nats.

    The loss comes from torch's fused kernel; the details only say what went into it, and carry no
    gradient.
    """

    kind, axes = "cross_entropy", ("position",)
    outputs = {name: ("position",) for name in ("log_sum_exp", "target_logit", "out", "target_probability")}

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)
        with torch.no_grad():
            self.details = {"log_sum_exp": logits.logsumexp(dim=-1),
                            "target_logit": logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1),
                            "target_probability": (-loss).exp()}  # (B, T) each
        return loss  # (B, T)


class Mean(nn.Module):
    kind, axes = "mean", ()

    def forward(self, x: Tensor) -> Tensor:
        return x.mean()


class GPT(nn.Module):
    """Token ids to logits, and with targets the loss.  Radford et al. 2019, with dropout and exact GELU."""

    # The main step that each part of the model belongs to; a part not named here is one of its own.
    chapters = {"positions": "embedding", "token_embedding": "embedding", "position_embedding": "embedding",
                "embedding_sum": "embedding", "embedding_dropout": "embedding", "final_norm": "head",
                "last_position": "head", "cross_entropy": "loss"}

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.positions = Positions()
        self.token_embedding = Embedding(config.vocabulary, config.width)
        self.position_embedding = Embedding(config.context, config.width)
        self.embedding_sum = Add()
        self.embedding_dropout = Dropout(config.dropout, ("position", "feature"))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.final_norm = LayerNorm(config.width)
        self.last_position = LastPosition()
        self.head = TiedHead()
        self.cross_entropy = CrossEntropy()
        self.loss = Mean()
        initialise(self)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Logits and mean loss.

        `ids`, `targets`: (B, T) int64.  With targets, the logits of all positions (B, T, V) and the
        loss; without, the logits of the last position (B, 1, V), all that generation needs, and None.
        Raises `UserError` when T exceeds the context.
        """
        if ids.size(1) > self.config.context:
            raise UserError(f"{ids.size(1)} tokens do not fit the context of {self.config.context}: "
                            "shorten the text or choose a longer context")
        tokens = self.token_embedding(ids)                                    # (B, T, D)
        places = self.position_embedding(self.positions(ids))                 # (T, D)
        x = self.embedding_dropout(self.embedding_sum(tokens, places))        # (B, T, D)
        for block in self.blocks:
            x = block(x)
        x = self.final_norm(x)
        if targets is None:
            return self.head(self.last_position(x), self.token_embedding.weight), None  # (B, 1, V)
        logits = self.head(x, self.token_embedding.weight)                    # (B, T, V)
        return logits, self.loss(self.cross_entropy(logits, targets))

    def parameter_count(self) -> int:
        """Independent trainable numbers; the table that embeds and predicts counts once."""
        return sum(p.numel() for p in self.parameters())


@torch.no_grad()
def initialise(model: GPT) -> None:
    """N(0, 0.02²) weights, zero biases, residual projections divided by √(2L) (Radford et al. 2019).

    The order of the draws is part of the recipe: a seed then gives the same model everywhere.  The
    shared table is drawn a second time at the end, where an untied head would stand.
    """
    table = model.token_embedding.weight
    nn.Linear(table.size(1), table.size(0), bias=False)  # a head of its own would draw its default here
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
    nn.init.normal_(table, std=0.02)
    for block in model.blocks:
        for projection in (block.attention.projection, block.mlp.down):
            nn.init.normal_(projection.weight, std=0.02 / (2 * len(model.blocks)) ** 0.5)
