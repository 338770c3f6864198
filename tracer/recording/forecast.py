"""What a recording will take, from the shape of the model and the length of the text, before anything is done.

Numbers are counted, not measured: how many a pass makes, how many are held, what recomputing them takes by
`tracer.ops.cost`.  Time and memory of PyTorch itself are estimates for a slow computer.
"""

from bisect import bisect_left
from dataclasses import dataclass

from tracer.errors import UserError
from tracer.format.budget import AN_OPERATION, COMPARING, MOST_MEMORY, MOST_WORK
from tracer.format.decode import MOST_HELD
from tracer.format.files import INLINE_LIMIT
from tracer.format.routes import MOST_BLOCKS, MOST_ROUNDS, MOST_SHOWN
from tracer.format.sizes import parameter_count, parameter_parts
from tracer.model.config import Config
from tracer.ops import KINDS, expand_ellipsis
from tracer.ops.cost import BLOCK, PAIR, evaluation_cost
from tracer.recording.moments import LIKELIEST
from tracer.storage.strict_json import MOST_BYTES

FLOAT = 4  # bytes of a float32
PROGRAM = 300 * 2**20  # bytes of PyTorch and the tokenizer
WRITTEN = 12  # bytes of a number in JSON
LARGE_TIME, LARGE_MEMORY, LARGE_FILES = 20, 2**30, 60 * 10**6  # seconds and bytes from which on it is said


@dataclass
class Forecast:
    """`seconds` and `memory` (bytes) of recording; `work` (ns) and `checking` (bytes) of recomputing it.

    `json`, `files`: bytes of the recording and of the array files beside it; `checkpoint`: of the trained model's
    file.  `operations`: how many it has; `shown`: ids beside all of them together.
    """

    seconds: float = 0.0
    memory: float = 0.0
    work: float = 0.0
    checking: float = 0.0
    json: float = 0.0
    files: float = 0.0
    checkpoint: float = 0.0
    operations: int = 0
    shown: int = 0

    @property
    def folder(self) -> float:
        """Bytes of all that is written."""
        return self.files + self.json + self.checkpoint

    @property
    def site(self) -> float:
        """Bytes of the site: numbers as base64, and some 5 KB of text an operation in each of two languages."""
        return self.files + self.json + 10_000 * self.operations

    def hold(self, size: float, times: float = 1) -> None:
        """`times` arrays of `size` numbers each are written."""
        if size > INLINE_LIMIT:
            self.files += times * size * FLOAT * 4 / 3
        else:
            self.json += times * size * WRITTEN
        self.checking += times * size * FLOAT

    def compute(self, kind: str, target: str, sizes: dict[str, int], made: int, times: float = 1) -> None:
        """`times` operations of a kind whose axes have these lengths, each making `made` numbers."""
        equations = expand_ellipsis(KINDS[kind].targets[target], ["r", "d"])
        self.work += times * (evaluation_cost(equations, sizes, 0).work + COMPARING * made)


def forecast_training(config: Config, tokens: int, validation_tokens: int, updates: int) -> Forecast:
    """Of `record_training`: texts of so many tokens, the end token not counted."""
    V, D, L, T = config.vocabulary, config.width, config.blocks, max(tokens, 1)
    made, table = Forecast(), V * D
    sizes = {"t": T, "v": V, "d": D, "r": V}
    passes = ((T, 3), (max(validation_tokens, 1), 1))  # the first, again, and both evaluations
    for length, times in passes:
        _pass(made, config, length, times)
        for target in ("log_sum_exp", "out"):
            made.compute("cross_entropy", target, sizes | {"t": length}, length, times)
    made.compute("tied_head", "d_x", sizes, T * D)
    made.compute("tied_head", "d_table", sizes, table)
    made.compute("embedding", "d_table", sizes, table)
    made.compute("gradient_sum", "out", sizes, table)
    made.compute("cross_entropy", "d_logits", sizes, T * V)
    made.compute("initial_moments", "m_before", sizes, table, 2)
    for target in ("m", "v", "after"):
        made.compute("adamw", target, sizes, table)
    made.compute("predicted_change", "running", sizes, 1)
    _pass(made, config, T, 1.5, head=False)  # backward
    made.hold(table, 3)  # before, gradient, trained
    made.hold(T * V, 2)  # logits and their gradient
    _parameters(made, config, 3 if D * D > INLINE_LIMIT / 4 else 6)
    for _ in range(L):
        made.hold(updates * config.heads * T * T)
    made.hold(updates * T * D)
    made.operations += 150 + 12 * L * 4 + 6 * (T + validation_tokens)  # parameters, AdamW, merges
    made.json += 40 * (T + validation_tokens) ** 2  # every merge names its tokens
    count = parameter_count(config)
    peak = max(2 * PAIR * table + (PAIR + 64) * table, PAIR * table + (2 * PAIR + 8 + 64) * T * V)
    made.checkpoint = 4 * FLOAT * count  # the parameters, AdamW's two moments, the parameters of an early moment
    made.hold((updates + 1) * T * LIKELIEST, 3)
    made.checking += peak + 64 * min(BLOCK, max(table, T * V))
    made.memory = PROGRAM + made.checking + 5 * made.json + 10 * FLOAT * count + 8 * FLOAT * T * V
    made.work += made.operations * 2 * AN_OPERATION
    made.seconds = made.work / 1e9 + updates * (0.004 * L + 12e-9 * count + 9e-10 * count * T)
    return made


def forecast_generation(config: Config, tokens: int, rounds: int, route: str = "generation") -> Forecast:
    """Of `record_generation`: a prompt of so many tokens, continued by at most so many."""
    V, D, L = config.vocabulary, config.width, config.blocks
    made = Forecast()
    for number in range(min(rounds, MOST_ROUNDS + 1)):
        length = min(tokens + number, config.context)
        _pass(made, config, length, 1 if number == 0 else 1.2, head=False)
        for times, kind in ((1 if number == 0 else 2, "tied_head"), (2, "temperature")):
            made.compute(kind, "out", {"t": 1, "v": V, "d": D, "r": 1}, V, times)
        made.compute("greedy", "out", {"v": V}, 1)
        made.compute("top_k", "ids", {"v": V, "c": 5}, 1, 2)
        if route != "long":
            made.hold(V)
        made.json += 25 * (tokens + number) + 2000
        made.operations += 30 + 6 * L if number == 0 else 50 + 26 * L
        made.shown += (28 + 16 * L) * (tokens + rounds)
    tables = 2 if route == "generation" else 1
    made.hold(V * D, tables)
    _parameters(made, config, tables)
    made.checking += PAIR * V * D * (tables == 2) / 2 + 80 * V + 64 * min(BLOCK, V * D)
    made.memory = PROGRAM + made.checking + 5 * made.json + 2 * FLOAT * parameter_count(config)
    made.work += made.operations * 2 * AN_OPERATION
    made.seconds = made.work / 1e9 + 0.5
    return made


def forecast_set(config: Config, training: Forecast, generation: Forecast, long: Forecast,
                 early: Forecast) -> Forecast:
    """Of all recordings of one training in one folder, where the token tables that they have in common stand once."""
    table = Forecast()
    table.hold(config.vocabulary * config.width, 3)  # the first and the trained one of `generation`, one of `long`
    parts = (training, generation, long, early)
    return Forecast(sum(part.seconds for part in parts), max(part.memory for part in parts),
                    json=sum(part.json for part in parts) - table.json,
                    files=sum(part.files for part in parts) - table.files,
                    checkpoint=training.checkpoint, operations=sum(part.operations for part in parts))


def _pass(made: Forecast, config: Config, length: int, times: float, head: bool = True) -> None:
    """A forward pass over `length` positions: what its blocks hold, and what recomputing it takes."""
    T, D, F, H, V = length, config.width, config.hidden_width, config.heads, config.vocabulary
    grouped, rotary = config.key_value_heads < H, config.position == "rotary"
    for size, many in ((T * D, 15 + 2 * grouped + 2 * rotary), (T * config.qkv_width, 1), (T * F, 2 + config.gated),
                       (H * T * T, 4)):
        made.hold(size, many * times * config.blocks)
        made.work += 250 * size * many * times * config.blocks
    block = sum(part.count for part in parameter_parts(config) if part.name.startswith("block"))
    made.work += times * config.blocks * (800 * T * F + 2 * T * block)
    made.operations += round(times * (20 * config.blocks + 12))
    made.json += times * (20 * config.blocks + 12) * 400
    if head:
        made.compute("tied_head", "out", {"t": T, "v": V, "d": D}, T * V, times)


def _parameters(made: Forecast, config: Config, times: float) -> None:
    """All but the token table, `times` over."""
    for part in parameter_parts(config):
        if part.name != "token table":
            made.hold(part.count, times * part.times)


# What is said of it ------------------------------------------------------------------------------------

def too_large(made: Forecast) -> str:
    """Why such a recording could not be read again; empty where it can."""
    limits = (
        (made.checking / 2**30, MOST_MEMORY / 2**30, "recomputing it would take {:,.1f} GiB of memory, {:.1f} at most"),
        (made.work / 1e9, MOST_WORK / 1e9, "recomputing it would take {:,.0f} seconds, {:.0f} at most"),
        (made.json / 1e6, MOST_BYTES / 1e6, "it would be {:,.0f} MB of JSON, {:.0f} at most"),
        (made.files / 1e6, MOST_HELD * 4 / 3e6, "its array files would be {:,.0f} MB, {:.0f} at most"),
        (made.shown, MOST_SHOWN, "its pages would show {:,} ids, {:,} at most"))
    return next((says.format(value, most) + " can be read" for value, most, says in limits if value > most), "")


def check_training_size(config: Config, tokens: int, validation_tokens: int, updates: int) -> Forecast:
    """Raises `UserError` for a training that is too large to record, before it begins."""
    made = forecast_training(config, tokens, validation_tokens, updates)
    if config.blocks > MOST_BLOCKS:
        raise UserError(f"{config.blocks} blocks are too many to record: choose at most {MOST_BLOCKS}")
    if why := too_large(made):
        raise UserError(f"this training is too large to record: {why}: choose a shorter text, a smaller width, fewer "
                        "blocks or updates")
    return made


def check_generation_size(config: Config, tokens: int, rounds: int, route: str = "generation") -> Forecast:
    """The same for a generation."""
    if rounds <= MOST_ROUNDS and not (why := too_large(made := forecast_generation(config, tokens, rounds, route))):
        return made
    fits = [not too_large(forecast_generation(config, tokens, number, route)) for number in (1, MOST_ROUNDS)]
    most = MOST_ROUNDS if all(fits) else bisect_left(
        range(MOST_ROUNDS), True, key=lambda n: bool(too_large(forecast_generation(config, tokens, n, route)))) - 1
    if fits[0] and route != "long":
        raise UserError(f"max-new-tokens {rounds} is too large to record with this model: choose at most {most}")
    raise UserError(f"a generation from this model is too large to record: {why}: choose a model of a shorter "
                    "context, a smaller width or fewer blocks")


def when_large(made: Forecast) -> str:
    """One line about a recording that takes long or much; empty for one that does not."""
    if made.seconds < LARGE_TIME and made.memory < LARGE_MEMORY and made.folder < LARGE_FILES:
        return ""
    with_checkpoint = " with its checkpoint" if made.checkpoint else ""
    return (f"a large recording: up to {made.seconds:,.0f} s and {made.memory / 2**30:.1f} GiB of memory; it will be "
            f"some {made.folder / 1e6:,.0f} MB{with_checkpoint}, its site some {made.site / 1e6:,.0f} MB")
