"""What the recorder can know of a model before it runs, and of what goes in and out of its modules."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tracer.errors import UserError

PLAIN = (str, bytes, int, float, complex, type, type(None), torch.dtype, torch.device, torch.Size)  # hold no tensors
INTERNAL = vars(nn.Module()).keys()  # what every module has


@dataclass(slots=True)
class Place:
    """Where a module stands in the model: its path, and whether it contains no modules (a step).

    `arguments`: names of its positional arguments.  `times`: how often it has been called.
    """

    path: str
    is_step: bool
    arguments: tuple[str, ...]
    times: int = 0

    def argument_names(self, count: int) -> tuple[str, ...]:
        """Names of so many positional arguments; what ``*args`` takes is numbered."""
        known = len(self.arguments)
        return self.arguments if count <= known else (*self.arguments, *map(str, range(known, count)))


def find_places(model: nn.Module) -> dict[nn.Module, Place]:
    """Every module once, under its first path.  Raises `UserError` for what hooks do not see into."""
    if not isinstance(model, nn.Module):
        raise UserError(f"only a torch.nn.Module can be recorded, not a {type(model).__name__}: "
                        "make the function the forward of a module")
    places = {}
    for path, module in model.named_modules():
        # torch has no public way to ask whether `module.compile()` was called.
        if path.endswith("_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            raise UserError("a compiled model runs past its hooks: record the model before torch.compile")
        if isinstance(module, torch.jit.ScriptModule):
            raise UserError("a torch.jit model runs past its hooks: record the model that it was made from")
        places[module] = Place(path, next(module.children(), None) is None, argument_names(module))
    return places


def argument_names(module: nn.Module) -> tuple[str, ...]:
    """Names of the positional arguments of `module.forward`."""
    forward = module.forward
    function = getattr(forward, "__func__", forward)
    return _positional(function)[function is not forward:]  # a bound method has its `self` already


@functools.lru_cache(maxsize=256)
def _positional(function: Callable[..., object]) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # written in C, without a signature
        return ()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


def told(module: nn.Module, name: str) -> dict[str, Any]:
    """The dict in which the module speaks of itself; other modules may have something else of that name.

    (A miss through `nn.Module.__getattr__` would be slow.)
    """
    found = module.__dict__.get(name)
    if found is None:
        found = getattr(type(module), name, None)
    return found if isinstance(found, dict) else {}


def output_name(module: nn.Module, where: tuple[str, ...]) -> str:
    """``out`` for a single tensor; else where it stands, by the module's own `outputs` if it has such."""
    names = list(told(module, "outputs"))
    if len(where) == 1 and where[0].isdigit() and int(where[0]) < len(names):
        return names[int(where[0])]
    return ".".join(where) or "out"


def find_tensors(value: object, where: tuple[str, ...] = (),
                 around: tuple[object, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """(where it stands, tensor) for every tensor in nested tuples, lists, mappings and data classes.

    An object that is not looked into comes as it is, in the place of a tensor.
    """
    if isinstance(value, PLAIN):
        return
    items = _items(value)
    if items is None:
        yield where, value
        return
    around = (*around, value)
    for key, item in items:
        if not isinstance(item, PLAIN) and not any(item is outer for outer in around):
            yield from find_tensors(item, (*where, str(key)), around)


def _items(value: object) -> Iterable[tuple[object, object]] | None:
    if isinstance(value, Tensor):
        return None
    if isinstance(value, (tuple, list)):
        return enumerate(value)
    if isinstance(value, Mapping):
        return value.items()
    return ((f.name, getattr(value, f.name, None)) for f in fields(value)) if is_dataclass(value) else None


def kept_tensors(module: nn.Module) -> list[Tensor]:
    """Tensors with a history that the module keeps as attributes, or in lists, tuples and dicts: a penalty."""
    own = vars(module)
    found: list[Tensor] = []
    for name in own.keys() - INTERNAL:
        _find_kept(own[name], found, 8)
    return found


def _find_kept(value: Any, found: list[Tensor], depth: int) -> None:
    kind = type(value)
    if kind is Tensor:
        if value.grad_fn is not None:
            found.append(value)
    elif depth and (kind is list or kind is tuple or kind is dict):
        for item in value.values() if kind is dict else value:
            if type(item) is not str:
                _find_kept(item, found, depth - 1)
