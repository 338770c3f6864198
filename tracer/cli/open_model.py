"""A model and its tokenizer from wherever they are: our checkpoints, or a GPT-2 of the Hugging Face kind."""

from pathlib import Path

import numpy as np
import torch

from tracer.errors import UserError
from tracer.model.gpt import GPT, Block
from tracer.model.gpt2_files import VOCABULARY_SIZE
from tracer.model.pretrained import drop_padding, from_pretrained
from tracer.model.text_tokenizer import TextTokenizer
from tracer.model.tokenizer import gpt2
from tracer.recording.checkpoint import load_checkpoint
from tracer.trainer.checkpoints import find_run, load_run


def load_model(source: str) -> GPT:
    """The model of `source`, in eval mode and not explicit.

    `source`: a checkpoint file of ours, the folder of a run (its best checkpoint), the folder of a GPT-2
    checkpoint, or its name in the local Hugging Face cache; of its vocabulary the part that has a text
    (`drop_padding`).  Raises `UserError` when it cannot be read.
    """
    if (run := find_run(Path(source))) is not None:
        return load_run(run).model()
    if not Path(source).is_file():
        return drop_padding(from_pretrained(source))
    model = load_checkpoint(Path(source)).model
    model.explicit = False
    return model.eval()


def tokenizer_of(source: str, model: GPT) -> TextTokenizer:
    """The tokenizer that `source` was trained with.  Raises `UserError` when it is not known."""
    if (run := find_run(Path(source))) is not None:
        return load_run(run).tokenizer
    if model.config.vocabulary != VOCABULARY_SIZE:
        raise UserError(f"{source} has a vocabulary of {model.config.vocabulary}, GPT-2's tokenizer has "
                        f"{VOCABULARY_SIZE}: only a model of that vocabulary can read a text")
    return gpt2()


@torch.no_grad()
def attention_weights(model: GPT, ids: list[int]) -> np.ndarray:
    """What every head looks at: (blocks, heads, T, T), from the explicit form of the model."""
    found: list[np.ndarray] = []
    explicit = model.explicit

    def keep(_module: object, _given: object, weights: torch.Tensor) -> None:
        found.append(weights[0].numpy())  # (H, T, T)

    handles = [block.attention.softmax.register_forward_hook(keep)
               for block in model.blocks if isinstance(block, Block)]
    try:
        model.explicit = True
        model.eval()(torch.tensor([ids]))
    finally:
        model.explicit = explicit
        for handle in handles:
            handle.remove()
    return np.stack(found)


def repeated_texts(vocabulary: int, context: int, count: int = 4, seed: int = 0) -> list[list[int]]:
    """Random ids, each text saying the same twice: what shows whether a head looks for repetition.

    At most 2 × 64 ids.  Raises `UserError` for a context that holds no repetition.
    """
    half = min(context // 2, 64)
    if half < 2:
        raise UserError(f"a context of {context} holds no repeated text: give --text")
    random = np.random.default_rng(seed)
    return [[*part, *part] for part in random.integers(vocabulary, size=(count, half)).tolist()]
