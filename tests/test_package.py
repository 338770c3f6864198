"""The program as an installed package: no file of the checkout is used, and no file is written where it lies."""

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from shared import common_folder, shared_folder
from shared import files as tree

from site_builder import cli as builder
from site_builder import two_routes
from tracer.cli import commands as recorder
from tracer.command_line import recordings
from tracer.resources import RECORDINGS, install_command, program_files
from tracer.trainer.settings import read_settings

ROOT = Path(__file__).resolve().parent.parent
# Folder of the checkout → where it is in the package.
PLACES = {"tracer": "tracer", "site_builder": "site_builder", "traces": "tracer/traces",
          "templates": "site_builder/templates", "static": "site_builder/static"}
NOT_OF_THE_PROGRAM = ("traces/checkpoint.pt", "static/deno.json", "static/types.d.ts")  # the last two are for make lint
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input")


def checkout() -> dict[str, Path]:
    """Every file that the program has in the checkout, by its path there."""
    found = {path.relative_to(ROOT).as_posix(): path for folder in PLACES for path in (ROOT / folder).rglob("*")
             if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")}
    return {name: path for name, path in found.items() if name not in NOT_OF_THE_PROGRAM}


@pytest.fixture(scope="session")
def package(tmp_path_factory) -> Path:
    """The wheel, the list of what the source archive holds, and the wheel installed in ``lib``, where nothing can be
    written."""
    return shared_folder(common_folder(tmp_path_factory), "package", _make_package)


def _make_package(folder: Path) -> None:
    source = folder / "source"
    source.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", *PLACES):
        (source / name).symlink_to(ROOT / name)  # what building leaves behind is not left in the checkout
    _run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source)
    _run(*PIP, "install", "--no-deps", "--no-index", "--no-compile", "--target", folder / "lib",
         *folder.glob("*.whl"))
    for path in {path.parent for path in (folder / "lib").rglob("*.py")}:
        (path / "__pycache__").touch()  # a file: not even root can keep anything in it
        path.chmod(0o555)


def _run(*command, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture
def two_routes_in(package, tmp_path):
    """Runs the installed command in an empty folder, with packages that it must do without."""
    def call(*arguments, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
        blocked, here = tmp_path / "blocked", tmp_path / "here"
        for folder in (blocked, here):
            folder.mkdir(exist_ok=True)
        for name in without:
            (blocked / f"{name}.py").write_text(f"raise ModuleNotFoundError('blocked', name={name!r})")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        path = os.pathsep.join(map(str, (blocked, package / "lib")))
        return subprocess.run([package / "lib" / "bin" / "two-routes", *arguments], cwd=here, timeout=120,
                              capture_output=True, text=True, encoding="utf-8",
                              env=environment | {"PYTHONPATH": path, "PYTHONUTF8": "1"})

    return call


# What is in it ---------------------------------------------------------------------------------------

def test_every_file_of_the_program_is_in_the_wheel_and_in_the_source_archive(package):
    with zipfile.ZipFile(next(package.glob("*.whl"))) as wheel:
        packed = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    wanted = {f"{PLACES[name.partition('/')[0]]}/{name.partition('/')[2]}": path.read_bytes()
              for name, path in checkout().items()}
    assert sorted(packed) == sorted(wanted)
    assert packed == wanted
    listed = (package / "source" / "two_routes.egg-info" / "SOURCES.txt").read_text(encoding="utf-8").splitlines()
    assert {*checkout(), "pyproject.toml", "README.md", "LICENSE"} <= set(listed)


def test_a_site_is_stamped_with_every_file_that_makes_it():
    """Not with the recordings, which are stamped for themselves, nor with what only training reads."""
    other = ("traces/", "tracer/recipes/", "tracer/texts/", "tracer/py.typed", "tracer/format/FORMAT.md")
    assert dict(program_files()) == {name: path for name, path in checkout().items() if not name.startswith(other)}


def test_the_recorder_does_without_the_builder():
    for path in (ROOT / "tracer").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else (
                [name.name for name in node.names] if isinstance(node, ast.Import) else [])
            assert not [name for name in names if name.partition(".")[0] in ("site_builder", "jinja2")], path


# Installed -------------------------------------------------------------------------------------------

def test_the_installed_command_builds_the_same_site(two_routes_in, package, site, tmp_path):
    before = tree(package / "lib")
    done = two_routes_in("build", without=("torch", "tiktoken", "rich"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ("there is no folder traces here: taking the recordings that come along, "
                           f"{package / 'lib' / 'tracer' / 'traces'}\n")
    ours, theirs = tree(site), tree(tmp_path / "here" / "site")
    assert sorted(ours) == sorted(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []
    assert tree(package / "lib") == before


def test_the_installed_command_verifies(two_routes_in, recordings):
    done = two_routes_in("verify", "--brief", without=("torch", "tiktoken", "jinja2"))
    assert done.returncode == 0, done.stderr
    said = re.findall(r"^(\S+): \d+ checks, [\d,]+ numbers recomputed, 0 wrong$", done.stdout, flags=re.MULTILINE)
    assert {*recordings, "experiments/depth", "experiments/cache"} <= set(said)


def test_the_installed_command_says_what_to_install(two_routes_in):
    done = two_routes_in("record", without=("torch", "jinja2"))
    assert done.returncode == 2
    found = re.fullmatch("error: torch is not installed, recording needs it: run `pip install (.*)`\n", done.stderr)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(shlex.split(found[1])) == sorted(project["optional-dependencies"]["record"])
    assert f"`pip install {found[1]}`" == install_command("record")


# The command -----------------------------------------------------------------------------------------

def run(monkeypatch, capfd, *arguments) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["anything", *map(str, arguments)])
    status = 0
    try:
        two_routes.main()
    except SystemExit as stop:
        status = stop.code or 0
    return status, *capfd.readouterr()


def test_it_has_the_commands_of_both(monkeypatch, capfd):
    names = [*builder.commands.commands, *recorder.commands.commands]
    assert len(names) == len(set(names))
    status, out, err = run(monkeypatch, capfd, "-h")
    assert (status, err) == (0, "") and out.startswith("Usage: two-routes [OPTIONS] COMMAND")
    assert re.findall(r"^  (\w+)  ", out.partition("Commands:")[2], flags=re.MULTILINE) == sorted(names)
    for name in names:
        status, out, err = run(monkeypatch, capfd, name, "--help")
        assert (status, err) == (0, "") and out.startswith(f"Usage: two-routes {name} ")


@pytest.mark.parametrize("arguments, said", [
    (("verify", "nowhere", "too much"), "Usage: two-routes verify "),
    (("unknown",), "Usage: two-routes "),
    (("verify", "."), "error: . holds no recording (*.json): record again with `two-routes record --output .`\n"),
    (("serve",), "error: there is no site in site: build one first with `two-routes build`\n"),
    (("heads", "none.pt"), "error: "),
])
def test_errors_name_it(arguments, said, monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(monkeypatch, capfd, *arguments)
    assert (status, out) == (2, "") and err.startswith(said) and "python -m" not in err


def test_recordings_here_come_before_those_that_come_along(monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert recordings(None) == RECORDINGS == ROOT / "traces"
    assert str(RECORDINGS) in capfd.readouterr().err
    assert recordings(Path("mine")) == Path("mine")
    (tmp_path / "traces").mkdir()
    assert recordings(None) == Path("traces")
    assert capfd.readouterr().err == ""


def test_a_recipe_that_comes_along_is_known_by_its_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    along = read_settings(Path("depth-2000"), {})
    assert along == read_settings(ROOT / "tracer" / "recipes" / "depth-2000.toml", {}) and along.updates == 2000
    (tmp_path / "depth-2000").write_text("updates = 3\n")
    assert read_settings(Path("depth-2000"), {}).updates == 3
