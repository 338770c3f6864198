"""The key-value cache: what later positions need of earlier ones (queries are used once)."""

import torch
from torch import Tensor

from tracer.errors import UserError
from tracer.model.config import Config


class LayerCache:
    """Keys and values of one block for the positions so far, in memory taken once.

    `store`: (2, B, K, capacity, D/H), keys first, of K heads of keys and values.
    """

    def __init__(self, store: Tensor):
        self.store, self.length = store, 0
        self._keys, self._values = store.unbind()

    def so_far(self) -> Tensor:
        """Keys and values of the positions so far: (2, B, K, length, D/H)."""
        return self.store.narrow(3, 0, self.length)

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keep keys and values of the T new positions (B, K, T, D/H); returns those of all (B, K, S, D/H)."""
        start, T = self.length, key.size(2)
        self.length = start + T
        self._keys.narrow(2, start, T).copy_(key.detach())
        self._values.narrow(2, start, T).copy_(value.detach())
        return self._keys.narrow(2, 0, self.length), self._values.narrow(2, 0, self.length)


class KVCache:
    """Keys and values of every block of a model of the shape `config`.

    Takes exactly 2 · L · K · D/H · bytes for each of `capacity` tokens of each of `batch` sequences, at
    once.  Not for training: what it holds carries no gradient.
    """

    def __init__(self, config: Config, batch: int, capacity: int, dtype: torch.dtype = torch.float32,
                 device: torch.device | str | None = None):
        if not 1 <= capacity <= config.context:
            raise UserError(f"a cache holds from 1 to the context's {config.context} tokens, not {capacity}")
        self.capacity = capacity
        self.store = torch.empty(config.blocks, 2, batch, config.key_value_heads, capacity, config.head_width,
                                 dtype=dtype, device=device)
        self.layers = [LayerCache(part) for part in self.store]

    @property
    def length(self) -> int:
        """How many positions it holds."""
        return self.layers[-1].length

    @property
    def bytes(self) -> int:
        """What its memory takes, filled or not."""
        return self.store.nbytes
