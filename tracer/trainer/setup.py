"""What a run trains and what it trains it with: the model, the optimizer, the precision, the processes' copies."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from tracer.errors import UserError
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.optimizer import decays
from tracer.model.pretrained import drop_padding, from_pretrained
from tracer.trainer.checkpoints import CHOSEN, RunCheckpoint, check_shape, load_run
from tracer.trainer.corpus import Corpus, check_same_files, check_same_tokenizer
from tracer.trainer.processes import Processes
from tracer.trainer.settings import LAST, SETTINGS, FitSettings

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def make_optimizer(model: nn.Module, settings: FitSettings) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019), decay on matrices only, torch's fused kernel."""
    parameters = list(model.parameters())
    groups = [{"params": [p for p in parameters if decays(p)], "weight_decay": settings.weight_decay},
              {"params": [p for p in parameters if not decays(p)], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=settings.lr, betas=(settings.beta1, settings.beta2), eps=settings.eps,
                             fused=True)


def make_model(settings: FitSettings, data: Corpus, saved: RunCheckpoint | None,
                check: Callable[[Config, FitSettings], None]) -> GPT:
    """From scratch, with the shape of the run that is gone on with, or from GPT-2's weights, which bring their own.

    `check` is asked about a shape before there is a model of it, unless it was read.
    """
    if settings.pretrained and not saved:
        model = _pretrained(settings, data)
        check(model.config, settings)
        return model
    config = Config(data.tokenizer.vocabulary_size, settings.context, settings.width, settings.heads, settings.blocks,
                    settings.dropout, **{name: getattr(settings, name) for name in CHOSEN})
    if saved:
        check_shape(saved.config, config, Path(settings.output) / LAST, choices=not settings.pretrained)
        config = replace(saved.config, dropout=settings.dropout)
    check(config, settings)
    return GPT(config, explicit=False)


def saved_run(folder: Path, data: Corpus, settings: FitSettings, resume: bool) -> RunCheckpoint | None:
    """The run in `folder` that is gone on with; None where one starts, or was killed before its first checkpoint.

    Raises `UserError` for a run that is not to be resumed or cannot be with these settings and this data.
    """
    path = folder / LAST
    if not resume:
        if path.exists():
            raise UserError(f"{folder} holds a run already: go on with --resume, or choose another --output")
        return None
    if not path.exists():  # killed before the first checkpoint
        if not (folder / SETTINGS).exists():
            raise UserError(f"{folder} holds no run to resume: leave --resume out")
        return None
    saved = load_run(path)
    if saved.update > settings.updates:
        raise UserError(f"{path} has {saved.update} updates done, more than {settings.updates}: resume with "
                        f"--updates {saved.update} or more")
    if settings.pretrained != saved.settings.pretrained:
        started = f"from {saved.settings.pretrained!r}" if saved.settings.pretrained else "from scratch"
        raise UserError(f"the run of {path} was started {started}, not from {settings.pretrained!r}: resume "
                        "without --pretrained, or choose another --output")
    check_same_tokenizer(data.tokenizer, saved.tokenizer, path)
    check_same_files(data, saved.files, path)
    return saved


def _pretrained(settings: FitSettings, data: Corpus) -> GPT:
    model = drop_padding(from_pretrained(settings.pretrained, settings.dropout))
    if model.config.vocabulary != data.tokenizer.vocabulary_size:
        raise UserError(f"{settings.pretrained} has {model.config.vocabulary} tokens, the data was prepared with "
                        f"{data.tokenizer.vocabulary_size} ({data.tokenizer.name}): prepare it with --tokenizer gpt2")
    model.crop_context(settings.context)
    return model


def precision_of(name: str, device: torch.device) -> torch.dtype:
    """The type that products are computed in.  Raises `UserError` where the device has no mixed precision of it."""
    if name == "auto":
        if device.type != "cuda":
            return torch.float32
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if name == "float16" and device.type != "cuda":
        raise UserError(f"float16 needs a CUDA device, this is {device.type}: choose bfloat16 or float32")
    return DTYPES[name]


def parallel(model: nn.Module, processes: Processes) -> nn.Module:
    """The model, in several processes with its gradients averaged over them."""
    if processes.world == 1:
        return model
    devices = [processes.device.index] if processes.device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, device_ids=devices)
