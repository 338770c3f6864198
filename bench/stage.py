"""Whether every step of every page shows its picture at once: counted in Chromium, at three sizes of window.

    PYTHONPATH=. python bench/stage.py [--site FOLDER] [--every N] [--language en]

For each step: the picture stands whole in the window on arrival, and nothing in it is cut, lies over something else,
is too small or too pale to read (`tests/picture_checks.py`), in both themes.  Exits with 1 below 98 %, with 2 when no
Chromium starts.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

import click
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.progress import track
from rich.table import Table

from site_builder.build import MORE_ROUTES, ROUTES, build
from site_builder.language import languages
from tests.browser import ARGUMENTS, find_browser
from tests.picture_checks import TOOLS

TRACES = Path(__file__).parent.parent / "traces"
WINDOWS = ((1280, 800), (1440, 900), (360, 740))
GOAL = 0.98
out = Console(width=None if sys.stdout.isatty() else 130, highlight=False)

LOOK = """async (step) => {
    const stage = pictures.host.stage;
    location.hash = `#step=${encodeURIComponent(step)}`;
    const start = performance.now();
    const ready = () => stage.scene?.step.id === step && stage.shapes.length
        && !pictures.host.classList.contains("waiting");
    while (!ready() && performance.now() - start < 20000) await new Promise((done) => setTimeout(done, 8));
    const box = pictures.host.querySelector("canvas").getBoundingClientRect();
    const inWindow = box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight
        && scrollY === 0 && box.width > 200 && box.height > 200;
    return { whole: ready() && inWindow, problems: pictures.problems(stage.shapes, stage.width, stage.height) };
}"""


def pages(browser: Browser, site: Path, window: tuple[int, int], theme: str, chosen: str) -> list[tuple[str, Page]]:
    found = []
    for route in (*ROUTES, *MORE_ROUTES):
        for language in languages():
            path = site / language / f"{route}.html"
            if not path.exists() or chosen not in ("", language):
                continue
            page = browser.new_page(viewport={"width": window[0], "height": window[1]}, color_scheme=theme,
                                    reduced_motion="reduce")
            page.add_init_script(TOOLS)
            page.goto(path.as_uri())
            page.wait_for_selector("html.scripted")
            page.evaluate("pictures.load()")
            found.append((f"{language}/{route}", page))
    return found


@click.command()
@click.option("--site", type=click.Path(path_type=Path), help="A built site; else one is built.")
@click.option("--every", default=1, show_default=True, help="Look at every so many steps.")
@click.option("--language", default="", help="One language alone.")
def main(site: Path | None, every: int, language: str) -> None:
    """Count the steps whose picture stands whole in the window."""
    executable = find_browser()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = (site or build(TRACES, Path(folder) / "site").parent).absolute()  # build names the file to open
        try:
            browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        except Exception as error:
            out.print(f"no Chromium starts: {error}")
            sys.exit(2)
        table = Table("window", "theme", "page", "steps", "whole", "without a fault")
        worst, faults = 1.0, Counter[str]()
        for window in WINDOWS:
            for theme in ("light", "dark"):
                for name, page in pages(browser, site, window, theme, language):
                    steps = page.evaluate("[...pictures.store.steps.keys()]")[::every]
                    seen = [(step, page.evaluate(LOOK, step)) for step in track(steps, f"{name} {window} {theme}",
                                                                               console=out, transient=True)]
                    whole = sum(one["whole"] for _, one in seen)
                    right = sum(not one["problems"] for _, one in seen)
                    worst = min(worst, whole / len(seen), right / len(seen))
                    table.add_row(f"{window[0]}×{window[1]}", theme, name, str(len(seen)), str(whole), str(right))
                    faults.update(f"{window[0]} {step}: {problem}" for step, one in seen
                                  for problem in one["problems"][:2])
                    faults.update(f"{window[0]} {step}: not whole" for step, one in seen if not one["whole"])
                    page.close()
        browser.close()
    out.print(table)
    for fault, count in faults.most_common(60):
        out.print(f"  {count} × {fault}")
    sys.exit(int(worst < GOAL))


if __name__ == "__main__":
    main()
