"""The sentence over a picture: the first of the step's words, short, whole, and marked there."""

import html
import re

import pytest
from driver import ALL_ROUTES, LANGUAGES

from site_builder.prose import marked

LONGEST = {"en": 160, "zh": 75}  # signs; a formula counts as one


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("route", ALL_ROUTES)
def test_every_step_has_one_and_it_is_short(site, route, language):
    page = (site / language / f"{route}.html").read_text("utf-8")
    said = re.findall(r'<div class="say">(.*?)</div>', page, re.DOTALL)
    sentences = [re.search(r'<span class="sentence">(.*?)</span>(?=\s|<|[^<])', text, re.DOTALL) for text in said]
    assert len(said) > 20 and all(sentences)
    plain = {html.unescape(re.sub("<[^>]+>", "", re.sub(r"<math.*?</math>", "x", one[1], flags=re.DOTALL)))
             for one in sentences}
    assert [text for text in plain if len(text) > LONGEST[language]] == []
    assert all(text.strip()[-1] in ".!?。！？" for text in plain)


@pytest.mark.parametrize(("text", "sentence"), [
    ("<p>One. Two.</p>", "One."),
    ("<p>It is 0.5 at <math><mn>1.</mn></math> now. Then.</p>", "It is 0.5 at <math><mn>1.</mn></math> now."),
    ("<p>第一句。第二句。</p>", "第一句。"),
    ("<p>Only <code>a.b</code> one.</p>", "Only <code>a.b</code> one."),
])
def test_the_first_sentence_is_marked(text, sentence):
    assert marked(text) == text.replace(sentence, f'<span class="sentence">{sentence}</span>', 1)


@pytest.mark.parametrize("text", ["", "<ul><li>One. Two.</li></ul>", "<p>no end</p><p>One.</p>"])
def test_what_has_no_first_sentence_stays(text):
    assert marked(text) == text
