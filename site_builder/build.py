"""From recordings to a folder of files that open by double-click."""

import multiprocessing
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jinja2

from site_builder.data import route_data
from site_builder.experiments import fixed, read_experiments, tell
from site_builder.modules import import_map, nonce
from site_builder.network_map import network_map
from site_builder.pages import chapters, number_in_prose, told
from site_builder.prose import LANGUAGES
from site_builder.rounds import percent, tree
from site_builder.strings import Strings
from tracer.errors import UserError
from tracer.schema import Trace, load

ROOT = Path(__file__).parent.parent
ROUTES = ("training", "generation")
MORE_ROUTES = ("long",)  # shown where there is a recording of it


def build(traces: Path, output: Path) -> Path:
    """Build the site from the recordings in `traces`; returns the file to open.

    ``training.json`` and ``generation.json`` are needed, those of `MORE_ROUTES` are shown where there are some.

    The new site replaces the old one when it is whole.  Raises `UserError` for a recording that is
    missing or damaged, and for an output folder that holds something else than a site.
    """
    more = [route for route in MORE_ROUTES if (traces / f"{route}.json").exists()]
    recordings = {route: load(traces / f"{route}.json") for route in (*ROUTES, *more)}
    experiments = read_experiments(traces)
    _check_output(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as temporary:
        fresh = Path(temporary) / "site"
        _write_site(recordings, experiments, fresh)
        _replace(fresh, output)
    return output / "index.html"


def _check_output(output: Path) -> None:
    is_site = (output / "two-routes.css").exists() or (output.is_dir() and not any(output.iterdir()))
    if output.exists() and not is_site:
        raise UserError(f"{output} exists and is not a site of Two Routes: choose another --output")


def _replace(fresh: Path, output: Path) -> None:
    if output.exists():
        shutil.move(output, fresh.parent / "old")
    shutil.move(fresh, output)


def _write_site(recordings: dict[str, Trace], experiments: list[dict], folder: Path) -> None:
    (folder / "data").mkdir(parents=True)
    templates = _environment()
    modules = import_map(ROOT / "static" / "js")
    _write(folder / "index.html", templates.get_template("index.html").render(
        words={language: Strings(language) for language in LANGUAGES}, languages=LANGUAGES))
    jobs = [partial(_write_language, folder, language, recordings, experiments, templates, modules)
            for language in LANGUAGES]
    _side_by_side([*jobs, partial(_write_data, folder, recordings)])


def _side_by_side(jobs: list[Callable[[], None]]) -> None:
    """Run jobs that do not depend on one another, each in a process of its own where forking is cheap."""
    if sys.platform != "linux":
        for job in jobs:
            job()
        return
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=job) for job in jobs[1:]]
    for process in processes:
        process.start()
    jobs[0]()
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError("a part of the site could not be written; the cause stands above")


def _write_data(folder: Path, recordings: dict[str, Trace]) -> None:
    for trace in recordings.values():
        for name, content in route_data(trace).scripts.items():
            (folder / "data" / name).write_bytes(content)
    shutil.copyfile(ROOT / "static" / "css" / "two-routes.css", folder / "two-routes.css")
    shutil.copyfile(ROOT / "static" / "boot.js", folder / "boot.js")


def _write_language(folder: Path, language: str, recordings: dict[str, Trace], experiments: list[dict],
                    templates: jinja2.Environment, modules: str) -> None:
    strings = Strings(language)
    common = {"language": language, "languages": LANGUAGES, "words": strings, "root": "../",
              "modules": modules, "nonce": nonce(modules), "traces": recordings, "experiments": experiments,
              "trees": {route: tree(trace) for route, trace in recordings.items()}, "percent": percent,
              "chapters": {route: chapters(trace, language, strings) for route, trace in recordings.items()}}
    titles = {route: {page.id: page.title for chapter in told for page in chapter.pages}
              for route, told in common["chapters"].items()}
    common["maps"] = {route: network_map(trace, titles[route], strings) for route, trace in recordings.items()}
    _write_home(folder / language / "index.html", recordings, templates.get_template("home.html"), common | {
        "wide_map": network_map(recordings["training"], titles["training"], strings, columns=True)})
    for route, trace in recordings.items():
        _write(folder / language / f"{route}.html",
               templates.get_template("route.html").render(page=route, trace=trace, **common))
    if experiments:
        _write_experiments(folder / language / "experiments.html", templates.get_template("experiments.html"), common)


def _write_experiments(path: Path, template: jinja2.Template, common: dict) -> None:
    (title, lead), told = tell(common["experiments"], common["language"], common["words"])
    _write(path, template.render(common | {
        "page": "experiments", "title": title, "lead": lead, "experiments": told, "fixed": fixed,
        "num": number_in_prose}))


def _write_home(path: Path, recordings: dict[str, Trace], template: jinja2.Template, common: dict) -> None:
    language, strings = common["language"], common["words"]
    prose = told(recordings["training"], language, strings, ["home", "home:training", "home:states"])
    prose |= told(recordings["generation"], language, strings, ["home:generation"])
    _write(path, template.render(page="index", prose=prose, **common))


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROOT / "templates"), undefined=jinja2.StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
