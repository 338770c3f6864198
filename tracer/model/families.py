"""The two other families of Transformers: an encoder, and an encoder–decoder.

Both are the parts of `tracer.model.gpt` put together otherwise.  An encoder looks at all of its text, left and right
(Devlin et al. 2018).  A decoder block looks besides at what an encoder made of another text, by cross-attention:
queries from the one, keys and values from the other (Vaswani et al. 2017).  Norms stand before each part, as in GPT-2.
Shapes stand in trailing comments: B is the batch, T the positions of the text that looks, S those of the text that is
looked at, D the width, H the heads, V the vocabulary.
"""

import torch
from torch import Tensor, nn

from tracer.model.config import Config
from tracer.model.gpt import MLP, Attention, Block
from tracer.model.layers import (
    Add,
    CausalMask,
    ConcatenateHeads,
    Embedding,
    ScaledScores,
    Softmax,
    TiedHead,
    WeightedSum,
    make_linear,
    make_norm,
)


class CrossAttention(nn.Module):
    """Queries from one text, keys and values from another."""

    def __init__(self, config: Config):
        super().__init__()
        feature = ("feature", config.width)
        self.heads, self.head_width = config.heads, config.head_width
        self.query = make_linear(config, feature, feature)
        self.key_value = make_linear(config, feature, ("key_value", 2 * config.width))
        self.scores, self.mask = ScaledScores(), CausalMask()
        self.softmax = Softmax(("head", "query_position", "key_position"))
        self.weighted_sum = WeightedSum()
        self.concatenate = ConcatenateHeads(config.head_width)
        self.projection = make_linear(config, feature, feature)

    def forward(self, x: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """`x` (B, T, D) looks at `memory` (B, S, D), where `seen` (B, 1, 1, S) is true."""
        query = self._split(self.query(x))                                  # (B, H, T, D/H)
        key, value = map(self._split, self.key_value(memory).chunk(2, -1))  # (B, H, S, D/H) each
        weights = self.softmax(self.mask(self.scores(query, key), seen))    # (B, H, T, S)
        made: Tensor = self.projection(self.concatenate(self.weighted_sum(weights, value)))
        return made                                                         # (B, T, D)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, self.head_width).transpose(1, 2)


class DecoderBlock(nn.Module):
    """A block with cross-attention between its two halves: (B, T, D) → (B, T, D)."""

    def __init__(self, config: Config):
        super().__init__()
        self.norm_1, self.attention, self.residual_1 = make_norm(config), Attention(config), Add()
        self.norm_cross, self.cross_attention, self.residual_cross = make_norm(config), CrossAttention(config), Add()
        self.norm_2, self.mlp, self.residual_2 = make_norm(config), MLP(config), Add()

    def forward(self, x: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        x = self.residual_1(x, self.attention(self.norm_1(x)))
        x = self.residual_cross(x, self.cross_attention(self.norm_cross(x), memory, seen))
        made: Tensor = self.residual_2(x, self.mlp(self.norm_2(x)))
        return made


class Encoder(nn.Module):
    """Ids to vectors and logits at every position, each of which looks wherever it is allowed to."""

    def __init__(self, config: Config):
        super().__init__()
        self.token_embedding = Embedding(config.vocabulary, config.width)
        self.position_embedding = Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.final_norm = make_norm(config)
        self.head = TiedHead()

    def read(self, ids: Tensor, allowed: Tensor) -> Tensor:
        """Vectors (B, S, D) of `ids` (B, S); `allowed`: bool, broadcast to (B, 1, S, S)."""
        x = self.token_embedding(ids) + self.position_embedding.weight[:ids.size(1)]
        for block in self.blocks:
            x = block(x, None, allowed)
        made: Tensor = self.final_norm(x)
        return made

    def forward(self, ids: Tensor, allowed: Tensor) -> Tensor:
        """Logits (B, S, V)."""
        logits: Tensor = self.head(self.read(ids, allowed), self.token_embedding.weight)
        return logits


class EncoderDecoder(nn.Module):
    """Two texts to logits: the second is written while the first is looked at.  One token table serves all."""

    def __init__(self, config: Config, fill: int):
        """`fill`: the id that fills a source up; nothing looks at it."""
        super().__init__()
        self.fill = fill
        self.encoder = Encoder(config)
        self.position_embedding = Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.blocks))
        self.final_norm = make_norm(config)
        self.head = TiedHead()

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Of ids (B, S) the vectors (B, S, D), and which of them are seen: bool (B, 1, 1, S)."""
        seen = (source != self.fill)[:, None, None]
        return self.encoder.read(source, seen), seen

    def decode(self, ids: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """Logits (B, T, V) after each of `ids` (B, T), which look at `memory`."""
        table = self.encoder.token_embedding
        x = table(ids) + self.position_embedding.weight[:ids.size(1)]       # (B, T, D)
        for block in self.blocks:
            x = block(x, memory, seen)
        logits: Tensor = self.head(self.final_norm(x), table.weight)
        return logits

    def forward(self, source: Tensor, ids: Tensor) -> Tensor:
        return self.decode(ids, *self.encode(source))


@torch.no_grad()
def draw_weights(model: nn.Module, std: float) -> None:
    """N(0, std²) matrices and tables, zero biases; norms stay what they are."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
