"""What pages say of other recordings: no sentence that is false for the pass, the setting or the kind of a module."""

import html
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from driver import ALL_ROUTES, LANGUAGES
from variants import NEW_NORM, VARIANTS, a_new_norm, recorded

from site_builder import language as module
from site_builder.language import languages
from site_builder.network_graph import Node
from site_builder.network_map import label
from site_builder.notation import source
from site_builder.pages import chapters
from site_builder.parts import Parts, number_in_prose
from site_builder.strings import Strings, count
from tracer.errors import UserError
from tracer.format.trace import Step, Trace
from tracer.resources import LANGUAGES as LANGUAGE_FOLDERS

TEXTS = ("training", "validation")
NUMBER = re.compile(r"−?\d[\d,]*\.\d+(?:e−?\d+)?")


def plain(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<math.*?</math>", "⟨⟩", markup, flags=re.DOTALL)))


def said(trace: Trace, language: str) -> dict[str, str]:
    """Step, or ``chapter:`` and its id → all that its page says in words."""
    found = {}
    for chapter in chapters(Parts(trace), languages()[language]):
        found[f"chapter:{chapter.id}"] = plain(f"{chapter.title}\n{chapter.body}\n{chapter.misread}")
        for step in chapter.steps:
            found[step.id] = plain(f"{step.title}\n{step.body}\n{step.misread}")
    return found


@pytest.fixture(scope="module")
def variants(tokenizer) -> dict[str, dict[str, Trace]]:
    return {name: recorded(variant, tokenizer) for name, variant in VARIANTS.items()}


@pytest.fixture(scope="module")
def all_traces(variants, recordings) -> dict[str, Trace]:
    """Every variant's recordings, and the committed ones."""
    found = {f"{name}, {route}": trace for name, traces in variants.items() for route, trace in traces.items()}
    return found | {f"committed, {route}": trace for route, trace in recordings.items()}


@pytest.fixture(scope="module")
def texts(all_traces) -> dict[tuple[str, str], dict[str, str]]:
    return {(name, language): said(trace, language) for name, trace in all_traces.items() for language in LANGUAGES}


@pytest.fixture(scope="module")
def with_a_new_norm(tokenizer, variants) -> Iterator[Trace]:
    """Made after the others, which have a layer norm."""
    variant = VARIANTS["no decay, cold"]
    with a_new_norm() as config:
        yield recorded(replace(variant, training=replace(variant.training, config=config)), tokenizer)["training"]


# Kinds -----------------------------------------------------------------------------------------------

TOPIC = """# length_norm
## en: Each vector is brought to one length
Name: length norm
Source: made up
It is divided by its length, {{ count(D, "feature") }} in all.
## zh: 每个向量归为同一长度
Name: 长度归一化
Source: 虚构
除以它的长度，共 {{ D }} 个特征。
# length_norm, backward
## en: Back through the length
Lengthening all features changes nothing.
## zh: 反向穿过长度
所有特征一起拉长，输出不变。
"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_kind_is_told_of_by_one_file(with_a_new_norm, language, tmp_path, monkeypatch):
    """Where a layer norm stood, with the words of the new kind and none of the old one's."""
    monkeypatch.setattr(module, "LANGUAGES", shutil.copytree(LANGUAGE_FOLDERS, tmp_path / "languages"))
    (tmp_path / "languages" / f"{NEW_NORM}.md").write_text(TOPIC, "utf-8")
    wrong = {"en": r"(?i)layer.?norm|\bLN\b|mean (?:of its|taken)|loses its mean|\bcentred\b|learned shift",
             "zh": r"层归一化|\bLN\b|减去均值|减均值|平移"}[language]
    text = said(with_a_new_norm, language)
    for step, words in text.items():
        assert not re.search(wrong, words.replace("layer_norm", "")), (step, re.search(wrong, words))
    title = {"en": ("Each vector is brought to one length", "Back through the length"),
             "zh": ("每个向量归为同一长度", "反向穿过长度")}[language]
    norms = {step.id: step.direction for step in with_a_new_norm.steps() if step.kind == NEW_NORM}
    assert len(norms) == 5 * 3  # forward, backward, again, both evaluations
    for step, direction in norms.items():
        assert title[direction == "backward"] in text[step]
    name = {"en": "length norm", "zh": "长度归一化"}[language]
    assert any(name in words for step, words in text.items() if step not in norms)  # where others speak of it
    node = Node("", "step", "", "", (), step=Step("", kind=NEW_NORM, role="attention"))
    assert label(Strings(language), node) == name
    assert source(NEW_NORM, languages()[language]) == {"en": "made up",
                                                         "zh": "虚构"}[language]


def test_a_kind_that_nothing_is_said_of_is_refused(with_a_new_norm, tmp_path, monkeypatch):
    with pytest.raises(UserError, match="kind 'length_norm' and role 'attention', of which site_builder/languages/en"):
        said(with_a_new_norm, "en")
    monkeypatch.setattr(module, "LANGUAGES", shutil.copytree(LANGUAGE_FOLDERS, tmp_path / "languages"))
    with pytest.raises(UserError, match=r"en lacks the section length_norm: every kind of operation has words"):
        languages()


# Passes ----------------------------------------------------------------------------------------------

def test_a_repeated_pass_draws_no_mask(texts):
    fresh = re.compile(r"fresh mask|new mask, kept|mask is a new one|whole number, the word, starts"
                       r"|重新抽取掩码：|新的掩码，|掩码是重新抽取的|（随机字）产生")
    seen = {True: 0, False: 0}
    for words in texts.values():
        for step, text in words.items():
            if "dropout" in step and not step.startswith("grad."):
                again = step.startswith("again.")
                assert bool(fresh.search(text)) != again, (step, text)
                assert bool(re.search(r"first pass|第一遍", text)) == again, step
                seen[again] += 1
    assert min(seen.values()) > 20


def own_numbers(trace: Trace, step) -> set[str]:
    """Every number that the view's arrays, the settings and the yardstick can give, to any digits that prose uses."""
    make = trace.make
    values = [math.log(make["config"]["vocabulary"]), *make["settings"].values(), make["config"]["dropout"],
              make.get("temperature", 1.0)]
    for name in [*step.arrays, *step.operations]:
        if not trace.arrays[name].derived:
            values += np.asarray(trace.values(name), dtype=float).ravel()[:2000].tolist()
    written = {number_in_prose(float(value), digits) for value in values for digits in (1, 3, 4, 5, 6, 7)}
    return written | {repr(value).replace("e-0", "e-").replace("-", "−") for value in values}


def test_a_pass_names_its_own_numbers(all_traces, texts):
    """What stands beside a pass's numbers is not of another pass, unless the page compares the two."""
    checked = 0
    for name, trace in all_traces.items():
        for step in (step for chapter in trace.chapters for step in chapter.steps):
            if not re.match(r"again\.|evaluation\.|round\d", step.id):
                continue
            own = own_numbers(trace, step)
            if step.id.endswith(".loss"):
                own |= own_numbers(trace, Step("", ["loss", *(f"evaluation.{one}.loss" for one in TEXTS)]))
            for language in LANGUAGES:
                found = set(NUMBER.findall(texts[name, language][step.id]))
                assert found <= own, (name, step.id, found - own)
                checked += len(found)
            if step.id == "again.loss":
                shown = number_in_prose(trace.values("again.loss").item(), 7)
                assert shown in texts[name, "en"][step.id] and shown in texts[name, "zh"][step.id]
    assert checked > 50


def test_past_the_context_nothing_is_said_to_stay(all_traces, texts):
    """A round that leaves ids out takes no whole sequence, and has no number of the round before."""
    stays = re.compile(r"is the whole sequence|sequence so far \(length \d+\) goes|numbers are the same as they were"
                       r"|come out as in the round before|repeats, rounding apart|does not fill"
                       r"|都是整个序列|数值与当时相同|与上一轮相同。|算出的都是上一轮")
    outside, english = 0, languages()["en"]
    for (name, language), words in texts.items():
        trace = all_traces[name]
        for number in range(1, trace.make.get("rounds", 0) + 1):
            left_out = trace.operations[f"round{number}.ids"].settings["offset"]
            own = "\n".join(text for step, text in words.items()
                            if re.match(rf"(chapter:)?round{number}(\.(?!cached)|$)", step))
            assert not (left_out and stays.search(own)), (name, number, stays.search(own))
            outside += bool(left_out)
            if left_out and language == "en":
                assert f"last {count(english, trace.arrays[f'round{number}.ids'].size, 'id')}" in own
    assert outside >= 6


def test_settings_are_said_as_they_are(all_traces, texts):
    """No masks without dropout, no decay without weight decay, no chance with one candidate, the loss as it went."""
    for (name, language), words in texts.items():
        if language != "en":
            continue
        make = all_traces[name].make
        everything = "\n".join(words.values())
        if make["config"]["dropout"] == 0:
            assert not re.search(r"same (?:dropout )?masks|with dropout on|dropout follows", everything), name
        if make["settings"]["weight_decay"] == 0:
            assert not re.search(r"only decay|shrinks every|shrunk a little|also takes", everything), name
        if make.get("top_k") == 1:
            assert "greedy choice" in everything and "single draw may differ" not in everything, name
        if "receipt.change" in words:
            trace = all_traces[name]
            change, promise = (trace.values(f"receipt.{one}").item() for one in ("change", "predicted"))
            text = words["receipt.change"]
            if abs(change - promise) < 0.05 * abs(promise):
                assert "nearly agree" in text and "did fall" not in text, name
            else:
                assert ("did fall" in text) == (change < 0) and ("not even fall" in text) == (change >= 0), name


# Numbers and nouns -----------------------------------------------------------------------------------

NOUNS = ("token|update|byte|position|character|parameter|block|row|id|column|number|feature|output|result|head|group"
         "|question|round|window|time|measurement|hidden feature")


def test_one_is_singular_and_more_are_plural(texts):
    for (name, language), words in texts.items():
        if language == "zh":
            continue
        for step, text in words.items():
            assert not re.search(rf"(?<![\d.,/-])1 (?:{NOUNS})s\b", text), (name, step)
            assert not re.search(rf"(?<![\d.,/-])(?:[2-9]|\d[\d,]*\d) (?:{NOUNS})\b(?!s)", text), (name, step)
            assert "(s)" not in text, (name, step)


def test_words_of_the_interface_count_too():
    words = Strings("en")
    assert words("more_terms", n=1) == "1 more term"
    assert words("more_terms", n="1,001") == "1,001 more terms"
    counted = [count(languages()["en"], n, noun) for n, noun in ((1, "id"), (1234, "id"), (0, "row"))]
    assert counted == ["1 id", "1,234 ids", "0 rows"]
    assert not [key for language in LANGUAGES for key, word in Strings(language).all().items() if "(s)" in word]


def test_variants_have_every_route(variants):
    assert {route for traces in variants.values() for route in traces} == set(ALL_ROUTES)
