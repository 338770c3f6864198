"""The checkpoints of a run: ``last.pt``, all that going on exactly needs, and ``best.pt``, the same of the best."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch import nn

from tracer.errors import UserError
from tracer.model.checkpoint_parts import check_moments, check_parameters, check_scaler, config_of, exact
from tracer.model.config import CHOICES, Config
from tracer.model.gpt import GPT
from tracer.model.sealed import Damaged, OfAnotherFormat, load_sealed, refused, seal_of, sealed_bytes
from tracer.model.text_tokenizer import TextTokenizer
from tracer.storage.atomic import write_atomically
from tracer.trainer.corpus import SPLITS, tokenizer_from_json, tokenizer_to_json
from tracer.trainer.settings import BEST, LAST, FitSettings, make_settings

FORMAT = "two-routes/run/3"
SHAPE = ("vocabulary", "context", "width", "heads", "blocks")
# Settings too, but of a model that was read what it came with holds.
CHOSEN = tuple(item.name for item in fields(FitSettings) if item.name in CHOICES)


@dataclass
class RunCheckpoint:
    """A run after `update` updates.

    The data order and the dropout masks need no state: they follow from the seed and the number of the update.
    `optimizer`: the state of each parameter, in the order of the optimizer's groups; the rest of it follows from
    the settings.  `best`: the smallest validation loss so far, which `best_update` had; None where the file of that
    update has been removed, and nothing evaluated since.
    """

    config: Config
    tokenizer: TextTokenizer
    files: dict[str, str]  # of the data, by split: their names tell their content
    settings: FitSettings
    parameters: dict[str, torch.Tensor]
    optimizer: dict[int, dict[str, torch.Tensor]]
    scaler: dict[str, Any]
    update: int
    best: float | None
    best_update: int | None

    def model(self) -> GPT:
        """The model with these parameters, ready to be sampled from."""
        model = GPT(self.config, explicit=False)
        model.load_state_dict(self.parameters)
        return model.eval()


def save_run(checkpoint: RunCheckpoint, paths: list[Path]) -> None:
    """Write the checkpoint to each path, atomically.  Where it is does not stand in it: folders are moved."""
    body = {item.name: getattr(checkpoint, item.name) for item in fields(checkpoint)}
    body |= {"config": checkpoint.config.to_json(), "tokenizer": tokenizer_to_json(checkpoint.tokenizer),
             "settings": checkpoint.settings.without_place(), "parameters": dict(checkpoint.parameters)}
    content = sealed_bytes(body, FORMAT)
    for path in paths:
        write_atomically(path, content)


def load_run(path: Path) -> RunCheckpoint:
    """Its settings name the folder that it was read from as the output.  Tensors come to the CPU.

    Raises `UserError` when the file is missing, damaged or of another format, when its parts do not fit one another,
    and for numbers that are not finite.
    """
    if not path.is_file():
        raise UserError(f"there is no checkpoint {path}: train one with `python -m tracer fit`")
    try:
        return _from_body(load_sealed(path, FORMAT), path.parent)
    except OfAnotherFormat as error:
        if error.kind == "checkpoint":
            raise UserError(f"{path} is the checkpoint of a recording, a run's is needed: name the folder of a run, or "
                            f"its {LAST} or {BEST}") from None
        raise refused(path, error, "train again with `python -m tracer fit`") from None
    except Exception as error:  # torch.load raises many kinds for a damaged file
        best = path.with_name(BEST)
        instead = f"go on from the best update with a copy of {best} in its place, or " if (
            path.name == LAST and best.is_file()) else ""
        raise refused(path, error, f"{instead}train again with `python -m tracer fit`") from None


def _from_body(body: dict[str, Any], folder: Path) -> RunCheckpoint:
    exact(body, "the checkpoint", config=dict, tokenizer=dict, files=dict, settings=dict, parameters=dict,
          optimizer=dict, scaler=dict, update=int, best=float | None, best_update=int | None)
    config, tokenizer = config_of(body["config"]), tokenizer_from_json(body["tokenizer"])
    kinds = {name: kind for name, kind in get_type_hints(FitSettings).items() if name != "output"}
    said = {name: getattr(FitSettings, name) for name in CHOSEN} | body["settings"]  # older runs do not say all
    settings = make_settings(exact(said, "settings", **kinds) | {"output": str(folder)})
    held = SHAPE[1:] if settings.pretrained else SHAPE[1:] + CHOSEN
    exact(body["files"], "files", **dict.fromkeys(SPLITS, str))
    if any(getattr(config, name) != getattr(settings, name) for name in held):
        raise Damaged("its config and its settings have different shapes")
    if config.vocabulary != tokenizer.vocabulary_size:
        raise Damaged("its tokenizer and its config have different vocabularies")
    if not 0 <= (body["best_update"] or 0) <= body["update"] <= settings.updates or (
            (body["best"] is None) != (body["best_update"] is None)):
        raise Damaged("its updates are not in order")
    check_moments(check_parameters(config, body["parameters"]), body["optimizer"], body["update"])
    check_scaler(body["scaler"])
    return RunCheckpoint(**body | {"config": config, "tokenizer": tokenizer, "settings": settings})


def find_run(source: Path) -> Path | None:
    """The checkpoint of a run that `source` is, or holds (the best, else the last); None when it is something else."""
    if source.is_dir():
        return next((source / name for name in (BEST, LAST) if (source / name).is_file()), None)
    return source if source.is_file() and seal_of(source) == FORMAT else None  # a pipe or a device may have no end


def check_shape(saved: Config, wanted: Config, where: Path, choices: bool = True) -> None:
    """Raises `UserError` that names the first setting in which a run and its checkpoint differ in shape.

    `choices`: whether what is chosen beside the sizes is a setting of the run.
    """
    for name in SHAPE + CHOSEN * choices:
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
