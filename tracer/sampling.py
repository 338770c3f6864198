"""From the logits of the last position to one id, each step a module so that it is recorded."""

import math

import torch
from torch import Tensor, nn

from tracer.errors import UserError
from tracer.model import Softmax

SMALLEST_TEMPERATURE = 1e-6  # far below it, logits divided by it leave the range of float32


class Temperature(nn.Module):
    kind, axes = "temperature", ("position", "vocabulary")

    def __init__(self, temperature: float):
        super().__init__()
        self.temperature, self.attributes = temperature, {"temperature": temperature}

    def forward(self, logits: Tensor) -> Tensor:
        return logits / self.temperature  # (1, V)


class TopK(nn.Module):
    """The k largest logits and their ids, largest first, ties to the lower id.

    Division by the temperature may round two logits into one, so the order is taken before it.
    """

    kind = "top_k"
    outputs = {"ids": ("candidate",), "kept": ("candidate",)}

    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(self, logits: Tensor, undivided: Tensor) -> tuple[Tensor, Tensor]:
        ids = undivided[0].sort(descending=True, stable=True)[1][: self.k]
        return ids, logits[0, ids]  # (k,), (k,)


class Cumulative(nn.Module):
    kind, axes = "cumulative", ("candidate",)

    def forward(self, probabilities: Tensor) -> Tensor:
        return probabilities.cumsum(dim=-1)


class Draw(nn.Module):
    """Inverse transform sampling: the first candidate whose cumulative probability exceeds `uniform`."""

    kind = "draw"
    outputs = {"choice": (), "token": ()}

    def forward(self, uniform: Tensor, cumulative: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        choice = (uniform >= cumulative[:-1]).sum()
        return choice, ids[choice]


class Sampler(nn.Module):
    """One id from logits (1, V): ÷ temperature, keep k, softmax, draw with one number in [0, 1)."""

    def __init__(self, temperature: float, top_k: int, vocabulary: int):
        super().__init__()
        if not temperature > 0:
            raise UserError(f"temperature must be above 0, not {temperature}")
        if not SMALLEST_TEMPERATURE <= temperature < math.inf:
            raise UserError(f"temperature must be from {SMALLEST_TEMPERATURE} on and finite, not {temperature}")
        if not 1 <= top_k <= vocabulary:
            raise UserError(f"top-k must be from 1 to the vocabulary's {vocabulary}, not {top_k}")
        self.temperature = Temperature(temperature)
        self.top_k = TopK(top_k)
        self.softmax = Softmax(("candidate",))
        self.cumulative = Cumulative()
        self.draw = Draw()

    def forward(self, logits: Tensor, uniform: Tensor) -> Tensor:
        ids, kept = self.top_k(self.temperature(logits), logits)
        return self.draw(uniform, self.cumulative(self.softmax(kept)), ids)[1]


def uniform_numbers(seed: int):
    """Endless float32 numbers in [0, 1) from torch's own generator, one a round."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield torch.rand((), generator=generator)
