"""The words of the interface, in both languages, from ``strings.toml``."""

import re
import tomllib
from functools import cache

from tracer.resources import SITE_BUILDER


@cache
def _table() -> dict[str, dict[str, str]]:
    body = tomllib.loads((SITE_BUILDER / "strings.toml").read_text(encoding="utf-8"))
    groups = {name: words for name, words in body.items() if "en" not in words}
    nested = {f"{group}.{name}": words for group, table in groups.items() for name, words in table.items()}
    return {name: words for name, words in body.items() if name not in groups} | nested


_BLANK = re.compile(r"\{(\w+)(?::([^|{}]*)\|([^{}]*))?\}")  # the same in static/js/dom.js


def _filled(blank: re.Match, values: dict) -> str:
    """The value, or the form that goes with it: {n:number|numbers} is "number" for 1 alone."""
    name, one, more = blank.groups()
    return str(values[name]) if one is None else one if str(values[name]) == "1" else more


def count(n: int, one: str, more: str = "") -> str:
    """``count(2, "block")`` is "2 blocks"; `more` where that is not one with an s."""
    return f"{n:,} {one if n == 1 else more or one + 's'}"


class Strings:
    """``strings("step_of", n=3, total=9)``.  Raises `KeyError` for a word that no language has."""

    def __init__(self, language: str):
        self.language = language

    def __call__(self, key: str, **values) -> str:
        text = _table()[key][self.language]
        return _BLANK.sub(lambda blank: _filled(blank, values), text) if values else text

    def get(self, key: str) -> str:
        """The word, or nothing."""
        return _table().get(key, {}).get(self.language, "")

    def all(self) -> dict[str, str]:
        """Every word."""
        return {key: words[self.language] for key, words in _table().items()}

    def for_scripts(self) -> dict[str, str]:
        """The words for a route's scripts; others stand in the pages."""
        return {key: word for key, word in self.all().items() if not key.startswith(("experiments.", "not_started."))}
