"""The checkpoints of a run: ``last.pt``, all that going on exactly needs, and ``best.pt``, the same of the best."""

import io
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from tracer.data import TextTokenizer, tokenizer_from_json, tokenizer_to_json
from tracer.errors import UserError
from tracer.fit_settings import FitSettings, make_settings
from tracer.model import GPT, Config
from tracer.schema import write_atomically

FORMAT = "two-routes/run/2"
LAST, BEST = "last.pt", "best.pt"


@dataclass
class RunCheckpoint:
    """A run after `update` updates.

    The data order and the dropout masks need no state: they follow from the seed and the number of the update.
    `best`: the smallest validation loss so far, None before the first evaluation.
    """

    config: Config
    tokenizer: TextTokenizer
    files: dict[str, str]  # of the data, by split: their names tell their content
    settings: FitSettings
    parameters: dict[str, torch.Tensor]
    optimizer: dict
    scaler: dict
    update: int
    best: float | None

    def model(self) -> GPT:
        """The model with these parameters, ready to be sampled from."""
        model = GPT(self.config, explicit=False)
        model.load_state_dict(self.parameters)
        return model.eval()


def save_run(checkpoint: RunCheckpoint, paths: list[Path]) -> None:
    """Write the checkpoint to each path, atomically."""
    body = {
        "format": FORMAT,
        "config": checkpoint.config.to_json(),
        "tokenizer": tokenizer_to_json(checkpoint.tokenizer),
        "files": checkpoint.files,
        "settings": asdict(checkpoint.settings),
        "parameters": checkpoint.parameters,
        "optimizer": checkpoint.optimizer,
        "scaler": checkpoint.scaler,
        "update": checkpoint.update,
        "best": checkpoint.best,
    }
    buffer = io.BytesIO()
    torch.save(body, buffer)
    for path in paths:
        write_atomically(path, buffer.getvalue())


def load_run(path: Path) -> RunCheckpoint:
    """Raises `UserError` when the file is missing, damaged or of another format.  Tensors come to the CPU."""
    if not path.is_file():
        raise UserError(f"there is no checkpoint {path}: train one with `python -m tracer fit`")
    try:
        body = torch.load(path, weights_only=True, map_location="cpu")
        if body["format"] != FORMAT:
            raise UserError(f"{path} has format {body['format']!r}, this program reads {FORMAT!r}: train again")
        return RunCheckpoint(Config(**body["config"]), tokenizer_from_json(body["tokenizer"]), body["files"],
                             make_settings(body["settings"]), body["parameters"], body["optimizer"], body["scaler"],
                             body["update"], body["best"])
    except UserError:
        raise
    except Exception as error:  # torch.load raises many kinds for a damaged file
        raise UserError(f"{path} is damaged or no checkpoint of a run ({type(error).__name__}): train again with "
                        "`python -m tracer fit`") from None


def find_run(source: Path) -> Path | None:
    """The checkpoint of a run that `source` is, or holds (the best, else the last); None when it is something else."""
    if source.is_dir():
        return next((source / name for name in (BEST, LAST) if (source / name).is_file()), None)
    try:
        body = torch.load(source, weights_only=True, mmap=True, map_location="cpu")
        return source if body["format"] == FORMAT else None
    except Exception:  # whoever reads it as what it is says what is wrong
        return None


def check_shape(saved: Config, wanted: Config, where: Path) -> None:
    """Raises `UserError` that names the first setting in which a run and its checkpoint differ in shape."""
    for name in ("vocabulary", "context", "width", "heads", "blocks"):
        before, now = getattr(saved, name), getattr(wanted, name)
        if before != now:
            raise UserError(f"{where} has {name} {before}, the settings say {now}: resume with {name} {before}, or "
                            "start from scratch in another --output")


def load_parameters(model: nn.Module, parameters: dict[str, torch.Tensor], where: Path) -> None:
    """Raises `UserError` when the checkpoint's parameters are not this model's."""
    try:
        model.load_state_dict(parameters)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{where} does not fit this model ({reason}): train again") from None
