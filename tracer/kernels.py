"""The one setting that must stand before torch is imported: which CPU kernels it may choose."""

import os


def pin_kernels() -> None:
    """Ask for AVX2 kernels, so that machines with wider vectors compute the same numbers.

    Rounding differs between kernels, and 120 updates amplify it a million times.  Processors without
    AVX2 ignore this.  A value that the user has set stays.
    """
    os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")
    os.environ.setdefault("MKL_ENABLE_INSTRUCTIONS", "AVX2")
