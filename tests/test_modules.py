"""What the pages get of the scripts: the code as it is written, without what is said to people and the type checker."""

import gzip
import re

import pytest

from site_builder.modules import SOURCES, modules, modules_script

MODULES = sorted(SOURCES.rglob("*.js"))
BEFORE_REGEX = re.compile(r"(?:^|[(,=:\[!&|?{};]|=>|\breturn)\s*$")


def code_of(text: str) -> str:
    """A module's code, read sign by sign: without comments and without blanks outside of texts."""
    found, at, inside = [], 0, []  # inside: of which `${` we are within, how many braces are open in each
    while at < len(text):
        sign = text[at]
        if text.startswith("//", at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        elif text.startswith("/*", at):
            at = text.index("*/", at) + 2
        elif sign == "`" or (sign == "}" and inside and not inside[-1]):
            if sign == "}":
                inside.pop()
            end = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(`|\$\{)", re.DOTALL).match(text, at + 1)
            if end[1] == "${":
                inside.append(0)
            found.append(text[at:end.end()])
            at = end.end()
        elif sign in "\"'":
            end = re.compile(rf"(?:[^{sign}\\]|\\.)*{sign}").match(text, at + 1).end()
            found.append(text[at:end])
            at = end
        elif sign == "/" and BEFORE_REGEX.search("".join(found[-12:])):
            end = re.compile(r"(?:[^/\\\[]|\\.|\[(?:[^\]\\]|\\.)*\])*/").match(text, at + 1).end()
            found.append(text[at:end])
            at = end
        else:
            if inside and sign in "{}":
                inside[-1] += 1 if sign == "{" else -1
            if not sign.isspace():
                found.append(sign)
            elif found and found[-1][-1:].isalnum() and text[at:].lstrip()[:1].isalnum():
                found.append(" ")
            at += 1
    return "".join(found)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_nothing_but_comments_and_blanks_is_left_out(path):
    text, bare = path.read_text("utf-8"), modules(lessons=True)[path.relative_to(SOURCES).with_suffix("").as_posix()]
    assert code_of(bare) == code_of(text)
    assert "@param" not in bare and "@type" not in bare and len(bare) < len(text)


def test_the_reader_of_this_test_knows_texts_from_comments():
    text = 'const a = "http://x"; // said\nconst b = "1 // 2";\n/** @type {X} */ (c).d = /[/]*/; /* e */\n'
    assert code_of(text) == 'const a="http://x";const b="1 // 2";(c).d=/[/]*/;'
    assert code_of("a\nb") == "a b"


def test_the_scripts_are_a_quarter_smaller():
    whole = "".join(path.read_text("utf-8") for path in MODULES).encode()
    assert len(gzip.compress(modules_script().encode())) < 0.75 * len(gzip.compress(whole))
