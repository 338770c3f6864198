"""Formulas say what the step makes: their left side, the names of tables, cases, sources."""

import html
import re

import pytest
from driver import ALL_ROUTES, LANGUAGES

from site_builder.formula import latex
from site_builder.language import languages
from site_builder.notation import Notation, source
from site_builder.pages import chapters
from site_builder.parts import Parts
from site_builder.strings import Strings
from site_builder.symbols import KIND_SYMBOLS, SYMBOLS, in_latex, symbol_text
from tracer.format.trace import AXES
from tracer.ops import KINDS
from tracer.ops.replay import Replay

GRADIENT = re.compile(r"\\frac\{\\partial L\}\{\\partial (.+)\}$")


@pytest.fixture(scope="module", params=ALL_ROUTES)
def written(request, recordings) -> dict[str, tuple]:
    """Step → (step, its notation, the left side of its last formula) of one route."""
    trace = recordings[request.param]
    notation, replay = Notation(trace), Replay(trace, AXES)
    return {step.id: (step, notation(step), latex(notation(step), replay.equations(step)[-1]).split(" = ")[0])
            for step in trace.operations.values()}


def test_a_gradient_is_called_one_and_nothing_else_is(written):
    for name, (_, _, left) in written.items():
        assert bool(GRADIENT.match(left)) == name.startswith("grad."), (name, left)


# What prose and the field call an array, by the end of its name: worked out from the names, not from the kinds.
CALLED = {
    r"grad\.loss": "L", r"grad\.token_embedding\.weight": "{E}_", r"grad\.token_embedding\.weight@.*": "{E}_",
    r"grad\.position_embedding\.weight": "{P}_", r"grad\..*norm.*\.weight": r"{\gamma}_",
    r"grad\..*norm.*\.bias": r"{\beta}_", r"grad\.(?:.*\.)?head": "{z}_", r"grad\..*split\.value": "{V}_",
    r"(?:.*\.)?positions": r"{\mathrm{pos}}_", r"adamw\..*\.m": "{m}_", r"adamw\..*\.v": "{v}_",
    r"adamw\..*\.m\.used": r"m^{\mathrm{used}}_", r"adamw\..*\.v\.used": r"v^{\mathrm{used}}_",
    r"(?:validation\.)?x": "{x}_", r"(?:validation\.)?y": "{y}_", r"(?:.*\.)?loss": "L",
    r".*\.sampler\.softmax": "{p}_", r"(?!grad).*attention\.softmax": "{A}_", r".*\.sampler\.cumulative": "{F}_",
    r".*\.attention\.key_cache": "{K'}_", r".*\.attention\.value_cache": "{V'}_", r".*\.value\.slid": "{V'}_",
    r"round\d+\.held": r"B^{\mathrm{held}}_", r".*\.is_end": r"\mathrm{end}", r".*\.complete": r"\mathrm{complete}",
}


def test_arrays_are_called_as_the_prose_calls_them(written):
    met = set()
    for name, (_, _, left) in written.items():
        for pattern, wanted in CALLED.items():
            if re.fullmatch(pattern, name):
                met.add(pattern)
                said = GRADIENT.match(left)[1] if name.startswith("grad.") else left
                assert said.startswith(wanted), (name, left)
                break
    assert len(met) >= 8


def test_no_symbol_stands_for_two_arrays_of_a_step(written):
    for name, (step, notation, _) in written.items():
        arrays = {step.id: step.target} | {array: operand for operand, array in step.operands.items()}
        for say in (in_latex, symbol_text):
            symbols = [say(notation, operand) for operand in arrays.values()]
            assert len(set(symbols)) == len(symbols), (name, symbols)


@pytest.mark.parametrize(("table", "symbol"), [("token_embedding", "E"), ("position_embedding", "P")])
def test_a_table_has_the_same_name_in_the_formula_and_in_the_prose(training_trace, table, symbol):
    found = next(step for chapter in chapters(Parts(training_trace), languages()["en"])
                 for step in chapter.steps if step.id == table)
    assert f"<mi>{symbol}</mi>" in found.body
    assert any(f"<mi>{symbol}</mi>" in formula for formula in found.parts[-1].formulas)
    assert not any(f"<mi>{'P' if symbol == 'E' else 'E'}</mi>" in formula for formula in found.parts[-1].formulas)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("route", ALL_ROUTES)
def test_the_last_case_says_otherwise_in_the_language_of_the_page(site, route, language):
    page = (site / language / f"{route}.html").read_text("utf-8")
    cases = re.findall(r"<mtable>(.*?)</mtable>", html.unescape(page))
    assert len(cases) > 5
    for rows in cases:
        *others, last = rows.split("<mtr>")[1:]
        said = f"<mtext>{Strings(language)('otherwise')}</mtext>"
        assert said in last
        assert others and not any(said in row for row in others)
    assert "\ue010" not in page


def test_the_largest_is_an_argmax_and_an_order_says_its_direction(generation_trace):
    notation, replay = Notation(generation_trace), Replay(generation_trace, AXES)
    said = {kind: [latex(notation(step), equation) for step in generation_trace.operations.values()
                   if step.kind == kind for equation in replay.equations(step)] for kind in ("greedy", "top_k")}
    assert all("argmax" in one and "argsort" not in one for one in said["greedy"])
    orders = [one for one in said["top_k"] if "argsort" in one]
    assert orders and all(r"argsort}^{\downarrow}" in one for one in orders)


# Sources ---------------------------------------------------------------------------------------------

def sources(trace, language: str) -> dict[str, str]:
    return {part.part.array: part.source for chapter in chapters(Parts(trace), languages()[language])
            for step in chapter.steps for part in step.parts}


def test_every_kind_has_a_source_in_chinese():
    for kind in KINDS:
        english, chinese = (source(kind, languages()[code]) for code in ("en", "zh"))
        assert english and chinese != english, kind


@pytest.mark.parametrize("language", LANGUAGES)
def test_sources_are_those_of_the_use(training_trace, generation_trace, language):
    found = sources(training_trace, language)
    assert "He et al. 2016" in found["blocks.0.residual_1"] or "He 等 2016" in found["blocks.0.residual_1"]
    for name in ("embedding_sum", "again.embedding_sum", "grad.token_embedding", "grad.position_embedding"):
        assert "2016" not in found[name] and "Gehring" in found[name], name
    assert found["x"] != found["y"]
    rounds = sources(generation_trace, language)
    assert "T−1" in found["x"] and "T−1" not in rounds["round2.ids"]
    english = re.compile(r"\b(?:section|equation|the|of|and)\b")
    for text in (*found.values(), *rounds.values()):
        assert bool(text)
        assert language == "en" or not english.search(text), text


def test_no_formula_is_left_in_plain_text():
    named = [(kind, name) for kind, own in KIND_SYMBOLS.items() for name in own]
    named += [(kind.name, name) for kind in KINDS.values() for name in kind.symbols]
    for notation, name in [*named, *(("add", name) for name in SYMBOLS)]:
        assert not set("\\{}^'") & set(symbol_text(notation, name)), (notation, name)
