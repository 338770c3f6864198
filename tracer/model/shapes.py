"""Shapes that have a name: what `Config` takes, known without importing torch."""

_GPT2 = {"vocabulary": 50257, "context": 1024}

GPT2_SHAPES = {  # Radford et al. 2019, table 2
    "gpt2": {**_GPT2, "width": 768, "heads": 12, "blocks": 12},
    "gpt2-medium": {**_GPT2, "width": 1024, "heads": 16, "blocks": 24},
    "gpt2-large": {**_GPT2, "width": 1280, "heads": 20, "blocks": 36},
    "gpt2-xl": {**_GPT2, "width": 1600, "heads": 25, "blocks": 48},
}
LARGEST = 2**31 - 1  # of any size or count: far above what a computer holds, far below where 64 bits overflow
SHAPES = {"teaching": {"vocabulary": 50257, "context": 16, "width": 16, "heads": 2, "blocks": 2}, **GPT2_SHAPES}
