"""The words of the interface, in both languages, from ``strings.toml``."""

import tomllib
from functools import cache
from pathlib import Path


@cache
def _table() -> dict[str, dict[str, str]]:
    body = tomllib.loads((Path(__file__).parent / "strings.toml").read_text(encoding="utf-8"))
    groups = {name: words for name, words in body.items() if "en" not in words}
    nested = {f"{group}.{name}": words for group, table in groups.items() for name, words in table.items()}
    return {name: words for name, words in body.items() if name not in groups} | nested


class Strings:
    """``strings("step_of", n=3, total=9)``.  Raises `KeyError` for a word that no language has."""

    def __init__(self, language: str):
        self.language = language

    def __call__(self, key: str, **values) -> str:
        return _table()[key][self.language].format(**values) if values else _table()[key][self.language]

    def all(self) -> dict[str, str]:
        """Every word."""
        return {key: words[self.language] for key, words in _table().items()}

    def for_scripts(self) -> dict[str, str]:
        """The words for a route's scripts; others stand in the pages."""
        return {key: word for key, word in self.all().items() if not key.startswith(("experiments.", "not_started."))}
