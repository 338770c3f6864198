"""The prose has a section for every step of the recordings, in both languages, and no figure typed in."""

import re
from pathlib import Path

import pytest

from site_builder.language import figures, languages
from site_builder.prose import find_section, kind_of
from site_builder.sections import Section
from tracer.format.load import load_all
from tracer.ops.registry import kinds_for

LONGEST_TITLE = {"en": 70, "zh": 34}
CJK = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")
# A decimal number, or a whole one of two or more digits; the 2 of GPT-2 and the 8 of UTF-8 may stand.
FIGURE = re.compile(r"(?<!\w)\d*\.\d|(?<!\w)\d[\d,]*\d")
COUNTED = re.compile(  # what another recording has another number of
    r"(?i)\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen|both|\d+) "
    r"(?:blocks?|heads?|layers?|tokens?|ids?|positions?|rounds?|candidates?|updates?)\b"
    r"|(?<!第)[两二三四五六七八九十\d]\s*(?:个|轮|次)?\s*(?:注意力头|头|层|Block|Token|位置|候选|更新|轮)")

PROSE = {code: language.prose for code, language in languages().items()}
TRACES = load_all(Path(__file__).parent.parent / "traces").values()
SECTIONS = [(key, language, section) for language, prose in PROSE.items() for key, section in prose.items()]
EACH = pytest.mark.parametrize(("key", "language", "section"), SECTIONS, ids=[f"{k} {lang}" for k, lang, _ in SECTIONS])


def needed(prose: dict) -> dict[str, Section | None]:
    """What needs prose → the section that the site shows there."""
    found = {}
    for trace in TRACES:
        for chapter in trace.chapters:
            key = "chapter:" + re.sub(r"\.?\d+$", "", chapter.id)
            found[f"{trace.route} {key}"] = prose.get(key)
            for step in chapter.steps:
                axes = len(trace.arrays[step.operations[0]].shape) if step.operations else 0
                kind = kind_of(trace, step)
                found[f"{trace.route} {step.id}"] = find_section(prose, step.id, trace.route, kind, axes)
    return found


NEEDED = {language: needed(prose) for language, prose in PROSE.items()}


def plain(text: str) -> str:
    """The words as typed, without Jinja, code and mathematics."""
    return re.sub(r"`[^`]*`|\$[^$]*\$", " ⟨⟩ ", without_jinja(text))


def without_jinja(text: str) -> str:
    return re.sub(r"\{\{.*?\}\}|\{%.*?%\}", " ⟨⟩ ", text, flags=re.DOTALL)


def parts(section) -> list[str]:
    return [text for text in (section.title, section.body, section.misread) if text]


@pytest.mark.parametrize("language", PROSE)
def test_every_step_has_prose(language):
    without = [what for what, section in NEEDED[language].items() if not (section and section.title and section.body)]
    assert without == []


def test_every_section_is_shown_somewhere():
    shown = {id(section) for section in NEEDED["en"].values()}
    left_over = [key for key, section in PROSE["en"].items() if id(section) not in shown]
    # Without dropout or without a merge a recording has fewer steps; the home page and the experiments have no step;
    # of the kinds that a setting names, a recording has one at each place.
    others = "|".join(kind for place in ("activation", "norm") for kind in kinds_for(place))
    assert not [key for key in left_over
                if not re.search(rf"dropout|merges|^home|^experiment|\(({others})\)$", key)]


@pytest.mark.parametrize("key", PROSE["en"])
def test_both_languages_say_the_same(key):
    en, zh = PROSE["en"][key], PROSE["zh"][key]
    assert bool(en.misread) == bool(zh.misread)
    assert en.body.count("\n\n") == zh.body.count("\n\n")
    assert figures(en) == figures(zh)


@EACH
def test_no_figure_is_typed_in(key, language, section):
    for text in parts(section):
        assert not FIGURE.findall(without_jinja(text))
        assert not COUNTED.findall(plain(text))


@EACH
def test_language(key, language, section):
    for text in parts(section):
        assert bool(CJK.search(plain(text))) == (language == "zh")


@EACH
def test_titles_are_short(key, language, section):
    said = re.sub(r"\{\{.*?\}\}", "NN", section.title)
    always = re.sub(r"\{% if.*?endif %\}", "", said)
    choices = [part for part in re.split(r"\{%.*?%\}", said) if part not in always]
    assert len(always) + max(map(len, choices), default=0) <= LONGEST_TITLE[language]
    assert "\n" not in section.title


@EACH
def test_code_and_mathematics_are_closed(key, language, section):
    for text in parts(section):
        assert text.count("$") % 2 == 0
        assert text.count("`") % 2 == 0


def test_figures_and_counts_are_found():
    for text in ("a loss of 10.8", "id 220", "50,257 rows", ".5", "two heads", "Both blocks", "两个头", "3 个 Block"):
        assert FIGURE.search(text) or COUNTED.search(text), text
    for text in ("GPT-2 in UTF-8", "float32", "two neighbouring tokens", "第二个、第三个 Token", "2L", "1/T."):
        assert not FIGURE.search(text) and not COUNTED.search(text), text
