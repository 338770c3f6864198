"""The functions that equations may call, as a JavaScript module: the rows of `tracer.ops.functions`, handed over."""

import json

from tracer.ops.functions import FUNCTIONS

NAME = "functions"  # of the module
_MODULE = """// The functions of one value that equations may call, made by site_builder/functions.py from the table in
// tracer/ops/functions.py. In `python` the argument is written %.

/** @type {Record<string, {value: (x: number) => number, text: string, python: string}>} */
export const FUNCTIONS = {
ROWS};
"""


def functions_module() -> str:
    """The text of the module: for each function its value, its sign in a working, and its expression in Python."""
    rows = [f"  {row.name}: {{ value: {row.javascript}, text: {_text(row.text)}, python: {_text(row.python)} }},\n"
            for row in FUNCTIONS.values()]
    return _MODULE.replace("ROWS", "".join(rows))


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
