"""Which process this is among those that train one model, and where each computes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist

from tracer.errors import UserError


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

    def wait(self) -> None:
        """Until every process has come here."""
        if self.world > 1:
            dist.barrier()


@contextmanager
def join_processes(device: str) -> Iterator[Processes]:
    """The processes that torchrun started, joined by gloo on CPUs and nccl on GPUs; alone without torchrun.

    Raises `UserError` for a device that this machine does not have.
    """
    world = int(os.environ.get("WORLD_SIZE", 1))
    place = torch.device(_device(device), int(os.environ.get("LOCAL_RANK", 0)) if _device(device) == "cuda" else None)
    if place.type == "cuda":
        torch.cuda.set_device(place)
    if world == 1:
        yield Processes(0, 1, place)
        return
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Processes(dist.get_rank(), world, place)
    finally:
        dist.destroy_process_group()


def _device(name: str) -> str:
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next(kind for kind in ("cuda", "mps", "cpu") if there[kind])
    if not there[name]:
        raise UserError(f"this machine has no device {name}: choose auto or cpu")
    return name
