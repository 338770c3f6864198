"""What comes along with the program: where it lies, in a checkout and in an installed package alike.

In a checkout the pages and the recordings are folders at its top; ``pyproject.toml`` puts them into the packages.
"""

import shlex
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

TRACER = Path(__file__).parent
TOP = TRACER.parent
SITE_BUILDER = TOP / "site_builder"


def _folder(package: Path, name: str) -> Path:
    inside = package / name
    return inside if inside.is_dir() else TOP / name


TEMPLATES = _folder(SITE_BUILDER, "templates")
STATIC = _folder(SITE_BUILDER, "static")
RECORDINGS = _folder(TRACER, "traces")
LANGUAGES = SITE_BUILDER / "languages"
TEXT = TRACER / "texts" / "two-routes.txt"
RECIPES = TRACER / "recipes"

# What a site is made by: each folder, under a name that is the same wherever it lies, and the files in it.
PROGRAM = {
    "site_builder": (SITE_BUILDER, ("*.py", "*.toml", "languages/*.md", "languages/*/*.*", "languages/*/lessons/*.md")),
    "templates": (TEMPLATES, ("*.html",)),
    "static": (STATIC, ("*.js", "js/*.js", "js/*/*.js", "css/*.css")),
    "tracer": (TRACER, ("*.py", "*/*.py")),
}


def program_files() -> Iterator[tuple[str, Path]]:
    """Every file that the builder is made of, by a name that is the same in a checkout and installed."""
    for name, (folder, patterns) in PROGRAM.items():
        for pattern in patterns:
            for path in sorted(folder.glob(pattern)):
                yield f"{name}/{path.relative_to(folder).as_posix()}", path


def install_command(extra: str) -> str:
    """What installs the packages of an extra, into a checkout's environment or beside an installed package."""
    return f"`pip install {shlex.join(_packages(extra))}`"


def _packages(extra: str) -> list[str]:
    try:
        project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return list(map(str, project["optional-dependencies"][extra]))
    except (OSError, KeyError, ValueError):  # none there, or that of something else: it is installed
        pass
    try:
        found = [one.partition(";") for one in requires("two-routes") or ()]
    except PackageNotFoundError:  # its folders were copied without what pip notes
        return [f"two-routes[{extra}]"]
    return [package.strip() for package, _, when in found if f'extra == "{extra}"' in when.replace("'", '"')]
