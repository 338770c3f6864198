"""What pages say of other recordings: no sentence that is false for the pass, the setting or the kind of a module."""

import html
import math
import re
from collections.abc import Iterator

import numpy as np
import pytest
from driver import ALL_ROUTES, LANGUAGES
from variants import VARIANTS, model_with_rms_norm, recorded

from site_builder.language import languages
from site_builder.network_graph import Node
from site_builder.network_map import label
from site_builder.pages import chapters
from site_builder.parts import Parts, number_in_prose
from site_builder.prose import kind_of
from site_builder.source import torch_sources
from site_builder.strings import Strings, count
from tracer.format.trace import Step, Trace

TEXTS = ("training", "validation")
NUMBER = re.compile(r"−?\d[\d,]*\.\d+(?:e−?\d+)?")


def plain(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<math.*?</math>", "⟨⟩", markup, flags=re.DOTALL)))


def said(trace: Trace, language: str) -> dict[str, str]:
    """Step, or ``chapter:`` and its id → all that its page says in words."""
    found = {}
    for chapter in chapters(Parts(trace), languages()[language]):
        found[f"chapter:{chapter.id}"] = plain(f"{chapter.title}\n{chapter.body}\n{chapter.misread}")
        for page in chapter.pages:
            found[page.id] = plain(f"{page.title}\n{page.body}\n{page.misread}")
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
def with_rms_norm(tokenizer) -> Iterator[Trace]:
    with model_with_rms_norm():
        yield recorded(VARIANTS["no decay, cold"], tokenizer)["training"]


# Kinds -----------------------------------------------------------------------------------------------

def test_what_is_said_of_a_module_is_keyed_by_its_kind(recordings):
    """A kind without prose, or a section for every kind in its place, fails here."""
    headings, kinds = set(languages()["en"].prose), set(torch_sources()) | {"gelu"}
    met = set()
    for trace in recordings.values():
        for step in (step for chapter in trace.chapters for step in chapter.steps):
            kind = kind_of(trace, step)
            if kind not in kinds - {"adamw", "append_rows"} or ".cached." in step.id:
                continue
            met.add(kind)
            key = re.sub(r"\bblocks\.\d+", "block", re.sub(r"^(round\d+|evaluation\.\w+?|again)\.", "", step.id))
            assert f"{key} ({kind})" in headings or f"generation:{key} ({kind})" in headings, (step.id, kind)
            assert key not in headings, step.id
    assert met == kinds - {"adamw", "append_rows", "top_p"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_norm_of_another_kind_is_said_nothing_false_of(with_rms_norm, language):
    wrong = {"en": r"(?i)layer.?norm|\bLN\b|mean (?:of its|taken)|loses its mean|\bcentred\b|learned shift",
             "zh": r"层归一化|\bLN\b|减去均值|减均值|平移"}[language]
    text = said(with_rms_norm, language)
    norms = [view for view in text if re.search(r"norm_\d$|final_norm$", view) and not view.startswith("adamw")]
    assert len(norms) == 5 * 3  # forward, backward, again, both evaluations
    for step, words in text.items():
        assert not re.search(wrong, words.replace("layer_norm", "")), (step, re.search(wrong, words))
    for step in norms:
        body = text[step].split("\n", 1)[1].strip()
        assert body == "", step  # its formula speaks
    node = Node("blocks.0.norm_1", "step", "", "", (), module="rms_norm")
    assert label(Strings(language), node) == "norm 1"
    node.module = "layer_norm"
    assert label(Strings(language), node) == Strings(language)("map.block.norm_1")


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
