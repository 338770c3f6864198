"""Small models that the tests of the recorder watch, and what they are given."""

import dataclasses
from collections import namedtuple
from collections.abc import Mapping

import torch
from torch import nn

from tracer.model.config import Config

SMALL = Config(vocabulary=31, context=8, width=8, heads=2, blocks=2, dropout=0.2)
X, Y = torch.tensor([[3, 1, 4, 1, 5]]), torch.tensor([[1, 4, 1, 5, 9]])


class Call(nn.Module):
    """A module of its own for any function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Scale(nn.Module):
    def __init__(self, factor: float):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, x):
        return x * self.factor


class ThreeUses(nn.Module):
    """One value read by three modules: the order in which its gradients are added matters to the last bit."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.a, self.b, self.c = nn.Tanh(), nn.Linear(6, 6), Scale(0.3)
        self.join = Call(lambda a, b, c: a * b + c)

    def forward(self, x):
        h = self.first(x)
        return self.join(self.a(h), self.b(h), self.c(h))


class Chain(nn.Module):
    """Modules one after the other, by name."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x):
        for module in self.children():
            x = module(x)
        return x


def inputs(*shape: int, seed: int = 0, requires_grad: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, requires_grad=requires_grad)


def seeded(make) -> nn.Module:
    torch.manual_seed(7)
    return make()


def gpt_loss(model):
    return model(X, Y)[1]


def three_uses_loss(model):
    return model(inputs(5, 6)).square().mean()


class Residual(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner, self.add = inner, Call(lambda a, b: a + b)

    def forward(self, x):
        return self.add(x, self.inner(x))


Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    more: tuple = ()


class Custom(Mapping):
    def __init__(self, **items):
        self.items_ = items

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)
