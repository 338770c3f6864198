"""Charts of a page in a browser: shown, moved, read."""

import numpy as np
import pytest
from driver import address, place, visit
from playwright.sync_api import expect

from site_builder.build import build
from tracer.format.files import save
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.training import TrainingJob, record_training

LOSS, PROBABILITY, ROWS = "series.loss", "series.target_probability", "series.rows"
ATTENTION = "series.attention.blocks.0"
SLIDER = ".current .updates input"
WAIT_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def other_charts(tokenizer, tmp_path_factory):
    """A recording of another shape, and its site: 3 updates, 1 block, 4 heads."""
    folder = tmp_path_factory.mktemp("other")
    job = TrainingJob(text="one two", config=Config(context=8, width=8, heads=4, blocks=1),
                      settings=TrainingSettings(updates=3))
    trace, checkpoint = record_training(job, tokenizer)
    save(trace, folder / "traces" / "training.json")
    generation = record_generation(GenerationJob(max_new_tokens=1), checkpoint, tokenizer)
    save(generation, folder / "traces" / "generation.json")
    return trace, build(folder / "traces", folder / "site").parent


def show(page, site, step, language="en", extra="", fresh=True):
    """Show a step; `fresh`: on a page that has shown nothing yet."""
    if fresh:
        page.goto("about:blank")
    visit(page, address(site, "training", language, f"#step={step}{extra}"))
    page.wait_for_selector("section.current .updates")
    expect(page.locator("section.current .picture:not(:has(svg text))")).to_have_count(0)
    place(page)
    return page


def move(page, update):
    """Choose an update, counted from 1, with the slider."""
    page.locator(SLIDER).fill(str(update))
    page.evaluate(WAIT_FRAMES)


def part(page, name):
    return page.locator(f'section.current [data-array="{name}"]')


def number(text):
    text = text.strip().replace("−", "-").replace("∞", "inf")
    return float(text)


def texts(locator):
    return [number(text) for text in locator.all_inner_texts()]


def numbers(page, name):
    """What the table of an array says."""
    return texts(part(page, name).locator(".numbers td"))


def same32(shown, recorded):
    return np.array_equal(np.float32(shown), np.float32(recorded))
