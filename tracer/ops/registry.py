"""Every kind of operation by name.  A kind is defined once, in the file that carries its name."""

from collections.abc import Callable
from typing import Any

from tracer.ops.derive import derive_gradients
from tracer.ops.language import Kind, parse

KINDS: dict[str, Kind] = {}


def define(name: str, source: str, forward: str | dict[str, str], *, gradients: dict[str, str] | None = None,
           differentiate: tuple[str, ...] = (), place: str = "", torch: Callable[..., Any] | None = None,
           symbols: dict[str, str] | None = None) -> Kind:
    """Register a kind.

    `forward`: the equations of its one output ``out``, or of each output by name.  `gradients`: the
    equations of ``d_<operand>`` where they are stated, because they are more stable, much cheaper or better read
    than derived ones; `differentiate`: the operands whose gradient is derived from the equations of ``out``.
    """
    texts = {"out": forward} if isinstance(forward, str) else forward
    targets = {output: parse(text) for output, text in texts.items()}
    if differentiate:
        targets |= derive_gradients(targets["out"], differentiate, {n: e for n, e in targets.items() if n != "out"})
    targets |= {f"d_{operand}": parse(text) for operand, text in (gradients or {}).items()}
    for target, equations in targets.items():
        if equations[-1].name != target:
            raise ValueError(f"kind {name}: the last equation of {target} defines {equations[-1].name}")
    KINDS[name] = Kind(name, source, targets, place, torch, symbols or {})
    return KINDS[name]


def kinds_for(place: str) -> list[str]:
    """The kinds that may stand at a place of a model, by name."""
    return sorted(name for name, kind in KINDS.items() if kind.place == place)
