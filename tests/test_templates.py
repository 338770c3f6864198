"""Templates place what Python has prepared: loops, conditions and values, no code.  Nothing of the pages is dead."""

import re
from pathlib import Path

import jinja2
import pytest

from site_builder.build import STYLES
from site_builder.language import languages
from site_builder.modules import ENTRY, LESSON_ENTRY, drawings_module, toolbox_module

ROOT = Path(__file__).parent.parent
TEMPLATES = sorted((ROOT / "templates").glob("*.html"))
SOURCES = ROOT / "static" / "js"
SCRIPTS = [*sorted(SOURCES.rglob("*.js")), ROOT / "static" / "boot.js"]
MODULE = r'"([\w/-]+)"'
STYLE_SHEETS = [ROOT / "static" / "css" / f"{name}.css" for name in STYLES]
BUILDER = sorted((ROOT / "site_builder").glob("*.py"))
SIGNS = {"+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">="}
FILTERS = {"safe", "join", "tojson"}


def text_of(paths) -> str:
    return "\n".join(path.read_text("utf-8") for path in paths)


def name_of(path: Path) -> str:
    """What a module is imported by."""
    return path.relative_to(SOURCES).with_suffix("").as_posix() if SOURCES in path.parents else path.stem


def code_in(text: str) -> list[str]:
    """What a template computes: arithmetic, comparisons, names that are set, filters that change a value."""
    found, block, before = [], "", ""
    for line, kind, value in jinja2.Environment().lex(text):
        if kind in ("whitespace", "data"):
            continue
        if before == "{%" or (before in ("{%-", "{%+")):
            block = value
        if (kind == "operator" and value in SIGNS) or (kind == "name" and (
                value == "set" or (value == "in" and block != "for") or (before == "|" and value not in FILTERS))):
            found.append(f"{line}: {value}")
        before = value.strip()
    return found


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_holds_no_code(path):
    assert code_in(path.read_text("utf-8")) == []


@pytest.mark.parametrize("text", ["{% set a = 1 %}", "{{ a + 1 }}", "{{ a ~ 'b' }}", "{% if a == 1 %}{% endif %}",
                                  "{% if a in b %}{% endif %}", "{{ a | upper }}", "{% if a -%}{{ b - 1 }}{% endif %}"])
def test_code_is_found(text):
    assert len(code_in(text)) == 1


def test_the_only_scripts_in_a_template_are_the_start_and_its_data():
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text_of(TEMPLATES), re.DOTALL)
    assert {text for attributes, text in scripts if "src=" not in attributes} == {
        "{{ script_data | tojson }}", "{{ controls.script_data | tojson }}", "{{ entry | safe }}"}
    assert ENTRY == 'import "main";'
    assert not re.search(r"<[^>]* on\w+=|javascript:", text_of(TEMPLATES))


def test_every_export_is_imported():
    exported = {(name_of(path), name) for path in SCRIPTS for name in re.findall(
        r"^export (?:async )?(?:function\*? |class |const )(\w+)", path.read_text("utf-8"), re.MULTILINE)}
    texts = [*(path.read_text("utf-8") for path in SCRIPTS), drawings_module(), toolbox_module()]
    imported = {(module, name.split(" as ")[0].strip()) for text in texts for names, module in re.findall(
        rf"^(?:im|ex)port \{{([^}}]*)\}} from {MODULE};", text, re.MULTILINE) for name in names.split(",")}
    typed = set(re.findall(rf"import\({MODULE}\)\.(\w+)", text_of(SCRIPTS)))
    # What is imported whole is a drawing: it is asked for what the type `Drawing` names.
    whole = {module for text in texts
             for module in re.findall(rf"^import \* as \w+ from {MODULE};", text, re.MULTILINE)}
    drawing = re.search(r"@typedef \{object\} Drawing\n(.*?)\*/", text_of(SCRIPTS), re.DOTALL)
    asked = {(module, name) for module in whole
             for name in re.findall(r"@property \{.*\} \[?(\w+)", drawing[1])}
    assert len(exported) > 60
    asked |= {(module, "mount") for module in whole if module.startswith("tools/")}
    assert len(asked) >= 4 * len(whole) > 0
    assert exported - imported - typed - asked == set()
    # Whatever else a module exports would be seen here.
    assert len(re.findall(r"^export (?!\{ )", text_of(SCRIPTS), re.MULTILINE)) == len(exported)


def test_every_module_is_imported():
    texts = f"{text_of(SCRIPTS)}\n{drawings_module()}\n{toolbox_module()}\n{ENTRY}\n{LESSON_ENTRY}"
    imported = set(re.findall(rf"^(?:im|ex)port (?:.* from )?{MODULE};", texts, re.MULTILINE))
    assert {name_of(path) for path in SCRIPTS} - {"boot"} - imported == set()


def test_every_style_sheet_is_part_of_the_site():
    assert sorted(STYLE_SHEETS) == sorted((ROOT / "static" / "css").glob("*.css"))


def test_every_class_of_the_style_sheet_is_used():
    style = re.sub(r"/\*.*?\*/|\"[^\"]*\"|url\([^)]*\)", "", text_of(STYLE_SHEETS),
                   flags=re.DOTALL)
    selectors = re.sub(r"\{[^{}]*\}", "{}", style)
    classes = set(re.findall(r"\.([a-zA-Z][\w-]*)", selectors))
    texts = [*re.findall(r'class="([^"]*)"', text_of(TEMPLATES)),
             *re.findall(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`", text_of([*SCRIPTS, *BUILDER, *TEMPLATES]))]
    used = {name for text in texts for name in re.findall(r"[\w-]+", text)}
    # Put together from a number, or from a kind of node.
    drawn = {f"c{n}" for n in range(8)} | {f"s{n}" for n in range(15)} | {"input-node", "table-node"} | {
        f"{sign}-{n}" for sign in ("warm", "cool") for n in range(6)}
    assert len(classes) > 100
    assert classes - used - drawn == set()
    assert drawn <= classes
    ids = set(re.findall(r"#([a-z][\w-]*)", selectors))
    assert ids - set(re.findall(r'id="([\w-]+)"', text_of(TEMPLATES))) == set()


def test_every_property_of_the_style_sheet_is_read():
    style = text_of(STYLE_SHEETS)
    defined = set(re.findall(r"(?<![\w-])(--[\w-]+):", style))
    # The colours of a picture are read by their names: the type `Color` lists them.
    colors = re.search(r"@typedef \{([^}]*)\} Color", (SOURCES / "pen.js").read_text("utf-8"))
    read = {f"--picture-{name}" for name in re.findall(r"\w+", colors[1])}
    assert read <= defined
    assert defined - read - set(re.findall(r"var\((--[\w-]+)", style)) == set()
    animations = set(re.findall(r"@keyframes (\w+)", style))
    assert all(len(re.findall(rf"\b{name}\b", style)) > 1 for name in animations)


# Words whose last part a recording or a table names.
FAMILIES = ("axis.", "chapter.", "kind.", "map.", "network_map.part.", "pass.", "role.", "move.", "name.")


def test_every_word_of_the_interface_is_said_somewhere():
    code = text_of([*TEMPLATES, *SCRIPTS, *BUILDER])
    whole = set(re.findall(r"[\"'`]([a-z_]+(?:\.[a-z_]+)*)[\"'`]", code)) | set(re.findall(r"words\.(\w+)", code))
    prefixes = set(re.findall(r"[fF]?[\"'`]([a-z_]+(?:\.[a-z_]+)*[._])\$?\{", code)) | set(FAMILIES)
    suffixes = set(re.findall(r"\}([._][a-z_]+)[\"'`]", code))
    prefixes.discard("picture.")  # which the scene puts before the key that a drawing says
    unsaid = [word for word in (key.removeprefix("picture.") for key in languages()["en"].strings) if word not in whole
              and not any(word.startswith(prefix) for prefix in prefixes)
              and not any(word.endswith(suffix) for suffix in suffixes)]
    assert unsaid == []
