"""Two Routes: record one update and one generation of a tiny GPT, every number of it."""

__version__ = "0.1.0"
