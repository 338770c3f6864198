"""The log of a run: one JSON object a line, never a torn or a doubled one after a resume."""

import json
import math
import os
from pathlib import Path
from typing import Any

from tracer.errors import naming
from tracer.storage.atomic import write_atomically


class RunLog:
    """Appends to `path`; what a killed run wrote after `update` is taken back first.

    Every entry carries the number of its update as ``update``.  A number that is not finite, which JSON does not
    know, is null there, and ``not_finite`` says by its name what it was.
    """

    def __init__(self, path: Path, update: int = 0):
        self.path = path
        kept = [entry for entry in read_log(path) if entry["update"] <= update]
        write_atomically(path, "".join(map(_line, kept)).encode())
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115  (it stays open as long as the run)

    def write(self, **entry: object) -> None:
        """One line, in one call of the operating system."""
        with naming(self.path):
            self._file.write(_line(entry).encode())

    def flush(self) -> None:
        """Until the lines are on the disk: a checkpoint must not know more than the log."""
        with naming(self.path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The entries of a log; any of their numbers but ``update`` may be None.

    The last line may be torn, where the process was killed, and is left out; so is a line that is no entry.
    """
    if not path.exists():
        return []
    entries = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            entry = json.loads(line, parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and type(entry.get("update")) is int:
            entries.append(entry)
    return entries


def _finite(text: str) -> float | None:
    """Logs of earlier versions hold NaN and Infinity."""
    value = float(text)
    return value if math.isfinite(value) else None


def _line(entry: dict[str, Any]) -> str:
    wrong = {name: str(value) for name, value in entry.items() if isinstance(value, float) and not math.isfinite(value)}
    return json.dumps(entry | dict.fromkeys(wrong) | ({"not_finite": wrong} if wrong else {}), allow_nan=False) + "\n"
