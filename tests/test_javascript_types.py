"""The data that the builder hands to the pages' scripts is what ``static/types.d.ts`` says: TypeScript reads both."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from site_builder.controls import controls
from site_builder.page_data import route_data
from site_builder.strings import Strings

STATIC = Path(__file__).parent.parent / "static"
TOUR = [{"name": "a", "step": "loss", "view": "step", "at": {"token": 1}, "title": "A", "say": "<p>B</p>"}]
DENO = Path(sys.executable).parent / "deno"


def check(folder: Path, **values: tuple[str, object]) -> subprocess.CompletedProcess:
    """Whether values are of their types: ``name=(type, value)``."""
    for name in ("types.d.ts", "deno.json"):
        shutil.copy(STATIC / name, folder / name)
    shutil.copytree(STATIC / "js", folder / "js")  # what the types name
    lines = [f"export const {name}: {kind} = {json.dumps(value)};\n" for name, (kind, value) in values.items()]
    (folder / "data.ts").write_text("".join(lines), encoding="utf-8")
    settings = {"NO_COLOR": "1", "DENO_DIR": str(folder / "deno"), "DENO_NO_UPDATE_CHECK": "1"}
    return subprocess.run([DENO, "check", "--quiet", "--config", "deno.json", "types.d.ts", "data.ts"], cwd=folder,
                          capture_output=True, text=True, timeout=300, check=False, env=os.environ | settings)


def outline(trace) -> dict:
    text = route_data(trace).scripts[f"{trace.route}.js"].decode()
    return json.loads(text.partition(",")[2].removesuffix(");\n"))


@pytest.fixture(scope="module")
def outlines(recordings) -> dict[str, dict]:
    return {route: outline(trace) for route, trace in recordings.items()}


def test_what_scripts_get_is_of_its_type(outlines, tmp_path):
    pages = {route: controls(route, "../", Strings("en"), TOUR).script_data for route in outlines}
    done = check(tmp_path, **{route: ("Outline", one) for route, one in outlines.items()},
                 **{f"{route}_page": ("PageData", one) for route, one in pages.items()})
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("change", ["missing", "more", "other"])
def test_what_is_not_of_its_type_is_found(outlines, tmp_path, change):
    """A key that is missing, one that nobody reads, a value of another type: one in an operation is found as well."""
    changed = dict(outlines["long"])
    name, operation = next(iter(changed["operations"].items()))
    operation = operation | {"missing": {}, "more": {"attributes": {}}, "other": {"operands": 1}}[change]
    if change == "missing":
        del operation["target"]
    changed["operations"] = {name: operation}
    changed["arrays"] = {}
    done = check(tmp_path, changed=("Outline", changed))
    assert done.returncode != 0
    assert {"missing": "target", "more": "attributes", "other": "number"}[change] in done.stderr
