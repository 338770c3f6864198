"""The lessons: both languages say and ask the same, every figure is computed, what leads nowhere is refused."""

import ast
import math
import re
import shutil
from pathlib import Path

import jinja2
import numpy as np
import pytest
import torch
from test_prose import CJK, FIGURE, plain

from site_builder import lessons as lessons_module
from site_builder.experiments import read_experiments
from site_builder.language import figures as put_in
from site_builder.language import languages
from site_builder.lesson_figures import Sized, computed, figures, in_bytes
from site_builder.lesson_pages import pages
from site_builder.lessons import Lesson, exercise, lessons
from site_builder.listings import highlighted, listing
from site_builder.sections import Section
from tracer.errors import UserError
from tracer.format.load import load, load_all
from tracer.format.passes import pass_files

ROOT = Path(__file__).resolve().parent.parent
TRACES = load_all(ROOT / "traces")
RECORDED = {route: {"summary": trace.summary, "make": trace.make} for route, trace in TRACES.items()}
PASSES = {path.stem: load(path) for path in pass_files(ROOT / "traces")}
TITLES = {route: {step.id: step.id for step in trace.steps()}
          for route, trace in [*TRACES.items(), *((f"pass-{name}", trace) for name, trace in PASSES.items())]}
EVERY = [(code, lesson) for code, language in languages().items() for lesson in lessons(language)]
DIGITS = re.compile(r"(?<![\w.-])\d+ ?(?=[a-z]|[\u3400-\u9fff])")  # of something; small numbers in words may stand
EACH = pytest.mark.parametrize(("code", "lesson"), EVERY, ids=[f"{lesson.name} {code}" for code, lesson in EVERY])


def known(code: str = "en") -> dict:
    opened = {"passes": {name: {"summary": trace.summary, "make": trace.make} for name, trace in PASSES.items()}}
    return figures(languages()[code], RECORDED, read_experiments(ROOT / "traces")) | opened


# What they say ---------------------------------------------------------------------------------------------

def texts(lesson: Lesson) -> list[str]:
    """All but exercises, which give numbers of their own, and code."""
    return [lesson.title, lesson.lead, *(piece.body for piece in lesson.pieces if piece.kind != "exercise")]


@EACH
def test_no_figure_is_typed_in(code, lesson):
    for text in texts(lesson):
        assert not FIGURE.findall(plain(text)), text
        assert not DIGITS.findall(plain(text)), text


@EACH
def test_a_lesson_is_in_its_language(code, lesson):
    for text in texts(lesson):
        assert bool(CJK.search(plain(text))) == (code == "zh") or not plain(text).strip(), text


def test_both_languages_put_in_the_same_figures():
    for one, other in zip(lessons(languages()["en"]), lessons(languages()["zh"]), strict=True):
        assert one.name == other.name
        here, there = (put_in(Section("", " ".join(texts(lesson)), "")) for lesson in (one, other))
        assert here == there, one.name


@EACH
def test_something_to_lay_a_hand_on_in_every_screenful(code, lesson):
    """No more than some 220 words, or 420 signs, of prose without a picture, a tool, code or a question."""
    for piece in lesson.pieces:
        if piece.kind == "prose":
            words = len(re.findall(r"[A-Za-z']+", piece.body)) if code == "en" else len(CJK.findall(piece.body)) / 2
            assert words < 240, (lesson.name, piece.line, words)
    assert sum(piece.kind == "exercise" for piece in lesson.pieces) >= 3
    assert sum(piece.kind in ("step", "experiment", "tool", "code") for piece in lesson.pieces) >= 3


# Exercises -------------------------------------------------------------------------------------------------

@EACH
def test_wrong_answers_are_answered_with_why_and_none_is_the_right_one(code, lesson):
    for piece in lesson.pieces:
        if piece.kind != "exercise":
            continue
        asked = exercise(lesson, piece)
        assert asked.ask
        if asked.choices:
            assert len(asked.choices) >= 2 and all(choice.why and choice.say for choice in asked.choices)
            continue
        right = computed(asked.answer, known(code), "here")
        assert asked.why
        assert len({computed(answer, known(code), "here") for answer, _ in asked.slips}) == len(asked.slips)
        for answer, why in asked.slips:
            assert why
            near = 0 if right == int(right) else abs(right) * 10.0 ** (1 - asked.digits)  # a whole number is exact
            assert abs(computed(answer, known(code), "here") - right) > near, answer


def test_exercises_are_the_same_in_both_languages():
    for one, other in zip(lessons(languages()["en"]), lessons(languages()["zh"]), strict=True):
        for piece, same in zip(one.pieces, other.pieces, strict=True):
            if piece.kind == "exercise":
                here, there = exercise(one, piece), exercise(other, same)
                assert (here.answer, here.digits, [answer for answer, _ in here.slips]) == (
                    there.answer, there.digits, [answer for answer, _ in there.slips])
                assert [choice.right for choice in here.choices] == [choice.right for choice in there.choices]


# Figures, as the article prints them -----------------------------------------------------------------------

def test_the_figures_of_the_article():
    f = known()
    f["attention"] = attention = f["attention"]()
    assert np.round(attention["weights"][2], 2).tolist() == [0.27, 0.27, 0.45]
    assert np.round(attention["out"][2], 2).tolist() == [0.73, 0.73, 0.27, 0.27]
    assert np.round(f["softmax"]([2, 6, 4], 4), 2).tolist() == [0.09, 0.67, 0.24]
    assert np.round(f["softmax"]([2, 6, 4]), 3).tolist() == [0.016, 0.867, 0.117]
    gpt2 = f["gpt2"]
    assert gpt2.parameters == 124_439_808
    assert f"{gpt2.block / 1e6:.2f}" == "7.09"
    assert f"{gpt2.table() / 1e6:.1f} {gpt2.table('position table') / 1e6:.2f}" == "38.6 0.79"
    assert f"{gpt2.mlp / gpt2.block:.3f}" == "0.666"
    assert f"{(gpt2.table() + gpt2.table('position table')) / gpt2.parameters:.3f}" == "0.316"
    assert f"{gpt2.multiplied / 1e6:.2f}" == "123.65"
    assert [round(math.log(size), 2) for size in (16, 65)] == [2.77, 4.17]
    assert round(math.log(gpt2.vocabulary), 1) == 10.8
    llama = f["llama_3_8b"]
    assert in_bytes(llama.cache(1, "bfloat16")) == "128 KiB"
    assert in_bytes(llama.logits(4, 2048, "bfloat16")) == "2.1 GB"
    assert (f["positions"](500, 500, False), f["positions"](500, 500, True)) == (375_250, 1_000)
    recipe = f["recipe"]
    assert recipe["accumulation"] * recipe["batch"] * recipe["length"] == 491_520
    assert recipe["accumulation"] // recipe["devices"] == 5
    assert gpt2.flops() == 6 * gpt2.multiplied + 12 * 12 * 12 * 64 * 1024


def test_a_count_of_the_article_that_is_off_by_one_width():
    """It adds 256 × 768 + 768 + 256 × 256 + 256 to 263,424; that is 263,168, as PyTorch's own layers have it."""
    f, d = Sized(vocabulary=1000, context=512, width=256, heads=4, blocks=8), 256
    layers = [torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d), torch.nn.Linear(d, 4 * d), torch.nn.Linear(4 * d, d),
              torch.nn.LayerNorm(d), torch.nn.LayerNorm(d)]
    block = sum(parameter.numel() for layer in layers for parameter in layer.parameters())
    assert (f.block, block) == (789_760, 789_760)
    assert f.parameters == 8 * block + 1000 * d + 512 * d + 2 * d


@pytest.mark.parametrize(("number", "said"), [
    (131072, "128 KiB"), (3 * 2**20, "3 MiB"), (2_101_346_304, "2.1 GB"), (12, "12 B")])
def test_bytes_are_said_in_the_unit_that_suits(number, said):
    assert in_bytes(number) == said


@pytest.mark.parametrize(("kind", "operands", "wanted"), [
    ("softmax", ([[1.0, 2.0, 4.0]],), torch.softmax(torch.tensor([1.0, 2.0, 4.0]).double(), 0)),
    ("softmax", ([[0.0, -3.0]],), torch.softmax(torch.tensor([0.0, -3.0]).double(), 0))])
def test_shares_are_those_of_torch(kind, operands, wanted):
    np.testing.assert_allclose(known()["softmax"](operands[0][0]), wanted.numpy(), rtol=1e-12)


def test_attention_is_that_of_torch():
    tokens = np.random.default_rng(3).normal(size=(5, 4))
    x = torch.tensor(tokens)[None]
    for masked in (True, False):
        wanted = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=masked)[0]
        np.testing.assert_allclose(known()["attention"](tokens, masked)["out"], wanted.numpy(), rtol=1e-9)


# Code ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("file", "name"), [("tracer/model/gpt.py", "Block.forward"), ("tracer/model/gpt.py", "GPT"),
                                            ("tracer/ops/swiglu.py", "SWIGLU"), ("tracer/ops/swiglu.py", "")])
def test_code_is_what_stands_in_the_file(file, name):
    source = listing(file, name)
    assert source.strip() and all(line.strip() in (ROOT / file).read_text("utf-8") for line in source.splitlines())
    ast.parse(source)
    assert jinja2.filters.do_striptags(highlighted(source)).split() == source.split()
    assert re.sub("<[^>]*>", "", highlighted(source)) == re.sub("'", "&#x27;", re.sub('"', "&quot;", re.sub(
        ">", "&gt;", re.sub("<", "&lt;", re.sub("&", "&amp;", source)))))


@pytest.mark.parametrize(("file", "name"), [("tracer/model/gpt.py", "Block.backward"), ("tracer/none.py", ""),
                                            ("../shared/README.md", "")])
def test_code_that_is_not_there_is_refused(file, name):
    with pytest.raises(UserError):
        listing(file, name)


# What is wrong is told by file and line --------------------------------------------------------------------

GOOD = """# A title
A lead.

## A part
Words.

```step training embedding_sum
Look.
```

```exercise
ask = "How many?"
answer = "1 + 1"
why = "Count."
```
"""
BROKEN = {
    "no title": (GOOD.replace("# A title", "A title"), 1), "no lead": (GOOD.replace("A lead.\n", ""), 2),
    "no part": (GOOD.replace("## A part", "A part"), 2), "an open fence": (GOOD.rstrip("`\n"), 11),
    "an unknown fence": (GOOD.replace("```step", "```picture"), 7),
    "no page": (GOOD.replace("step training", "step nowhere"), 7),
    "too few words": (GOOD.replace(" embedding_sum", ""), 7),
    "an exercise that is no TOML": (GOOD.replace('why = "Count."', "why"), 11),
    "an exercise without an answer": (GOOD.replace('answer = "1 + 1"\n', ""), 11),
    "an answer that is no number": (GOOD.replace("1 + 1", "'a'"), 11),
    "an answer of nothing": (GOOD.replace("1 + 1", "nothing.there"), 11),
    "an unknown field": (GOOD.replace("why =", "because ="), 11),
    "no right choice": (GOOD.replace('answer = "1 + 1"', 'choices = [{say = "a", right = false, why = "b"}]'), 11),
    "a figure that is none": (GOOD.replace("Words.", "{{ num(nothing.there) }}"), 2),
    "a tool that is none": (GOOD.replace("```step training embedding_sum", "```tool nothing"), 7),
    "a start that is no JSON": (GOOD.replace("```step training embedding_sum", "```tool softmax {1}"), 7),
    "code that is not there": (GOOD.replace("```step training embedding_sum", "```code tracer/no.py"), 7)}


def read(folder: Path, monkeypatch, en: str, zh: str = "") -> None:
    for code, text in (("en", en), ("zh", zh or en)):
        (folder / code / "lessons").mkdir(parents=True, exist_ok=True)
        (folder / code / "lessons" / "one.md").write_text(text, encoding="utf-8")
    (folder / "lessons.toml").write_text('lessons = ["one"]', encoding="utf-8")
    monkeypatch.setattr(lessons_module, "LANGUAGES", folder)
    monkeypatch.setattr(lessons_module, "ORDER", folder / "lessons.toml")
    shown = pages(languages()["en"], lessons(languages()["en"]), known(), TITLES)
    assert all(piece.address for page in shown for piece in page.pieces if piece.kind == "step")


def test_a_lesson_that_is_right(tmp_path, monkeypatch):
    read(tmp_path, monkeypatch, GOOD)


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_is_told_by_file_and_line(tmp_path, monkeypatch, what):
    text, line = BROKEN[what]
    with pytest.raises(UserError) as told:
        read(tmp_path, monkeypatch, text)
    assert f"one.md:{line}: " in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize(("was", "becomes"), [
    ("embedding_sum", "head"), ("```step training embedding_sum\nLook.\n```\n", "")])
def test_languages_that_differ_are_refused(tmp_path, monkeypatch, was, becomes):
    with pytest.raises(UserError, match="fence"):
        read(tmp_path, monkeypatch, GOOD, GOOD.replace(was, becomes))


def test_a_lesson_that_only_one_language_has_is_refused(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "site_builder/languages/en/lessons", tmp_path / "en/lessons")
    with pytest.raises(UserError, match="must be there"):
        read(tmp_path, monkeypatch, GOOD)
