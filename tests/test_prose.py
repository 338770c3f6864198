"""The prose has a section for every step of the recordings, in both languages, and no figure typed in."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from passes import tiny_pass

from site_builder.keys import needed, wrong
from site_builder.language import Language, figures, languages
from site_builder.prose import find_section
from site_builder.sections import Section
from tracer.errors import UserError
from tracer.format.load import load_all
from tracer.format.trace import Step
from tracer.ops import KINDS

LONGEST_TITLE = {"en": 70, "zh": 34}
CJK = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")
# A decimal number, or a whole one of two or more digits; the 2 of GPT-2 and the 8 of UTF-8 may stand.
FIGURE = re.compile(r"(?<!\w)\d*\.\d|(?<!\w)\d[\d,]*\d")
COUNTED = re.compile(  # what another recording has another number of
    r"(?i)\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen|both|\d+) "
    r"(?:blocks?|heads?|layers?|tokens?|ids?|positions?|rounds?|candidates?|updates?)\b"
    r"|(?<!第)[两二三四五六七八九十\d]\s*(?:个|轮|次)?\s*(?:注意力头|头|层|Block|Token|位置|候选|更新|轮)")

PROSE = {code: language.prose for code, language in languages().items()}
TRACES = [*load_all(Path(__file__).parent.parent / "traces").values(), tiny_pass()]
SECTIONS = [(key, language, section) for language, prose in PROSE.items() for key, section in prose.items()]
EACH = pytest.mark.parametrize(("key", "language", "section"), SECTIONS, ids=[f"{k} {lang}" for k, lang, _ in SECTIONS])


def shown(language: Language) -> dict[str, Section]:
    """What needs prose → the section that the site shows there."""
    found = {}
    for trace in TRACES:
        for chapter in trace.chapters:
            found[f"{trace.route}, chapter {chapter.id}"] = language.prose[f"chapter: {chapter.kind}"]
            found |= {f"{trace.route} {step.id}": find_section(language, step, trace.route) for step in chapter.steps}
    return found


SHOWN = {code: shown(language) for code, language in languages().items()}


def plain(text: str) -> str:
    """The words as typed, without Jinja, code and mathematics."""
    return re.sub(r"`[^`]*`|\$[^$]*\$", " ⟨⟩ ", without_jinja(text))


def without_jinja(text: str) -> str:
    return re.sub(r"\{\{.*?\}\}|\{%.*?%\}", " ⟨⟩ ", text, flags=re.DOTALL)


def parts(section) -> list[str]:
    return [text for text in (section.title, section.body, section.misread) if text]


@pytest.mark.parametrize("language", PROSE)
def test_every_step_has_prose(language):
    assert [what for what, section in SHOWN[language].items() if not (section.title and section.body)] == []


def test_every_section_is_shown_somewhere():
    seen = {id(section) for section in SHOWN["en"].values()}
    left_over = [key for key, section in PROSE["en"].items() if id(section) not in seen]
    # Without dropout or without a merge a recording has fewer steps; pages of no recording have no step; what is said
    # of a kind in general is for recordings of other models.
    assert not [key for key in left_over if not re.search(
                    "dropout|bpe_merge|rotary|mlp_gate|^home:|^experiments:|^tour:", key)
                and key not in needed()]


@pytest.mark.parametrize("language", PROSE)
def test_every_kind_has_words(language):
    """Forward, and backward where it has a gradient: also in a role that nobody knows."""
    for kind, one in KINDS.items():
        back = any(target.startswith("d_") for target in one.targets)
        for direction in ["forward", "backward"] if back else ["forward"]:
            step = Step("a", kind=kind, role="unheard_of", direction=direction)
            section = find_section(languages()[language], step, "training")
            assert section == PROSE[language][kind + (", backward" if direction == "backward" else "")]


def test_a_step_takes_the_most_particular_section():
    prose = {"add": "any", "add (mlp)": "role", "add, backward": "back", "add, round": "round",
             "add (mlp), round": "role and round", "add, long": "long", "(mlp)": "several"}
    language = replace(languages()["en"], prose=prose)

    def found(kind: str, role: str = "", *, route: str = "training", **place) -> str:
        return find_section(language, Step("a", kind=kind, role=role, **place), route)

    assert found("add") == found("add", "attention") == found("add", direction="forward") == "any"
    assert found("add", "mlp") == found("add", "mlp", pass_="first") == "role"
    assert found("add", "mlp", direction="backward") == "back"  # what is said of the way forward is never said there
    assert found("add", pass_="round") == found("add", "attention", pass_="round") == "round"
    assert found("add", "mlp", pass_="round", route="long") == "role and round"
    assert found("add", route="long") == "long" and found("add", pass_="round", route="long") == "round"
    assert found("", "mlp") == "several"
    for kind, role in (("gelu", ""), ("", "attention"), ("", "")):
        with pytest.raises(UserError, match="says nothing"):
            found(kind, role)


@pytest.mark.parametrize(("key", "told"), [
    ("layer_norn", "is no kind"), ("layer_norm(mlp)", "is not written"), ("add (mlp) backward", "is not written"),
    ("layer_norm, backwards", "backwards is none of"), ("layer_norm, round, backward", "in the order"),
    ("add", ""), ("add (anything)", ""), ("(anything), cached", ""), ("add, backward, first", ""), ("home: lead", "")])
def test_a_key_is_written_in_one_way(key, told):
    assert told in wrong(key) and bool(told) == bool(wrong(key))


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


# Second words for operation (运算), step (步骤), chapter (章) and update (更新); a step is what a learner sees.
OTHER_WORDS = {
    "en": r"(?i)optimi[sz]er(?:'s)? steps?\b|\b(?:training|main|optimi[sz]ation|gradient|sub-?)[ -]?steps?\b"
          r"|\biterations?\b|\boperators?\b|\bops?\b|\bviews?\b|\bstages?\b|\bphases?\b",
    "zh": r"主步骤|子步骤|小步骤|训练步|优化步|迭代|算子|操作(?!数)|章节|视图|阶段|(?<![\w.])step\b",
}


ADDRESS = re.compile(r"\]\([^)]*\)")  # of a link


@pytest.mark.parametrize("language", OTHER_WORDS)
def test_one_thing_has_one_word(language):
    other = re.compile(OTHER_WORDS[language])
    said = {key: ADDRESS.sub("]", plain(" ".join(parts(section)))) for key, section in PROSE[language].items()}
    said |= languages()[language].strings
    assert {key: found[0] for key, text in said.items() if (found := other.search(text))} == {}


def test_second_words_are_found():
    for text in ("the optimizer's step", "after 3 training steps", "one iteration", "each view"):
        assert re.search(OTHER_WORDS["en"], text), text
    for text in ("训练步", "迭代两次", "这个操作", "由 step 改变"):
        assert re.search(OTHER_WORDS["zh"], text), text
    assert not re.search(OTHER_WORDS["en"], "the next step of this update")
    assert not re.search(OTHER_WORDS["zh"], "操作数")


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
