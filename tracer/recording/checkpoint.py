"""A checkpoint: all that generating, or going on with the training exactly, needs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tracer.errors import UserError
from tracer.format.origin import checkpoint_hash
from tracer.format.trace import content_hash
from tracer.model.checkpoint_parts import check_moments, check_parameters, config_of, exact, typed
from tracer.model.config import Config
from tracer.model.finite import Diverged, first_not_finite
from tracer.model.gpt import GPT
from tracer.model.optimizer import TrainingSettings, make_optimizer
from tracer.model.sealed import Damaged, OfAnotherFormat, load_sealed, refused, sealed_bytes
from tracer.storage.atomic import write_atomically
from tracer.storage.together import CHECKPOINT, newest

FORMAT = "two-routes/checkpoint/2"
_AGAIN = "train again with `python -m tracer train`"


@dataclass
class Moment:
    """A model after `step` updates of a training, and the settings that led there: what a generation follows from."""

    model: GPT
    settings: TrainingSettings
    step: int
    text: str

    def sha256(self) -> str:
        """By which recordings name it; see `tracer.format.origin`."""
        return checkpoint_hash(self.model.config.to_json(), self.settings.to_json(), self.text, self.step,
                               {name: content_hash(p.detach().numpy()) for name, p in self.model.named_parameters()})


@dataclass
class Checkpoint(Moment):
    """A moment with all that going on takes, and with an early moment of the same training, where one was kept."""

    optimizer: torch.optim.Optimizer
    random_state: torch.Tensor
    early: Moment | None = None


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write it, atomically."""
    write_atomically(path, checkpoint_bytes(checkpoint))


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """The file: parameters, config, optimizer state, step, random state, and the hash.

    Raises `Diverged` for a number that is not finite: no such checkpoint takes the place of a good one.
    """
    body = {
        "config": checkpoint.model.config.to_json(),
        "settings": checkpoint.settings.to_json(),
        "parameters": dict(checkpoint.model.state_dict()),
        "optimizer": checkpoint.optimizer.state_dict()["state"],
        "step": checkpoint.step,
        "text": checkpoint.text,
        "random_state": checkpoint.random_state,
        "sha256": checkpoint.sha256(),
    }
    if early := checkpoint.early:
        body["early"] = {"parameters": dict(early.model.state_dict()), "step": early.step, "sha256": early.sha256()}
    if (name := first_not_finite(body)) is not None:
        raise Diverged(checkpoint.step, f"{name} is not finite after update {checkpoint.step}", "choose a smaller lr")
    return sealed_bytes(body, FORMAT)


def load_checkpoint(path: Path) -> Checkpoint:
    """Raises `UserError` when the file is missing, damaged or of another format, changed, or not finite."""
    if path.is_dir():
        raise UserError(f"{path} is a folder: name the checkpoint in it, or train one with `python -m tracer train`")
    if not newest(path).is_file():
        raise UserError(f"there is no checkpoint {path}: train one with `python -m tracer train`")
    try:
        body = load_sealed(newest(path), FORMAT)
        checkpoint = _from_body(body)
    except OfAnotherFormat as error:
        if error.kind == "run":
            raise UserError(f"{path} is the checkpoint of a run, a recording's is needed: name the {CHECKPOINT} beside "
                            "a recording, or continue a prompt with `python -m tracer sample`") from None
        raise refused(path, error, _AGAIN) from None
    except Exception as error:  # torch.load raises many kinds for a damaged file
        raise refused(path, error, _AGAIN) from None
    hashes = {"": checkpoint.sha256(), **({"early": checkpoint.early.sha256()} if checkpoint.early else {})}
    if any(one != (body[part] if part else body)["sha256"] for part, one in hashes.items()):
        raise UserError(f"{path} was changed after it was written (sha256 differs): {_AGAIN}")
    return checkpoint


def _from_body(body: dict[str, Any]) -> Checkpoint:
    early = {"early": dict} if "early" in body else {}  # a checkpoint of an older version has none
    exact(body, "the checkpoint", config=dict, settings=dict, parameters=dict, optimizer=dict, step=int, text=str,
          random_state=torch.Tensor, sha256=str, **early)
    config, settings = config_of(body["config"]), typed(TrainingSettings, body["settings"], "settings")
    if not 0 <= body["step"] <= settings.updates:
        raise Damaged("its step is none of its updates")
    if body["random_state"].dtype != torch.uint8 or body["random_state"].shape != torch.get_rng_state().shape:
        raise Damaged("its random state is none of torch's")
    check_moments(check_parameters(config, body["parameters"]), body["optimizer"], body["step"])
    model = model_of(config, body["parameters"])
    optimizer = make_optimizer(model, settings)
    optimizer.load_state_dict({"state": body["optimizer"], "param_groups": optimizer.state_dict()["param_groups"]})
    kept = _early(config, settings, body) if early else None
    return Checkpoint(model, settings, body["step"], body["text"], optimizer, body["random_state"], kept)


def _early(config: Config, settings: TrainingSettings, body: dict[str, Any]) -> Moment:
    early = exact(body["early"], "the early moment", parameters=dict, step=int, sha256=str)
    if not 0 <= early["step"] < body["step"]:
        raise Damaged("its early moment is not before its last")
    check_parameters(config, early["parameters"])
    return Moment(model_of(config, early["parameters"]), settings, early["step"], body["text"])


def model_of(config: Config, parameters: dict[str, torch.Tensor]) -> GPT:
    """The model that has these; the random state stays as it is."""
    state = torch.get_rng_state()
    model = GPT(config)
    torch.set_rng_state(state)  # building draws initial values that are about to be replaced
    model.load_state_dict(parameters)
    return model
