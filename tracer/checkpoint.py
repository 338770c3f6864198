"""A checkpoint: all that generating, or going on with the training exactly, needs."""

import io
from dataclasses import dataclass
from pathlib import Path

import torch

from tracer.atomic import write_atomically
from tracer.errors import UserError
from tracer.model import GPT, Config
from tracer.origin import checkpoint_hash
from tracer.schema import content_hash
from tracer.together import newest
from tracer.training import TrainingSettings, make_optimizer

FORMAT = "two-routes/checkpoint/2"


@dataclass
class Checkpoint:
    """A model with its optimizer after `step` updates, and the settings that led there."""

    model: GPT
    optimizer: torch.optim.Optimizer
    settings: TrainingSettings
    step: int
    text: str
    random_state: torch.Tensor

    def sha256(self) -> str:
        """By which recordings name it; see `tracer.origin`."""
        return checkpoint_hash(self.model.config.to_json(), self.settings.to_json(), self.text, self.step,
                               {name: content_hash(p.detach().numpy()) for name, p in self.model.named_parameters()})


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write it, atomically."""
    write_atomically(path, checkpoint_bytes(checkpoint))


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """The file: parameters, config, optimizer state, step, random state, and the hash."""
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
        "sha256": checkpoint.sha256(),
    }, buffer)
    return buffer.getvalue()


def load_checkpoint(path: Path) -> Checkpoint:
    """Raises `UserError` when the file is missing, damaged, changed or of another format."""
    if not newest(path).is_file():
        raise UserError(f"there is no checkpoint {path}: train one with `python -m tracer train`")
    try:
        body = torch.load(newest(path), weights_only=True)
        if body["format"] != FORMAT:
            raise UserError(f"{path} has format {body['format']!r}, this program reads {FORMAT!r}: train again")
        state = torch.get_rng_state()
        model = GPT(Config(**body["config"]))
        torch.set_rng_state(state)  # building draws initial values that are about to be replaced
        settings = TrainingSettings(**body["settings"])
        model.load_state_dict(body["parameters"])
        optimizer = make_optimizer(model, settings)
        optimizer.load_state_dict(body["optimizer"])
        checkpoint = Checkpoint(model, optimizer, settings, body["step"], body["text"], body["random_state"])
        if checkpoint.sha256() != body["sha256"]:
            raise UserError(f"{path} was changed after it was written (sha256 differs): train again with "
                            "`python -m tracer train`")
        return checkpoint
    except UserError:
        raise
    except Exception as error:  # torch.load raises many kinds for a damaged file
        raise UserError(f"{path} is damaged or no checkpoint ({type(error).__name__}): train again with "
                        "`python -m tracer train`") from None
