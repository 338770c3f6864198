"""Which process this is among those that train one model, and where each computes."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist

from tracer.errors import UserError

T = TypeVar("T")
REFUSED = 2  # exit status
_TORCHRUN = "start with torchrun, or unset WORLD_SIZE to train in one process"


@dataclass(frozen=True)
class Processes:
    """`rank` of `world` processes; the one of rank 0 writes files and speaks."""

    rank: int
    world: int
    device: torch.device

    @property
    def writes(self) -> bool:
        return self.rank == 0

    def check(self, accumulation: int) -> None:
        """Raises `UserError` when the micro-batches of an update cannot be shared out evenly."""
        if accumulation % self.world:
            raise UserError(f"{self.world} processes cannot share {accumulation} accumulation steps evenly: choose an "
                            f"accumulation that {self.world} divides, or fewer processes")

    def mean(self, value: torch.Tensor) -> torch.Tensor:
        """The mean of `value` over all processes, the same bits in each."""
        if self.world > 1:
            dist.all_reduce(value)
            value /= self.world
        return value

    def all_or_none(self, act: Callable[[], T]) -> T:
        """What `act` returns, once it has succeeded in every process; nothing in it may wait for another process.

        Where it raises `UserError`, in one or in all, the first of those raises it, and the others end in silence.
        """
        try:
            result = act()
        except UserError as problem:
            self.speak_alone(self._failed(True).index(True))
            raise problem
        failed = self._failed(False)
        if True in failed:
            self.speak_alone(failed.index(True))
        return result

    def _failed(self, here: bool) -> list[bool]:
        """Of every process, whether it failed; asked by all of them at once."""
        failed = [here] * self.world
        if self.world > 1:
            dist.all_gather_object(failed, here)
        return failed

    def speak_alone(self, rank: int = 0) -> None:
        """Every process but one ends here, with the status of a refusal, so that its one line is read once."""
        if self.rank != rank:
            raise SystemExit(REFUSED)


@contextmanager
def join_processes(device: str) -> Iterator[Processes]:
    """The processes that torchrun started, joined by gloo on CPUs and nccl on GPUs; alone without torchrun.

    Raises `UserError` for a device that this machine does not have, and for variables that torchrun does not set.
    """
    world = _variable("WORLD_SIZE", 1, at_least=1)
    if world > 1:
        _check_variables(world)
    kind = _device(device)
    place = torch.device(kind, _variable("LOCAL_RANK", 0)) if kind == "cuda" else torch.device(kind)
    if place.type == "cuda":
        torch.cuda.set_device(place)
    if world == 1:
        yield Processes(0, 1, place)
        return
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Processes(dist.get_rank(), world, place)
    finally:
        gc.collect()  # the model's copy holds the group, in a circle: what outlives it ends the process with an abort
        dist.destroy_process_group()


def _check_variables(world: int) -> None:
    """Raises `UserError` unless the environment says all that joining `world` processes takes."""
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise UserError(f"WORLD_SIZE is {world}, but {name} is not set: {_TORCHRUN}")
    if (rank := _variable("RANK", 0)) >= world:
        raise UserError(f"RANK is {rank}, of {world} processes the last has {world - 1}: {_TORCHRUN}")
    if (port := _variable("MASTER_PORT", 0)) > 65535:
        raise UserError(f"MASTER_PORT is {port}, the largest is 65535: {_TORCHRUN}")


def _variable(name: str, default: int, at_least: int = 0) -> int:
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or len(text) > 9 or int(text) < at_least:
        raise UserError(f"{name} is {text!r}, no whole number from {at_least} on: {_TORCHRUN}")
    return int(text)


def _device(name: str) -> str:
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next(kind for kind in ("cuda", "mps", "cpu") if there[kind])
    if not there[name]:
        raise UserError(f"this machine has no device {name}: choose auto or cpu")
    return name
