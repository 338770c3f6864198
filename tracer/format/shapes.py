"""Shapes that have a name: what `Config` takes, known without importing torch."""

from typing import Any

_GPT2 = {"vocabulary": 50257, "context": 1024}

GPT2_SHAPES: dict[str, dict[str, Any]] = {  # Radford et al. 2019, table 2
    "gpt2": {**_GPT2, "width": 768, "heads": 12, "blocks": 12},
    "gpt2-medium": {**_GPT2, "width": 1024, "heads": 16, "blocks": 24},
    "gpt2-large": {**_GPT2, "width": 1280, "heads": 20, "blocks": 36},
    "gpt2-xl": {**_GPT2, "width": 1600, "heads": 25, "blocks": 48},
}
LLAMA_SHAPES: dict[str, dict[str, Any]] = {  # Grattafiori et al. 2024, table 3
    "llama-3-8b": {"vocabulary": 128256, "context": 8192, "width": 4096, "heads": 32, "blocks": 32, "kv_heads": 8,
                   "hidden": 14336, "activation": "swiglu", "norm": "rms_norm", "bias": False, "tied": False,
                   "position": "rotary", "rope_base": 500000.0},
}
LARGEST = 2**31 - 1  # of any size or count: far above what a computer holds, far below where 64 bits overflow
SHAPES: dict[str, dict[str, Any]] = {
    "teaching": {"vocabulary": 50257, "context": 16, "width": 16, "heads": 2, "blocks": 2}, **GPT2_SHAPES,
    **LLAMA_SHAPES}
