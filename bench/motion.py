"""How smoothly each drawing moves: frames a second in Chromium while its moves are played, as it is and 4× slower.

    PYTHONPATH=. python bench/motion.py [--site FOLDER]

Of each drawing of its own, and of placed pictures, the first step of the main lines that has one is played for a
moment.  The browser draws in software, 60 times a second at most.  Exits with 1 below a limit, with 2 when no Chromium
starts.
"""

import sys
import tempfile
from pathlib import Path

import click
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.table import Table

from site_builder.build import build
from tests.browser import ARGUMENTS, find_browser

TRACES = Path(__file__).parent.parent / "traces"
ROUTES = ("training", "early")
LIMITS = {1: 55, 4: 30}  # times slower → frames a second
MOMENT = 900  # ms
out = Console(width=None if sys.stdout.isatty() else 130, highlight=False)

# Steps of the main line by the drawing that shows them, the first of each.
FIRSTS = """async () => {
    const { DRAWINGS } = await import("drawings");
    const { stage } = document.querySelector("figure.stage");
    const found = {};
    for (const step of stage.player.line.stops) {
        location.hash = `#step=${encodeURIComponent(step)}`;
        const start = performance.now();
        while ((stage.scene?.step.id !== step || !stage.drawing) && performance.now() - start < 20000) {
            await new Promise((done) => setTimeout(done, 8));
        }
        const name = Object.entries(DRAWINGS).find(([, drawing]) => drawing === stage.drawing)?.[0] ?? "placed";
        if (stage.bar.length) found[name] ??= step;
    }
    return found;
}"""
PLAY = """async ([step, moment]) => {
    const { stage } = document.querySelector("figure.stage");
    location.hash = `#step=${encodeURIComponent(step)}`;
    while (stage.scene?.step.id !== step || !stage.drawing) await new Promise((done) => setTimeout(done, 8));
    await new Promise((done) => setTimeout(done, 700)); // what is drawn when the page is idle is drawn
    stage.bar.set(0);
    const times = [];
    let on = true;
    const tick = (now) => { times.push(now); if (on) requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
    stage.bar.play(stage.bar.length);
    await new Promise((done) => setTimeout(done, moment));
    on = false;
    stage.bar.stop();
    return (times.length - 1) / (times.at(-1) - times[0]) * 1000;
}"""


def measure(browser: Browser, site: Path, route: str) -> dict[str, dict[int, float]]:
    """Drawing → how many times slower → frames a second."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((site / "en" / f"{route}.html").as_uri() + "#step=text")
    page.wait_for_selector("html.scripted")
    throttle = page.context.new_cdp_session(page)
    found: dict[str, dict[int, float]] = {}
    for name, step in page.evaluate(FIRSTS).items():
        for times in LIMITS:
            throttle.send("Emulation.setCPUThrottlingRate", {"rate": times})
            found.setdefault(name, {})[times] = page.evaluate(PLAY, [step, MOMENT])
    page.close()
    return found


@click.command()
@click.option("--site", type=click.Path(path_type=Path), help="A built site; else one is built.")
def main(site: Path | None) -> None:
    """Frames a second of every drawing."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = (site or build(TRACES, Path(folder) / "site").parent).absolute()  # build names the file to open
        try:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        except Exception as error:
            out.print(f"no Chromium starts: {error}")
            sys.exit(2)
        table = Table("drawing", *(f"{times}× slower, limit {limit}" for times, limit in LIMITS.items()), "verdict")
        missed = 0
        for route in ROUTES:
            for name, rates in measure(browser, site, route).items():
                wrong = [times for times, limit in LIMITS.items() if rates[times] < limit]
                missed += bool(wrong)
                table.add_row(f"{route}: {name}", *(f"{rate:.0f}" for rate in rates.values()),
                              "MISSED" if wrong else "ok")
        browser.close()
    out.print(table)
    sys.exit(int(missed > 0))


if __name__ == "__main__":
    main()
