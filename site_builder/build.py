"""From recordings to a folder of files that open by double-click."""

import ctypes
import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import jinja2
import orjson

from site_builder.compiled import compiled, formulas
from site_builder.controls import controls, home_data, lesson_data
from site_builder.experiments import read_experiments, tell
from site_builder.experiments_page import experiments_data, shown
from site_builder.frame import language_links, page_links
from site_builder.glossary import RecordedPage, pictures, steps_shown, terms
from site_builder.home import EXAMPLE, chapter_lists, class_tours, route_card, states
from site_builder.language import Language, languages
from site_builder.lesson_figures import EXPERIMENTS as LESSON_EXPERIMENTS
from site_builder.lesson_figures import PASSES as LESSON_PASSES
from site_builder.lesson_figures import Figures
from site_builder.lesson_figures import figures as lesson_figures
from site_builder.lesson_pages import Course, Page
from site_builder.lesson_pages import pages as lesson_pages
from site_builder.lessons import lessons
from site_builder.modules import ENTRY, LESSON_ENTRY, modules_script, policy
from site_builder.network_map import Map, network_map
from site_builder.output import replacing, resolved
from site_builder.page_data import route_data, vocabulary_script
from site_builder.pages import chapters as route_chapters
from site_builder.pages import pass_title, told, tour
from site_builder.parts import Parts
from site_builder.search import entries
from site_builder.stamp import STAMP, stamp
from site_builder.strings import Strings
from site_builder.verified import read_recording
from tracer.errors import UserError
from tracer.format.experiments import FOLDER as EXPERIMENTS
from tracer.format.experiments import experiment_files
from tracer.format.origin import Origin, check_set, origin_of
from tracer.format.passes import FOLDER as PASSES
from tracer.format.passes import pass_files
from tracer.format.roles import PASS
from tracer.resources import STATIC, TEMPLATES
from tracer.storage.together import ARRAYS, NEW, newest

ROOT = "../"  # the way from a page of a language to the folder of the site
ROUTES = ("training", "generation")
T = TypeVar("T")
# The files of the style sheet: what comes later may say otherwise than what came before.
STYLES = ("page", "stage", "steps", "tables", "pictures", "panel", "home", "map", "narrow", "generation",
          "experiments", "shell", "lessons", "tools")
MORE_ROUTES = ("early", "long")  # shown where there is a recording of it
LIVELY = {"generation": "early"}  # where there is one, its draws are open: it is what home shows, and its tour
HOME_PROSE = {"training": ["home: lead", "home: training", "home: states"], "generation": ["home: generation"]}


def build(traces: Path, output: Path) -> Path:
    """Build the site from the recordings in `traces`; returns the file to open.

    ``training.json`` and ``generation.json`` are needed, those of `MORE_ROUTES` are shown where there are some.

    The new site replaces the old one when it is whole (`site_builder.output`).  Raises `UserError` for a recording
    that is missing, damaged, not what was recorded or of another training than the rest, for an output folder
    that is not the builder's to write, and for a language that lacks what another one has.
    """
    output = resolved(output)
    kept = resolved(traces)
    inside = output.relative_to(kept).parts[:1] if output.is_relative_to(kept) else None
    if inside == () or (inside and (inside[0] in (ARRAYS, EXPERIMENTS, PASSES) or inside[0].startswith(NEW))):
        raise UserError(f"{output} is a folder of recordings: choose another --output")
    languages()  # what is wrong with one is said before anything else is done
    with replacing(output, {STAMP: stamp(traces), "policy": policy()}) as fresh:
        _write_site(traces, fresh)
    return output / "index.html"


def _write_site(traces: Path, folder: Path) -> None:
    (folder / "data").mkdir()
    more = [route for route in MORE_ROUTES if newest(traces / f"{route}.json").exists()]
    experiments = {path.stem for path in experiment_files(traces)}
    passes = {path.stem: path for path in pass_files(traces)}
    has_course = (experiments >= LESSON_EXPERIMENTS and passes.keys() >= LESSON_PASSES
                  and set(more) == set(MORE_ROUTES))
    site = _Site(traces, folder, (*ROUTES, *more), bool(experiments), has_course)
    jobs: list[Callable[[], tuple[Origin | None, dict[str, _Told]]]] = [
        *(partial(_write_route, site, route) for route in site.routes), partial(_write_experiments, site),
        *(partial(_write_pass, site, path) for path in passes.values())]
    made = _side_by_side(jobs)
    written, opened = made[:len(site.routes)], dict(zip(passes, made[len(site.routes) + 1:], strict=True))
    check_set(traces, {route: origin for route, (origin, _) in zip(site.routes, written, strict=True)})
    for language in languages().values():
        of_routes = {route: told[language.code] for route, (_, told) in zip(site.routes, written, strict=True)}
        _write_home(site, language, of_routes)
        _write_class_page(site, language, of_routes)
        of_passes = {name: told[language.code] for name, (_, told) in opened.items()}
        course = _write_course(site, language, of_routes, of_passes) if site.has_course else []
        pages = [one.page for one in (*of_routes.values(), *of_passes.values())]
        _write_search(site, language, pages, course)
    site.write("index.html", "index.html", languages=list(languages().values()))
    styles = [language.style for language in languages().values()]
    styles += [(STATIC / "css" / f"{name}.css").read_text(encoding="utf-8") for name in STYLES]
    (folder / "two-routes.css").write_text("".join(styles), encoding="utf-8", newline="\n")
    for script in ("boot.js", "door.js"):
        shutil.copyfile(STATIC / script, folder / script)
    for name, of_lessons in (("modules", False), ("lesson-modules", True)):
        text = modules_script(lessons=of_lessons)
        (folder / f"{name}.js").write_text(text, encoding="utf-8", newline="\n")


def _side_by_side(jobs: list[Callable[[], T]]) -> list[T]:
    """What each job returns, in its own process where forking is cheap.  The first job's error comes first."""
    if sys.platform != "linux":
        return [job() for job in jobs]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork"),
                             initializer=_end_with, initargs=(os.getpid(),)) as pool:
        try:
            return [future.result() for future in [pool.submit(job) for job in jobs]]
        except BrokenProcessPool:
            raise UserError("a process of this build was ended from outside: see that there is memory enough, "
                            "and build again") from None


def _end_with(parent: int) -> None:
    """Let this process end when `parent` is killed: it would wait for work, and hold the lock, for good."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all: the parent, which alone speaks of it, ends them
    die_with_parent = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(die_with_parent, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


@dataclass
class _Site:
    """What every page is made from; each job has a copy."""

    traces: Path
    folder: Path
    routes: tuple[str, ...]
    has_experiments: bool
    has_course: bool = False  # lessons speak of the recordings that come along, and of all experiments

    def page(self, path: str, template: str, language: Language, **context: object) -> None:
        """Write a page of one language."""
        strings, name = Strings(language), Path(path).stem
        self.write(f"{language.code}/{path}", template, language=language, words=strings, root=ROOT,
                   page_links=page_links(name, self.routes, self.has_experiments, self.has_course, strings),
                   language_links=language_links(name, language), **context)

    def write(self, path: str, template: str, **context: object) -> None:
        text = _templates().get_template(template).render(policy=policy(), **context)
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text, encoding="utf-8", newline="\n")


@dataclass
class _Told:
    """What the home page tells of a route in one language."""

    prose: dict[str, tuple[str, str]]  # key → title, HTML
    chapters: list[tuple[str, str]]  # the first step of each, and its title
    tour: list[dict[str, Any]]
    map: Map
    wide_map: Map
    page: RecordedPage
    figures: Figures  # what lessons may name of it


def _write_route(site: _Site, route: str) -> tuple[Origin | None, dict[str, _Told]]:
    """A route's numbers, and its page in every language; what the recording is of."""
    trace = read_recording(site.traces / f"{route}.json", route)
    for name, content in route_data(trace, route).scripts.items():
        (site.folder / "data" / name).write_bytes(content)
    parts = Parts(trace)
    told = {language.code: _write_route_page(site, parts, language, route, Strings(language)(route))
            for language in languages().values()}
    formulas().keep(route)
    return origin_of(trace), told


def _write_pass(site: _Site, path: Path) -> tuple[None, dict[str, _Told]]:
    """The numbers of a single pass, and its page in every language."""
    trace = read_recording(path, PASS)
    name = f"pass-{path.stem}"
    for file, content in route_data(trace, name).scripts.items():
        (site.folder / "data" / file).write_bytes(content)
    parts = Parts(trace)
    told = {language.code: _write_route_page(site, parts, language, name, pass_title(language, path.stem))
            for language in languages().values()}
    formulas().keep(name)
    return None, told


def _write_route_page(site: _Site, parts: Parts, language: Language, page: str, title: str) -> _Told:
    strings, trace, route = Strings(language), parts.trace, parts.trace.route
    chapters = route_chapters(parts, language)
    titles = {step.id: step.title for chapter in chapters for step in chapter.steps}
    small = network_map(trace, titles, strings)
    stops = tour(parts, language)
    total = sum(len(chapter.stops) for chapter in chapters)
    modes = list(dict.fromkeys(step.at.mode if not step.at.of else "update" for chapter in chapters
                               for step in chapter.steps))
    site.page(f"{page}.html", "route.html", language, page=page, title=title, chapters=chapters, total=total,
              titles=titles, map=small, controls=controls(page, ROOT, strings, stops, modes, title), entry=ENTRY)
    return _Told(told(parts, language, HOME_PROSE.get(route, [])),
                 [(chapter.steps[0].id, chapter.title) for chapter in chapters], stops,
                 small, network_map(trace, titles, strings, columns=True),
                 RecordedPage(f"{page}.html", title, titles, steps_shown(trace)),
                 {"summary": trace.summary, "make": trace.make, "labels": vocabulary_script(trace)})


def _write_class_page(site: _Site, language: Language, told: dict[str, _Told]) -> None:
    """How the pages are used in a class: presentation, a link to a stop, a step within another page."""
    strings = Strings(language)
    tours = class_tours({route: one.tour for route, one in told.items()})
    example = next((stop for tour in tours for stop in tour.stops if stop.name == EXAMPLE), None)
    if example:
        site.page("teach.html", "teach.html", language, tours=tours, example=example, entry=ENTRY,
                  script_data=home_data(ROOT, strings))


def _write_course(site: _Site, language: Language, told: dict[str, _Told], passes: dict[str, _Told]) -> list[Page]:
    """The lessons, the page that lists them, and all of them on one page for paper."""
    known = lesson_figures(language, {route: one.figures for route, one in told.items()}, read_experiments(site.traces))
    known["passes"] = {name: one.figures for name, one in passes.items()}
    recorded = told | {f"pass-{name}": one for name, one in passes.items()}
    titles = {page: one.page.titles for page, one in recorded.items()}
    course, strings = Course(lesson_pages(language, lessons(language), known, titles)), Strings(language)
    every = [None, *course.lessons, None]
    for before, lesson, after in zip(every, course.lessons, every[2:], strict=False):
        site.page(lesson.file, "lesson.html", language, lesson=lesson, before=before, after=after, total=course.count,
                  printed=False, entry=LESSON_ENTRY, script_data=lesson_data(ROOT, strings, lesson.tools))
    site.page("course.html", "course.html", language, course=course, entry=LESSON_ENTRY,
              script_data=lesson_data(ROOT, strings, []))
    site.page("course-print.html", "course-print.html", language, course=course, printed=True)
    return course.lessons


def _write_search(site: _Site, language: Language, pages: list[RecordedPage], course: list[Page]) -> None:
    """The glossary, and the search over it, the lessons, the experiments and the steps of every recording."""
    strings = Strings(language)
    experiments = {one["id"]: (f"experiments.html#experiment={one['id']}", *one["what"][:2])
                   for one in tell(read_experiments(site.traces), language)[1]}
    glossary = terms(language, pictures(pages, {name: one[:2] for name, one in experiments.items()}))
    site.page("glossary.html", "glossary.html", language, terms=glossary, has_course=site.has_course,
              entry=LESSON_ENTRY, script_data=lesson_data(ROOT, strings, []))
    index = orjson.dumps(entries(course, glossary, pages, experiments.values(), strings)).decode()
    (site.folder / "data" / f"search-{language.code}.js").write_text(
        f'twoRoutes.receive("search", {index});\n', encoding="utf-8", newline="\n")
    site.page("search.html", "search.html", language, entry=LESSON_ENTRY, script_data=lesson_data(ROOT, strings, []))


def _write_experiments(site: _Site) -> tuple[None, dict[str, _Told]]:
    experiments = read_experiments(site.traces)
    for language in languages().values() if experiments else ():
        (title, lead), found = tell(experiments, language)
        site.page("experiments.html", "experiments.html", language, title=title, lead=lead, entry=ENTRY,
                  experiments=shown(found, language), script_data=experiments_data(found, ROOT))
    return None, {}


def _write_home(site: _Site, language: Language, told: dict[str, _Told]) -> None:
    prose = {key: text for one in told.values() for key, text in one.prose.items()}
    strings = Strings(language)
    shown = {route: next(one for one in (LIVELY.get(route), route) if one in told) for route in ROUTES}
    cards = [route_card(route, shown[route], *prose[f"home: {route}"], strings, told[shown[route]].tour)
             for route in ROUTES]
    site.page("index.html", "home.html", language, lead=prose["home: lead"], states_text=prose["home: states"],
              routes=cards, states=states(strings),
              script_data=home_data(ROOT, strings), entry=ENTRY,
              map=told["training"].map, wide_map=told["training"].wide_map, has_experiments=site.has_experiments,
              has_course=site.has_course,
              chapters=chapter_lists({route: one.chapters for route, one in told.items()}, strings))


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), bytecode_cache=compiled(), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
