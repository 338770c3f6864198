"""A language is a folder: one more is built like the others, and one that lacks something fails by name."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from site_builder import glossary
from site_builder import language as module
from site_builder import lessons as lessons_module
from site_builder.build import build
from site_builder.language import languages
from site_builder.sections import read_sections
from tracer.errors import UserError
from tracer.resources import LANGUAGES

ROOT = Path(__file__).resolve().parent.parent
NEW, TAG = "xx", "art-x-marked"
PLAIN, MARKED = "aeiouAEIOU", "áéíóúÁÉÍÓÚ"
FIXED = re.compile(r"(\{\{.*?\}\}|\{%.*?%\}|\{[^{}]*\}|`[^`]*`|\$[^$\n]*\$|\]\([^)]*\)|^# .*$)", re.MULTILINE)


def marked(text: str) -> str:
    """The text with every vowel marked, but for keys, figures, code, mathematics and addresses."""
    pieces = FIXED.split(text)
    pieces[::2] = [piece.translate(str.maketrans(PLAIN, MARKED)) for piece in pieces[::2]]
    return "".join(pieces)


def unmarked(text: str) -> str:
    """The text as it was, in the JSON of a page too."""
    text = re.sub(r"\\u00[0-9a-f]{2}", lambda found: chr(int(found[0][2:], 16)), text)
    return text.translate(str.maketrans(MARKED, PLAIN))


def toml(path: Path) -> str:
    """The file with every value marked."""
    def lines(table: dict):
        yield from (f"{json.dumps(k)} = {json.dumps(marked(v))}" for k, v in table.items() if isinstance(v, str))
        for name, inner in table.items():
            if isinstance(inner, dict):
                yield from (f"[{json.dumps(name)}]", *lines(inner))
    return "\n".join(lines(tomllib.loads(path.read_text("utf-8"))))


def marked_lesson(text: str) -> str:
    """A lesson with everything marked but the heads of its fences, and in exercises but the names of fields."""
    lines, exercise = [], False
    for line in text.splitlines():
        exercise = line.startswith("```exercise") or (exercise and not line.startswith("```"))
        name, sign, value = line.partition(" = ")
        if line.startswith("```") or (exercise and name not in ("ask", "why", "say")):
            lines.append(line)
        else:
            lines.append(f"{name}{sign}{marked(value)}" if exercise else marked(line))
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The folder of languages, a copy."""
    for one in (module, lessons_module, glossary):
        monkeypatch.setattr(one, "LANGUAGES", tmp_path / "languages")
    return Path(shutil.copytree(LANGUAGES, tmp_path / "languages"))


def test_a_third_language_is_a_folder(folder, tmp_path):
    """Made of English with every vowel marked, and written from right to left."""
    (folder / NEW).mkdir()
    for path in (folder / "en").glob("*.md"):
        (folder / NEW / path.name).write_text(marked(path.read_text("utf-8")), "utf-8")
    (folder / NEW / "lessons").mkdir()
    for path in (folder / "en/lessons").glob("*.md"):
        (folder / NEW / "lessons" / path.name).write_text(marked_lesson(path.read_text("utf-8")), "utf-8")
    topics = [part for path in folder.glob("*.md") for part in read_sections(path, ("en", "zh"))]
    (folder / NEW / "topics.md").write_text("".join(
        marked(f"# {key}\n## {section.title}\n") + (f"Name: {marked(section.name)}\n" if section.name else "")
        + marked(f"{section.body}\n> {section.misread}\n")
        for code, key, section in topics if code == "en"), "utf-8")
    for name in ("strings.toml", "pictures.toml", "sources.toml", "tools.toml", "glossary.toml"):
        (folder / NEW / name).write_text(toml(folder / "en" / name), "utf-8")
    (folder / NEW / "language.toml").write_text(
        f'name = "Marked"\ntag = "{TAG}"\ndirection = "rtl"\ngap = " "\nplural = "s"\nkind_sources = true\n')
    (folder / NEW / "style.css").write_text(f':lang({TAG}) {{ font-family: "Marked Sans"; }}\n')

    site = build(ROOT / "traces", tmp_path / "site").parent

    english = {path.name: path.read_text("utf-8") for path in (site / "en").iterdir()}
    new = {path.name: path.read_text("utf-8") for path in (site / NEW).iterdir()}
    assert english.keys() == new.keys() >= {"index.html", "training.html", "generation.html", "experiments.html"}
    words = [word for word in languages()["en"].strings.values() if re.search("[a-z] [a-z]", word) and "{" not in word]
    for name, page in new.items():
        assert f'<html lang="{TAG}" dir="rtl">' in page
        for code, own in (("en", english), ("zh", {name: (site / "zh" / name).read_text("utf-8")}), (NEW, new)):
            links = re.findall(r'data-language="(\w+)" lang="([\w-]+)" dir="(\w+)"( aria-current)?', own[name])
            assert [link[:3] for link in links] == [("en", "en", "ltr"), (NEW, TAG, "rtl"), ("zh", "zh-CN", "ltr")]
            assert [link[0] for link in links if link[3]] == [code]
        assert [word for word in words if f">{word}<" in page] == []  # nothing is left in English
        assert sum(page.count(sign) for sign in MARKED) > 50
        # But for its name, everything is where English has it.
        page, english[name] = (re.sub(r'<a class="term"[^>]*>(.*?)</a>', r"\1", one) for one in (page, english[name]))
        strip = re.compile(r'<html [^>]*>|(?<=data/search-)\w+|<a href="../\w+/[^>]*>\w+</a>|'
                           r'(?<=src="…)/\w+/|(?<=src=&#34;…)/\w+/')
        assert unmarked(strip.sub("", page)) == unmarked(strip.sub("", english[name])), name
    door = (site / "index.html").read_text("utf-8")
    assert re.findall(r'href="(\w+)/index.html"', door) == ["en", NEW, "zh"]
    assert f'<li lang="{TAG}" dir="rtl">' in door
    assert "Marked Sans" in (site / "two-routes.css").read_text("utf-8")


@pytest.mark.parametrize(("file", "old", "new", "told"), [
    ("zh/head.md", r"(?s)# tied_head\n.*", "", "zh lacks the section tied_head"),
    ("zh/strings.toml", r'\nskip = "[^"]*"', "", "zh lacks the string skip"),
    ("zh/strings.toml", r"共 \{total\} 步", "共几步", r"zh lacks \{total\} in the string step_of"),
    ("en/strings.toml", r'\nskip = "[^"]*"', "", "en lacks the string skip"),
    ("zh/loss.md", r"\{\{ num\(ln\(V\), 5\) \}\}", "很多", r"zh lacks \{\{ ln\(V\) \}\} in the section"),
    ("zh/sources.toml", r'\nadd = .*', "", "zh lacks the source of add"),
    ("zh/language.toml", 'tag = .*', "", "lacks tag"),
    ("zh/language.toml", 'direction = .*', "direction = 1", "direction is not known there"),
    ("zh/language.toml", r'\A', "colour = 'red'\n", "colour is not known there"),
    ("zh/language.toml", 'name', "name =", "could not be read"),
    ("zh/head.md", r"\A", "words under no heading\n", "begins with text under no heading"),
    ("zh/head.md", r"\A# (.*)\n## (.*)\n", r"# \1\n", "begins with text under no heading"),
    ("zh/head.md", r"\A# (.*)\n## (.*)\n", r"# \1\n## \2\n## \2\n", "has no title, or several"),
    ("en/head.md", r"\A(# .*\n## .*\n)", r"\1\n\1", "stands twice in English"),
])
def test_what_a_language_lacks_is_named(folder, tmp_path, file, old, new, told):
    text = (folder / file).read_text("utf-8")
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    (folder / file).write_text(changed, "utf-8")
    with pytest.raises(UserError, match=told) as error:
        build(ROOT / "traces", tmp_path / "site")
    assert len(str(error.value).splitlines()) == 1
    assert not (tmp_path / "site").exists()


def test_a_folder_of_no_language_is_named(folder):
    (folder / "Deutsch").mkdir()
    with pytest.raises(UserError, match="called by its code"):
        languages()


# Topics ----------------------------------------------------------------------------------------------

TOPIC = ("# linear (new_role)\n## en: A new kind\nWhat it does.\n> No magic.\n"
         "## zh: 新的一种\n它做什么。\n> 没有魔法。\n")


def test_a_topic_says_something_new_in_all_languages(folder):
    (folder / "new.md").write_text(TOPIC, "utf-8")
    said = {code: language.prose["linear (new_role)"] for code, language in languages().items()}
    assert (said["en"].title, said["en"].body, said["en"].misread) == ("A new kind", "What it does.", "No magic.")
    assert (said["zh"].title, said["zh"].body, said["zh"].misread) == ("新的一种", "它做什么。", "没有魔法。")


@pytest.mark.parametrize(("topic", "told"), [
    (TOPIC.partition("## zh")[0], "zh lacks the section linear .new_role"),
    (TOPIC.replace("## zh:", "## fr:"), "begins with one of en:, zh:"),
    (TOPIC.replace("## zh: 新的一种", "## 新的一种"), "begins with one of en:, zh:"),
    (TOPIC + TOPIC, "linear .new_role. stands twice in English"),
    ("# chapter: text\n## en: Text\nText.\n", "chapter: text stands twice in English"),
])
def test_a_topic_that_is_not_one_is_named(folder, topic, told):
    (folder / "new.md").write_text(topic, "utf-8")
    with pytest.raises(UserError, match=told):
        languages()
