"""Record a generation: each round a full forward pass, the draw, the bytes, and the same round with a cache."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tracer.errors import UserError
from tracer.format.origin import KEY
from tracer.format.trace import Pass, Step, Trace
from tracer.model.config import Config
from tracer.model.gpt import GPT
from tracer.model.kernel_probe import warn_unless_pinned
from tracer.model.optimizer import check_seed
from tracer.model.sampling import Sampler, multinomial_choices, uniform_numbers
from tracer.model.text_tokenizer import IncrementalDecoder
from tracer.model.tokenizer import Tokenizer
from tracer.recording.cached_rounds import CachedRounds
from tracer.recording.checkpoint import Moment
from tracer.recording.forecast import Forecast, check_generation_size
from tracer.recording.forward import RecordedPass, add_forward, add_parameters
from tracer.recording.recorder import Recorder, snapshot
from tracer.recording.text import add_text, add_vocabulary, token_labels
from tracer.recording.trace_builder import TraceBuilder
from tracer.recording.training import check_text, environment

MOST_CANDIDATES = 1000  # the running sum of k probabilities is checked on a grid of k × k numbers


@dataclass(frozen=True)
class GenerationJob:
    """What to continue, and how to choose.  `max_new_tokens` counts new ids, the end token among them."""

    prompt: str = "Hi"
    temperature: float = 0.8
    top_k: int = 5
    seed: int = 7
    max_new_tokens: int = 10

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise UserError(f"max-new-tokens must be at least 1, not {self.max_new_tokens}")
        if self.top_k > MOST_CANDIDATES:
            raise UserError(f"top-k {self.top_k} is too large to record: choose at most {MOST_CANDIDATES}")
        check_seed(self.seed)


def check_job(job: GenerationJob, tokenizer: Tokenizer, config: Config, route: str = "generation") -> Forecast:
    """What recording `job` will take.  Raises `UserError` for too much, and for what such a model cannot do."""
    count = check_text(job.prompt, "prompt", tokenizer, config)
    Sampler(job.temperature, job.top_k, config.vocabulary)
    return check_generation_size(config, count, job.max_new_tokens, route)


def record_generation(job: GenerationJob, checkpoint: Moment, tokenizer: Tokenizer,
                      progress: Callable[[int, int, str], None] = lambda number, token, text: None,
                      route: str = "generation") -> Trace:
    """Generate from `checkpoint` as `job` says and record every round.  `route`: the page it is for.

    Raises `UserError` for a prompt that is empty or that the context does not hold; warns (`KernelWarning`) when
    the kernels are not the pinned ones (`tracer.kernels`).  Stops at the end token or at `max_new_tokens`.  Once
    the ids are more than the context holds, a round takes the last ones.
    """
    torch.set_num_threads(1)
    model, config = checkpoint.model.eval(), checkpoint.model.config
    model.explicit = True
    check_job(job, tokenizer, config, route)
    sampler = Sampler(job.temperature, job.top_k, config.vocabulary)
    warn_unless_pinned()
    builder = TraceBuilder(route, _how(job, checkpoint, tokenizer))
    add_vocabulary(builder, tokenizer)
    builder.chapter("prompt", "prompt")
    ids = add_text(builder, tokenizer, job.prompt, "prompt")
    builder.trace.roles["end"] = builder.source("eos", tokenizer.eos)
    add_parameters(builder, model, snapshot(model).parameters, "trained", "trained.")
    rounds = _Rounds(builder, model, sampler, tokenizer, ids, job.seed)
    for number, uniform in zip(range(1, job.max_new_tokens + 1), uniform_numbers(job.seed), strict=False):
        new_text = rounds.run(number, uniform)
        progress(number, rounds.ids[-1], new_text)
        if rounds.ids[-1] == tokenizer.eos:
            break
    builder.trace.make["rounds"] = number
    if route == "generation":  # the values at first, beside the last ones
        _add_two_moments(builder, checkpoint)
    return builder.finish()


def past_context_job(job: GenerationJob, text: str, tokenizer: Tokenizer, config: Config) -> GenerationJob:
    """`job` with a prompt that fills the context as far as `text`, said again and again, can; and one round beyond.

    The first time `text` may be said from its middle on: every round that is needed to fill the context is a
    whole pass that would be recorded.
    """
    def beyond(prompt: str) -> bool:
        return len(tokenizer.encode(prompt)) > config.context

    def most(prompts: Callable[[int], str], limit: int) -> str:
        """The last of the prompts 0 … `limit` that fits."""
        return prompts(max(bisect_left(range(limit + 1), True, key=lambda n: beyond(prompts(n))) - 1, 0))

    whole = most(lambda n: text * n + job.prompt, config.context - 1)
    prompt = most(lambda n: text[len(text) - n:] + whole, len(text))
    return replace(job, prompt=prompt, max_new_tokens=config.context - len(tokenizer.encode(prompt)) + 2)


def _add_two_moments(builder: TraceBuilder, checkpoint: Moment) -> None:
    """Every parameter as it was drawn, as it is after training, and the change."""
    builder.chapter("parameters", "parameters")
    state = torch.get_rng_state()
    torch.manual_seed(checkpoint.settings.seed)
    initial = dict(GPT(checkpoint.model.config).named_parameters())
    torch.set_rng_state(state)
    add_parameters(builder, checkpoint.model, {name: p.detach() for name, p in initial.items()}, "initial",
                   "initial.")
    for parameter in builder.trace.parameters:
        name, trained = parameter.name, checkpoint.model.get_parameter(parameter.name)
        step = builder.step(f"parameters.{name}", "change", parameter.role, of=name, block=parameter.block)
        step.arrays += [f"initial.{name}", f"trained.{name}"]
        of = builder.trace.arrays[f"trained.{name}"]
        parameter.arrays["change"] = builder.operation(
            f"change.{name}", "change", {"before": f"initial.{name}", "after": f"trained.{name}"},
            trained.detach() - initial[name].detach(), of.axes, labels=of.labels, derived=True)
        step.operations.append(parameter.arrays["change"])


def _how(job: GenerationJob, checkpoint: Moment, tokenizer: Tokenizer) -> dict[str, Any]:
    return {**vars(job), "trained_on": checkpoint.text, "updates": checkpoint.step,
            "config": checkpoint.model.config.to_json(), "settings": checkpoint.settings.to_json(),
            KEY: checkpoint.sha256(), **environment(tokenizer)}


class _Rounds:
    """The state that rounds hand on: the ids, and the bytes of a character that is not whole yet."""

    def __init__(self, builder: TraceBuilder, model: GPT, sampler: Sampler, tokenizer: Tokenizer, ids: list[int],
                 seed: int):
        self.builder, self.model, self.sampler = builder, model, sampler
        self.tokenizer, self.ids = tokenizer, ids
        self.cached = CachedRounds(builder, model, sampler)
        self.multinomial = multinomial_choices(seed)
        next(self.multinomial)
        self.now = Pass("round")  # of the round that is being recorded
        self.ids_name = "text.ids"
        self.held_name = ""  # of the bytes that wait for more, where there are some
        self.decoder = IncrementalDecoder(tokenizer)

    def run(self, number: int, uniform: Tensor) -> str:
        """Record one round; returns the text that it made visible."""
        prefix = f"round{number}"
        self.builder.chapter(prefix, "round", round=number)
        self.now = self.builder.add_pass("round", round=number)
        outside = max(len(self.ids) - self.model.config.context, 0)
        window = self.ids[outside:]
        tokens = self.builder.label(f"{prefix}.tokens", [self.tokenizer.label(i) for i in window])
        self._add_ids(prefix, window, outside, tokens)
        logits = self._forward(prefix, window, tokens)
        token = self._draw(prefix, logits, uniform, tokens)
        self._append(prefix, token)
        self._add_other_choices(prefix, logits)
        text = self._show(prefix, token)
        self._end(prefix)
        self.cached.run(number, window, tokens, uniform)
        return text

    def _add_ids(self, prefix: str, window: list[int], outside: int, tokens: str) -> None:
        step = self.builder.step(f"{prefix}.ids", "window", "ids", self.now, direction="forward")
        step.operations.append(self._made("ids", self.builder.operation(
            f"{prefix}.ids", "window", {"ids": self.ids_name}, window, ("position",), settings={"offset": outside},
            labels={"position": tokens})))

    def _made(self, role: str, name: str) -> str:
        """Note an array of this round by its role."""
        self.now.arrays[role] = name
        return name

    def _forward(self, prefix: str, window: list[int], tokens: str) -> Tensor:
        ids = torch.tensor([window])
        with torch.no_grad(), Recorder(self.model) as recorder:
            recorder.name_input(ids, "ids")
            logits, _ = self.model(ids)
        add_forward(self.builder,
                    RecordedPass(recorder, self.model, self.now, f"{prefix}.", "trained.{}", {"ids": f"{prefix}.ids"},
                                 tokens, derived=frozenset({"head"} if self.builder.trace.route == "long" else ())))
        return logits[:, -1]  # (1, V)

    def _draw(self, prefix: str, logits: Tensor, uniform: Tensor, tokens: str) -> int:
        inputs = {"logits": f"{prefix}.head", "uniform": f"{prefix}.uniform"}
        self._made("uniform", self.builder.source(inputs["uniform"], uniform))
        with Recorder(self.sampler) as recorder:
            recorder.name_input(logits, "logits")
            recorder.name_input(uniform, "uniform")
            token = int(self.sampler(logits, uniform))
        # The scaled logits follow from the logits by one division: only the candidates' are held.
        add_forward(self.builder, RecordedPass(recorder, self.sampler, self.now, f"{prefix}.sampler.", inputs=inputs,
                                               tokens=tokens, derived=frozenset({"temperature"})))
        return token

    def _add_other_choices(self, prefix: str, logits: Tensor) -> None:
        """What the largest logit would have been, and what torch's own sampling takes with this seed."""
        step = self.builder.step(f"{prefix}.choices", "greedy", of_pass=self.now)
        step.operations.append(self._made("greedy", self.builder.operation(
            f"{prefix}.greedy", "greedy", {"logits": f"{prefix}.head"}, logits.argmax())))
        probabilities = torch.from_numpy(self.builder.trace.values(f"{prefix}.sampler.softmax"))
        choice = self.multinomial.send(probabilities)
        token = self.builder.trace.values(f"{prefix}.sampler.top_k.ids")[choice]
        step.arrays.append(self._made("multinomial", self.builder.source(f"{prefix}.multinomial", int(token))))

    def _append(self, prefix: str, token: int) -> None:
        self.ids = [*self.ids, token]
        name = f"{prefix}.next_ids"
        step = self.builder.step(f"{prefix}.append", "append", "token", self.now)
        step.operations.append(self._made("next_ids", self.builder.operation(
            name, "append", {"before": self.ids_name, "token": f"{prefix}.sampler.draw.token"}, self.ids, ("token",),
            settings={"length": len(self.ids) - 1},
            labels=token_labels(self.builder, name, self.tokenizer, self.ids))))
        self.ids_name = name

    def _show(self, prefix: str, token: int) -> str:
        """Which bytes the screen has now: whole characters are shown, the rest is held back."""
        step = self.builder.step(f"{prefix}.bytes", role="bytes", of_pass=self.now)
        if token == self.tokenizer.eos:
            step.arrays.append("eos")
            return ""
        held = self.decoder.pending
        text = self.decoder.feed(token)
        new = list(self.tokenizer.token_bytes(token))
        self._add_bytes(prefix, step, list(held), new)
        whole = [*held, *new]
        complete = len(whole) - len(self.decoder.pending)
        step.operations.append(self._made("complete", self.builder.operation(
            f"{prefix}.complete", "complete_bytes", {"bytes": f"{prefix}.bytes"}, complete)))
        self.held_name = ""
        if self.decoder.pending:
            self.held_name = f"{prefix}.held"
            step.operations.append(self._made("held", self.builder.operation(
                self.held_name, "window", {"ids": f"{prefix}.bytes"}, whole[complete:], ("byte",),
                settings={"offset": complete})))
        return text

    def _end(self, prefix: str) -> None:
        token = f"{prefix}.sampler.draw.token"
        ended = self.builder.trace.values(token) == self.tokenizer.eos
        self.builder.step(f"{prefix}.end", "is_end", of_pass=self.now).operations.append(
            self._made("is_end", self.builder.operation(f"{prefix}.is_end", "is_end", {"token": token, "eos": "eos"},
                                                        ended)))

    def _add_bytes(self, prefix: str, step: Step, held: list[int], new: list[int]) -> None:
        if not held:
            step.arrays.append(self._made("bytes", self.builder.source(f"{prefix}.bytes", new, ("byte",))))
            return
        step.arrays.append(self._made("new_bytes", self.builder.source(f"{prefix}.new_bytes", new, ("byte",))))
        step.operations.append(self._made("bytes", self.builder.operation(
            f"{prefix}.bytes", "join_bytes", {"held": self.held_name, "new": f"{prefix}.new_bytes"}, [*held, *new],
            ("byte",), settings={"length": len(held)})))
