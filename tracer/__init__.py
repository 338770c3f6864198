"""Two Routes: record one update and one generation of a tiny GPT, every number of it.

The names of `__all__` are this package's face: they stay where they are, all else may move.  A name is imported when
it is asked for, so that ``import tracer`` needs no torch; nor do `load`, `verify`, `Config`, `FitSettings` and
`UserError`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.errors import UserError
    from tracer.format.open import load, verify
    from tracer.library.generate import generate
    from tracer.model.config import Config
    from tracer.model.gpt import GPT
    from tracer.model.pretrained import from_pretrained, save_pretrained
    from tracer.model.sampling import Sampling, choose
    from tracer.model.tokenizer import gpt2
    from tracer.recording.recorder import Recorder
    from tracer.trainer.corpus import prepare
    from tracer.trainer.run import fit
    from tracer.trainer.settings import FitSettings

__version__ = "0.2.0"
__all__ = ["GPT", "Config", "FitSettings", "Recorder", "Sampling", "UserError", "choose", "fit", "from_pretrained",
           "generate", "gpt2", "load", "prepare", "save_pretrained", "verify"]

_HOMES = {
    "GPT": "model.gpt", "Config": "model.config", "FitSettings": "trainer.settings", "Recorder": "recording.recorder",
    "Sampling": "model.sampling", "UserError": "errors", "choose": "model.sampling", "fit": "trainer.run",
    "from_pretrained": "model.pretrained", "generate": "library.generate", "gpt2": "model.tokenizer",
    "load": "format.open", "prepare": "trainer.corpus", "save_pretrained": "model.pretrained", "verify": "format.open",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found  # from now on it is found without asking here
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
