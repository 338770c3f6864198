"""The settings of the experiments with small models.

This module knows no torch, so that ``--help`` works without it.
"""

from dataclasses import asdict, dataclass
from typing import Any

from tracer.errors import UserError
from tracer.format.experiment_fields import LARGEST_STD
from tracer.trainer.settings import FitSettings, make_settings

# What of the settings of a run a small model depends on; the rest of them is for data, files and machines.
OWN = ("updates", "batch", "lr", "lr_end", "warmup", "beta1", "beta2", "weight_decay", "clip", "evaluate_every")
# With GPT-2's standard deviation of 0.02 no induction head forms within these updates.
COMMON: dict[str, Any] = {"heads": 1, "lr": 3e-3, "warmup": 50, "beta2": 0.95, "weight_decay": 0.01, "std": 0.1}


@dataclass(frozen=True)
class SmallSettings:
    """How the models of an experiment are trained; matrices are drawn with standard deviation `std`.

    Raises `UserError` for no seed, and for a standard deviation that no weights have or float32 overflows with.
    """

    fit: FitSettings
    seeds: tuple[int, ...]
    shallow: int  # of one block there is a model for so many of the seeds
    std: float

    def __post_init__(self) -> None:
        if not self.seeds:
            raise UserError("give at least one seed")
        if not 0 < self.std <= LARGEST_STD:
            raise UserError(f"std must be above 0 and at most {LARGEST_STD:g}, not {self.std}")

    @property
    def models(self) -> list[tuple[int, int]]:
        """(blocks, seed) of every model that is trained: two blocks for each seed, then one block beside them."""
        return [(2, seed) for seed in self.seeds] + [(1, seed) for seed in self.seeds[:self.shallow]]

    def to_json(self) -> dict[str, Any]:
        """What is recorded of them; each run says its seed, the shape is said by itself."""
        return {name: value for name, value in asdict(self.fit).items() if name in OWN} | {"std": self.std}


INDUCTION: dict[str, Any] = {"seeds": (0, 1, 2), "shallow": 1, "width": 48, "batch": 32, "updates": 1000,
                             "evaluate_every": 20}
NOUN: dict[str, Any] = {"seeds": tuple(range(6)), "shallow": 3, "width": 64, "batch": 64, "updates": 1500,
                        "evaluate_every": 100}
REVERSING: dict[str, Any] = {"seeds": (0, 1, 2), "shallow": 0, "width": 16, "batch": 64, "updates": 2000, "lr": 5e-3,
                             "evaluate_every": 40}
MASKED: dict[str, Any] = {"seeds": (0, 1, 2), "shallow": 0, "width": 64, "heads": 2, "batch": 64, "updates": 2000,
                          "evaluate_every": 100}


def induction_settings(**given: Any) -> SmallSettings:
    """Those of the induction experiment, with what is `given`: the rate stays what it is once it has risen.

    Raises `UserError` for values that no run could have.
    """
    return _settings(COMMON | INDUCTION | given, falls=False)


def noun_settings(**given: Any) -> SmallSettings:
    """Those of the noun experiment, with what is `given`: the rate falls to nothing.

    Raises `UserError` for values that no run could have.
    """
    return _settings(COMMON | NOUN | given, falls=True)


def families_settings(**given: Any) -> tuple[SmallSettings, SmallSettings]:
    """Those of reversing words and of masked words, with what is `given` of both: the rates fall to nothing.

    Raises `UserError` for values that no run could have.
    """
    return _settings(COMMON | REVERSING | given, falls=True), _settings(COMMON | MASKED | given, falls=True)


def _settings(values: dict[str, Any], falls: bool) -> SmallSettings:
    own = {name: values.pop(name) for name in ("seeds", "shallow", "std")}
    return SmallSettings(make_settings(values | {"lr_end": 0.0 if falls else values["lr"]}), **own)
