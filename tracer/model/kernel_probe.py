"""Which kernels torch computes with, and whether they give the bits that every pinned recording has."""

import hashlib
import warnings
from collections.abc import Iterator
from functools import cache
from typing import TypedDict

import torch
import torch.nn.functional as F
from torch import Tensor

from tracer import kernels
from tracer.model import products

# Of what `_probes` computes with the pinned kernels of torch 2.13.0, the same on Intel's and AMD's processors.
PINNED = "c81d544705440b71"


class Kernels(TypedDict):
    """torch's own kernels, what the environment asked of the three libraries, whether the bits are the pinned ones."""

    torch: str
    settings: dict[str, str]
    pinned: bool


def kernels_used() -> Kernels:
    """What torch says it took, what the environment asked of the three libraries, and what came of it."""
    return {"torch": torch.backends.cpu.get_cpu_capability(), "settings": kernels.environment(), "pinned": pinned()}


def described(used: Kernels) -> str:
    """`kernels_used` in a few words."""
    asked = ", ".join(f"{name}={value}" for name, value in used["settings"].items())
    return f"{used['torch']}{', pinned' if used['pinned'] else ''}{f' ({asked})' if asked else ''}"


def why_not_pinned() -> str | None:
    """One line on why the last digits may differ from other machines', None when they do not."""
    if pinned():
        return None
    return kernels.why_not_set() or (
        "this processor or this build of torch has other kernels than those that recordings are pinned to, so the last "
        "digits may differ from other machines'; `verify` holds all the same")


def warn_unless_pinned() -> None:
    """For users of the library: a `KernelWarning` when the last digits may differ from other machines'."""
    if reason := why_not_pinned():
        warnings.warn(reason, kernels.KernelWarning, stacklevel=3)


@cache
def pinned() -> bool:
    """Whether products, sums and functions of the recording's sizes come out bit by bit as they should.

    Measured, not taken from the settings: a library may ignore them, on some processors without a word.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            return fingerprint() == PINNED
    finally:
        torch.set_num_threads(threads)


def fingerprint() -> str:
    """The first 16 hexadecimal digits of a SHA-256 over what the kernels give."""
    digest = hashlib.sha256()
    for result in _probes():
        digest.update(result.contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _probes() -> Iterator[Tensor]:
    """Each kind of kernel that a recording meets, at its sizes."""
    yield torch.empty(3 * 16, device="cpu", dtype=torch.float32).normal_(generator=torch.Generator().manual_seed(0))
    for rows in (1, 2, 5, 16):
        for inputs, outputs in ((16, 48), (64, 16)):
            yield products.linear(_numbers(1, rows, inputs), _numbers(outputs, inputs), _numbers(outputs))
    table, gradient = _numbers(50257, 16), _numbers(5, 50257)
    yield products.linear(_numbers(1, 5, 16), table)
    yield gradient @ table
    yield gradient.T @ _numbers(5, 16)
    yield products.weighted_sum(_numbers(1, 2, 16, 16), _numbers(1, 2, 16, 8))
    yield _numbers(1, 2, 16, 8) @ _numbers(1, 2, 8, 16)
    x = _numbers(5, 64)
    yield F.gelu(x)
    yield torch.ops.aten.gelu_backward(x, x.flip(0))
    yield F.layer_norm(x, (64,))
    yield x.softmax(-1)
    yield gradient.log_softmax(-1)


def _numbers(*shape: int) -> Tensor:
    """Numbers from −1 to 1, made of whole ones: the same on every machine."""
    whole = torch.arange(torch.Size(shape).numel(), device="cpu", dtype=torch.int64) * 7919 % 65521
    return (whole.to(torch.float32) / 32760 - 1).view(shape)
