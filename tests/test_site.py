"""The builder and what it writes: the same every time, safe for any text, whole, linked, said in both languages."""

import copy
import html.parser
import itertools
import os
import random
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import jinja2
import latex2mathml.converter
import orjson
import pytest
from driver import LANGUAGES, one_of_each, steps_of

from site_builder import cli, compiled, verified
from site_builder.build import ROUTES, build
from site_builder.output import replacing
from site_builder.prose import render, render_title
from site_builder.strings import Strings
from tracer.format.files import save
from tracer.format.load import load
from tracer.format.trace import AXES
from tracer.model.config import Config
from tracer.model.optimizer import TrainingSettings
from tracer.recording.generation import GenerationJob, record_generation
from tracer.recording.training import TrainingJob, record_training

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT / "traces"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static").rglob("*.js"))
STYLES = sorted((ROOT / "static").rglob("*.css"))
CJK = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


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
    "another version": lambda path: path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":99', 1)),
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


# Text from a recording is text -----------------------------------------------------------------------

HOSTILE = ("</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)>\u2028\u2029 \"'` {{ 7*7 }} {% x %} $x$ "
           "&amp; &lt; **b** [a](javascript:alert(3)) # h\n===\n\n    code\n\n- li\n\n\\")
SHORT = "</th></script><b>\"'{{7*7}}&amp;\u2028<!--$x$"


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def with_text(value):
    """`value` with hostile text for every text that it says; names of arrays stay."""
    if isinstance(value, dict):
        return {key: value[key] if key in ("parameter", "parameters", "token_table") else with_text(value[key])
                for key in value}
    if isinstance(value, list):
        return [with_text(item) for item in value]
    return HOSTILE if isinstance(value, str) else value


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    for route in ROUTES:
        trace = copy.copy(load(TRACES / f"{route}.json"))
        trace.make, trace.summary = with_text(trace.make), with_text(trace.summary)
        trace.labels = {name: [f"{n}{SHORT}" for n in range(len(trace.label_list(name)))] for name in trace.labels}
        save(trace, folder / "traces" / f"{route}.json")
    with pytest.MonkeyPatch.context() as patch:  # no arrays give such a summary
        patch.setattr(verified, "_is_known", lambda content: True)
        return build(folder / "traces", folder / "site").parent


@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_text_shows_as_itself(hostile_site, new_page, language):
    page = new_page()  # fails on a dialog, an error, and a request
    page.goto((hostile_site / language / "index.html").as_uri())
    assert squeezed(page.inner_text("main")).count(squeezed(HOSTILE)) >= 2  # the text and the prompt
    for route in ROUTES:
        page.goto((hostile_site / language / f"{route}.html").as_uri())
        page.wait_for_selector(".current table[role=grid] th:has-text('script')")
        assert page.locator("main b, main script, main img, main a[href^=javascript]").count() == 0
        shown = page.locator(".current table[role=grid] th").all_text_contents()
        assert any(squeezed(text).endswith(squeezed(SHORT)) for text in shown), shown
        assert page.evaluate("[typeof twoRoutes, document.scripts.length > 3]") == ["object", True]


def test_hostile_text_without_scripts(hostile_site, new_page):
    page = new_page(java_script_enabled=False)
    for route in ROUTES:
        page.goto((hostile_site / "en" / f"{route}.html").as_uri())
        assert squeezed(SHORT) in squeezed(page.locator(".step").first.inner_text())
        assert page.locator("main b, main script, main img, main a[href^=javascript]").count() == 0


@pytest.mark.parametrize("text", [
    HOSTILE, SHORT, "", "a\\", "$x$ and $y$", "\ue0000\ue001", "\ue00241\ue003", "`code`", "1. one", "<EOS>",
    "\u202eright to left", "🙂", "end\n"])
def test_prose_says_recorded_text_as_it_is(text):
    figures = {"text": text, "inner": {"list": [text]}, "width": 16}
    prose = "Given “{{ text }}”, `{{ inner.list[0] }}` and $x_{ {{width}} }$, {{ text|length }} signs: *{{ width }}*."
    html = render(prose, figures)
    checker = Checker()
    checker.feed(html)
    assert checker.problems == []
    assert set(checker.tags) - set(re.findall(r"m\w+", " ".join(checker.tags))) <= {"p", "code", "em", "bdi"}
    said = "".join(text for text, _ in checker.texts)
    assert said.startswith(f"Given “{text}”, {text} and ")
    assert said.endswith(f", {len(text)} signs: 16.\n")
    assert render_title("“{{ text }}”: {{ width }}", figures) == f"“{text}”: 16"


# The words of the interface --------------------------------------------------------------------------

WORDS = {language: Strings(language).all() for language in LANGUAGES}


def asked_words() -> list[tuple[str, str, bool]]:
    """(file, key, whether the key is whole or only its beginning) for every word that templates and scripts name."""
    found = []
    call = re.compile(r"""\bwords(?:\[[^\]]+\])?\(\s*['"]([^'"]+)['"]\s*([~,)])""")
    for path in TEMPLATES:
        found += [(path.name, key, rest != "~") for key, rest in call.findall(path.read_text("utf-8"))]
    for path in SCRIPTS:
        source = path.read_text("utf-8")
        found += [(path.name, key, True) for key in re.findall(r"\bwords\.([a-zA-Z]\w*)", source)]
        found += [(path.name, key, True) for key in re.findall(r"""\bwords\[["']([^"']+)["']\]""", source)]
        found += [(path.name, key, False) for key in re.findall(r"\bwords\[`([^`$]*)\$\{", source)]
    return sorted(set(found))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_that_is_asked_for_is_there(language):
    asked = asked_words()
    assert len(asked) > 50
    missing = [(file, key) for file, key, whole in asked
               if not (key in WORDS[language] if whole else any(word.startswith(key) for word in WORDS[language]))]
    assert missing == []


def test_words_have_the_same_blanks_in_both_languages():
    assert list(WORDS["en"]) == list(WORDS["zh"])
    for key, text in WORDS["en"].items():
        assert text.strip(), key
        assert set(re.findall(r"\{(\w*)\}", text)) == set(re.findall(r"\{(\w*)\}", WORDS["zh"][key])), key
        assert not CJK.search(text), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_axis_has_a_word(language):
    assert {f"axis.{axis}" for axis in AXES} <= set(WORDS[language])


# The pages as HTML -----------------------------------------------------------------------------------

VOID = {"meta", "link", "br", "hr", "img", "input", "area", "base", "col", "embed", "source", "track", "wbr"}
SVG_LEAVES = {"path", "rect", "circle", "line", "ellipse", "polygon", "polyline", "use", "stop"}


@dataclass
class Checker(html.parser.HTMLParser):
    """Notes what is wrong with a page, and what it says and links to."""

    problems: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # ids that other elements refer to
    links: list[str] = field(default_factory=list)
    metas: dict[str, str] = field(default_factory=dict)
    texts: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    language: str = ""

    def __post_init__(self):
        super().__init__()
        self.open: list[str] = []  # "tag" or "tag:language"

    def handle_starttag(self, tag, attributes):
        self.start(tag, attributes)
        if tag not in VOID:
            language = dict(attributes).get("lang", "")
            self.open.append(f"{tag}:{language}" if language else tag)

    def handle_startendtag(self, tag, attributes):
        self.start(tag, attributes)
        if tag not in VOID | SVG_LEAVES and not tag.startswith("m"):
            self.problems.append(f"<{tag}/> closes itself")

    def start(self, tag, attributes):
        self.tags.append(tag)
        given = dict(attributes)
        if len(given) < len(attributes):
            self.problems.append(f"<{tag}> has an attribute twice")
        self.problems += [f"<{tag} {name}=…>" for name in given if name == "style" or name.startswith("on")]
        self.ids += [given["id"]] if "id" in given else []
        if "hidden" not in given:
            self.names += [name for key in ("for", "aria-labelledby", "aria-describedby", "aria-controls")
                           for name in (given.get(key) or "").split()]
        self.links += [given[key] for key in ("href", "src") if given.get(key)]
        if tag == "html":
            self.language = given.get("lang", "")
        if tag == "meta":
            self.metas[(given.get("name") or given.get("http-equiv") or "charset").lower()] = given.get("content", "")

    def handle_endtag(self, tag):
        if not self.open or self.open[-1].split(":")[0] != tag:
            self.problems.append(f"</{tag}> inside {self.open[-3:]}, line {self.getpos()[0]}")
        else:
            self.open.pop()

    def handle_data(self, text):
        self.texts.append((text, tuple(self.open)))


def pages_of(site: Path) -> dict[str, Checker]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        checker = Checker()
        checker.feed(path.read_text("utf-8"))
        checker.close()
        found[str(path.relative_to(site))] = checker
    return found


@pytest.fixture(scope="module")
def checked(site) -> dict[str, Checker]:
    return pages_of(site)


def test_all_pages_are_there(checked):
    expected = {f"{language}/{page}.html" for language in LANGUAGES for page in ("index", *ROUTES)} | {"index.html"}
    assert expected <= set(checked)
    for language in LANGUAGES:
        assert ({name.removeprefix(f"{language}/") for name in checked if name.startswith(f"{language}/")}
                == {name.removeprefix("en/") for name in checked if name.startswith("en/")})


def test_pages_are_well_formed(checked):
    for name, page in checked.items():
        assert page.problems == [], name
        assert page.open == [], name
        assert len(page.ids) == len(set(page.ids)), name
        assert set(page.names) <= set(page.ids), name
        assert page.language == ("zh-CN" if name.startswith("zh/") else "en"), name
        title = "".join(text for text, around in page.texts if around[-1:] == ("title",))
        assert title.strip(), name
        assert {"viewport", "description", "charset"} <= set(page.metas), name
        assert page.tags.count("h1") == page.tags.count("main") == 1, name


def test_pages_have_a_strict_policy(checked):
    for name, page in checked.items():
        policy = dict(part.strip().split(" ", 1) for part in page.metas["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'", name
        assert "unsafe" not in str(policy), name
        assert not re.search(r"https?:|\*|data:", policy.get("script-src", "") + policy["style-src"]), name
        assert policy["base-uri"] == policy["form-action"] == "'none'", name


def test_nothing_comes_from_elsewhere(site, checked):
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".css", ".js") and path.parent.name != "data":
            found = set(re.findall(r"https?://[^\s\"'<>)\\]*", unquote(path.read_text("utf-8"))))
            assert found <= namespaces, path
            assert "@import" not in path.read_text("utf-8"), path
    for name, page in checked.items():
        for link in page.links:
            assert not link.startswith("//"), (name, link)
            assert urlsplit(link).scheme in ("", "data"), (name, link)


def test_every_link_leads_somewhere(site, checked):
    count = 0
    for name, page in checked.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            target = (site / name).parent / parts.path if parts.path else site / name
            assert target.is_file(), (name, link)
            if parts.fragment:
                place = checked[str(target.resolve().relative_to(site.resolve()))]
                assert unquote(parts.fragment) in place.ids, (name, link)
            count += 1
    assert count > 1000


def test_every_step_of_the_recordings_has_its_place(checked, training_trace, generation_trace):
    for trace in (training_trace, generation_trace):
        steps = [f"step={step.id}" for chapter in trace.chapters for step in chapter.steps]
        for language in LANGUAGES:
            ids = checked[f"{language}/{trace.route}.html"].ids
            assert [name for name in ids if name.startswith("step=")] == steps


def test_english_pages_are_english(checked, training_trace, generation_trace):
    """Chinese stands where the recording says it, and in what is marked as Chinese."""
    recorded = {label for trace in (training_trace, generation_trace) for name in trace.labels
                for label in trace.label_list(name) if CJK.search(label)}
    recorded |= {text for trace in (training_trace, generation_trace)
                 for text in (*trace.make.values(), *trace.summary.values()) if isinstance(text, str)}
    recorded = sorted((text for text in recorded if CJK.search(text)), key=len, reverse=True)
    for name, page in checked.items():
        if name.startswith("zh/"):
            continue
        for text, around in page.texts:
            chinese = any(tag.split(":")[0] == "script" or ":zh" in tag for tag in around)
            if chinese or not CJK.search(text) or (name == "index.html" and around[-1] == "title"):
                continue
            if any(text.strip() in known for known in recorded):
                continue  # what the screen has so far
            for known in recorded:
                text = text.replace(known, "")
            assert not CJK.search(text), (name, around, text)


def test_both_languages_say_the_same_steps(checked):
    for route in ROUTES:
        en, zh = (checked[f"{language}/{route}.html"] for language in LANGUAGES)
        assert en.ids == zh.ids
        assert [tag for tag in en.tags if tag in ("table", "td", "section")] == [
            tag for tag in zh.tags if tag in ("table", "td", "section")]


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
    assert page.locator(".current [role=group] .chip[aria-pressed=true]").first.inner_text() == "4"
