"""From the logits of the last position to one id, each step a module so that it is recorded."""

import math
from dataclasses import dataclass

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


def multinomial_choices(seed: int):
    """What `torch.multinomial` takes of the probabilities sent in, one after the other, from the same seed.

    It draws an exponential number q for every candidate and takes the largest p / q, so that the same seed
    says nothing about which candidate our draw takes: only how often each is taken agrees.
    """
    generator = torch.Generator().manual_seed(seed)
    choice = None
    while True:
        probabilities = yield choice
        choice = int(torch.multinomial(probabilities, 1, generator=generator))


@dataclass(frozen=True)
class Sampling:
    """How to choose an id.  Temperature 0 takes the largest logit; `top_k`, `top_p`: None keeps all.

    `top_p`: of the candidates, largest first, as few as hold that much probability together (Holtzman
    et al. 2020), after `top_k`.  Row r of a batch draws with seed + r.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 7

    def __post_init__(self):
        if self.temperature != 0 and not SMALLEST_TEMPERATURE <= self.temperature < math.inf:
            raise UserError(f"temperature must be 0, or from {SMALLEST_TEMPERATURE} on and finite, not "
                            f"{self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise UserError(f"top-k must be at least 1, not {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UserError(f"top-p must be above 0 and at most 1, not {self.top_p}")


def choose(logits: Tensor, uniforms: Tensor | None, how: Sampling) -> Tensor:
    """One id (B,) for each row of logits (B, V), with one number in [0, 1) a row, as `Sampler` draws it.

    Candidates stand largest first, ties by id; the first whose cumulative probability exceeds the row's
    number is chosen.  At temperature 0 no number is needed.
    """
    if how.temperature == 0:
        return logits.argmax(dim=-1)
    if logits.element_size() < 4:  # in 16 bits the cumulative probabilities of many candidates could not be told apart
        logits = logits.float()
    ids = largest(logits, how.top_k)                                        # (B, k)
    probabilities = (logits.gather(-1, ids) / how.temperature).softmax(dim=-1)
    last = torch.tensor(ids.size(-1) - 1, device=ids.device)
    if how.top_p is not None:
        inside = probabilities.cumsum(dim=-1) - probabilities < how.top_p
        inside[:, 0] = True  # also where float32 knows no number as small as top_p
        last = inside.sum(dim=-1, keepdim=True) - 1                         # (B, 1)
        probabilities = probabilities * inside
        probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
    passed = (uniforms.unsqueeze(-1) >= probabilities.cumsum(dim=-1)).sum(dim=-1, keepdim=True)
    return ids.gather(-1, passed.minimum(last)).squeeze(-1)


def largest(logits: Tensor, k: int | None = None) -> Tensor:
    """Ids (B, k) of the k largest logits (B, V) of each row, largest first, ties to the lower id."""
    count = logits.size(-1) if k is None else min(k, logits.size(-1))
    if count > logits.size(-1) // 4:
        return _sorted(logits)[:, :count]
    values, ids = logits.topk(count)  # much faster than sorting all, but ties come in any order
    if ((logits >= values[:, -1:]).sum(dim=-1) > count).any():
        return _sorted(logits)[:, :count]
    ids = ids.sort(dim=-1)[0]
    return ids.gather(-1, _sorted(logits.gather(-1, ids)))


def _sorted(logits: Tensor) -> Tensor:
    return logits.sort(dim=-1, descending=True, stable=True)[1]
