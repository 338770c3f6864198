"""A GPT-2-style language model in which every operation is a module of `tracer.model.layers`.

Read `GPT.forward` and `Block.forward` first; shapes stand in trailing comments.  B is the batch,
T the number of positions, D the width, H the heads, V the vocabulary.

A model is `explicit` or not.  Explicit, every operation is a module call, and `details` are kept: what a
recording needs, and the form whose bits the recordings hold.  Otherwise a block is a few kernels
(`tracer.model.fused`), dropout is torch's own, and nothing is kept: the same function, faster.  Hooks then see
a block as a whole.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.fused import FusedBlock, activation, causal, norm
from tracer.model.kv_cache import KVCache, LayerCache
from tracer.model.layers import (
    Add,
    AppendRows,
    CausalMask,
    ConcatenateHeads,
    CrossEntropy,
    Dropout,
    Embedding,
    LastPosition,
    Mean,
    Positions,
    ScaledScores,
    Softmax,
    SplitHeads,
    TiedHead,
    WeightedSum,
    in_role,
    make_activation,
    make_linear,
    make_norm,
)
from tracer.model.llama_layers import RepeatHeads, Rotary, Rotation, SplitGroupedHeads, rotation


@runtime_checkable
class HasBothForms(Protocol):
    """A module that computes one thing in two ways; see above."""

    explicit: bool


class Attention(nn.Module):
    """Causal multi-head self-attention with one fused product for Q, K and V."""

    def __init__(self, config: Config):
        super().__init__()
        feature = ("feature", config.width)
        weights = ("head", "query_position", "key_position")
        self.qkv = in_role("query_key_value", make_linear(config, feature, ("qkv", config.qkv_width)))
        group = config.heads // config.key_value_heads
        self.split = (SplitHeads(config.heads, config.head_width) if group == 1 else
                      SplitGroupedHeads(config.heads, config.key_value_heads, config.head_width))
        rotary = config.position == "rotary"
        self.query_rotary, self.key_rotary = (
            in_role(role, Rotary(config.head_width, config.rope_base)) if rotary else None for role in ("query", "key"))
        self.key_repeat, self.value_repeat = (
            in_role(role, RepeatHeads(group)) if group > 1 else None for role in ("key", "value"))
        self.key_cache, self.value_cache = in_role("key", AppendRows()), in_role("value", AppendRows())
        self.scores = ScaledScores()
        self.mask = CausalMask() if config.causal else None
        self.softmax = in_role("attention", Softmax(weights))
        self.weights_dropout = in_role("attention_weights", Dropout(config.dropout, weights))
        self.weighted_sum = WeightedSum()
        self.concatenate = ConcatenateHeads(config.head_width)
        self.projection = in_role("attention_output", make_linear(config, feature, feature))
        self.dropout = in_role("attention_output", Dropout(config.dropout, ("position", "feature")))

    def forward(self, x: Tensor, cache: LayerCache | None = None, allowed: Tensor | None = None,
                positions: Tensor | Rotation | None = None) -> Tensor:
        query, key, value = self.split(self.qkv(x))                         # (B, H or K, T, D/H) each
        if self.query_rotary is not None and self.key_rotary is not None:
            query, key = self.query_rotary(query, positions), self.key_rotary(key, positions)
        if cache is not None:
            key, value = self._with_cached(cache, key, value)               # (B, H or K, S, D/H) each
        if self.key_repeat is not None and self.value_repeat is not None:
            key, value = self.key_repeat(key), self.value_repeat(value)     # (B, H, S, D/H) each
        scores = self.scores(query, key)                                    # (B, H, T, S)
        if self.mask is None:
            pass
        elif allowed is not None:
            scores = self.mask(scores, allowed)
        elif query.size(2) > 1 or key.size(2) == 1:  # one new position may see all that are cached
            scores = self.mask(scores)
        weights = self.softmax(scores)                                      # (B, H, T, S)
        heads = self.weighted_sum(self.weights_dropout(weights), value)     # (B, H, T, D/H)
        return self.dropout(self.projection(self.concatenate(heads)))       # (B, T, D)

    def _with_cached(self, cache: LayerCache, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        past_key, past_value = cache.so_far()
        cache.append(key, value)
        if past_key.size(2) == 0:
            return key, value
        return self.key_cache(past_key, key), self.value_cache(past_value, value)


class MLP(nn.Module):
    """Two linear maps with an activation between, at each position by itself: (B, T, D) → (B, T, D).

    A gated activation reads a third one, of the same x.
    """

    def __init__(self, config: Config):
        super().__init__()
        feature, hidden = ("feature", config.width), ("hidden", config.hidden_width)
        self.gate = in_role("mlp_gate", make_linear(config, feature, hidden)) if config.gated else None
        self.up = in_role("mlp_up", make_linear(config, feature, hidden))
        activation = make_activation(config)
        self.gated, self.gelu = (activation if config.gated else None), (None if config.gated else activation)
        self.down = in_role("mlp_down", make_linear(config, hidden, feature))
        self.dropout = in_role("mlp_output", Dropout(config.dropout, ("position", "feature")))

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(self._activated(x)))                  # (B, T, D) → (B, T, F) → (B, T, D)

    def _activated(self, x: Tensor) -> Tensor:
        made: Tensor
        if self.gate is not None and self.gated is not None:
            made = self.gated(self.up(x), gate=self.gate(x))
        elif self.gelu is not None:
            made = self.gelu(self.up(x))
        return made                                                         # (B, T, F)


class Block(nn.Module):
    """Attention, then the MLP, each added to what it was given: (B, T, D) → (B, T, D)."""

    explicit = True

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.norm_1 = in_role("attention", make_norm(config))
        self.attention = Attention(config)
        self.residual_1 = in_role("attention", Add())
        self.norm_2 = in_role("mlp", make_norm(config))
        self.mlp = MLP(config)
        self.residual_2 = in_role("mlp", Add())

    def forward(self, x: Tensor, cache: LayerCache | None = None, allowed: Tensor | None = None,
                places: Tensor | Rotation | None = None) -> Tensor:
        """`places`: where positions are rotary, the positions; of a fused block the rotation by them."""
        if not self.explicit:
            return self.fused()(x, cache, allowed, places)
        x = self.residual_1(x, self.attention(self.norm_1(x), cache, allowed, places))
        return self.residual_2(x, self.mlp(self.norm_2(x)))

    def fused(self) -> FusedBlock:
        """The same function in a few kernels, with the parameters and the mode of now."""
        config, attention, mlp = self.config, self.attention, self.mlp
        products = (attention.qkv, attention.projection, mlp.up, mlp.down, *filter(None, [mlp.gate]))
        return FusedBlock(config.heads, config.key_value_heads, config.head_width,
                          config.dropout if self.training else 0.0, config.causal, norm(config), activation(config),
                          own_parameters(self.norm_1), own_parameters(self.norm_2),
                          *((m.weight, m.bias) for m in products))


def own_parameters(module: nn.Module) -> dict[str, Tensor]:
    """The parameters that the module itself holds, by name."""
    return {name: parameter for name, parameter in module._parameters.items() if parameter is not None}


class GPT(nn.Module):
    """Token ids to logits, and with targets the loss.  Radford et al. 2019, with dropout and exact GELU.

    Choices of the config make it Llama (Touvron et al. 2023), or something between.
    """

    parameter_axes = {"head_table": ("row", "feature")}
    # The chapter that each part of the model belongs to; a part not named here is one of its own.
    chapters = {"positions": "embedding", "token_embedding": "embedding", "position_embedding": "embedding",
                "embedding_sum": "embedding", "embedding_dropout": "embedding", "final_norm": "head",
                "last_position": "head", "cross_entropy": "loss"}

    def __init__(self, config: Config, explicit: bool = True):
        super().__init__()
        self.config = config
        self.positions = Positions()
        self.token_embedding = in_role("token", Embedding(config.vocabulary, config.width))
        learned = config.position == "learned"
        self.position_embedding = in_role("position", Embedding(config.context, config.width)) if learned else None
        self.embedding_sum = in_role("embedding", Add()) if learned else None
        self.embedding_dropout = in_role("embedding", Dropout(config.dropout, ("position", "feature")))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.final_norm = in_role("final", make_norm(config))
        self.last_position = LastPosition()
        self.head = TiedHead()
        self.head_table = None if config.tied else nn.Parameter(torch.empty(config.vocabulary, config.width))
        self.cross_entropy = CrossEntropy()
        self.loss = in_role("loss", Mean())
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
            if module is not self and isinstance(module, HasBothForms):
                module.explicit = explicit

    @property
    def output_table(self) -> Tensor:
        """The table (V, D) that makes the logits."""
        return self.token_embedding.weight if self.head_table is None else self.head_table

    def forward(self, ids: Tensor, targets: Tensor | None = None, cache: KVCache | None = None,
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
        if padding is not None and not self.config.causal:
            raise UserError("a model without a causal mask reads rows of one length: it has no padding")
        x, places = self._embedded(ids, past, padding)                        # (B, T, D)
        layers: Iterable[LayerCache | None] = [None] * len(self.blocks) if cache is None else cache.layers
        forms: Iterable[Callable[..., Tensor]] = blocks or self.blocks
        allowed = None if padding is None else seen(padding, T, past + T)     # (B, 1, T, S)
        for block, layer in zip(forms, layers, strict=True):
            x = block(x, layer, allowed, places)
        x = self.final_norm(x)
        if targets is None:
            last = self.last_position(x) if self.explicit else x[:, -1:]      # (B, 1, D)
            return self.head(last, self.output_table), None                   # (B, 1, V)
        logits = self.head(x, self.output_table)                              # (B, T, V)
        return logits, self.loss(self.cross_entropy(logits, targets))

    def fused_blocks(self) -> list[FusedBlock] | None:
        """The blocks' fused forms, for many calls between which no parameter is replaced; None when `explicit`."""
        return None if self._explicit else [block.fused() for block in self.blocks if isinstance(block, Block)]

    def _check_length(self, length: int, cache: KVCache | None) -> None:
        if length > self.config.context:
            raise UserError(f"{length} tokens do not fit the context of {self.config.context}: "
                            "shorten the text or choose a longer context")
        if cache is not None and not self.config.causal:
            raise UserError("what a model without a causal mask keeps of a token changes with the tokens that follow: "
                            "it has no cache")
        if cache is not None and length > cache.capacity:
            raise UserError(f"{length} tokens do not fit a cache of {cache.capacity}: make a larger one")

    def _embedded(self, ids: Tensor, past: int, padding: Tensor | None) -> tuple[Tensor, Tensor | Rotation | None]:
        """What goes into the blocks (B, T, D), and what they need to know of the positions.

        The first of `ids` stands at position `past`.
        """
        tokens = self.token_embedding(ids)                                    # (B, T, D)
        if self.position_embedding is not None and self.embedding_sum is not None:
            if padding is None and not self.explicit:
                rows = self.position_embedding.weight[past:past + ids.size(1)]      # (T, D)
            else:
                rows = self.position_embedding(self._positions(ids, past, padding))  # (T, D) or (B, T, D)
            return self.embedding_dropout(self.embedding_sum(tokens, rows)), None
        positions = self._positions(ids, past, padding)
        places = positions if self.explicit else rotation(positions, self.config.head_width, self.config.rope_base,
                                                          tokens.dtype)
        return self.embedding_dropout(tokens), places

    def _positions(self, ids: Tensor, past: int, padding: Tensor | None) -> Tensor:
        """Of each id: (T,), or (B, T) where each row counts from its own first token."""
        if padding is None:
            return self.positions(ids, past)
        places = torch.arange(past, past + ids.size(1), device=ids.device) - padding.unsqueeze(1)
        return places.clamp(min=0)

    def crop_context(self, context: int) -> None:
        """Keep the first `context` positions only; a shorter context is cheaper.  Changes the model in place.

        Raises `UserError` for a context longer than the model has.
        """
        if not 1 <= context <= self.config.context:
            raise UserError(f"a context of {self.config.context} can be cropped to 1 … {self.config.context} "
                            f"positions, not to {context}")
        self.config = replace(self.config, context=context)
        if (table := self.position_embedding) is not None:
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
def initialise(model: GPT, std: float = 0.02) -> None:
    """N(0, std²) weights, zero biases, residual projections divided by √(2L) (Radford et al. 2019).

    The order of the draws is part of the recipe: a seed then gives the same model everywhere.  The
    table of the head is drawn at the end; when it is the shared one, that is its second draw.
    """
    table = model.token_embedding.weight
    nn.Linear(table.size(1), table.size(0), bias=False)  # a head of its own would draw its default here
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    nn.init.normal_(model.output_table, std=std)
    for block in model.modules():
        for projection in (block.attention.projection, block.mlp.down) if isinstance(block, Block) else ():
            nn.init.normal_(projection.weight, std=std / (2 * len(model.blocks)) ** 0.5)
