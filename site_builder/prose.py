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
from site_builder.language import languages
from site_builder.sections import Section
from tracer.format.trace import Step, Trace


def plain_key(step_id: str) -> str:
    """The key of a step: without the pass it belongs to, and the same for every block."""
    key = re.sub(r"^(round\d+|evaluation\.(training|validation)|again)\.", "", step_id)
    return re.sub(r"\bblocks\.\d+", "block", key)


def find_section(prose: dict[str, Section], step_id: str, route: str, kind: str = "",
                 parameter_rank: int = 0) -> Section | None:
    """The section for a step of `kind`: a variant for this page or pass first, then the general one."""
    key = plain_key(step_id)
    passes = {"generation": ["generation"], "long": ["long", "generation"]}.get(route, [])
    passes += [one for one in ("evaluation", "again") if step_id.startswith(f"{one}.")]
    variants = [variant for one in (*(f"{one}:{key}" for one in passes), key) for variant in (f"{one} ({kind})", one)]
    if key.startswith("adamw."):
        variants += ["adamw.vector"] if parameter_rank == 1 else []
        variants.append("adamw")
    if key.startswith("parameters."):
        variants.append("parameters")
    return next((prose[v] for v in variants if v in prose), None)


def speaks_of(key: str, kind: str) -> bool:
    """Whether words for the place `key` in a model hold for a module of `kind`: the prose says for which they do."""
    prose = next(iter(languages().values())).prose
    told = {heading.removeprefix(key).strip(" ()") for heading in prose if heading.split(" ")[0] == key}
    return not kind or not told or "" in told or kind in told


def kinds_by_place(trace: Trace) -> dict[str, str]:
    """Key of a place in the model, the same for every block and pass → the kind of module that stands there."""
    return {plain_key(step.id): kind_of(trace, step) for chapter in trace.chapters for step in chapter.steps}


def kind_of(trace: Trace, step: Step) -> str:
    """The kind of module that a step shows, forward or backward; nothing where it shows several, or none."""
    kinds = {trace.operations[operation].kind for operation in step.operations}
    kinds -= {"loss_seed", "gradient_sum", "initial_moments"}
    return kinds.pop() if len(kinds) == 1 else ""


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
