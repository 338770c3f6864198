"""The words of the interface in one language."""

import re

from site_builder.language import Language, languages

_BLANK = re.compile(r"\{(\w+)(?::([^|{}]*)\|([^{}]*))?\}")  # the same in static/js/dom.js


def _filled(blank: re.Match[str], values: dict[str, object]) -> str:
    """The value, or the form that goes with it: {n:number|numbers} is "number" for 1 alone."""
    name, one, more = blank.groups()
    return str(values[name]) if one is None else one if str(values[name]) == "1" else more


def count(language: Language, n: int, one: str, more: str = "") -> str:
    """``count(english, 2, "block")`` is "2 blocks"; `more` where that is not one with the language's ending."""
    return f"{n:,} {one if n == 1 else more or one + language.plural}"


_NOT_OF_SCRIPTS = ("experiments.", "single_pass", "map.", "network_map.", "not_started.", "lesson.", "tool.")


class Strings:
    """``strings("step_of", n=3, total=9)``, in a language or that of a code.  Raises `KeyError` for no known word."""

    def __init__(self, language: Language | str):
        self.language = languages()[language] if isinstance(language, str) else language

    def __call__(self, key: str, **values: object) -> str:
        text = self.language.strings[key]
        return _BLANK.sub(lambda blank: _filled(blank, values), text) if values else text

    def get(self, key: str) -> str:
        """The word, or nothing."""
        return self.language.strings.get(key, "")

    def all(self) -> dict[str, str]:
        """Every word."""
        return self.language.strings

    def for_scripts(self) -> dict[str, str]:
        """The words for a route's scripts; others stand in the pages."""
        return {key: word for key, word in self.all().items() if not key.startswith(_NOT_OF_SCRIPTS)}
