"""A checkpoint: all that generating, or going on with the training exactly, needs."""

import io
from dataclasses import dataclass
from pathlib import Path

import torch

from tracer.errors import UserError
from tracer.model import GPT, Config
from tracer.schema import write_atomically
from tracer.training import TrainingSettings, make_optimizer

FORMAT = "two-routes/checkpoint/1"


@dataclass
class Checkpoint:
    """A model with its optimizer after `step` updates, and the settings that led there."""

    model: GPT
    optimizer: torch.optim.Optimizer
    settings: TrainingSettings
    step: int
    text: str
    random_state: torch.Tensor


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Parameters, config, optimizer state, step and random state, written atomically."""
    buffer = io.BytesIO()
    torch.save({
        "format": FORMAT,
        "config": checkpoint.model.config.to_json(),
        "settings": checkpoint.settings.to_json(),
        "parameters": checkpoint.model.state_dict(),
        "optimizer": checkpoint.optimizer.state_dict(),
        "step": checkpoint.step,
        "text": checkpoint.text,
        "random_state": checkpoint.random_state,
    }, buffer)
    write_atomically(path, buffer.getvalue())


def load_checkpoint(path: Path) -> Checkpoint:
    """Raises `UserError` when the file is missing, damaged or of another format."""
    if not path.is_file():
        raise UserError(f"there is no checkpoint {path}: train one with `python -m tracer train`")
    try:
        body = torch.load(path, weights_only=True)
        if body["format"] != FORMAT:
            raise UserError(f"{path} has format {body['format']!r}, this program reads {FORMAT!r}: train again")
        state = torch.get_rng_state()
        model = GPT(Config(**body["config"]))
        torch.set_rng_state(state)  # building draws initial values that are about to be replaced
        settings = TrainingSettings(**body["settings"])
        model.load_state_dict(body["parameters"])
        optimizer = make_optimizer(model, settings)
        optimizer.load_state_dict(body["optimizer"])
        return Checkpoint(model, optimizer, settings, body["step"], body["text"], body["random_state"])
    except UserError:
        raise
    except Exception as error:  # torch.load raises many kinds for a damaged file
        raise UserError(f"{path} is damaged or no checkpoint ({type(error).__name__}): train again with "
                        "`python -m tracer train`") from None
