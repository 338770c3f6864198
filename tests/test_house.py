"""What may import what: each room knows only those below it, and the pages' builder never torch."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GROUND = {"errors", "resources", "command_line", "kernels", "storage"}  # what every room stands on
MAY_IMPORT = {
    "storage": {"errors"},
    "ops": set(),
    "format": {"ops"},
    "model": {"ops", "format"},
    "recording": {"ops", "format", "model"},
    "library": {"ops", "format", "model"},
    "trainer": {"ops", "format", "model", "library"},
    "cli": {"ops", "format", "model", "recording", "library", "trainer"},
}
WITHOUT_TORCH = ("storage", "ops", "format")


def imports(path: Path) -> set[str]:
    """Every module that a file names in an import, wherever the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("tracer.")}


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def test_every_room_has_its_rule():
    assert {path.parent.name for path in (ROOT / "tracer").glob("*/__init__.py")} == MAY_IMPORT.keys()


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_what_it_may(room):
    for path in files(f"tracer/{room}"):
        wrong = rooms(imports(path)) - MAY_IMPORT[room] - {room} - (GROUND if room != "storage" else set())
        assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}"


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_what_the_pages_need_needs_no_torch(room):
    for path in files(f"tracer/{room}"):
        assert not {name for name in imports(path) if name.split(".")[0] == "torch"}, path


def test_the_builder_knows_the_format_and_the_operations_alone():
    for path in files("site_builder"):
        found = rooms(imports(path)) - {"ops", "format"} - GROUND
        allowed = {"cli"} if path.name == "two_routes.py" else set()  # one program for both: the recorder's commands
        assert found <= allowed, f"{path.relative_to(ROOT)} imports {sorted(found)}"
        assert "torch" not in {name.split(".")[0] for name in imports(path)}, path


def test_no_circle():
    """No module is reached from itself by imports at the top of files."""
    graph = {}
    for folder in ("tracer", "site_builder"):
        for path in files(folder):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            graph[name] = top_imports(path)
    graph = {name: {module for module in (known(graph, one) for one in found) if module not in (None, name)}
             for name, found in graph.items()}
    done: set[str] = set()
    for name in graph:
        visit(graph, name, (), done)


def top_imports(path: Path) -> set[str]:
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def known(graph: dict, name: str) -> str | None:
    """The module of ours that an import reaches: itself, or the one that holds the name."""
    return name if name in graph else (parent if (parent := name.rpartition(".")[0]) in graph else None)


def visit(graph: dict, name: str, path: tuple[str, ...], done: set[str]) -> None:
    assert name not in path, " → ".join((*path[path.index(name):], name))
    if name not in done:
        for other in sorted(graph[name]):
            visit(graph, other, (*path, name), done)
        done.add(name)
