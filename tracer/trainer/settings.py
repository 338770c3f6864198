"""The settings of a training run: typed, checked, read from TOML and from the command line.

This module knows no torch, so that ``--help`` works without it.
"""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_type_hints

from tracer.errors import UserError
from tracer.format.shapes import LARGEST
from tracer.model.config import CHOICES, COMMON, check_kind
from tracer.resources import RECIPES

SETTINGS, LAST, BEST = "settings.toml", "last.pt", "best.pt"  # in the folder of a run
META = "meta.json"  # in the folder of prepared data
DEVICES = ("auto", "cpu", "cuda", "mps")
THREADS = 1024  # at most: with more, starting them fails and ends the process
PRECISIONS = ("auto", "float32", "bfloat16", "float16")


def _setting(default: object, help: str) -> Any:  # as `dataclasses.field`, which is typed as its default
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class FitSettings:
    """All that a run depends on.  Raises `UserError` for a value that no run could have.

    One update reads `batch` × `accumulation` windows of `context` tokens, however many processes share them.
    """

    data: str = _setting("data", "Folder of prepared data.")
    output: str = _setting("run", "Folder of the run: settings, log, checkpoints.")
    pretrained: str = _setting("", "GPT-2 checkpoint to start from, a folder or a name; its shape "
                               "holds, but for the context.  [default: from scratch]")
    context: int = _setting(64, "Tokens of one window.")
    width: int = _setting(128, "Width of the residual stream.")
    heads: int = _setting(4, "Attention heads a block.")
    blocks: int = _setting(4, "Blocks.")
    dropout: float = _setting(0.0, "Dropout probability.")
    activation: str = _setting(COMMON["activation"], CHOICES["activation"])
    norm: str = _setting(COMMON["norm"], CHOICES["norm"])
    bias: bool = _setting(COMMON["bias"], CHOICES["bias"])
    tied: bool = _setting(COMMON["tied"], CHOICES["tied"])
    kv_heads: int = _setting(COMMON["kv_heads"], CHOICES["kv_heads"])
    hidden: int = _setting(COMMON["hidden"], CHOICES["hidden"])
    position: str = _setting(COMMON["position"], CHOICES["position"])
    rope_base: float = _setting(COMMON["rope_base"], CHOICES["rope_base"])
    updates: int = _setting(2000, "Updates of the parameters.")
    batch: int = _setting(12, "Windows of one micro-batch.")
    accumulation: int = _setting(1, "Micro-batches of one update, over all processes.")
    lr: float = _setting(3e-3, "Largest learning rate.")
    lr_end: float = _setting(None, "Learning rate at the last update.  [default: a thirtieth of lr]")
    warmup: int = _setting(100, "Updates over which the learning rate rises.")
    beta1: float = _setting(0.9, "AdamW's decay rate of the first moment.")
    beta2: float = _setting(0.99, "AdamW's decay rate of the second moment.")
    eps: float = _setting(1e-8, "AdamW's guard against division by zero.")
    weight_decay: float = _setting(0.1, "Weight decay of matrices.")
    clip: float = _setting(1.0, "Largest norm of the gradient; 0 leaves it alone.")
    seed: int = _setting(1337, "Seed of initial values, windows and dropout.")
    evaluate_every: int = _setting(250, "Updates from one evaluation to the next.")
    save_every: int = _setting(250, "Updates from one checkpoint to the next.")
    device: str = _setting("auto", "One of auto, cpu, cuda, mps.")
    precision: str = _setting("auto", "One of auto, float32, bfloat16, float16.")
    compile: bool = _setting(False, "Compile the model with torch.compile.")
    threads: int = _setting(1, "Threads of a process on a CPU; 0 leaves it to torch.")
    pin_kernels: bool = _setting(False, "Ask for a recording's kernels (AVX2), not for the machine's best.")
    peak_tflops: float = _setting(0.0, "What the device can do, for MFU; 0 measures a large product.")

    def __post_init__(self) -> None:
        if self.lr_end is None and type(self.lr) is float:
            object.__setattr__(self, "lr_end", self.lr / 30)
        for name, kind in get_type_hints(FitSettings).items():
            _check_type(name, getattr(self, name), kind)
            if kind is int and name not in ("seed", "threads"):
                _check(name, getattr(self, name), getattr(self, name) <= LARGEST, f"at most {LARGEST:,}")
        for name in ("context", "width", "heads", "blocks", "updates", "batch", "accumulation", "evaluate_every",
                     "save_every"):
            _check(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        for name in ("kv_heads", "hidden", "lr", "lr_end", "warmup", "eps", "weight_decay", "clip", "threads",
                     "peak_tflops"):
            _check(name, getattr(self, name), getattr(self, name) >= 0, "at least 0")
        check_threads(self.threads)
        for name in ("dropout", "beta1", "beta2"):
            _check(name, getattr(self, name), 0 <= getattr(self, name) < 1, "at least 0 and below 1")
        _check("peak_tflops", self.peak_tflops, self.peak_tflops <= 1e12, "at most 10¹²")  # or FLOP/s are infinite
        _check("lr_end", self.lr_end, self.lr_end <= self.lr, f"at most lr, which is {self.lr!r}")
        _check("seed", self.seed, 0 <= self.seed < 2**64, "from 0 to 2⁶⁴ − 1")
        for place in ("activation", "norm"):
            check_kind(place, getattr(self, place))
        _check("device", self.device, self.device in DEVICES, f"one of {', '.join(DEVICES)}")
        _check("precision", self.precision, self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}")

    def without_place(self) -> dict[str, object]:
        """What a run remembers: all but the folder that it is in, for that may be copied or moved."""
        return {name: value for name, value in asdict(self).items() if name != "output"}

    def to_toml(self) -> str:
        """A file that `read_settings` reads back to the same settings, the place of the run apart."""
        return "".join(f"{name} = {_toml(value)}\n" for name, value in self.without_place().items())


def _check(name: str, value: object, holds: bool, rule: str) -> None:
    if not holds:
        raise UserError(f"{name} must be {rule}, not {value!r}")


def check_threads(count: int) -> None:
    """Raises `UserError` for more threads than can be started."""
    _check("threads", count, count <= THREADS, f"at most {THREADS}")


def _check_type(name: str, value: object, wanted: type) -> None:
    kinds = {int: "a whole number", float: "a number", str: "a text without the character 0", bool: "true or false"}
    wrong = type(value) is not wanted or (isinstance(value, float) and not math.isfinite(value)) or (
        isinstance(value, str) and "\0" in value)
    _check(name, value, not wrong, kinds[wanted])


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    # JSON's texts are TOML's as long as nothing is escaped as a surrogate pair, and 127 is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if isinstance(value, str) else repr(value)


def make_settings(values: Mapping[str, object]) -> FitSettings:
    """Settings from names and values.  Raises `UserError` for an unknown name, and as `FitSettings` does."""
    known = get_type_hints(FitSettings)
    for name in values:
        if name not in known:
            raise UserError(f"there is no setting {name!r}: `python -m tracer fit --help` lists them")
    # TOML tells 1 from 1.0; a whole number is a number all the same.
    typed: dict[str, Any] = {name: _float(value) if known[name] is float and type(value) is int else value
                             for name, value in values.items()}
    return FitSettings(**typed)  # which checks what they are


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf  # which no setting takes


def read_toml(path: Path) -> dict[str, object]:
    """The settings that a TOML file names.  Raises `UserError` when it cannot be read."""
    try:
        return tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        raise UserError(f"there is no settings file {path}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is no TOML: {error}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path} cannot be read: it has a number of thousands of digits, or tables nested that "
                        "deep") from None


def resumed_settings(folder: Path, given: Mapping[str, object]) -> FitSettings:
    """Those that the run in `folder` was started with, then what is given.  What was read from is written to.

    A new lr without a new lr_end keeps their ratio.  Raises `UserError` when there is no run.
    """
    path = folder / SETTINGS
    if not path.exists():
        if (folder / LAST).exists():
            raise UserError(f"{path} is missing, {LAST} is there: put the settings of the run back, or choose another "
                            "--output")
        raise UserError(f"{folder} holds no run to resume: leave --resume out")
    before = make_settings(read_toml(path) | {"output": str(folder)})
    given = {**given, "output": str(folder)}
    wanted = make_settings(asdict(before) | {"lr_end": 0.0} | given)
    if "lr_end" not in given:
        end = before.lr_end if wanted.lr == before.lr else wanted.lr * (before.lr_end / before.lr if before.lr else 0)
        wanted = replace(wanted, lr_end=min(end, wanted.lr))
    return wanted


def read_settings(path: Path | None, given: Mapping[str, object]) -> FitSettings:
    """Settings of a TOML file, then what was given on the command line, then defaults.

    The name of a recipe that comes along, such as ``depth-2000``, is a file too where there is none of that name.
    """
    if path and path.name == str(path) and not path.exists() and (RECIPES / f"{path}.toml").is_file():
        path = RECIPES / f"{path}.toml"
    return make_settings((read_toml(path) if path else {}) | dict(given))
