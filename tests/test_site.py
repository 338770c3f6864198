"""The builder and what it writes: the same every time, safe for any text, whole, linked, said in both languages."""

import itertools
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import jinja2
import latex2mathml.converter
import orjson
import pytest
from driver import one_of_each, steps_of
from page_checks import ROOT, SCRIPTS, STYLES, TEMPLATES, TRACES, pages_of
from shared import files as tree

from site_builder import cli, compiled
from site_builder.build import ROUTES, build
from site_builder.output import replacing
from tracer.format.files import save
from tracer.format.load import load
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.training import TrainingJob, record_training

# The same every time ---------------------------------------------------------------------------------

BUILD_ALONE = """
import sys
sys.modules.update(torch=None, tiktoken=None, regex=None, numba=None, playwright=None)  # importing these now fails
from pathlib import Path
import site_builder.cli
from site_builder.build import build
build(Path(sys.argv[1]), Path(sys.argv[2]))
loaded = [name for name in sys.modules if name.split(".")[0] in ("torch", "tiktoken") and sys.modules[name]]
sys.exit(f"loaded: {loaded}" if loaded else 0)
"""


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_another_process_builds_the_same_bytes_and_needs_no_torch(site, tmp_path, seed):
    environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": "Pacific/Auckland", "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-c", BUILD_ALONE, TRACES, tmp_path / "again"], cwd=ROOT, env=environment,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ours, again = tree(site), tree(tmp_path / "again")
    assert list(ours) == list(again)
    assert [name for name in ours if ours[name] != again[name]] == []


# What cannot be built --------------------------------------------------------------------------------

def run(monkeypatch, *arguments) -> int:
    monkeypatch.setattr(sys, "argv", ["site_builder", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as stop:
        return stop.code or 0
    return 0


@pytest.fixture
def old_site(tmp_path) -> Path:
    """A site built before, by hand."""
    with replacing(tmp_path / "site", {}) as fresh:
        (fresh / "two-routes.css").write_text("/* old */")
        (fresh / "index.html").write_text("old")
        (fresh / "left-over.html").write_text("old")
    return tmp_path / "site"


@pytest.fixture
def traces(tmp_path) -> Path:
    """The recordings, to be damaged: small files are copies, the large arrays are links."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for route in ROUTES:
        (folder / f"{route}.json").write_bytes((TRACES / f"{route}.json").read_bytes())
    (folder / "arrays").symlink_to(TRACES / "arrays", target_is_directory=True)
    return folder


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:9000]),
    "no JSON": lambda path: path.write_text("<html>"),
    "another JSON": lambda path: path.write_text("[1, 2]"),
    "another version": lambda path: path.write_bytes(
        re.sub(rb'"version":\d+', b'"version":99', path.read_bytes(), count=1)),
    "unknown kind": lambda path: path.write_bytes(path.read_bytes().replace(b'"layer_norm"', b'"layer_n\\norm"')),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "arrays gone": lambda path: (path.parent / "arrays").unlink(),
    "another route": lambda path: path.write_bytes((TRACES / "long.json").read_bytes()),
    "another summary": lambda path: path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"summary": {}})),
    "no chapters": lambda path: path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"chapters": []})),
}


@pytest.mark.parametrize(("damage", "route"), [*zip(DAMAGES, itertools.cycle(ROUTES), strict=False),
                                               ("missing", "generation")])
def test_a_damaged_recording_is_one_line_and_leaves_the_old_site(
        monkeypatch, capfd, traces, old_site, tmp_path, damage, route):
    DAMAGES[damage](traces / f"{route}.json")
    before, around = tree(old_site), sorted(path.name for path in tmp_path.iterdir())
    assert run(monkeypatch, "build", "--traces", traces, "--output", old_site) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert re.fullmatch(r"error: [^\n]+\n", err), err
    assert "json" in err or "arrays" in err
    assert tree(old_site) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == around


@pytest.mark.parametrize("content", ["notes.txt", "index.html", "deep/er/thing", "two-routes.css", "two-routes.json"])
def test_a_folder_that_is_no_site_is_left_alone(monkeypatch, capfd, tmp_path, content):
    mine = tmp_path / "mine" / content
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert run(monkeypatch, "build", "--traces", TRACES, "--output", tmp_path / "mine") == 2
    assert re.fullmatch(r"error: [^\n]+\n", capfd.readouterr().err)
    assert tree(tmp_path / "mine") == {content: b"mine"}


def test_a_link_stays_a_link_and_leads_to_the_new_site(site, old_site, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(old_site, target_is_directory=True)
    assert build(TRACES, link) == old_site / "index.html"
    assert link.is_symlink()
    assert list(tree(old_site)) == list(tree(site))


def test_the_folder_that_one_stands_in(site, old_site, monkeypatch, capfd):
    monkeypatch.chdir(old_site)
    assert run(monkeypatch, "build", "--traces", TRACES, "--output", ".") == 0, capfd.readouterr().err
    assert list(tree(old_site)) == list(tree(site))


def one_template() -> jinja2.Environment:
    return jinja2.Environment(loader=jinja2.DictLoader({"a": "{{ n + 1 }}"}), bytecode_cache=compiled.compiled())


@pytest.mark.parametrize("length", [0, 12, 25, 400])
def test_compiled_templates_that_are_cut_off_are_compiled_again(tmp_path, monkeypatch, length):
    monkeypatch.setattr(compiled, "FOLDER", tmp_path / "kept")
    for _ in range(2):
        assert one_template().get_template("a").render(n=4) == "5"
        (file,) = (tmp_path / "kept").iterdir()
        file.write_bytes(file.read_bytes()[:length])


def test_compiled_templates_that_cannot_be_kept_are_used_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(compiled, "FOLDER", tmp_path / "file" / "kept")
    assert one_template().get_template("a").render(n=4) == "5"


FORMULA = r"\frac{a}{b}"


def without_converting(monkeypatch) -> None:
    monkeypatch.setattr("latex2mathml.converter.convert", lambda *_, **__: pytest.fail("converted again"))


def test_formulas_are_converted_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "FOLDER", tmp_path / "kept")
    first = compiled.Formulas()
    made = {display: first.convert(FORMULA, display) for display in ("block", "inline")}
    assert made == {display: latex2mathml.converter.convert(FORMULA, display=display) for display in made}
    assert made["block"] != made["inline"]
    first.keep("one")
    without_converting(monkeypatch)
    assert {display: compiled.Formulas().convert(FORMULA, display) for display in made} == made


@pytest.mark.parametrize("content", [b"", b'{"converter": "', b"[]", b'{"converter": "another", "formulas": {}}', None])
def test_kept_formulas_that_are_damaged_or_of_another_converter_are_made_again(tmp_path, monkeypatch, content):
    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    first = compiled.Formulas()
    right = first.convert(FORMULA, "block")
    first.keep("one")
    path = tmp_path / "formulas-one.json"
    if content is None:  # written by another version of the converter, which made something else
        monkeypatch.setattr(compiled, "_converter", lambda: "another")
        path.write_bytes(path.read_bytes().replace(b"mfrac", b"mover"))
    else:
        path.write_bytes(content)
    again = compiled.Formulas()
    assert again.convert(FORMULA, "block") == right
    again.keep("one")
    without_converting(monkeypatch)
    assert compiled.Formulas().convert(FORMULA, "block") == right


def test_formulas_that_cannot_be_kept_are_used_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(compiled, "FOLDER", tmp_path / "file" / "kept")
    formulas = compiled.Formulas()
    assert "mfrac" in formulas.convert(FORMULA, "block")
    formulas.keep("one")


def test_a_failure_while_writing_leaves_the_old_site(monkeypatch, old_site):
    before = tree(old_site)

    def no_space(path, text, **options):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", no_space)
    with pytest.raises(OSError, match="No space"):
        build(TRACES, old_site)
    assert tree(old_site) == before
    assert [path.name for path in old_site.parent.iterdir()] == [old_site.name]


def test_the_new_site_replaces_the_old_one_whole(site, old_site, capfd, monkeypatch):
    assert run(monkeypatch, "build", "--traces", TRACES, "--output", old_site) == 0
    assert re.fullmatch(r"built in [\d.]+ s: open \S+index\.html\n", capfd.readouterr().out)
    assert list(tree(old_site)) == list(tree(site))
    assert [path.name for path in old_site.parent.iterdir()] == [old_site.name]


def test_serve_says_what_is_missing(monkeypatch, capfd, tmp_path):
    assert run(monkeypatch, "serve", "--site", tmp_path) == 2
    assert re.fullmatch(r"error: [^\n]+`python -m site_builder build`\n", capfd.readouterr().err)


# One recording among others --------------------------------------------------------------------------

def test_templates_and_scripts_know_no_model(training_trace, generation_trace):
    """None of the sizes, ids and texts of the recording, no name of a block, no count of what a model has."""
    parameters = sum(training_trace.arrays[one.arrays["initial"]].size for one in training_trace.parameters)
    config = training_trace.make["config"]
    numbers = [config["vocabulary"], parameters, training_trace.make["settings"]["seed"],
               *training_trace.values("text.with_eos").tolist()]
    own = {text for number in numbers if number >= 1000 for text in (str(number), f"{number:,}")}
    texts = {training_trace.make["text"], training_trace.make["validation_text"], "blocks.0", "blocks.1", "round1"}
    counted = re.compile(r"(?i)\b(two|three|four|five|both|\d+) (blocks?|heads?|layers?|rounds?|updates?)\b"
                         r"|[两三四五](个|层|轮|头)")
    for path in (*TEMPLATES, *SCRIPTS, *STYLES):
        source = path.read_text("utf-8")
        assert not [number for number in own if re.search(rf"(?<![\w.]){re.escape(number)}(?![\w.])", source)], path
        assert not [text for text in texts if text in source], path
        assert not counted.search(source), path


@pytest.fixture(scope="module")
def other_site(tokenizer, tmp_path_factory) -> Path:
    """A model of another shape, trained on another text for three updates."""
    folder = tmp_path_factory.mktemp("other")
    config = Config(blocks=1, heads=4, width=32, context=32)
    job = TrainingJob("Grüße 🙂🙃, a\tb", "🙂", config, TrainingSettings(updates=3))
    training, checkpoint = record_training(job, tokenizer)
    generation = record_generation(GenerationJob("🙂", top_k=3, max_new_tokens=2), checkpoint, tokenizer)
    save(training, folder / "traces" / "training.json")
    save(generation, folder / "traces" / "generation.json")
    return build(folder / "traces", folder / "site").parent


def test_another_model_is_well_formed_too(other_site):
    for name, page in pages_of(other_site).items():
        assert page.problems == page.open == [], name
        assert len(page.ids) == len(set(page.ids)), name


def test_without_experiments_there_is_no_page_of_them(other_site):
    assert not [path for path in other_site.rglob("*.html") if "experiments.html" in path.read_text("utf-8")
                or path.stem == "experiments"]


WALK = """async (steps) => {
    const titles = [];
    for (const step of steps) {
        location.hash = `#step=${step}`;
        for (let i = 0; i < 2; i++) await new Promise((done) => requestAnimationFrame(done));
        const section = document.querySelector("section.step.current");
        const says = section.innerText.length > 20;
        titles.push([section.dataset.step, section.querySelectorAll("td[data-r]").length > 0, says]);
    }
    return titles;
}"""


@pytest.mark.parametrize("route", ROUTES)
def test_another_model_can_be_stepped_through(other_site, new_page, route):
    trace = load(other_site.parent / "traces" / f"{route}.json")
    page = new_page()
    page.goto((other_site / "en" / f"{route}.html").as_uri())
    page.wait_for_selector("section.current td[data-r]")
    steps = one_of_each(steps_of(trace), random.Random(5))
    walked = page.evaluate(WALK, steps)
    assert [step for step, *_ in walked] == steps
    assert all(said for *_, said in walked)
    scores = next(name for name, step in trace.operations.items() if step.kind == "scaled_scores")
    page.goto((other_site / "en" / f"{route}.html").as_uri() + f"#step={scores}&of={scores}&h=3&i=0&j=0")
    assert "ok" in page.locator("#number .verdict").get_attribute("class")
    assert page.locator(".current [role=group] .chip[aria-pressed=true]").first.inner_text() == "3"
