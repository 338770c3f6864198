"""How fast the player is, in Chromium: a step, a held key, a jump by link, the first load, on both pages.

    PYTHONPATH=. python bench/player.py [--site FOLDER] [--rounds N]

Exits with 1 when a limit is missed, with 2 when no Chromium starts.  Work (script, style, layout) is the
processor time of the page's main thread, so that other processes count little; what is timed from a key or a
link to the next painted frame is time on the clock and holds for an idle machine.
"""

import gzip
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import click
from playwright.sync_api import Browser, CDPSession, Error, Page, Request, sync_playwright
from rich.console import Console
from rich.table import Table

from site_builder.build import ROUTES, build
from site_builder.main_line import main_line
from tests.browser import ARGUMENTS, find_browser
from tracer.format.load import load
from tracer.format.trace import Trace

TRACES = Path(__file__).parent.parent / "traces"
WINDOW = {"width": 1280, "height": 800}
WORK = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
AROUND = 10  # steps before and after the one with the largest table
THROTTLE = 4
HELD = 60  # repeats of a held key, one every 33 ms
out = Console(width=None if sys.stdout.isatty() else 130, highlight=False)

# Deferred work waits until it is let go, so that a step and what follows it are measured apart.
TOOLS = """
const requestIdle = window.requestIdleCallback;
const idle = (run, options) => {
  bench.waiting += 1;
  requestIdle((deadline) => { bench.waiting -= 1; run(deadline); }, options);
};
window.bench = { pieces: [], events: [], hold: false, waiting: 0,
  frame: () => new Promise((done) => requestAnimationFrame(() => setTimeout(done))),
  async release() {
    bench.hold = false;
    for (const [run, options] of bench.pieces.splice(0)) idle(run, options);
    await new Promise((done) => requestIdle(done, { timeout: 3000 }));
  },
  drawn: (step) => [...step.querySelectorAll(".numbers")].every((box) => box.querySelector("table")),
  loaded: () => {
    const ways = [...document.querySelectorAll("button[data-go]")].filter((button) => !button.disabled).length;
    const steps = [...document.querySelectorAll(".step.current, .step.ready")];
    return !bench.waiting && steps.length === 1 + ways && steps.every(bench.drawn);
  },
};
localStorage.setItem("two-routes.panel", "tables"); // the most that a step can show
window.requestIdleCallback = (run, options) => (bench.hold ? bench.pieces.push([run, options]) : idle(run, options));
new PerformanceObserver((list) => {
  for (const { name, duration } of list.getEntries()) if (name === "keydown") bench.events.push(duration);
}).observe({ type: "event", durationThreshold: 16, buffered: true });
"""


@dataclass
class Row:
    """Measurements of one thing; without a limit they are information."""

    name: str
    unit: str
    limit: float | None = None
    values: list[float] = field(default_factory=list)

    @property
    def p95(self) -> float:
        return quantiles(self.values, n=20, method="inclusive")[-1] if len(self.values) > 1 else self.values[0]

    @property
    def kept(self) -> bool:
        return self.limit is None or self.p95 <= self.limit

    def cells(self) -> list[str]:
        verdict = "information" if self.limit is None else "ok" if self.kept else "[bold red]MISSED"
        show = "{:.0f}" if self.unit == "KB" else "{:.1f}"
        return [self.name, show.format(median(self.values)), show.format(self.p95), f"{len(self.values)}",
                f"{self.limit:g} {self.unit}" if self.limit else f"– {self.unit}", verdict]


class Player:
    """One route in a page of its own."""

    def __init__(self, browser: Browser, site: Path, trace: Trace):
        self.trace = trace
        self.url = (site / "en" / f"{trace.route}.html").as_uri()
        self.page: Page = browser.new_page(viewport=WINDOW)
        self.page.add_init_script(TOOLS)
        self.session: CDPSession = self.page.context.new_cdp_session(self.page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.line = [stop.step for stop in main_line(trace).stops]
        self.steps = [step.id for step in self.line]

    def visit(self, step: str) -> None:
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}#step={step}")
        self.page.wait_for_selector("html.scripted .current td[data-r]")
        self.settle()

    def settle(self) -> None:
        """Until every table of the step is drawn, its neighbours are laid out, and nothing waits."""
        self.page.evaluate("""async () => {
            const start = performance.now();
            do await bench.release(); while (!bench.loaded() && performance.now() - start < 30000);
            await bench.frame();
        }""")

    def frame(self) -> None:
        self.page.evaluate("bench.frame()")

    def work(self) -> float:
        """Milliseconds of script, style and layout so far."""
        metrics = {one["name"]: one["value"] for one in self.session.send("Performance.getMetrics")["metrics"]}
        return 1000 * sum(metrics[name] for name in WORK)

    @contextmanager
    def throttled(self) -> Iterator[None]:
        self.session.send("Emulation.setCPUThrottlingRate", {"rate": THROTTLE})
        yield
        self.session.send("Emulation.setCPUThrottlingRate", {"rate": 1})

    def key_times(self) -> list[float]:
        """Event Timing of the keys since the last call: from the key to the next paint, in steps of 8 ms."""
        self.frame()
        self.page.wait_for_timeout(200)
        return self.page.evaluate("bench.events.splice(0)")

    def largest(self) -> str:
        """The step of the main line with the largest table; the page scrolls it in a window."""
        def size(step) -> int:
            return max((self.trace.arrays[name].size for operation in step.operations
                        for name in (operation, *self.trace.operations[operation].operands.values())), default=0)

        return max(self.line, key=size).id


def steps(player: Player, rounds: int) -> list[Row]:
    """By the arrow keys through the steps around the largest table, there and back, that table's step included."""
    change = Row("step change: script, style, layout until painted", "ms", 16)
    after = Row("– what follows when the page is idle", "ms")
    key = Row("key to next paint", "ms", 33)
    at = player.steps.index(player.largest())
    first, last = max(0, at - AROUND), min(len(player.steps) - 1, at + AROUND)
    for _ in range(rounds):
        player.visit(player.steps[first])
        player.key_times()
        for press in ["ArrowRight"] * (last - first) + ["ArrowLeft"] * (last - first):
            player.page.evaluate("() => { bench.hold = true; }")
            before = player.work()
            player.page.keyboard.press(press)
            player.frame()
            painted = player.work()
            player.settle()
            change.values.append(painted - before)
            after.values.append(player.work() - painted)
        key.values += player.key_times()
    return [change, after, key]


def held(player: Player, rounds: int) -> list[Row]:
    """The arrow key held down over the same steps, on a processor that is slowed down."""
    row = Row(f"key to next paint, {THROTTLE}× slower, key held", "ms", 100)
    at = player.steps.index(player.largest())
    for _ in range(rounds):
        player.visit(player.steps[max(0, at - AROUND)])
        player.key_times()
        with player.throttled():
            for press in ("ArrowRight", "ArrowLeft"):
                for _ in range(HELD // 2):
                    player.page.keyboard.down(press)  # a key that is down already: a repeat
                    player.page.wait_for_timeout(33)
                player.page.keyboard.up(press)
            row.values += player.key_times()
    return [row]


JUMP = """async (step) => {
  const link = document.querySelector(`.contents a[data-step="${CSS.escape(step)}"]`);
  const start = performance.now();
  link.click();
  await new Promise((done) => addEventListener("hashchange", done, { once: true }));
  await bench.frame();
  return performance.now() - start;
}"""


def jumps(player: Player, rounds: int) -> list[Row]:
    """By a link of the list of steps to each chapter's first step, to the largest table, and back to the start."""
    row = Row("jump by link to the next paint", "ms", 100)
    starts = [step.id for chapter in player.trace.chapters[1:] for step in chapter.steps[:1] if step in player.line]
    for number in range(rounds + 1):
        player.visit(player.steps[0])
        for step in [*starts, player.largest(), player.steps[0]]:
            elapsed = player.page.evaluate(JUMP, step)
            player.settle()
            if number:  # the first round loads what the steps show
                row.values.append(elapsed)
    return [row]


def first_load(player: Player, site: Path) -> list[Row]:
    """What the page asks for until its first step is there, under gzip; its modules are in ``modules.js``."""
    files: list[Path] = []

    def note(request: Request) -> None:
        if request.url.startswith("file:"):
            files.append(Path(request.url.removeprefix("file://").split("#")[0]))

    player.page.on("request", note)
    player.visit(player.steps[0])
    player.page.remove_listener("request", note)
    def sent(some: list[Path]) -> float:
        return sum(len(gzip.compress(path.read_bytes())) for path in some) / 1024

    code = [path for path in files if path.suffix == ".js" and path.parent.name != "data"]
    return [Row("first load, gzip", "KiB", 260, [sent(files)]), Row("– of it scripts", "KiB", 100, [sent(code)])]


def measure(browser: Browser, site: Path, route: str, rounds: int) -> list[Row]:
    """All measurements on the page of a route."""
    player = Player(browser, site, load(TRACES / f"{route}.json"))
    measurements: list[Callable[[], list[Row]]] = [
        lambda: first_load(player, site), lambda: steps(player, rounds), lambda: held(player, rounds),
        lambda: jumps(player, rounds)]
    rows = [row for run in measurements for row in run()]
    player.page.close()
    return rows


@click.command()
@click.option("--site", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Folder of a built site; without it one is built.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1), help="Times that each way is gone.")
def main(site: Path | None, rounds: int) -> None:
    """Measure the player on both pages."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = site.resolve() if site else build(TRACES, Path(folder) / "site").parent
        try:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        except Error as error:
            click.echo(f"error: no Chromium starts: put one on PATH (chromium, google-chrome). {error}", err=True)
            sys.exit(2)
        results = {route: measure(browser, site, route, rounds) for route in ROUTES}
        version = browser.version
        browser.close()
    for route, rows in results.items():
        table = Table(title=f"the {route} page, {WINDOW['width']} pixels wide")
        table.add_column("what", overflow="fold")
        for column in ("p50", "p95", "times", "limit of p95", "verdict"):
            table.add_column(column, justify="right")
        for row in rows:
            table.add_row(*row.cells())
        out.print(table)
    out.print(f"Chromium {version}; rounds: {rounds}; steps around the largest table: {AROUND} on each side")
    if not all(row.kept for rows in results.values() for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
