"""What the READMEs say holds: their Python runs and prints what they show, files and targets that they name exist."""

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest
import torch

import tracer

ROOT = Path(__file__).resolve().parent.parent
READMES = ("README.md", "README.zh.md")
DOCUMENTS = READMES
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
