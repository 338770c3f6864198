"""The lines of PyTorch that make a step, taken from the recorder's own source or from the kind, as text.

No module of the recorder is imported (that would need torch) and nothing is written twice.
"""

import ast
import inspect
from functools import cache

from tracer.ops import KINDS
from tracer.resources import TRACER

GRADIENT = "loss.backward()  # autograd runs this step's derivative; its forward is"
OPTIMIZER = ("model/optimizer.py", "make_optimizer")


@cache
def torch_sources() -> dict[str, str]:
    """Kind of operation → the class or function that computes it in PyTorch."""
    found = {name: inspect.getsource(kind.torch).rstrip() for name, kind in KINDS.items() if kind.torch}
    for file in ("model/layers.py", "model/llama_layers.py", "model/sampling.py"):
        text = (TRACER / file).read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and (kind := _kind(node)):
                found[kind] = _forward(text, node)
    text = (TRACER / OPTIMIZER[0]).read_text(encoding="utf-8")
    function = next(n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == OPTIMIZER[1])
    found["adamw"] = f"{_segment(text, function)}\n\noptimizer.step()"
    return found


def _kind(node: ast.ClassDef) -> str | None:
    """The value that the class gives to `kind`, alone or together with other names."""
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                target, value = target.elts[0], value.elts[0]
            if isinstance(target, ast.Name) and target.id == "kind" and isinstance(value, ast.Constant):
                return str(value.value)
    return None


def _forward(text: str, node: ast.ClassDef) -> str:
    forward = next(n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "forward")
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    return f"class {node.name}({bases}):\n{_segment(text, forward)}"


def _segment(text: str, node: ast.FunctionDef) -> str:
    """The function as it stands in the file, its docstring left out."""
    lines = text.splitlines()[node.lineno - 1: node.end_lineno]
    if ast.get_docstring(node):
        string = node.body[0]
        lines = lines[: string.lineno - node.lineno] + lines[(string.end_lineno or 0) - node.lineno + 1:]
    return "\n".join(lines)
