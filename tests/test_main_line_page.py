"""The main line in the browser: what is walked, what the picker shows, what a folded step says."""

import re

import pytest
from driver import UNLIKE_ROUTES, WORDS, address, does, go, opened, steps_of, stops_of, visit, wait_for_step
from page_checks import TRACES

from site_builder import pages
from site_builder.build import build

WALKED = """async ([by, most]) => {
    const seen = [];
    const button = document.querySelector(`[data-go="${by}"]`);
    while (!button.disabled && seen.length < most) {
        button.click();
        await new Promise((done) => setTimeout(done));
        seen.push(document.querySelector(".step.current").dataset.step);
    }
    return seen;
}"""


@pytest.fixture(scope="module")
def routes(site, module_page):
    return {route: visit(module_page(), address(site, route)) for route in UNLIKE_ROUTES}


def walk(page, start: str, by: int, most: int) -> list[str]:
    go(page, f"#step={start}")
    return page.evaluate(WALKED, [by, most])


def fresh(page, start: str) -> None:
    """On the page anew: nothing that was chosen holds."""
    page.goto("about:blank")
    visit(page, start)


@pytest.mark.parametrize(("route", "start", "end", "kept"), [
    ("training", "blocks.1.norm_1", "blocks.1.residual_2", "blocks.1."),
    ("training", "grad.blocks.0.residual_2", "grad.blocks.0.norm_1", "grad.blocks.0."),
    ("training", "again.blocks.1.attention.qkv", "again.blocks.1.residual_2", "again.blocks.1."),
    ("generation", "round3.blocks.1.norm_1", "round3.blocks.1.residual_2", "round3.blocks.1."),
    ("generation", "round4.final_norm", "round4.end", "round4."),
    ("long", "round2.ids", "round2.end", "round2.")])
def test_a_walk_stays_in_its_variant(routes, site, recordings, route, start, end, kept):
    page, line = routes[route], [does(step) for step in stops_of(recordings[route])]
    fresh(page, address(site, route))
    steps = line.index(does(end)) - line.index(does(start))
    seen = walk(page, start, 1, steps)
    assert seen[-1] == end
    assert [does(step) for step in seen] == line[line.index(does(start)) + 1:][:steps]
    if "blocks" in end or route != "long":  # of a second block alone, the embedding has none
        assert all(step.startswith(kept) for step in seen)
    assert page.evaluate(WALKED, [-1, steps]) == [*seen[-2::-1], start]


def test_where_a_pass_ends_the_line_goes_on_behind_it(routes, site):
    page = routes["training"]
    fresh(page, address(site, "training"))
    assert walk(page, "again.head", 1, 4) == ["again.cross_entropy", "again.loss", "receipt.change", "series.loss"]
    assert page.evaluate(WALKED, [-1, 3]) == ["receipt.change", "again.loss", "receipt.predicted"]
    assert walk(page, "evaluation.validation.cross_entropy", 1, 9) == ["evaluation.validation.loss"]
    fresh(page, address(site, "training"))
    assert walk(page, "cross_entropy", 1, 2) == ["loss", "grad.loss"]
    assert page.evaluate(WALKED, [-1, 2]) == ["loss", "cross_entropy"]


def test_a_dropout_beside_the_line_lies_between_its_neighbours(routes, site):
    page = routes["training"]
    fresh(page, address(site, "training"))
    step = "blocks.1.attention.weights_dropout"
    assert walk(page, step, 1, 1) == ["blocks.1.attention.weighted_sum"]
    assert walk(page, step, -1, 2) == ["blocks.1.attention.softmax", "blocks.1.attention.mask"]
    assert go(page, f"#step={step}")["listed"] == "blocks.0.attention.softmax"
    fresh(page, address(site, "training"))
    assert walk(page, "grad.embedding_dropout", 1, 1) == ["grad.embedding_sum"]
    assert walk(page, "grad.embedding_dropout", -1, 1) == ["grad.blocks.1.norm_1"]  # of the block that the line shows


def pick(page, axis: str, label: str) -> None:
    found = page.locator("#variants").get_by_label(axis, exact=True)
    found.focus()
    found.select_option(label)


def lists(page) -> dict[str, tuple[str, list[str]]]:
    """Label of each list in sight → what is chosen, and all that can be."""
    return dict(page.evaluate("""() => {
        const labels = document.querySelectorAll("#variants:not([hidden]) label:not([hidden])");
        return [...labels].map((label) => [label.firstChild.data.trim(), label.querySelector("select")]).map(
            ([name, list]) => [name, [list.selectedOptions[0].text, [...list.options].map((one) => one.text)]]);
    }"""))


def test_the_picker_shows_where_a_step_is_and_leads_to_the_others(routes, site):
    page, words = routes["training"], WORDS["en"]
    fresh(page, address(site, "training"))
    go(page, "#step=blocks.0.attention.scores")
    passes = [words(f"pass.{name}") for name in ("first", "again", "evaluation.training", "evaluation.validation")]
    assert lists(page) == {"Pass": [passes[0], passes], "Block": ["0", ["0", "1"]]}
    pick(page, "Block", "1")
    wait_for_step(page, "blocks.1.attention.scores")
    pick(page, "Pass", passes[3])
    wait_for_step(page, "evaluation.validation.blocks.1.attention.scores")
    assert page.evaluate("document.activeElement.tagName") == "SELECT"
    assert lists(page)["Block"][0] == "1"
    assert page.locator("#variants p").inner_text() == "The same step, with other numbers, in 4 passes, in 2 blocks."
    page.go_back()
    wait_for_step(page, "blocks.1.attention.scores")
    assert lists(page) == {"Pass": [passes[0], passes], "Block": ["1", ["0", "1"]]}
    go(page, "#step=receipt.change")
    assert lists(page) == {}


def test_the_picker_names_every_variant(routes, recordings):
    for route, page in routes.items():
        family: dict[str, list[str]] = {}
        for step in steps_of(recordings[route]):
            family.setdefault(does(step), []).append(step)
        for step in stops_of(recordings[route])[::4]:
            go(page, f"#step={step}")
            assert page.get_attribute("#variants", "data-variants").split() == family[does(step)]
            assert page.locator("#variants").is_visible() == (len(family[does(step)]) > 1)


def test_lists_name_parameters_and_places(routes, site, training_trace):
    page = routes["training"]
    go(page, "#step=adamw.blocks.1.mlp.up.bias")
    named = [one.name for one in training_trace.parameters]
    assert lists(page) == {"Parameter": ["blocks.1.mlp.up.bias", named]}
    pick(page, "Parameter", "final_norm.weight")
    wait_for_step(page, "adamw.final_norm.weight")
    go(page, "#step=embedding_dropout")
    assert list(lists(page)) == ["Pass", "Of"]  # before the blocks
    pick(page, "Of", "MLP output")
    wait_for_step(page, "blocks.0.mlp.dropout")
    assert list(lists(page)) == ["Pass", "Block", "Of"]


def test_an_opened_number_goes_along_to_the_same_place_of_the_same_array(routes, training_trace):
    page = routes["training"]
    go(page, "#step=blocks.0.norm_2&of=blocks.0.norm_2.mean&t=3")
    opened(page)
    pick(page, "Block", "1")
    wait_for_step(page, "blocks.1.norm_2")
    number = opened(page)
    assert (number["array"], number["index"]) == ("blocks.1.norm_2.mean", [3])
    page.keyboard.press("Escape")


def test_adamw_opens_at_the_number_that_is_followed(page, site, training_trace):
    """The row that the recording follows is chosen until the reader chooses another."""
    visit(page, address(site, "training", "en", "#step=grad.loss&of=grad.loss"))
    opened(page)
    page.click('.chapters a[data-chapter="adamw"]')
    wait_for_step(page, "adamw.token_embedding.weight")
    page.click('[data-go="-1"]')
    wait_for_step(page, "grad.token_embedding")
    go(page, "#step=grad.loss&of=grad.loss")
    for _ in range(stops_of(training_trace).index("adamw.token_embedding.weight") - 28):
        page.keyboard.press("n")
    wait_for_step(page, "adamw.token_embedding.weight")
    number = opened(page)
    assert (number["array"], number["index"]) == ("adamw.token_embedding.weight.after.used", [1, 0])
    assert float(number["big"].replace("−", "-")) == pytest.approx(training_trace.summary["tracked"]["after"], rel=1e-6)


# What is said once -----------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def unfolded(tmp_path_factory):
    """The same site, in which every step says all of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "_say_once", lambda steps: None)
        return build(TRACES, tmp_path_factory.mktemp("unfolded") / "site").parent


def sections(path) -> dict[str, str]:
    """Step → its text, as the page holds it."""
    found = re.findall(r'<section class="step" id="step=([^"]+)".*?<noscript>(.*?)</noscript>', path.read_text("utf-8"),
                       re.DOTALL)
    return dict(found)


CONTENT = """async ([texts, wanted]) => {
    const { Texts } = await import("texts");
    const { Store } = await import("store");
    const { route } = JSON.parse(document.getElementById("page").textContent);
    const store = await Store.open(route, "../");
    const home = new Map(store.outline.chapters.flatMap((chapter) => chapter.steps).flatMap(
        (step) => [...step.arrays, ...step.operations].map((name) => [name, step.id])));
    const folded = Object.entries(texts).map(([step, text]) => {
        const section = document.createElement("section");
        section.dataset.step = step;
        section.append(Object.assign(document.createElement("noscript"), { textContent: text }));
        return section;
    });
    const whole = new Texts(folded, store, home);
    const plain = (content) => {
        for (const part of content.querySelectorAll("[data-like]")) part.removeAttribute("data-like");
        const box = document.createElement("div");
        box.append(content);
        return box.innerHTML.replace(/\\s+/g, "");
    };
    return Object.keys(texts).filter((step) => {
        const template = document.createElement("template");
        template.innerHTML = wanted[step];
        return plain(whole.content(step)) !== plain(template.content);
    });
}"""


@pytest.mark.parametrize(("route", "language"), [
    ("training", "en"), ("training", "zh"), ("generation", "en"), ("long", "zh")])
def test_a_folded_step_says_with_scripts_what_it_says_alone(routes, site, unfolded, route, language):
    folded, wanted = (sections(where / language / f"{route}.html") for where in (site, unfolded))
    assert list(folded) == list(wanted) and len(folded) > 100
    assert sum(len(text) for text in folded.values()) < 0.75 * sum(len(text) for text in wanted.values())
    assert routes[route].evaluate(CONTENT, [folded, wanted]) == []


@pytest.mark.parametrize("route", UNLIKE_ROUTES)
def test_without_scripts_stops_say_everything_and_the_others_say_where(site, unfolded, recordings, route):
    folded, wanted = (sections(where / "en" / f"{route}.html") for where in (site, unfolded))
    stops = stops_of(recordings[route])
    for step in stops:
        assert folded[step] == wanted[step]
    for step in set(folded) - set(stops):
        there = re.search(r'<p class="elsewhere" data-words="([^"]+)"><a href="#step=([^"]+)">', folded[step])
        assert bool(there) != ('<div class="say">' in folded[step]), step
        if there:
            assert there[1] == there[2] and '<div class="say">' in folded[there[2]]
            assert does(there[1]) == does(step)
        assert folded[step].count("<table>") == wanted[step].count("<table>")
