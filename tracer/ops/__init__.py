"""What each kind of operation computes, forward and backward, said once and as data.

Importing this package needs neither torch nor a recording.
"""

from tracer.ops import (  # noqa: F401  each import registers its kinds
    adamw,
    add,
    attention,
    cache,
    cross_entropy,
    dropout,
    embedding,
    gelu,
    heads,
    layer_norm,
    linear,
    receipt,
    sampling,
    softmax,
    tokens,
    utf8,
)
from tracer.ops.evaluate import Computation, evaluate
from tracer.ops.language import Equation, Kind, expand_ellipsis
from tracer.ops.registry import KINDS

__all__ = ["KINDS", "Computation", "Equation", "Kind", "evaluate", "expand_ellipsis"]
