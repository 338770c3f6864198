"""One 32-bit word of torch's CPU generator: what a dropout mask starts from."""

import torch


def next_word() -> int:
    """The next word of the default CPU generator, which advances by exactly that word.

    torch offers no call that returns a raw word: the word is read from a wide integer, the state put
    back, and a float32 drawn, which consumes one word (measured; `tests/test_model_runs.py`).
    """
    state = torch.get_rng_state()
    wide = torch.empty((), dtype=torch.int64).random_(-(2**63), None)
    torch.set_rng_state(state)
    torch.rand(1, dtype=torch.float32)
    return (int(wide) >> 32) & 0xFFFFFFFF
