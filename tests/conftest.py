"""What the tests share: pinned kernels, the committed recordings, and one recording made afresh."""

import os

from tracer.kernels import pin_kernels

os.environ["OMP_NUM_THREADS"] = "1"  # here and in what tests start: they share the processors
pin_kernels()  # both before anything imports torch

from collections.abc import Iterator  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
import torch  # noqa: E402
from browser import ARGUMENTS, find_browser  # noqa: E402
from charts import other_charts  # noqa: E402, F401  (a fixture of pictures)
from cli_runs import recorded, run  # noqa: E402, F401  (fixtures of the command line)
from drawn import numbers, shapes  # noqa: E402, F401  (fixtures of drawings)
from made_again import spread_of  # noqa: E402
from playwright.sync_api import Browser, BrowserContext, Error, Page, sync_playwright  # noqa: E402
from runs import command, float16, prepared, settings  # noqa: E402, F401  (fixtures of training)
from schema_cases import saved, short_inline  # noqa: E402, F401  (fixtures of the format)
from shared import common_folder, shared_folder, shared_object  # noqa: E402
from tokenizer_cases import data  # noqa: E402, F401  (a fixture of the tokenizer)
from verify_cases import replays, traces  # noqa: E402, F401  (fixtures of verifying)

from site_builder.build import build  # noqa: E402
from tracer.format.load import load  # noqa: E402
from tracer.format.roles import ROUTES  # noqa: E402
from tracer.format.trace import Trace  # noqa: E402
from tracer.model.kernel_probe import described, kernels_used  # noqa: E402
from tracer.model.tokenizer import Tokenizer, gpt2  # noqa: E402
from tracer.recording.checkpoint import Checkpoint  # noqa: E402
from tracer.recording.generation import GenerationJob, record_generation  # noqa: E402
from tracer.recording.training import TrainingJob, record_training  # noqa: E402

torch.set_num_threads(1)

TRACES = Path(__file__).resolve().parent.parent / "traces"
PATIENCE = 40_000  # milliseconds: a busy machine is slow, a hanging page ends all the same

KERNELS = kernels_used()  # measured once a process: before a test puts something else in the place of a kernel


def pytest_report_header() -> str:
    return f"kernels: {described(KERNELS)}"


def pytest_xdist_auto_num_workers() -> int:
    """One more than processors: while a test waits for a browser or a process, another one runs."""
    return (os.cpu_count() or 1) + 1


@dataclass(frozen=True)
class Recording:
    """Both recordings, made in this process as `python -m tracer record` makes them."""

    training: Trace
    checkpoint: Checkpoint
    generation: Trace


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return gpt2()


@pytest.fixture(scope="session")
def training_trace() -> Trace:
    """The committed recording.  Tests share it: copy before changing anything."""
    return load(TRACES / "training.json")


@pytest.fixture(scope="session")
def generation_trace() -> Trace:
    """The committed recording.  Tests share it: copy before changing anything."""
    return load(TRACES / "generation.json")


@pytest.fixture(scope="session")
def recordings(training_trace, generation_trace) -> dict[str, Trace]:
    """The committed recordings by route."""
    more = {route: load(TRACES / f"{route}.json") for route in ROUTES if route not in ("training", "generation")}
    return {"training": training_trace, "generation": generation_trace, **more}


@pytest.fixture(scope="session")
def fresh(tokenizer, tmp_path_factory) -> Recording:
    """Recorded once for all tests, which share it: copy before changing anything."""
    return shared_object(common_folder(tmp_path_factory), "fresh", partial(_record, tokenizer))


@pytest.fixture(scope="session")
def spread(training_trace, tmp_path_factory) -> dict[str, float]:
    """How far rounding may move a number of each array of the first update."""
    return shared_object(common_folder(tmp_path_factory), "spread", partial(spread_of, training_trace))


def _record(tokenizer: Tokenizer) -> Recording:
    training, checkpoint = record_training(TrainingJob(), tokenizer)
    return Recording(training, checkpoint, record_generation(GenerationJob(), checkpoint, tokenizer))


# The site in a browser -------------------------------------------------------------------------------

LOCAL = ("file:", "data:", "blob:")


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The site of the committed recordings, built once."""
    return shared_folder(common_folder(tmp_path_factory), "site", partial(build, TRACES))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        except Error as error:
            pytest.fail(f"no Chromium starts: `make test` installs one, or put one on PATH. {error}", pytrace=False)
        yield started
        started.close()


class Pages:
    """Opens pages, each in a context of its own, and notes what must not happen on any of them."""

    def __init__(self, browser: Browser):
        self.browser = browser
        self.contexts: list[BrowserContext] = []
        self.wrong: list[str] = []

    def __call__(self, allowed: tuple[str, ...] = LOCAL, quiet: tuple[str, ...] = (), **options) -> Page:
        """`allowed`: how the addresses begin that may be asked for; `quiet`: files that are missing on purpose."""
        context = self.browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        self.contexts.append(context)
        # As a reader left it who has met a tour and looks at the tables; what is chosen later holds.
        context.add_init_script("try { localStorage['two-routes.panel'] ??= 'tables'; "
                                "localStorage['two-routes.tour'] ??= 'met'; } catch { /* no storage */ }")
        page = context.new_page()
        page.on("console", lambda message: message.type in ("error", "warning")
                and not message.location["url"].endswith(quiet or ("\0",)) and self.note(message.text))
        page.on("pageerror", lambda error: self.note(f"{error.message}\n{error.stack}"))
        page.on("dialog", lambda dialog: (self.note(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: request.url.startswith(allowed) or self.note(f"request: {request.url}"))
        return page

    def note(self, what: str) -> None:
        self.wrong.append(what)

    def close(self) -> None:
        for context in self.contexts:
            context.close()
        assert not self.wrong, "\n".join(self.wrong)


def _pages(browser: Browser) -> Iterator[Pages]:
    pages = Pages(browser)
    yield pages
    pages.close()


@pytest.fixture
def new_page(browser) -> Iterator[Pages]:
    """`new_page(viewport=…)`: a page that must run without an error and ask for local files alone."""
    yield from _pages(browser)


@pytest.fixture(scope="module")
def module_page(browser) -> Iterator[Pages]:
    """As `new_page`, for pages that the tests of one file share."""
    yield from _pages(browser)


@pytest.fixture
def page(new_page) -> Page:
    return new_page()
