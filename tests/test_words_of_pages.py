"""Each page in its own language: signs, words and faces, in what is built and in what scripts write."""

import html
import re
import unicodedata

import pytest
from driver import ALL_ROUTES, LANGUAGES, address, go, opened, visit

HAN = r"\u3400-\u9fff"
# A sign of half width beside a Chinese character, but for the point in a name and the strokes between alternatives.
NARROW = re.compile(rf"[{HAN}]\s?[,;:!?()](?!\w*\()|[,;:!?(]\s?[{HAN}]|[{HAN}]\.(?!\w)")
FULL_WIDTH = re.compile(r"[\u3000-\u303f\uff00-\uffef]")
# Names and terms that stay as they are in Chinese.
STAY = {"import", "map", "Token", "Block", "Dropout", "softmax", "logits", "logit", "log", "sum", "exp", "make", "site",
        "nat"}


def texts_of(page: str) -> list[str]:
    """What a built page says, without code, mathematics, markup and what is marked as another language."""
    page = re.sub(r"<(script|math|code|pre|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    page = re.sub(r"<(a|span|li)\b[^>]*\blang=.*?</\1>", " ", page, flags=re.DOTALL)
    said = re.findall(r"(?:aria-label|title|placeholder)=\"([^\"]*)\"", page) + re.split(r"<[^>]+>", page)
    return [html.unescape(text).strip() for text in said if text.strip()]


@pytest.fixture(scope="module")
def built(site) -> dict[str, list[str]]:
    return {str(path.relative_to(site)): texts_of(path.read_text("utf-8")) for path in sorted(site.glob("*/*.html"))}


@pytest.fixture(scope="module")
def recorded(recordings) -> set[str]:
    """Words that the recordings themselves say: labels, texts, names of arrays."""
    found = set()
    for trace in recordings.values():
        found |= {label for name in trace.labels if name != "vocabulary" for label in trace.label_list(name)}
        found |= {trace.label_list("vocabulary")[id_] for name in trace.arrays if name.endswith("top_k.ids")
                  for id_ in trace.values(name).tolist()}
        found |= {str(value) for value in (*trace.make.values(), *trace.summary.values()) if isinstance(value, str)}
        found |= set(trace.arrays)
    return found


def test_chinese_has_no_sign_of_half_width(built, recorded):
    pages = {name: texts for name, texts in built.items() if name.startswith("zh/")}
    assert len(pages) >= 4
    for name, texts in pages.items():
        wrong = [text for text in texts if NARROW.search(text) and text not in recorded
                 and not any(one in text for one in recorded if NARROW.search(one))]
        assert wrong == [], name


def test_english_has_no_sign_of_full_width(built, recorded):
    for name, texts in built.items():
        if name.startswith("en/"):
            wrong = [text for text in texts if FULL_WIDTH.search(text) and text not in recorded]
            assert wrong == [], name
            assert not [text for text in texts if "(s)" in text], name


def english_words(text: str, recorded: set[str]) -> list[str]:
    """Runs of two or more English words of small letters: a sentence that was not translated."""
    text = re.sub(r"[\w.@]+\.[\w.@]+|[\w]+_[\w]+", " ", text)  # names of arrays
    return [run for run in re.findall(r"(?:\b[A-Za-z][a-z]+\b[ ,]*){2,}", text)
            if run.strip() not in recorded and not all(word in STAY for word in re.findall(r"[A-Za-z]+", run))]


def test_chinese_pages_hold_no_english_sentence(built, recorded):
    names = re.compile(r"\b[A-Z][a-z]+(?:、[A-Z][a-z]+)+|[A-Z][a-z]+ 等")  # authors
    for name, texts in built.items():
        if name.startswith("zh/") and "experiments" not in name:
            wrong = [(text, found) for text in texts if text not in recorded
                     and (found := english_words(names.sub(" ", text), recorded))]
            assert wrong == [], name


def test_the_moments_are_called_moments(built):
    chinese = [text for name, texts in built.items() if name.startswith("zh/") for text in texts]
    assert not [text for text in chinese if re.search("(?<!移)动量", text)]


def test_what_is_looked_for_is_found():
    for text in ("重算: 1", "位置 (2)", "源，残差:", "损失,下降", "步; 再"):
        assert NARROW.search(text), text
    for text in ("第 3.2 节", "T−1：x", "Token（词元）", "查询 × 键", "mcg31m1.py"):
        assert not NARROW.search(text), text
    assert english_words("出处：residual connection", set()) and not english_words("GELU 之后 softmax", set())
    assert unicodedata.east_asian_width("：") == "F" and FULL_WIDTH.search("：")


# What scripts write ----------------------------------------------------------------------------------

SAID = """() => {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const parent = walker.currentNode.parentElement;
        const other = parent.closest("script, noscript, math, code, pre, [lang=en], .names");
        if (!other) found.push(walker.currentNode.data.trim());
    }
    for (const element of document.querySelectorAll("[aria-label], [title], [aria-valuetext]")) {
        for (const name of ["aria-label", "title", "aria-valuetext"]) found.push(element.getAttribute(name) ?? "");
    }
    return [document.title, ...found].filter(Boolean);
}"""
PLACES = {
    "training": ["#step=blocks.0.attention.scores&of=blocks.0.attention.scores&h=0&i=2&j=1", "#step=loss&of=loss",
                 "#step=series.loss&s=9", "#step=series.attention&s=9", "#step=adamw.token_embedding.weight"],
    "generation": ["#step=round2.choices", "#step=round3.bytes", "#step=round2.cached.compare"],
    "early": ["#step=round4.choices", "#step=round6.end"],
    "long": ["#step=round2.cached.slide&of=round2.cached.blocks.0.attention.key.slid&h=0&j=1&d=0"],
}


@pytest.mark.parametrize("route", ALL_ROUTES)
def test_what_scripts_write_is_chinese_too(page, site, recorded, route):
    visit(page, address(site, route, "zh"))
    for fragment in PLACES[route]:
        go(page, fragment)
        if "&of=" in fragment:
            opened(page)
        texts = page.evaluate(SAID)
        assert [text for text in texts if NARROW.search(text) and text not in recorded] == [], fragment
        assert [text for text in texts if text not in recorded and english_words(text, recorded)] == [], fragment


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_is_set_in_a_face_of_its_language(page, site, language):
    """The face that Chromium takes: a Chinese one for Chinese text alone."""
    page.add_init_script("localStorage['two-routes.panel'] = 'words'")
    visit(page, address(site, "training", language, "#step=grad.loss"))
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    for selector in ("#step-title", ".step.current .say p", ".step.current .misread p:last-child"):
        node = session.send("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
        fonts = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
        most = max(fonts, key=lambda font: font["glyphCount"])["familyName"]
        chinese = re.search(r"CJK|Songti|PingFang|YaHei|Han|SimSun|Hei|Song", most)
        assert bool(chinese) == (language == "zh"), (selector, fonts)
