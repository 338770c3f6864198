"""Print the exact version of everything that ``pyproject.toml`` asks for, with all extras, as it is installed here.

``make lock`` writes it to ``.ci/lock.txt``, which ``.ci/run`` gives to pip as constraints, so that the tests of one
commit run on the same packages whenever they run.  What torch needs on one platform alone, a GPU's libraries, is left
out: constraints install nothing, and the versions of those follow from torch's own.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
PLATFORM = re.compile(r"sys_platform|platform_")


def asked_for() -> list[str]:
    """The requirements of the project, those of every extra among them."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]


def normal(name: str) -> str:
    """A package's name as registries compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(requirements: Iterable[str], extras: Iterable[str] = ()) -> Iterator[Requirement]:
    """Those of the requirements that hold here, with these extras."""
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def locked() -> dict[str, str]:
    """Name → version of what is asked for, and of what that needs.  Raises `SystemExit` where one is not installed."""
    found: dict[str, str] = {}
    waiting, seen = list(needed(asked_for())), set()
    while waiting:
        requirement = waiting.pop()
        name, extras = normal(requirement.name), tuple(sorted(requirement.extras))
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            found[name] = version(name).partition("+")[0]  # a build for CPUs has the version of the one for GPUs
        except PackageNotFoundError:
            raise SystemExit(f"error: {name} is not installed: run `make lock`, which installs it") from None
        following = needed(requires(name) or (), extras)
        waiting += [one for one in following if name != "torch" or not PLATFORM.search(str(one.marker))]
    return dict(sorted(found.items()))


if __name__ == "__main__":
    print("# Made by `make lock`; `make clean lock` takes the newest versions.")
    print(*(f"{name}=={exact}" for name, exact in locked().items()), sep="\n")
