"""What a device can do: the peak that model FLOPs utilisation is measured against."""

import time

import torch


def measured_peak(device: torch.device, dtype: torch.dtype, size: int = 1024) -> float:
    """FLOP/s of a product of two square matrices, the best of five: what this device can do now."""
    a = torch.ones(size, size, device=device, dtype=dtype)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        (a @ a)[0, 0].item()  # reading a number waits for the device
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best
