"""Commands of the library: what a model costs, one head by hand, what heads look at, text from a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from tracer.cli.shared import TEXT, choices, commands, needs, out, together
from tracer.errors import UserError
from tracer.format.shapes import LARGEST, SHAPES

if TYPE_CHECKING:  # commands that need no torch import none
    import numpy as np

    from tracer.library.counting import TrainingMemory
    from tracer.library.head_scores import HeadScore
    from tracer.model.config import Config

    Text = tuple[np.ndarray, np.ndarray]  # its ids (T,) and attention weights (blocks, heads, T, T)

SIZES = ("vocabulary", "context", "width", "heads", "blocks")
SHAPE = together(
    click.option("--like", type=click.Choice(list(SHAPES)), default="gpt2", help="The shape to start from."),
    *(click.option(f"--{name}", type=int, help=f"Instead of that shape's {name}.") for name in SIZES),
    click.option("--dropout", default=0.0, help="Dropout probability."),
    choices(defaults=False),
)


@commands.command()
@SHAPE
@click.option("--batch", default=1, help="Sequences in a batch.")
@click.option("--length", type=int, help="Tokens of each.  [default: the context]")
@click.option("--tokens-per-second", type=float, help="Speed of training, for the MFU.")
@click.option("--peak-flops", type=float, help="What the device can do at most, in operations a second.")
def parameters(like: str, dropout: float, batch: int, length: int | None, tokens_per_second: float | None,
               peak_flops: float | None, **options: Any) -> None:
    """Count a model's parameters, arithmetic and memory without building it."""
    needs("torch")
    from tracer.library import counting
    from tracer.model.config import Config

    if (tokens_per_second is None) != (peak_flops is None):
        raise UserError("the MFU needs both: give --tokens-per-second and --peak-flops")
    if batch > LARGEST:
        raise UserError(f"--batch must be at most {LARGEST:,}, not {batch}")
    given = {name: value for name, value in options.items() if value is not None}
    shape: dict[str, Any] = SHAPES[like] | {"dropout": dropout} | given
    config = Config(**shape)
    length = config.context if length is None else length
    memory = counting.training_memory(config, batch, length)
    share = None
    if tokens_per_second is not None and peak_flops is not None:
        share = counting.mfu(config, tokens_per_second, peak_flops, length)
    out.print(_parts_table(config))
    out.print(_memory_table(config, memory, batch, length))
    out.print(f"floating-point operations for a token of training, 6N + 12·L·H·Q·T: "
              f"{counting.flops_per_token(config, length):,}")
    if share is not None:
        out.print(f"model FLOPs utilisation at {tokens_per_second:,g} tokens a second: {share:.2%}")


def _parts_table(config: Config) -> Table:
    from tracer.library.counting import parameter_count, parameter_parts

    parts, total = parameter_parts(config), parameter_count(config)
    table = Table(title=f"parameters: {', '.join(f'{name} {getattr(config, name)}' for name in SIZES)}")
    table.add_column("part")
    for column in ("numbers", "each", "times", "in all", "share"):
        table.add_column(column, justify="right")
    for part in parts:
        table.add_row(part.name, part.shapes, f"{part.count:,}", str(part.times), f"{part.total:,}",
                      f"{part.total / total:.1%}")
    block = [part for part in parts if part.name.startswith("block")]
    count = sum(part.count for part in block)
    mlp = sum(part.count for part in block if "MLP" in part.name)
    table.add_section()
    table.add_row("one block", f"MLP {mlp / count:.1%} of it", f"{count:,}", str(config.blocks),
                  f"{count * config.blocks:,}", f"{count * config.blocks / total:.1%}")
    table.add_row("all", "", "", "", f"{total:,}", "100.0%")
    without = parameter_count(config, looked_up=False)
    table.add_row("without what is only looked up", "", "", "", f"{without:,}", f"{without / total:.1%}")
    return table


def _memory_table(config: Config, memory: TrainingMemory, batch: int, length: int) -> Table:
    from tracer.format.sizes import cache_bytes

    table = Table(title=f"bytes in float32: a training step of {batch} × {length}, and a cache")
    table.add_column("what")
    for column in ("how many", "bytes"):
        table.add_column(column, justify="right")
    for what, numbers, size in (
            ("parameters", "N", memory.parameters), ("gradients", "N", memory.gradients),
            ("AdamW's moments", "2N", memory.moments), ("kept for the backward", "", memory.activations),
            ("on top in the backward", "", memory.backward)):
        table.add_row(what, numbers, f"{size:,}")
    table.add_row("training, at most", "", f"{memory.total:,}", end_section=True)
    table.add_row("cache, a token of a sequence", "2·L·K·D/H", f"{cache_bytes(config):,}")
    table.add_row("cache, a full context", "2·L·K·D/H·C", f"{cache_bytes(config) * config.context:,}")
    return table


@commands.command()
def attention() -> None:
    """One attention head by plain arithmetic, table by table, and PyTorch's answer."""
    from tracer.library.attention_by_hand import TOKENS, difference_from_torch
    from tracer.library.attention_by_hand import attention as by_hand

    out.print(_numbers("x: three tokens of width 4; here query = key = value = x", TOKENS))
    titles = {"scores": "scores = query · key", "scaled": "scaled = scores / √4",
              "masked": "masked: no token sees a later one", "weights": "weights = softmax of each row",
              "output": "output = weights · value"}
    for name, table in by_hand(TOKENS, TOKENS, TOKENS).items():
        out.print(_numbers(titles[name], table))
    needs("torch")
    out.print(f"largest difference from PyTorch: {difference_from_torch(TOKENS, TOKENS, TOKENS):.1e}")


def _numbers(title: str, rows: list[list[float]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for column in range(len(rows[0])):
        table.add_column(str(column), justify="right")
    for number, row in enumerate(rows):
        table.add_row(f"token {number}", *(f"{value:.4f}".rstrip("0").rstrip(".") for value in row))
    return table


@commands.command()
@click.argument("source")
@click.option("--text", type=TEXT, help="Text to read, for a model.  [default: random tokens, said twice]")
@click.option("--pass", "name", help="Forward pass of a recording.  [default: the last of the longest]")
@click.option("--top", default=10, type=click.IntRange(min=1), help="Heads to show.")
def heads(source: str, text: str | None, name: str | None, top: int) -> None:
    """Score every head: does it look at the previous token, the first, the same, or what followed it?

    SOURCE is a recording (.json), a checkpoint file, a folder of a GPT-2 checkpoint, or its name.
    """
    from tracer.library.head_scores import even_scores, rank_heads

    if text is not None and source.endswith(".json"):
        raise UserError(f"{source} is a recording, which holds its texts: choose one with --pass, not --text")
    if name is not None and not source.endswith(".json"):
        raise UserError(f"{source} is a model, only a recording has passes: leave --pass out")
    texts, what = _recorded(Path(source), name) if source.endswith(".json") else _read_by_model(source, text)
    out.print(_ranking(f"heads of {source}, {what}", rank_heads(texts), even_scores([ids for ids, _ in texts]), top))


def _recorded(path: Path, name: str | None) -> tuple[list[Text], str]:
    from tracer.format.load import load
    from tracer.library.head_scores import recorded_passes

    passes = recorded_passes(load(path))
    if name is None:
        name = max(reversed(passes), key=lambda each: len(passes[each][0]))
    if name not in passes:
        raise UserError(f"{path} has no pass {name!r}: choose one of {', '.join(passes)}")
    return [passes[name]], f"pass {name}, {len(passes[name][0])} tokens"


def _read_by_model(source: str, text: str | None) -> tuple[list[Text], str]:
    needs("torch", "tiktoken")
    import numpy as np

    from tracer.cli.open_model import load_model, tokenizer_of
    from tracer.library.attention_maps import attention_weights, repeated_texts

    model = load_model(source)
    if text is None:
        texts, what = repeated_texts(model.config.vocabulary, model.config.context), "random tokens, said twice"
    else:
        texts, what = [tokenizer_of(source, model).encode(text)], f"text {text!r}"
        if not texts[0]:
            raise UserError("the text is empty: give at least one character")
    return [(np.array(ids), attention_weights(model, ids)) for ids in texts], what


def _ranking(title: str, ranking: dict[str, list[HeadScore]], even: dict[str, float | None], top: int) -> Table:
    table = Table(title=title)
    table.add_column("", justify="right")
    for name in ranking:
        table.add_column(name)
    for place in range(min(top, max(map(len, ranking.values())))):
        cells = (f"{h[place].score:.3f}  block {h[place].block} head {h[place].head}" if h else "–"
                 for h in ranking.values())
        table.add_row(str(place + 1), *cells)
    table.add_section()
    table.add_row("even", *("–" if score is None else f"{score:.3f}  looking everywhere" for score in even.values()))
    return table


@commands.command()
@click.argument("source")
@click.option("--prompt", type=TEXT, multiple=True, default=("",), show_default="a line end",
              help="Text to continue; several are continued together.")
@click.option("--max-new-tokens", default=100, help="Longest continuation in tokens.")
@click.option("--temperature", default=0.8, help="Logits are divided by it; 0 takes the largest.")
@click.option("--top-k", type=int, help="Candidates kept.  [default: all]")
@click.option("--top-p", type=float, help="Probability kept, the largest first.  [default: all]")
@click.option("--seed", default=7, help="Seed of the draws.")
@click.option("--cache/--no-cache", default=True, help="Keep keys and values, or compute them again for each token.")
def sample(source: str, prompt: tuple[str, ...], max_new_tokens: int, cache: bool, **choice: Any) -> None:
    """Continue a prompt with a model.

    SOURCE is a checkpoint file, the folder of a GPT-2 checkpoint, or its name.  An empty prompt starts from
    a line end.
    """
    needs("torch", "tiktoken")
    from tracer.cli.open_model import load_model, tokenizer_of
    from tracer.library.generate import generate, stream
    from tracer.model.optimizer import check_seed
    from tracer.model.sampling import Sampling
    from tracer.trainer.corpus import prompt_ids

    check_seed(choice["seed"])
    if max_new_tokens > LARGEST:
        raise UserError(f"--max-new-tokens must be at most {LARGEST:,}, not {max_new_tokens}")
    how = Sampling(**choice)
    model = load_model(source)
    tokenizer = tokenizer_of(source, model)
    end = getattr(tokenizer, "eos", None)
    encoded = [prompt_ids(tokenizer, text) for text in prompt]
    stop, prompts = [] if end is None else [end], [text or "\n" for text in prompt]
    if len(prompts) == 1:
        shown = prompts[0]
        for piece in stream(model, tokenizer, prompts[0], how, max_new_tokens, stop, cache):
            click.echo(_safe(shown + piece), nl=False)  # as it is: rich would change tabs and line ends
            shown = ""
        click.echo(_safe(shown))
        return
    for text, new in zip(prompts, generate(model, encoded, how, max_new_tokens, stop, cache), strict=True):
        click.echo(_safe(text + tokenizer.decode([id for id in new if id not in stop])))
        click.echo()


def _safe(text: str) -> str:
    """Text of a model may hold characters that begin a command to the terminal."""
    return text.replace("\x1b", "␛").replace("\x9b", "␛[")
