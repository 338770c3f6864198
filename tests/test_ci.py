"""What runs on other machines: the lock holds every package that is asked for, the pages workflow runs what exists."""

import importlib.util
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def lock() -> dict[str, str]:
    lines = (ROOT / ".ci" / "lock.txt").read_text(encoding="utf-8").splitlines()
    return dict(re.fullmatch(r"([a-z0-9-]+)==([0-9][0-9a-z.]*)", line).groups() for line in lines if line[0] != "#")


def test_the_lock_has_every_package_that_is_asked_for_in_a_version_that_is():
    exact = lock()
    extras = [one for extra in PROJECT["optional-dependencies"].values() for one in extra]
    for requirement in map(Requirement, [*PROJECT["dependencies"], *extras]):
        assert requirement.specifier.contains(exact[requirement.name], prereleases=True), requirement


def test_the_lock_brings_no_gpu_and_names_no_place():
    content = (ROOT / ".ci" / "lock.txt").read_text(encoding="utf-8")
    assert not re.search(r"nvidia|cuda|triton|://|--|\+", content)


def test_the_script_finds_every_package_of_the_lock():
    """Versions may be others here, and another platform may need a package more or less."""
    spec = importlib.util.spec_from_file_location("lock", ROOT / ".ci" / "lock.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found, exact = module.locked(), lock()
    assert list(exact) == sorted(exact)
    if {name: version for name, version in found.items() if name in exact} == exact:  # installed by this lock
        assert found == exact


def test_the_whole_check_takes_the_lock():
    said = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r'^export PIP_CONSTRAINT="\$PWD/\.ci/lock\.txt"$', said, re.MULTILINE)
    assert said.index("PIP_CONSTRAINT") < said.index("make ")


def test_the_pages_workflow_builds_with_make_and_publishes_what_that_makes():
    body = yaml.safe_load((ROOT / ".github" / "workflows" / "pages.yml").read_text(encoding="utf-8"))
    assert body[True] == {"push": {"branches": ["main"]}, "workflow_dispatch": None}  # YAML reads "on" as true
    steps = [step for job in body["jobs"].values() for step in job["steps"]]
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    commands = [step["run"] for step in steps if "run" in step]
    assert commands == ["make site"] and "site" in targets
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    uploaded = next(step for step in steps if step.get("uses", "").startswith("actions/upload-pages-artifact"))
    assert re.search(rf"^SITE \?= {uploaded['with']['path']}$", (ROOT / "Makefile").read_text(encoding="utf-8"),
                     re.MULTILINE)


def test_the_pages_workflow_may_do_no_more_than_it_needs():
    body = yaml.safe_load((ROOT / ".github" / "workflows" / "pages.yml").read_text(encoding="utf-8"))
    assert body["permissions"] == {"contents": "read"}
    assert body["jobs"]["deploy"]["permissions"] == {"pages": "write", "id-token": "write"}
    assert "permissions" not in body["jobs"]["build"]
    constraint = next(step["env"]["PIP_CONSTRAINT"] for step in body["jobs"]["build"]["steps"] if "env" in step)
    assert (ROOT / constraint).is_file()
