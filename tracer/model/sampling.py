"""From the logits of the last position to one id, each step a module so that it is recorded."""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from numbers import Integral, Real

import torch
from torch import Tensor, nn

from tracer.errors import UserError
from tracer.model.layers import Softmax, in_role

# Beyond these, logits divided by the temperature, or the temperature itself, leave the range of float32.
SMALLEST_TEMPERATURE, LARGEST_TEMPERATURE = 1e-6, 1e30


class Temperature(nn.Module):
    kind, axes = "temperature", ("position", "vocabulary")

    def __init__(self, temperature: float):
        super().__init__()
        self.temperature, self.settings = temperature, {"temperature": temperature}

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
    """Inverse transform sampling; see `passed`."""

    kind = "draw"
    outputs = {"choice": (), "token": ()}

    def forward(self, uniform: Tensor, cumulative: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        choice = passed(uniform, cumulative)
        return choice, ids[choice]


def passed(uniform: Tensor, cumulative: Tensor) -> Tensor:
    """The place of the first candidate whose cumulative probability exceeds `uniform`.

    `cumulative`: (…, k); `uniform` broadcasts with it.  The sum may end below 1 by rounding: what is then left
    belongs to the last candidate that adds anything to it, so that one of probability 0 is never taken.
    """
    return ((uniform >= cumulative) & (cumulative < cumulative[..., -1:])).sum(dim=-1)


class Sampler(nn.Module):
    """One id from logits (1, V): ÷ temperature, keep k, softmax, draw with one number in [0, 1)."""

    def __init__(self, temperature: float, top_k: int, vocabulary: int):
        super().__init__()
        if not temperature > 0:
            raise UserError(f"temperature must be above 0, not {temperature}")
        _check_temperature(temperature, "")
        if not 1 <= top_k <= vocabulary:
            raise UserError(f"top-k must be from 1 to the vocabulary's {vocabulary}, not {top_k}")
        self.temperature = Temperature(temperature)
        self.top_k = TopK(top_k)
        self.softmax = in_role("candidates", Softmax(("candidate",)))
        self.cumulative = Cumulative()
        self.draw = Draw()

    def forward(self, logits: Tensor, uniform: Tensor) -> Tensor:
        ids, kept = self.top_k(self.temperature(logits), logits)
        check_scores(kept[:1])
        return self.draw(uniform, self.cumulative(self.softmax(kept)), ids)[1]


def uniform_numbers(seed: int) -> Iterator[Tensor]:
    """Endless float32 numbers in [0, 1) from torch's own generator, one a round."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield torch.rand((), generator=generator)


def multinomial_choices(seed: int) -> Generator[int | None, Tensor, None]:
    """What `torch.multinomial` takes of the probabilities sent in, one after the other, from the same seed.

    It draws an exponential number q for every candidate and takes the largest p / q, so that the same seed
    says nothing about which candidate our draw takes: only how often each is taken agrees.
    """
    generator = torch.Generator().manual_seed(seed)
    choice: int | None = None
    while True:
        probabilities = yield choice
        choice = int(torch.multinomial(probabilities, 1, generator=generator))


@dataclass(frozen=True)
class Sampling:
    """How to choose an id.  Temperature 0 takes the largest logit; `top_k`, `top_p`: None keeps all.

    `top_p` comes after `top_k`; see `nucleus`.  Every prompt of a batch draws with `seed`, as it would alone;
    one that stands there again draws with seed + 1, then with seed + 2, …  Raises `UserError` for what is out
    of range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 7

    def __post_init__(self) -> None:
        if self.temperature != 0:
            _check_temperature(self.temperature, "0, or ")
        if self.top_k is not None and (not _is_whole(self.top_k) or self.top_k < 1):
            raise UserError(f"top-k must be a whole number and at least 1, not {self.top_k!r}")
        if not _is_whole(self.seed):
            raise UserError(f"seed must be a whole number, not {self.seed!r}")
        if self.top_p is not None and (not isinstance(self.top_p, Real) or not 0 < self.top_p <= 1):
            raise UserError(f"top-p must be above 0 and at most 1, not {self.top_p!r}")


def _is_whole(value: object) -> bool:
    """NumPy's whole numbers are such ones too; true and false are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_temperature(temperature: float, also: str) -> None:
    if not isinstance(temperature, Real) or not SMALLEST_TEMPERATURE <= temperature <= LARGEST_TEMPERATURE:
        raise UserError(f"temperature must be {also}from {SMALLEST_TEMPERATURE} to {LARGEST_TEMPERATURE}, "
                        f"not {temperature!r}")


def choose(logits: Tensor, uniforms: Tensor | None, how: Sampling) -> Tensor:
    """One id (B,) for each row of logits (B, V), with one number in [0, 1) a row, as `Sampler` draws it.

    Candidates stand largest first, ties by id; the first whose cumulative probability exceeds the row's
    number is chosen.  At temperature 0 no number is needed, at another one is.  Raises `UserError` for a row that is no
    distribution.
    """
    if not logits.size(-1):
        raise UserError("there is no token to choose from: the logits are empty")
    if how.temperature == 0:
        ids = logits.argmax(dim=-1, keepdim=True)
        check_scores(logits.gather(-1, ids))
        return ids.squeeze(-1)
    if logits.element_size() < 4:  # in 16 bits the cumulative probabilities of many candidates could not be told apart
        logits = logits.float()
    ids = largest(logits, how.top_k)                                        # (B, k)
    scores = logits.gather(-1, ids) / how.temperature
    check_scores(scores[:, 0])
    probabilities = scores.softmax(dim=-1)
    if how.top_p is not None and how.top_p < 1:
        probabilities = nucleus(probabilities, how.top_p)
    assert uniforms is not None
    place = passed(uniforms.unsqueeze(-1), probabilities.cumsum(dim=-1))
    return ids.gather(-1, place.unsqueeze(-1)).squeeze(-1)


def check_scores(first: Tensor) -> None:
    """Raises `UserError` when a row of scores is no distribution.  `first`: the largest score of each row.

    A sort and a maximum put NaN above all numbers, so that the largest one tells.
    """
    for score in first.flatten().tolist():
        if not math.isfinite(score):
            raise UserError(f"no next token can be chosen, the largest score (logit ÷ temperature) is {score}: use a "
                            "checkpoint from before the training diverged, or one that is not damaged, or a "
                            "temperature nearer to 1")


def nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """Of candidates (B, k), largest first, as few as hold `top_p` together; the others get 0 (Holtzman et al. 2020).

    A candidate stays while the sum of those before it is below `top_p`; the sums are taken in float64, from
    the first candidate on.  What stays is divided by its sum.
    """
    inside = torch.ones_like(probabilities, dtype=torch.bool)
    inside[:, 1:] = probabilities.cumsum(dim=-1, dtype=torch.float64)[:, :-1] < top_p
    kept = probabilities * inside
    return kept / kept.sum(dim=-1, keepdim=True)


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
