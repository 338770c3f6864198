"""Whether a run fits this machine, told before it starts and not by the system that ends it."""

import os
from contextlib import suppress
from pathlib import Path

import torch

from tracer.errors import UserError
from tracer.library.counting import training_memory
from tracer.model.config import Config

LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of a container


def check_memory(config: Config, batch: int, device: torch.device, less: bool) -> None:
    """Raises `UserError` when one micro-batch needs more memory than the device has in all.

    `less`: products of 16 bits or a compiled model, which keep fewer numbers; half of them count then.
    """
    memory, there = training_memory(config, batch), device_memory(device)
    kept = memory.activations + memory.backward
    need = memory.total - (kept // 2 if less else 0)
    if there is not None and need > there:
        raise UserError(f"a batch of {batch} × {config.context} tokens needs {need / 1e9:,.1f} GB with this "
                        f"model, this machine has {there / 1e9:,.1f} GB: choose a smaller batch, context, width or "
                        "number of blocks")


def device_memory(device: torch.device) -> int | None:
    """Bytes in all, swap included, what a container allows at most; None where the system does not tell."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    found = [_physical()]
    for path in LIMITS:
        with suppress(OSError, ValueError):  # none, or "max"
            found.append(int(path.read_text()))
    return min((each for each in found if each), default=None)


def _physical() -> int | None:
    with suppress(OSError, ValueError, KeyError):
        rows = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line)
        return sum(int(rows[name].split()[0]) * 1024 for name in ("MemTotal", "SwapTotal"))
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
