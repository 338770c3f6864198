"""Which prose a step has, and prose as HTML (`site_builder/language.py` reads it).

What is said of a module is true of its kind: ``# block.norm_1 (layer_norm)`` is not shown for a module of
another kind in that place, which then has a neutral title and no statement.
"""

import re
from functools import cache
from html import escape

import jinja2
from markdown_it import MarkdownIt

from site_builder.compiled import compiled
from site_builder.formula import inline_mathml
from site_builder.sections import Section
from tracer.format.trace import Step

# Kind and role of a step → the key of what is said of it.
KEYS = {
    ("positions", ""): "positions", ("embedding", "token"): "token_embedding",
    ("embedding", "position"): "position_embedding", ("add", "embedding"): "embedding_sum",
    ("dropout", "embedding"): "embedding_dropout", ("layer_norm", "attention"): "block.norm_1",
    ("linear", "query_key_value"): "block.attention.qkv", ("split_heads", ""): "block.attention.split",
    ("scaled_scores", ""): "block.attention.scores", ("causal_mask", ""): "block.attention.mask",
    ("softmax", "attention"): "block.attention.softmax",
    ("dropout", "attention_weights"): "block.attention.weights_dropout",
    ("weighted_sum", ""): "block.attention.weighted_sum", ("concatenate_heads", ""): "block.attention.concatenate",
    ("linear", "attention_output"): "block.attention.projection",
    ("dropout", "attention_output"): "block.attention.dropout", ("add", "attention"): "block.residual_1",
    ("layer_norm", "mlp"): "block.norm_2", ("linear", "mlp_up"): "block.mlp.up", ("gelu", ""): "block.mlp.gelu",
    ("linear", "mlp_down"): "block.mlp.down", ("dropout", "mlp_output"): "block.mlp.dropout",
    ("add", "mlp"): "block.residual_2", ("layer_norm", "final"): "final_norm", ("last_position", ""): "last_position",
    ("tied_head", ""): "head", ("cross_entropy", ""): "cross_entropy", ("mean", "loss"): "loss",
    ("temperature", ""): "sampler.temperature", ("top_k", ""): "sampler.top_k",
    ("softmax", "candidates"): "sampler.softmax", ("cumulative", ""): "sampler.cumulative",
    ("draw", ""): "sampler.draw",
    ("window", "ids"): "ids", ("append", "token"): "append", ("greedy", ""): "choices", ("", "bytes"): "bytes",
    ("is_end", ""): "end", ("kept_rows", ""): "cached.kept", ("drop_rows", ""): "cached.slide",
    ("", "embedding"): "cached.embedding", ("", "block"): "cached.block", ("", "head"): "cached.head",
    ("", "draw"): "cached.sampler.draw", ("largest_difference", ""): "cached.compare",
    ("", "zero_grad"): "zero_grad", ("predicted_change", ""): "receipt.predicted",
    ("difference", "loss"): "receipt.change", ("", "series_loss"): "series.loss",
    ("", "series_attention"): "series.attention", ("", "series_rows"): "series.rows",
    ("adamw", "token_table"): "adamw.token_embedding.weight",
    ("adamw", "position_table"): "adamw.position_embedding.weight",
    ("adamw", "query_key_value_bias"): "adamw.block.attention.qkv.bias", ("adamw", "vector"): "adamw.vector",
}
TEXT_KEYS = {("byte_tokens", ""): "{}", ("bpe_merge", ""): "{}.merges", ("append", "end"): "{}.eos",
             ("window", "pairs"): "{}.shift"}


def prose_key(step: Step) -> str:
    """The key of what is said of a step; nothing where nothing is written about its kind in that role."""
    place = (step.kind, step.role)
    if place in TEXT_KEYS:
        return TEXT_KEYS[place].format("validation" if step.split == "validation" else "text")
    key = KEYS.get(place) or {"change": "parameters", "adamw": "adamw"}.get(step.kind, "")
    return f"grad.{key}" if key and step.direction == "backward" else key


def find_section(prose: dict[str, Section], step: Step, route: str) -> Section | None:
    """The section for a step: a variant for this page or pass first, then the general one."""
    key = prose_key(step)
    passes = {"generation": ["generation"], "long": ["long", "generation"]}.get(route, [])
    passes += [one for one in ("evaluation", "again") if step.pass_ == one]
    variants = [variant for one in (*(f"{one}:{key}" for one in passes), key)
                for variant in (f"{one} ({step.kind})", one)]
    if step.kind == "adamw":
        variants += ["adamw.vector"] if step.role == "query_key_value_bias" else []
        variants.append("adamw")
    return next((prose[v] for v in variants if v in prose), None)


_markdown = MarkdownIt("commonmark", {"html": False})
_MATH = re.compile(r"\$([^$\n]+)\$")


def render(text: str, figures: dict) -> str:
    """Markdown with figures put in, as HTML.  What a recording says is escaped, markup in it included."""
    return _render_markdown(_put_in(text, {key: _recorded(value) for key, value in figures.items()}))


def render_title(text: str, figures: dict) -> str:
    """A title as plain text."""
    return _put_in(text, figures)


def _put_in(text: str, figures: dict) -> str:
    names_figures = "{{" in text or "{%" in text or "{#" in text  # formulas have single braces
    return _environment.get_template(text).render(figures) if names_figures else text


class _Recorded(str):
    """Text from a recording: it shows as itself, whatever it holds."""


_summaries: dict[int, tuple[dict, dict]] = {}  # of dicts (held, so that an id stays theirs), as recorded text


def _recorded(value):
    match value:
        case str():
            return _Recorded(value)
        case dict():
            if id(value) not in _summaries:
                _summaries[id(value)] = value, {key: _recorded(item) for key, item in value.items()}
            return _summaries[id(value)][1]
        case list():
            return [_recorded(item) for item in value]
    return value


def _shield(value):
    """Letters and digits in place of recorded text, so that Markdown sees no sign in it.

    A setting is written in full, with a true minus sign: 0.02, 1e−5, 50.
    """
    if isinstance(value, float):
        return f"{value!r}".removesuffix(".0").replace("e-0", "e-").replace("-", "−")
    return f"\ue002{value.encode().hex()}\ue003" if isinstance(value, _Recorded) else value


_environment = jinja2.Environment(
    loader=jinja2.FunctionLoader(lambda text: text), bytecode_cache=compiled(), cache_size=-1, auto_reload=False,
    undefined=jinja2.StrictUndefined, autoescape=False, finalize=_shield)  # a text is its own name


@cache  # blocks and rounds mostly say the same
def _render_markdown(text: str) -> str:
    formulas: list[str] = []

    def keep(match: re.Match) -> str:
        formulas.append(inline_mathml(match[1]))
        return f"\ue000{len(formulas) - 1}\ue001"

    html = _markdown.render(_MATH.sub(keep, text))
    html = re.sub("\ue000(\\d+)\ue001", lambda match: formulas[int(match[1])], html)
    return re.sub("\ue002([0-9a-f]*)\ue003", _as_recorded, html)


def _as_recorded(shielded: re.Match) -> str:
    """Recorded text, set apart: one from right to left must not carry its quotation marks along."""
    return f"<bdi>{escape(bytes.fromhex(shielded[1]).decode())}</bdi>"
