"""Continue prompts: one decoding loop, with a key-value cache or without, one prompt or many."""

import operator
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from tracer.errors import UserError
from tracer.model.gpt import GPT
from tracer.model.kv_cache import KVCache
from tracer.model.sampling import Sampling, choose, uniform_numbers
from tracer.model.text_tokenizer import ByteTokenizer, IncrementalDecoder, TextCodec

ROOM = 1024  # new ids that memory is taken for at first


@torch.inference_mode()
def rounds(model: GPT, prompts: Sequence[Sequence[int]], how: Sampling, count: int,
           cached: bool = True) -> Iterator[Tensor]:
    """`count` rounds; each yields the next id of every prompt, (B,) int64.

    Prompts may differ in length.  Once a text is longer than the context, its last `context` ids are
    what the next id follows from; all of them then stand at other positions than the round before, so
    that a cache is of no more use.  The ids are the same `cached` or not.
    Raises `UserError` for an empty prompt, for an id that the vocabulary does not have, and for logits that
    are no distribution.
    """
    whole = [[_whole("token id", id) for id in prompt] for prompt in prompts]
    ids, padding, start = _padded(whole, _whole("the number of new tokens", count), model)
    context = model.config.context
    draws = _draws(whole, how.seed)
    cache = _cache(model, len(whole), start + count - 1) if cached and start <= context else None
    training = model.training
    try:
        model.eval()
        blocks = model.fused_blocks()
        for length in range(start, start + count):
            if cache is not None and length <= context:
                logits = model(ids[:, cache.length:length], None, cache, padding, blocks)[0]
            else:
                logits = _window(model, ids[:, :length], padding)
            uniforms = torch.stack([next(draw) for draw in draws]).to(ids.device) if how.temperature else None
            if length == ids.size(1):
                ids = F.pad(ids, (0, length))
            ids[:, length] = chosen = choose(logits[:, -1], uniforms, how)
            yield chosen
    finally:
        model.train(training)


def _cache(model: GPT, batch: int, tokens: int) -> KVCache:
    table = model.token_embedding.weight
    return KVCache(model.config, batch, min(tokens, model.config.context), table.dtype, table.device)


def _window(model: GPT, ids: Tensor, padding: Tensor | None) -> Tensor:
    """Logits (B, 1, V) after the last ids that the context holds."""
    outside = max(ids.size(1) - model.config.context, 0)
    if padding is not None and outside:
        padding = (padding - outside).clamp(min=0)
    return model(ids[:, outside:], padding=padding)[0]


def _whole(what: str, value: int) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise UserError(f"{what} must be a whole number, not {value!r}") from None


def _draws(prompts: list[list[int]], seed: int) -> list[Iterator[Tensor]]:
    """The random numbers of each prompt: what it would draw alone, and other ones each time it stands there again."""
    times: Counter[tuple[int, ...]] = Counter()
    draws = []
    for prompt in map(tuple, prompts):
        draws.append(uniform_numbers((int(seed) + times[prompt]) % 2**64))
        times[prompt] += 1
    return draws


def _padded(prompts: list[list[int]], count: int, model: GPT) -> tuple[Tensor, Tensor | None, int]:
    """Prompts in one tensor (B, longest + …), each ending at column `longest`; how many ids fill each up.

    There is room for the first of `count` new ids; the tensor grows with them, since few may come.
    """
    if not prompts or not all(prompts):
        raise UserError("a prompt is empty: give at least one token")
    if count < 1:
        raise UserError(f"the number of new tokens must be at least 1, not {count}")
    vocabulary, longest = model.config.vocabulary, max(map(len, prompts))
    for id in (id for prompt in prompts for id in prompt):
        if not 0 <= id < vocabulary:
            raise UserError(f"token id {id} is outside the model's vocabulary of {vocabulary}: was the prompt encoded "
                            "with the tokenizer that the model was trained with?")
    rows = [[*[0] * (longest - len(prompt)), *prompt, *[0] * min(count, ROOM)] for prompt in prompts]
    device = model.token_embedding.weight.device
    padding = torch.tensor([longest - len(prompt) for prompt in prompts], device=device)
    return torch.tensor(rows, device=device), padding if padding.any() else None, longest


def generate(model: GPT, prompts: Sequence[Sequence[int]], how: Sampling, count: int, stop: Sequence[int] = (),
             cached: bool = True) -> list[list[int]]:
    """The new ids of every prompt: at most `count`, the last one of `stop` where there was one.

    Raises `UserError` as `rounds` does.
    """
    continued: list[list[int]] = [[] for _ in prompts]
    for chosen in rounds(model, prompts, how, count, cached):
        for new, id in zip(continued, chosen.tolist(), strict=True):
            if not new or new[-1] not in stop:
                new.append(id)
        if all(new[-1] in stop for new in continued):
            break
    return continued


def stream(model: GPT, tokenizer: TextCodec, prompt: str, how: Sampling, count: int, stop: Sequence[int] = (),
           cached: bool = True) -> Iterator[str]:
    """The text that each new token makes visible, as it comes; a stop id ends it and shows nothing.

    Raises `UserError` as `rounds` does, and for a prompt that the tokenizer refuses.
    """
    decoder = IncrementalDecoder(tokenizer) if isinstance(tokenizer, ByteTokenizer) else None
    for chosen in rounds(model, [tokenizer.encode(prompt)], how, count, cached):
        id = int(chosen)
        if id in stop:
            break
        yield decoder.feed(id) if decoder else tokenizer.decode([id])
    if decoder:
        yield decoder.finish()
