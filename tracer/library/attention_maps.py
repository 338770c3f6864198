"""The attention weights of a model that reads texts, and texts that show whether a head looks for repetition."""

from collections.abc import Sequence

import numpy as np
import torch

from tracer.errors import UserError
from tracer.model.gpt import GPT, Block


def attention_weights(model: GPT, ids: list[int]) -> np.ndarray:
    """What every head looks at in one text: (blocks, heads, T, T), from the explicit form of the model."""
    weights: np.ndarray = attention_maps(model, [ids])[0]
    return weights


@torch.no_grad()
def attention_maps(model: GPT, texts: Sequence[Sequence[int]] | np.ndarray) -> np.ndarray:
    """What every head looks at in texts of one length: (texts, blocks, heads, T, T).

    Leaves the model in eval mode, and explicit or not as it was.
    """
    found: list[np.ndarray] = []
    explicit = model.explicit

    def keep(_module: object, _given: object, weights: torch.Tensor) -> None:
        found.append(weights.numpy())  # (B, H, T, T)

    handles = [block.attention.softmax.register_forward_hook(keep)
               for block in model.blocks if isinstance(block, Block)]
    try:
        model.explicit = True
        model.eval()(torch.as_tensor(np.asarray(texts)))
    finally:
        model.explicit = explicit
        for handle in handles:
            handle.remove()
    return np.stack(found, axis=1)


def repeated_texts(vocabulary: int, context: int, count: int = 4, seed: int = 0) -> list[list[int]]:
    """Random ids, each text saying the same twice: what shows whether a head looks for repetition.

    At most 2 × 64 ids.  Raises `UserError` for a context that holds no repetition.
    """
    half = min(context // 2, 64)
    if half < 2:
        raise UserError(f"a context of {context} holds no repeated text: give --text")
    random = np.random.default_rng(seed)
    return [[*part, *part] for part in random.integers(vocabulary, size=(count, half)).tolist()]
