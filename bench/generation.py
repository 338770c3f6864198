"""How fast the library generates and trains: paired measurements against Hugging Face's GPT-2.

    PYTHONPATH=. python bench/generation.py [--runs N] [--no-large] [--clock processor]

Exits with 1 when a limit is missed, with 2 when transformers is not installed.  Both sides of a pair have the
same weights or the same shape, and generation must give the same tokens.
"""

import contextlib
import os
import sys
from tempfile import TemporaryDirectory

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

from pathlib import Path

import click
import torch
from recording import Comparison, add_row, clock_option, load, measure, new_table, out

from tracer.format.shapes import GPT2_SHAPES, SHAPES
from tracer.library.generate import generate
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.kernel_probe import described, kernels_used
from tracer.model.optimizer import TrainingSettings, make_optimizer
from tracer.model.pretrained import save_pretrained
from tracer.model.sampling import Sampling

PROMPT = NEW = 256
SMALL = Config(vocabulary=65, context=PROMPT + NEW, width=128, heads=4, blocks=4, dropout=0.0)
GPT2_SMALL = Config(**GPT2_SHAPES["gpt2"], dropout=0.0)
BATCH, LENGTH = 12, 64
GREEDY = Sampling(temperature=0)
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new"}  # ours → transformers' name; its GPT-2 has the second


def hugging_face(config: Config):
    """transformers' GPT-2 of the same shape, the same GELU and the same dropout, its own initial values."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(
        vocab_size=config.vocabulary, n_positions=config.context, n_embd=config.width, n_layer=config.blocks,
        n_head=config.heads, activation_function=ACTIVATIONS[config.activation], embd_pdrop=config.dropout,
        attn_pdrop=config.dropout, resid_pdrop=config.dropout, use_cache=False, bos_token_id=None, eos_token_id=None))


class Generation:
    """Continue one prompt with the same weights, by us with a cache and without, and by transformers."""

    def __init__(self, config: Config, prompt: int, new: int):
        from transformers import GPT2LMHeadModel

        torch.manual_seed(1)
        self.new, self.model = new, GPT(config, explicit=False).eval()
        with torch.no_grad():  # so that the tokens differ from each other
            for parameter in self.model.parameters():
                parameter.mul_(3)
        self.prompt = torch.randint(config.vocabulary, (1, prompt))
        with TemporaryDirectory() as folder, contextlib.redirect_stderr(open(os.devnull, "w")):
            save_pretrained(self.model, Path(folder))
            self.reference = GPT2LMHeadModel.from_pretrained(folder).eval()

    def cached(self) -> list[int]:
        return generate(self.model, self.prompt.tolist(), GREEDY, self.new)[0]

    def uncached(self) -> list[int]:
        return generate(self.model, self.prompt.tolist(), GREEDY, self.new, cached=False)[0]

    def hugging_face(self) -> list[int]:
        with torch.inference_mode():
            ids = self.reference.generate(self.prompt, attention_mask=torch.ones_like(self.prompt), do_sample=False,
                                          max_new_tokens=self.new, use_cache=True, pad_token_id=0)
        return ids[0, self.prompt.size(1):].tolist()

    def check(self) -> None:
        """Raises `AssertionError` when the three do not give the same tokens."""
        ids = self.cached()
        assert len(ids) == self.new and len(set(ids)) > 8
        assert ids == self.uncached() == self.hugging_face(), "the tokens differ"


class Training:
    """Steps of training on one batch: forward, backward, optimizer, the gradients cleared."""

    def __init__(self, config: Config, batch: int, length: int):
        torch.manual_seed(1)
        self.x, self.y = torch.randint(config.vocabulary, (2, batch, length))
        self.model, self.reference = GPT(config, explicit=False).train(), hugging_face(config).train()
        settings = TrainingSettings(lr=1e-3)
        self.optimizer = make_optimizer(self.model, settings)
        self.reference_optimizer = torch.optim.AdamW(self.reference.parameters(), lr=settings.lr)

    def ours(self) -> float:
        """The loss before the update, in nats a token."""
        _, loss = self.model(self.x, self.y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def theirs(self) -> float:
        """The same by Hugging Face's model."""
        loss = self.reference(input_ids=self.x, labels=self.x).loss  # it shifts the labels itself
        loss.backward()
        self.reference_optimizer.step()
        self.reference_optimizer.zero_grad()
        return loss.item()


def at_least(times: float) -> float:
    """The limit of a ratio of times for being so many times as fast."""
    return 1 / times


def generations(runs: int) -> list[Comparison]:
    """The small model with one thread, which the limits are for, and with two."""
    small = Generation(SMALL, PROMPT, NEW)
    small.check()
    name, found = f"{PROMPT} + {NEW} tokens, 4 blocks of width 128: cached /", []
    for threads, limits in ((1, (at_least(1.6), at_least(9))), (2, (None, None))):
        found += [Comparison(f"{name} Hugging Face cached", small.cached, small.hugging_face, runs, limits[0],
                             threads=threads),
                  Comparison(f"{name} not", small.cached, small.uncached, max(runs // 4, 1), limits[1],
                             threads=threads)]
    return found


def large_generations() -> list[Comparison]:
    large = Generation(GPT2_SMALL, LENGTH, LENGTH)
    large.check()
    return [Comparison(f"{LENGTH} + {LENGTH} tokens, GPT-2 small: cached / Hugging Face cached", large.cached,
                       large.hugging_face, 3, threads=threads) for threads in (1, 2)]


def trainings(runs: int) -> list[Comparison]:
    """With GPT-2's own GELU 1.3 times as fast at the small shapes; with the exact one, a single kernel on both
    sides, nearly all the time is that of the same kernels.
    """
    found = []
    for activation, blocks, limit in (("gelu_tanh", 2, 1.3), ("gelu_tanh", 4, 1), ("gelu_tanh", 8, 1),
                                      ("gelu", 2, 1), ("gelu", 4, 1), ("gelu", 8, 1)):
        config = Config(vocabulary=65, context=LENGTH, width=128, heads=4, blocks=blocks, dropout=0.0,
                        activation=activation)
        step = Training(config, BATCH, LENGTH)
        found.append(Comparison(f"training step, {blocks} blocks of width 128, {BATCH} × {LENGTH}, "
                                f"{ACTIVATIONS[activation]}: ours / Hugging Face", step.ours, step.theirs, runs,
                                at_least(limit)))
    step = Training(Config(**SHAPES["teaching"]), 1, 5)
    return [*found, Comparison("training step, the teaching shape, 1 × 5, gelu: ours / Hugging Face", step.ours,
                               step.theirs, runs, at_least(1.3))]


@click.command()
@click.option("--runs", default=20, show_default=True, type=click.IntRange(min=1), help="Pairs of each comparison.")
@click.option("--large/--no-large", default=True, show_default=True, help="Also GPT-2 small: 2 GB, some minutes.")
@clock_option
def main(runs: int, large: bool, clock: str) -> None:
    """Compare generation with a cache and without, and both generation and training with Hugging Face's GPT-2."""
    try:
        from transformers import __version__ as transformers
    except ImportError:
        click.echo("error: transformers is not installed: pip install '.[record,pretrained,test]'", err=True)
        sys.exit(2)
    torch.set_num_threads(1)
    groups = [lambda: trainings(runs), lambda: generations(runs), *([large_generations] if large else [])]
    table = new_table()
    kept = [add_row(table, comparison, measure(comparison, clock)) for group in groups for comparison in group()]
    out.print(table)
    out.print(f"torch {torch.__version__}; transformers {transformers}; "
              f"kernels of both sides: {described(kernels_used())}; pairs: {runs}; 1 thread where none are stated; "
              f"{clock} time; load {load()}")
    if not all(kept):
        sys.exit(1)


if __name__ == "__main__":
    main()
