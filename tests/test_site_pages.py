"""The pages as HTML: well formed, linked, said in both languages; any text is text."""

import copy
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from driver import LANGUAGES
from page_checks import CJK, SCRIPTS, TEMPLATES, TRACES, Checker, pages_of

from site_builder import verified
from site_builder.build import ROUTES, build
from site_builder.prose import render, render_title
from site_builder.strings import Strings
from tracer.format.files import save
from tracer.format.load import load
from tracer.format.trace import AXES

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
                assert unquote(parts.fragment.split("&")[0]) in place.ids, (name, link)
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
