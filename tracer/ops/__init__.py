"""What each kind of operation computes, forward and backward, said once and as data.

Importing this package needs neither torch nor a recording.  Every file in its folder is imported, so that a kind is
known by being written in one.
"""

from importlib import import_module
from pkgutil import iter_modules

from tracer.ops.evaluate import Computation, evaluate
from tracer.ops.language import Equation, Kind, expand_ellipsis
from tracer.ops.registry import KINDS

for _file in sorted(file.name for file in iter_modules(__path__)):
    import_module(f"{__name__}.{_file}")

__all__ = ["KINDS", "Computation", "Equation", "Kind", "evaluate", "expand_ellipsis"]
