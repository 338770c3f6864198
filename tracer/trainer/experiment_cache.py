"""The cache experiment: the same continuation with and without a key-value cache, over prompt lengths."""

import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from tracer.errors import UserError
from tracer.format.experiment_figures import digits, finish
from tracer.format.experiments import CACHE_SCHEMA, VERSION
from tracer.format.sizes import cache_bytes
from tracer.library.generate import generate
from tracer.model.gpt import GPT
from tracer.model.sampling import Sampling


def run_cache(model: GPT, prompts: tuple[int, ...], new_tokens: int, rounds: int, seed: int,
              after_point: Callable[[dict[str, Any]], None] = lambda point: None) -> dict[str, Any]:
    """Time both ways for each prompt length; return the experiment as JSON, in the form `experiment_schema` checks.

    Prompts are random ids: their number counts here, not their meaning.  Raises `UserError` when a prompt and what
    follows do not fit the context, AssertionError (a bug here) when both ways do not give the same ids.
    """
    for length in prompts:
        if length + new_tokens > model.config.context:
            raise UserError(f"a prompt of {length} and {new_tokens} new tokens do not fit the context of "
                            f"{model.config.context}: choose shorter ones or a longer context")
    points = []
    for length in prompts:
        points.append(_measure(model, length, new_tokens, rounds, seed))
        after_point(points[-1])
    return finish({
        "schema": CACHE_SCHEMA, "version": VERSION,
        "make": {"config": model.config.to_json(), "parameters": model.parameter_count(), "new_tokens": new_tokens,
                 "rounds": rounds, "seed": seed, "bytes_per_token": cache_bytes(model.config),
                 "torch": str(torch.__version__), "machine": platform.machine(), "threads": torch.get_num_threads()},
        "points": points,
    })


def _measure(model: GPT, length: int, new_tokens: int, rounds: int, seed: int) -> dict[str, Any]:
    """Median seconds of both ways, taken in turn so that a busy machine slows both; rounded to 4 digits."""
    generator = torch.Generator().manual_seed(seed)
    prompt = torch.randint(model.config.vocabulary, (length,), generator=generator).tolist()
    seconds: dict[bool, list[float]] = {True: [], False: []}
    ids = {}
    for _ in range(rounds):
        for cached in (True, False):
            start = time.perf_counter()
            ids[cached] = generate(model, [prompt], Sampling(seed=seed), new_tokens, cached=cached)
            seconds[cached].append(time.perf_counter() - start)
        assert ids[True] == ids[False], f"the cache changes what follows a prompt of {length} tokens"
    times = {"cached_seconds": seconds[True], "uncached_seconds": seconds[False]}
    return {"prompt": length, **{way: digits(statistics.median(every)) for way, every in times.items()},
            # The last new token is never read again, so it needs no place.
            "cache_bytes": cache_bytes(model.config) * (length + new_tokens - 1), "times": times}
