"""Habits of the code, looked at in its syntax: types said, docstrings, sizes, nothing left over.

What the types say, `make lint` checks.
"""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("tracer", "site_builder")
MOST_LINES = 350  # of a file
MOST_LINES_OF_A_FUNCTION = 40
WITHOUT_DOCSTRING = 5  # lines of a public function that may stand without one
Function = ast.FunctionDef | ast.AsyncFunctionDef


def files(*folders: str, ending: str = ".py") -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob(f"*{ending}"))]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> list[tuple[Function, ast.AST]]:
    """Every function of a file, with what it stands in."""
    return [(node, parent) for parent in ast.walk(tree_of(path)) for node in ast.iter_child_nodes(parent)
            if isinstance(node, Function)]


def untyped(node: Function, in_class: bool) -> list[str]:
    """Parameters without a type, "return" where that is missing."""
    given = node.args
    named = [*given.posonlyargs, *given.args]
    static = any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)
    named = named[1:] if in_class and not static else named
    every = [*named, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    without_result = node.returns is None and node.name != "__init__"
    return [each.arg for each in every if each.annotation is None] + (["return"] if without_result else [])


def test_every_function_says_its_types():
    assert not [f"{name_of(path)}: {node.name} ({', '.join(missing)})" for path in files(*PACKAGES)
                for node, parent in functions(path) if (missing := untyped(node, isinstance(parent, ast.ClassDef)))]


def test_no_function_is_too_long_to_be_read_at_once():
    assert not [f"{name_of(path)}: {node.name} has {count} lines" for path in files(*PACKAGES, "bench")
                for node, _ in functions(path) if (count := length(node)) > MOST_LINES_OF_A_FUNCTION]


def test_a_public_function_of_some_length_says_what_it_is_for():
    """The `forward` of a module says it in its class."""
    assert not [f"{name_of(path)}: {node.name}" for path in files(*PACKAGES, "bench")
                for node, parent in functions(path) if isinstance(parent, ast.Module | ast.ClassDef)
                and not node.name.startswith("_") and not getattr(parent, "name", "").startswith("_")
                and node.name != "forward" and length(node) > WITHOUT_DOCSTRING and not ast.get_docstring(node)]


def length(node: Function) -> int:
    return node.end_lineno - node.lineno + 1


def test_no_file_is_long():
    every = files(*PACKAGES, "bench", "tests") + files("static", ending=".js") + files("static", ending=".css") + files(
        "templates", ending=".html")
    long = {name_of(path) for path in every if path.read_text(encoding="utf-8").count("\n") > MOST_LINES}
    assert long == set()


def test_nothing_of_debugging_is_left():
    for path in files(*PACKAGES):
        called = {ast.unparse(node.func) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)}
        assert not called & {"print", "breakpoint", "pdb.set_trace"}, name_of(path)
    for path in files("static", ending=".js"):
        assert not re.search(r"console\.(log|debug)|\bdebugger\b", path.read_text(encoding="utf-8")), name_of(path)


# What nobody reads -----------------------------------------------------------------------------------------

def defined(path: Path) -> set[str]:
    """Names that a module gives to functions, classes and constants, those that a decorator hands on apart."""
    found = set()
    for node in tree_of(path).body:
        if isinstance(node, Function | ast.ClassDef) and not node.decorator_list:
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not is_registered(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return {name for name in found if not name.startswith(("__", "test_", "pytest"))}


def is_registered(value: ast.expr | None) -> bool:
    """Whether an operation is put into the table of all, where it is found by its kind."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "define"


@cache
def read() -> Counter[str]:
    """How often each name is read: in code, in a text that is a path of names, in a template."""
    found: Counter[str] = Counter()
    for path in files(*PACKAGES, "bench", "tests"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found[node.id] += 1
            elif isinstance(node, ast.Attribute):
                found[node.attr] += 1
            elif isinstance(node, ast.alias):
                found[node.name] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                found.update(re.findall(r"\w+", node.value))
    for path in [*files("templates", ending=".html"), *ROOT.glob("README*.md"), ROOT / "pyproject.toml"]:
        found.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return found


def test_every_name_of_a_module_is_read_somewhere():
    assert not [f"{name_of(path)}: {name}" for path in files(*PACKAGES, "bench", "tests") for name in defined(path)
                if read()[name] <= read_by_itself(path)[name]]


@cache
def read_by_itself(path: Path) -> Counter[str]:
    """How often functions and classes name themselves: that nobody else does."""
    return Counter(node.id for own in tree_of(path).body if isinstance(own, Function | ast.ClassDef)
                   for node in ast.walk(own) if isinstance(node, ast.Name) and node.id == own.name)
