"""Which processor kernels torch may choose.  This module knows no torch: the settings must stand before it.

torch computes with three libraries, each of which looks at the processor and chooses among kernels that round
differently: its own (ATen), oneDNN (GELU) and MKL (matrix products).  120 updates amplify such a difference about
a million times, so a recording asks all three for the kernels of AVX2, which a processor with wider vectors has
too.  Whether the numbers then come out as they should is measured, in `tracer.model.kernel_probe`.
"""

import os
import sys

# MKL needs no MKL_ENABLE_INSTRUCTIONS beside this: where it takes the branch (on Intel's processors), that changes
# no bit, where it does not (on AMD's), it ignores both.  STRICT: or sums depend on the size of the caches.
PINS = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2,STRICT"}


class KernelWarning(UserWarning):
    """What is computed may differ in its last digits from what other machines compute."""


def pin_kernels() -> str | None:
    """Ask for the kernels of a recording, for this process and those that it starts.

    Call it before torch is imported; afterwards nothing is set.  A value that the user has set stays.
    Returns why the kernels are not pinned in one line, None when all settings stand as they should.
    """
    if "torch" not in sys.modules:
        for name, value in PINS.items():
            os.environ.setdefault(name, value)
    return why_not_set()


def why_not_set() -> str | None:
    """Which settings do not stand, and what to do about it, in one line; None when all do."""
    other = [f"{name}={os.environ[name]}" for name, value in PINS.items() if os.environ.get(name, value) != value]
    if other:
        return (f"the environment sets {', '.join(other)}, which stays, so the last digits may differ from other "
                "machines': unset it for the same bits")
    if all(name in os.environ for name in PINS):
        return None
    return ("torch was imported before its kernels were pinned, so the last digits may differ from other machines': "
            "call tracer.kernels.pin_kernels() before importing torch, or set "
            + " ".join(f"{name}={value}" for name, value in PINS.items()))


def environment() -> dict[str, str]:
    """What the environment says now of the three libraries; a library that nothing is said to is left out."""
    return {name: os.environ[name] for name in PINS if name in os.environ}
