"""Pieces of the project's own code, as they stand in its files when the site is built."""

import ast
import io
import keyword
import textwrap
import tokenize
from functools import cache
from html import escape
from pathlib import Path

from tracer.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
_LOOK = {tokenize.COMMENT: "comment", tokenize.STRING: "string", tokenize.NUMBER: "number"}


def listing(file: str, name: str = "") -> str:
    """The source of a function, a class or one of its methods, ``Block.forward``; of a whole file without a name.

    Raises `UserError` where there is none such.
    """
    path = ROOT / file
    if not path.is_file() or ".." in Path(file).parts:
        raise UserError(f"{file} is no file of the project")
    text = path.read_text(encoding="utf-8")
    if not name:
        return text.rstrip("\n")
    node: ast.AST = _tree(path)
    for part in name.split("."):
        found = [one for one in ast.iter_child_nodes(node) if part in _names(one)]
        if not found:
            raise UserError(f"{file} has no {name}")
        node = found[0]
    assert isinstance(node, ast.stmt)
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)])
    return textwrap.dedent("\n".join(text.splitlines()[first - 1:node.end_lineno]))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return [getattr(node, "name", "")]


def highlighted(source: str) -> str:
    """Python as HTML, with keywords, texts, numbers and comments marked; what is not Python as it is."""
    lines = source.splitlines(keepends=True)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return escape(source)
    made, at = [], (1, 0)
    for token in tokens:
        look = "keyword" if token.type == tokenize.NAME and keyword.iskeyword(token.string) else _LOOK.get(token.type)
        if not look:
            continue
        made += [escape(_between(lines, at, token.start)), f'<span class="{look}">{escape(token.string)}</span>']
        at = token.end
    return "".join(made) + escape(_between(lines, at, (len(lines) + 1, 0)))


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1]:end[1]]
    last = lines[end[0] - 1][:end[1]] if end[0] <= len(lines) else ""
    return lines[start[0] - 1][start[1]:] + "".join(lines[start[0]:end[0] - 1]) + last if start[0] <= len(lines) else ""
