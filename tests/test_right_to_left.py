"""Arabic and Hebrew tokens: what stands beside a label keeps its place, wherever a label is shown."""

import re

import pytest
from driver import ALL_ROUTES, go, opened, visit
from variants import ARABIC, VARIANTS, recorded

from site_builder.build import build
from site_builder.labels import FIRST_STRONG_ISOLATE, POP_ISOLATE, isolated
from tracer.format.files import save

RIGHT_TO_LEFT = re.compile(r"[\u0590-\u06ff]")

# For every text that has letters from right to left and a number before or behind them in the same box: are the
# parts painted in the order in which they are written?  Rectangles of the characters say it.
ORDER = r"""(selector) => {
    const strong = /[\u0590-\u08ff]/, digit = /[0-9]/;
    const wrong = [];
    let checked = 0;
    for (const box of document.querySelectorAll(selector)) {
        if (!box.checkVisibility()) continue;
        const places = [];
        if (box instanceof SVGTextContentElement) {
            const text = box.textContent;
            for (let i = 0; i < box.getNumberOfChars(); i++) {
                if (!strong.test(text[i]) && !digit.test(text[i])) continue;
                const { x, y, width } = box.getExtentOfChar(i);
                places.push([strong.test(text[i]), x, x + width, y]);
            }
        } else {
            const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
                const { data } = walker.currentNode;
                for (let i = 0; i < data.length; i++) {
                    if (!strong.test(data[i]) && !digit.test(data[i])) continue;
                    const range = document.createRange();
                    range.setStart(walker.currentNode, i);
                    range.setEnd(walker.currentNode, i + 1);
                    const { left, right, width, top } = range.getBoundingClientRect();
                    if (width) places.push([strong.test(data[i]), left, right, top]);
                }
            }
        }
        // Runs of digits and of letters, as written: on its line each begins where the one before ended.
        const runs = [];
        for (const [is, left, right, top] of places) {
            const last = runs.at(-1);
            const same = last && Math.abs(last.top - top) < 12;
            if (same && last.is === is) {
                last.left = Math.min(last.left, left);
                last.right = Math.max(last.right, right);
            } else runs.push({ is, left, right, top, follows: same });
        }
        if (runs.length < 2) continue;
        checked += 1;
        runs.forEach((run, i) => {
            if (run.follows && run.left < runs[i - 1].right - 1) wrong.push(box.textContent.trim().slice(0, 60));
        });
    }
    return { checked, wrong };
}"""
# A box for each sink of labels: headings of tables, options, the merges, ids so far, the tree, the playground, maps.
PLACES = {
    "training": [("#step=text.shift", "td, th"), ("#step=text.merges", ".merges td"),
                 ("#step=blocks.0.attention.scores", ".current th"), ("#step=series.attention&s=1", ".current th"),
                 ("#step=series.rows&s=1", ".current th, .caption"), ("#step=series.loss", ".values th"),
                 ("#step=validation.merges", ".merges td")],
    "generation": [("#step=round2.ids", ".layers .id"), ("#step=round2.choices", ".tree li li, .playground th"),
                   ("#step=round2.cached.compare", ".current th")],
    "early": [("#step=round2.ids", ".layers .id, .current th")],
    "long": [("#step=round2.ids", ".layers .id, .current th")],
}


@pytest.fixture(scope="module")
def arabic_site(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("arabic")
    for route, trace in recorded(VARIANTS["from right to left"], tokenizer).items():
        save(trace, folder / "traces" / f"{route}.json")
    return build(folder / "traces", folder / "site").parent


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("route", ALL_ROUTES)
def test_numbers_keep_their_side(arabic_site, new_page, route, language):
    page = visit(new_page(), (arabic_site / language / f"{route}.html").as_uri())
    for fragment, selector in PLACES[route]:
        go(page, fragment)
        if "choices" in fragment:
            page.wait_for_selector(".step.current .playground tr.now")
        if "series.loss" in fragment:
            page.wait_for_selector(".step.current .picture svg")
        found = page.evaluate(ORDER, selector)
        assert found["wrong"] == [], (fragment, selector)
        if fragment not in ("#step=round2.choices", "#step=round2.cached.compare"):  # what was drawn may be anything
            assert found["checked"] or "series.loss" in fragment, fragment


def test_the_opened_number_says_its_token_apart(arabic_site, new_page):
    page = visit(new_page(), (arabic_site / "en" / "training.html").as_uri()
                 + "#step=blocks.0.attention.scores&of=blocks.0.attention.scores&h=0&i=1&j=0")
    opened(page)
    options = page.locator("#number option").all_text_contents()
    marked = [option for option in options if RIGHT_TO_LEFT.search(option)]
    assert marked
    for option in marked:
        assert re.fullmatch(rf"\d+ {FIRST_STRONG_ISOLATE}[^{POP_ISOLATE}]+{POP_ISOLATE}", option), option


def test_a_label_is_found_as_it_is_typed(arabic_site, new_page):
    page = visit(new_page(), (arabic_site / "en" / "training.html").as_uri() + "#step=token_embedding")
    summary = page.locator(".step.current .operands summary", has_text="token_embedding.weight")
    if not page.locator(".step.current .operands input[type=search]").count():
        summary.click()
    page.locator(".step.current .operands input[type=search]").fill("م")
    page.locator(".step.current .operands form button[type=submit]").click()
    answer = page.locator(".step.current .operands form [role=status]")
    page.wait_for_selector(".step.current .operands tr.found")
    assert answer.inner_text().strip(POP_ISOLATE).endswith("م")


def test_recorded_text_in_prose_is_set_apart(arabic_site):
    home = (arabic_site / "en" / "index.html").read_text("utf-8")
    assert f"“<bdi>{ARABIC}</bdi>”" in home


@pytest.mark.parametrize(("label", "apart"), [("Hi", False), ("␣", False), ("你", False), ("م", True), ("שלום", True),
                                              ("E4·BD", False), ("\u0661", True), ("<EOS>", False),
                                              ("\U0001e900", True)])
def test_labels_that_need_it_are_isolated(label, apart):
    assert isolated(label) == (f"\u2068{label}\u2069" if apart else label)
