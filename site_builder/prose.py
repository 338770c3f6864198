"""Which prose a step has, and prose as HTML (`site_builder/language.py` reads it)."""

import re
from functools import cache
from html import escape
from typing import Any

import jinja2
from markdown_it import MarkdownIt

from site_builder.compiled import compiled
from site_builder.formula import inline_mathml
from site_builder.keys import keys_of
from site_builder.language import Language
from site_builder.sections import Section
from tracer.errors import UserError
from tracer.format.trace import Step


def find_section(language: Language, step: Step, route: str) -> Section:
    """What is said of a step on the page of a `route`: of all that holds for it, the most particular.

    Raises `UserError` for a step of which nothing is said.
    """
    found = next((language.prose[one] for one in keys_of(step, route) if one in language.prose), None)
    if not found:
        raise UserError(f"step {step.id} is of kind {step.kind!r} and role {step.role!r}, of which "
                        f"site_builder/languages/{language.code} says nothing")
    return found


def name_of(language: Language, kind: str) -> str:
    """What a module of a kind is called."""
    section = language.prose.get(kind)
    return section.name if section and section.name else kind.replace("_", " ")


_TOKEN = re.compile(r"<math.*?</math>|<[^>]*>|[.!?](?=\s|</p>)|[。！？]|[^<]", re.DOTALL)
_END = re.compile("[.!?。！？]")


def marked(html: str) -> str:
    """The HTML with its first sentence marked, which stands over the picture as well."""
    start = html.find("<p>")
    if start < 0:
        return html
    for token in _TOKEN.finditer(html, start + len("<p>")):
        if token[0] == "</p>":
            break
        alone = _END.fullmatch(token[0]) and (token[0] in "。！？" or re.match(r"\s|</p>", html[token.end():]))
        if alone:
            inside = html[start + len("<p>"):token.end()]
            return f'{html[:start]}<p><span class="sentence">{inside}</span>{html[token.end():]}'
    return html


_markdown = MarkdownIt("commonmark", {"html": False})
_MATH = re.compile(r"\$([^$\n]+)\$")


def render(text: str, figures: dict[str, Any]) -> str:
    """Markdown with figures put in, as HTML.  What a recording says is escaped, markup in it included."""
    return _render_markdown(_put_in(text, {key: _recorded(value) for key, value in figures.items()}))


def render_title(text: str, figures: dict[str, Any]) -> str:
    """A title as plain text."""
    return _put_in(text, figures)


def _put_in(text: str, figures: dict[str, Any]) -> str:
    names_figures = "{{" in text or "{%" in text or "{#" in text  # formulas have single braces
    return _environment.get_template(text).render(figures) if names_figures else text


class _Recorded(str):
    """Text from a recording: it shows as itself, whatever it holds."""


# Of dicts, which are held so that an id stays theirs: the same as recorded text.
_summaries: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}


def _recorded(value: Any) -> Any:
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


def _shield(value: object) -> object:
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

    def keep(match: re.Match[str]) -> str:
        formulas.append(inline_mathml(match[1]))
        return f"\ue000{len(formulas) - 1}\ue001"

    html = _markdown.render(_MATH.sub(keep, text))
    html = re.sub("\ue000(\\d+)\ue001", lambda match: formulas[int(match[1])], html)
    return re.sub("\ue002([0-9a-f]*)\ue003", _as_recorded, html)


def _as_recorded(shielded: re.Match[str]) -> str:
    """Recorded text, set apart: one from right to left must not carry its quotation marks along."""
    return f"<bdi>{escape(bytes.fromhex(shielded[1]).decode())}</bdi>"
