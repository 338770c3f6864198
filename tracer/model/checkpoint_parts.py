"""Whether the parts of a checkpoint fit one another, before a model is made of them."""

import math
from types import UnionType
from typing import Any, TypeVar, get_args, get_type_hints

import torch
from torch import nn

from tracer.format.sizes import parameter_count
from tracer.model.config import COMMON, Config
from tracer.model.gpt import GPT
from tracer.model.sealed import Damaged, tensors

T = TypeVar("T")


def exact(part: object, what: str, **kinds: type | UnionType) -> dict[str, Any]:
    """`part`, a dict of exactly these names and types (a float may be a whole number).  Raises `Damaged` otherwise."""
    if type(part) is not dict or part.keys() != kinds.keys():
        raise Damaged(f"{what} must hold {', '.join(kinds)}")
    for name, kind in kinds.items():
        if type(part[name]) not in (get_args(kind) or (kind,)) and not (kind is float and type(part[name]) is int):
            raise Damaged(f"{name} of {what} is no {getattr(kind, '__name__', kind)}")
    return part


def typed(cls: type[T], part: object, what: str, optional: tuple[str, ...] = ()) -> T:
    """The dataclass `cls` from a dict of its fields; the optional ones may be left out.  Raises `Damaged`."""
    if type(part) is not dict:
        raise Damaged(f"{what} is no table")
    kinds = {name: kind for name, kind in get_type_hints(cls).items() if name in part or name not in optional}
    return cls(**exact(part, what, **kinds))


def config_of(part: object) -> Config:
    """Raises `Damaged`, and `UserError` as `Config` does."""
    return typed(Config, part, "config", tuple(COMMON))


def check_parameters(config: Config, parameters: object) -> GPT:
    """Raises `Damaged` unless these are the parameters of a model of that config, in float32.

    Returns such a model on the meta device: shapes without numbers.  The numbers are counted before: a config that
    claims a huge model is refused before there is one.
    """
    if not isinstance(parameters, dict):
        raise Damaged("its parameters are no table")
    held, claimed = sum(each.numel() for each in tensors(parameters)), parameter_count(config)
    if held != claimed:
        raise Damaged(f"it holds {held:,} parameters, its config says {claimed:,}")
    with torch.device("meta"):
        model = GPT(config, explicit=False)
    wanted = {name: value.shape for name, value in model.state_dict().items()}
    if parameters.keys() != wanted.keys():
        raise Damaged("its parameters are not those of a model of its config")
    for name, shape in wanted.items():
        _check_tensor(parameters[name], shape, name)
    return model


def check_moments(model: nn.Module, state: object, updates: int) -> None:
    """Raises `Damaged` unless this is the state of AdamW for that model after that many updates.

    The parameters are counted as the optimizer's groups count them: matrices first.
    """
    shapes = sorted((p.shape for p in model.parameters()), key=lambda shape: len(shape) < 2)
    if not isinstance(state, dict) or list(state) != (list(range(len(shapes))) if updates else []):
        raise Damaged("its optimizer is not one of its model")
    for number, own in state.items():
        if type(own) is not dict or own.keys() != {"step", "exp_avg", "exp_avg_sq"}:
            raise Damaged(f"the optimizer's state of parameter {number} is not AdamW's")
        _check_tensor(own["step"], torch.Size(()), "step")
        for name in ("exp_avg", "exp_avg_sq"):
            _check_tensor(own[name], shapes[number], f"{name} of parameter {number}")
        if not 0 <= float(own["step"]) <= updates or bool((own["exp_avg_sq"] < 0).any()):
            raise Damaged(f"the optimizer's state of parameter {number} is none that updates lead to")


def check_scaler(state: object) -> None:
    """Raises `Damaged` unless this is the state of a gradient scaler, or the empty one of a disabled one."""
    if state == {} and type(state) is dict:
        return
    kinds = {"scale": float, "growth_factor": float, "backoff_factor": float, "growth_interval": int,
             "_growth_tracker": int}
    numbers = exact(state, "scaler", **kinds)
    if not all(math.isfinite(each) and each >= 0 for each in numbers.values()) or not numbers["scale"]:
        raise Damaged("its gradient scaler has no scale")


def _check_tensor(value: object, shape: torch.Size, name: str) -> None:
    if type(value) is not torch.Tensor or value.dtype != torch.float32 or value.shape != shape:
        raise Damaged(f"{name} is no float32 of shape {tuple(shape)}")
