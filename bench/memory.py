"""Memory that training takes against what `python -m tracer parameters` predicts from the config.

    PYTHONPATH=. python bench/memory.py

Exits with 1 when a prediction is off by more than one per cent.  What is measured is the running total of
torch's own allocator, at its highest over two updates of two micro-batches each, model and optimizer
included; each shape in a process of its own, so that nothing is left from the one before.  (Memory that
the interpreter and the libraries take is not in it: about 200 MB, whatever the model.)
"""

import json
import multiprocessing
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.table import Table

LIMIT = 0.01
WIDE = {"vocabulary": 65, "context": 64, "width": 128, "heads": 4, "blocks": 4, "dropout": 0.0}
CHANGES = ({"bias": False}, {"norm": "rms_norm"}, {"activation": "swiglu"}, {"kv_heads": 2}, {"position": "rotary"})
ALL = {name: value for change in CHANGES for name, value in change.items()} | {"tied": False, "hidden": 344}
CASES = [  # shape, sequences in a batch
    (WIDE, 1), (WIDE, 12), (WIDE, 48),
    (WIDE | {"blocks": 8}, 12), (WIDE | {"dropout": 0.1}, 12),
    (WIDE | {"activation": "gelu_tanh"}, 12), (WIDE | {"activation": "gelu_tanh", "dropout": 0.1}, 4),
    (WIDE | {"context": 256}, 12), (WIDE | {"vocabulary": 5000, "tied": False}, 12),
    *((WIDE | {"dropout": dropout} | change, 12) for dropout in (0.0, 0.1) for change in (*CHANGES, ALL)),
    ({"vocabulary": 50257, "context": 16, "width": 16, "heads": 2, "blocks": 2, "dropout": 0.1}, 2),
    ({"vocabulary": 50257, "context": 128, "width": 256, "heads": 8, "blocks": 4, "dropout": 0.0}, 4),
]


def highest(shape: dict, batch: int) -> int:
    """Bytes, at most, that torch's allocator has given out at once."""
    import torch

    from tracer.model.config import Config
    from tracer.model.gpt import GPT
    from tracer.model.optimizer import TrainingSettings, make_optimizer

    torch.set_num_threads(1)
    config = Config(**shape)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        model = GPT(config, explicit=False).train()
        optimizer = make_optimizer(model, TrainingSettings())
        ids = torch.randint(config.vocabulary, (batch, config.context))
        for _ in range(2):
            for _ in range(2):
                logits, loss = model(ids, ids)
                loss.backward()
                del logits, loss
            optimizer.step()
            optimizer.zero_grad()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_bytes())["traceEvents"]
    return max(event["args"]["Total Allocated"] for event in events if event["name"] == "[memory]")


def predicted(shape: dict, batch: int) -> int:
    from tracer.library.counting import training_memory
    from tracer.model.config import Config

    return training_memory(Config(**shape), batch).total


@click.command()
def main() -> None:
    """Compare predicted with measured memory of training."""
    table = Table(title="training memory in bytes")
    table.add_column("shape", overflow="fold")
    for column in ("batch", "predicted", "measured", "error", "verdict"):
        table.add_column(column, justify="right")
    kept = True
    for shape, batch in CASES:
        with multiprocessing.get_context("spawn").Pool(1) as process:
            measured = process.apply(highest, (shape, batch))
        error = predicted(shape, batch) / measured - 1
        kept = kept and abs(error) <= LIMIT
        table.add_row(", ".join(f"{name} {value}" for name, value in shape.items()), f"{batch} × {shape['context']}",
                      f"{predicted(shape, batch):,}", f"{measured:,}", f"{error:+.3%}",
                      "ok" if abs(error) <= LIMIT else "[bold red]MISSED")
    Console(width=None if sys.stdout.isatty() else 150, highlight=False).print(table)
    if not kept:
        sys.exit(1)


if __name__ == "__main__":
    main()
