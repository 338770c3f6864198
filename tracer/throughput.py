"""How much of the device a run uses: tokens per second and model FLOPs utilisation."""

import time

import torch

from tracer.model import GPT


def flops_per_token(model: GPT) -> int:
    """6N + 12·L·H·Q·T, forward and backward (Chowdhery et al. 2022, "PaLM", appendix B).

    N counts the parameters without the position table, which takes part in no product.
    """
    config = model.config
    counted = model.parameter_count() - config.context * config.width
    return 6 * counted + 12 * config.blocks * config.heads * config.head_width * config.context


def measured_peak(device: torch.device, dtype: torch.dtype, size: int = 1024) -> float:
    """FLOP/s of a product of two square matrices, the best of five: what this device can do now."""
    a = torch.ones(size, size, device=device, dtype=dtype)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        (a @ a)[0, 0].item()  # reading a number waits for the device
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best
