"""What the READMEs say holds: their Python runs and prints what they show, files and targets that they name exist."""

import ast
import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest
import torch
from test_house import GROUND, MAY_IMPORT, WITHOUT_TORCH

import tracer

ROOT = Path(__file__).resolve().parent.parent
READMES = ("README.md", "README.zh.md")
DOCUMENTS = (*READMES, "CONTRIBUTING.md", "CHANGELOG.md")
SHOWN = "→ "
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
# A file or a folder of the checkout, as text names it.
FILE = re.compile(r"(?<![\w./`-])`?((?:tracer|site_builder|static|templates|tests|bench|traces|\.ci|\.github)/"
                  r"[\w./-]*[\w/])")
NOT_COMMITTED = {"traces/checkpoint.pt"}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return [code for found, code in FENCE.findall(text(name)) if found == language]


def shown(code: str) -> list[str]:
    """What the comments say is printed."""
    return [line.partition(SHOWN)[2] for line in code.splitlines() if SHOWN in line]


def test_the_examples_print_what_they_show(tmp_path, monkeypatch):
    (tmp_path / "traces").symlink_to(ROOT / "traces")
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    examples = blocks("README.md", "python")
    assert len(examples) >= 5
    with torch.random.fork_rng():
        for code in examples:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, "README.md", "exec"), namespace)
            assert printed.getvalue().splitlines() == shown(code)


def test_both_languages_have_the_same_examples():
    """So that running those of one is running those of both."""
    for language in ("python", "sh"):
        english, chinese = (blocks(name, language) for name in READMES)
        assert len(english) == len(chinese)
        for one, other in zip(english, chinese, strict=True):
            assert _code(one, language) == _code(other, language)
            assert shown(one) == shown(other)


def _code(block: str, language: str) -> str:
    if language == "python":
        return ast.dump(ast.parse(block))
    return "\n".join(line.partition(" # ")[0].partition("#")[0].rstrip() for line in block.splitlines())


@pytest.mark.parametrize("name", READMES)
def test_the_readme_names_the_whole_face(name):
    rows = "".join(line for line in text(name).splitlines() if line.startswith("| `"))
    assert [each for each in tracer.__all__ if f"`{each}`" not in rows] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_and_files_that_are_named_exist(name):
    content = text(name)
    links = [link for link in LINK.findall(content) if "://" not in link]
    named = {*links, *FILE.findall(content)} - NOT_COMMITTED
    assert [each for each in sorted(named) if not (ROOT / each).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_targets_that_are_named_exist(name):
    makefile = text("Makefile")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", text(name), re.MULTILINE))
    assert named <= targets


def test_help_names_every_target_and_every_variable_that_may_be_given():
    makefile = text("Makefile")
    said = makefile.partition("\n\n")[0]
    wanted = {*re.findall(r"^([a-z]+):", makefile, re.MULTILINE)} - {"help"}
    wanted |= {f"{name}=" for name in re.findall(r"^([A-Z]+) \?=", makefile, re.MULTILINE)}
    assert [each for each in sorted(wanted) if each not in said] == []


@pytest.mark.parametrize("name", READMES)
def test_every_package_is_named_with_what_it_is_for(name):
    project = tomllib.loads(text("pyproject.toml"))["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    rows = re.findall(r"^\| (.*?)(?:（.*?）| \(.*?\))? \| \S.* \|$", text(name), re.MULTILINE)
    named = {package.partition(" ")[0] for row in rows for package in re.split(", |、", row)}
    assert [each for each in wanted if re.split("[=><]", each)[0] not in named] == []


# CONTRIBUTING and CHANGELOG ----------------------------------------------------------------------------

def rows(name: str, first: str) -> list[list[str]]:
    """The cells of a table whose head begins with `first`, without its head."""
    table = text(name).partition(f"| {first}")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_the_rooms_are_those_that_the_test_of_the_house_holds():
    said = {room.strip("`"): {name.strip("` ") for name in may.split(",")} - {""}
            for room, _, may in rows("CONTRIBUTING.md", "room of `tracer/`")}
    assert said == MAY_IMPORT
    ground = text("CONTRIBUTING.md").partition("`tests/test_house.py`. On")[2].partition("every room stands")[0]
    assert set(re.findall(r"`(\w+)`", ground)) == GROUND


def test_what_builds_without_torch_is_said():
    said = text("CONTRIBUTING.md").partition("never torch; ")[2].partition(" need no torch")[0]
    assert set(re.findall(r"`(\w+)`", said)) == set(WITHOUT_TORCH)


def test_the_version_is_the_same_everywhere_and_its_changes_are_told():
    project = tomllib.loads(text("pyproject.toml"))["project"]
    newest = re.search(r"^## (\S+), \d{4}-\d\d-\d\d", text("CHANGELOG.md"), re.MULTILINE)
    assert project["version"] == tracer.__version__ == newest[1]


LISTED = re.compile(r"`([\w/.]+)`[^`\n]*:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_files_that_are_listed_are_as_they_are():
    listed = LISTED.findall(text("CONTRIBUTING.md"))
    assert [name for name, _ in listed] == ["tracer/ops/rms_norm.py", "site_builder/languages/rms_norm.md"]
    for name, content in listed:
        assert content == text(name)
    assert sum(content.count("\n") for _, content in listed) <= 40
