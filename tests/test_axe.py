"""Accessibility, as axe sees it: every page, light and dark, in both languages, wide and narrow."""

from pathlib import Path

import axe_playwright_python
import pytest
from driver import ALL_ROUTES, DESK, LANGUAGES, PHONE, address, go, opened, visit

SCRIPT = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")

FEWER = """() => {
    for (const body of document.querySelectorAll(".step tbody")) { // of steps that were left too: axe walks over them
        const rows = [...body.rows].filter((row) => !row.querySelector(".sel, .lit, button, a, input"));
        rows.slice(2, -1).forEach((row) => row.remove());
    }
}"""


def violations(page, *parts: str) -> list:
    """What axe finds on the whole page, or in those of the `parts` that are there."""
    options = {"preload": False, "resultTypes": ["violations"]}  # the policy of the pages lets nothing be fetched
    within = [[part] for part in parts if page.locator(f"{part}:not([hidden])").count()] or None
    if not page.evaluate("'axe' in window"):  # its script once a page: it is large
        page.evaluate(SCRIPT)
    found = page.evaluate("([within, options]) => axe.run(within ?? document, options).then((all) => all.violations)",
                          [within and {"include": within}, options])
    return [(one["id"], one["help"], [node["html"][:160] for node in one["nodes"][:4]]) for one in found]


# What pages show beside their first step: long tables, pictures, opened numbers, choices, bytes.
PLACES = {
    "training": ["#step=head", "#step=text", "#step=series.loss&s=40", "#step=series.attention&s=40",
                 "#step=blocks.0.attention.scores&of=blocks.0.attention.scores&h=0&i=2&j=1", "#step=series.rows&s=40",
                 "#step=adamw.token_embedding.weight&of=token_embedding.weight&r=220&d=0", "#step=receipt.change"],
    "generation": ["#step=round2.choices", "#step=round3.bytes", "#step=round4.head", "#step=round3.cached.kept",
                   "#step=round1.sampler.top_k&of=round1.sampler.top_k.ids&c=1", "#step=round5.bytes",
                   "#step=parameters.blocks.0.mlp.up.weight", "#step=round2.cached.compare"],
    "early": ["#step=round4.choices", "#step=round3.bytes", "#step=round4.sampler.draw", "#step=round5.cached.kept",
              "#step=round4.sampler.top_k", "#step=round6.bytes", "#step=round5.sampler.draw&tour=another",
              "#step=round1.ids&view=route&tour=early"],
    "long": ["#step=round2.cached.slide", "#step=round2.choices", "#step=text.merges", "#step=round1.ids",
             "#step=round2.blocks.1.attention.mask", "#step=round2.cached.kept", "#step=round2.bytes",
             "#step=round1.head"],
}
LOOKS = [(scheme, viewport) for scheme in ("light", "dark") for viewport in (DESK, PHONE)]
WHOLE = {"en": (LOOKS[0], LOOKS[3]), "zh": (LOOKS[1], LOOKS[2])}  # each look in one language, each language in two


def look(page, scheme: str, viewport: dict) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(viewport)


@pytest.mark.parametrize(("route", "language"), [(route, language) for route in ALL_ROUTES for language in LANGUAGES
                                                 if (route, language) != ("early", "zh")])
def test_axe_finds_nothing_on_a_route(new_page, site, route, language):
    """Light and dark, wide and narrow, each at a step of its own; in the other language at four others.

    What stands around the step is looked at in two of the four: both are in both languages, all in one of them.
    """
    page = visit(new_page(reduced_motion="reduce"), address(site, route, language))
    places = PLACES[route][::2] if language == "en" else PLACES[route][1::2]
    for one, fragment in zip(LOOKS, places, strict=True):
        look(page, *one)
        go(page, fragment)
        if "&of=" in fragment:
            opened(page)
        if "choices" in fragment:
            page.wait_for_selector(".step.current .playground tr.now")
        page.evaluate(FEWER)  # rows of a table are alike: of each some, and all that are marked or can be pressed
        parts = () if one in WHOLE[language] else (".step.current", "#number")
        assert violations(page, *parts) == [], (one, fragment)
    page.click("#help-open")
    assert violations(page, "#help") == []


@pytest.mark.parametrize(("route", "keys"), [("training", "n" * 20 + "b" * 5 + "n" * 15), ("long", "nnnbnbnbn")])
def test_axe_finds_nothing_right_after_quick_keys(new_page, site, route, keys):
    """Steps that are left and made ready are out of reach at every moment."""
    page = visit(new_page(reduced_motion="reduce"), address(site, route))
    for key in keys:
        page.keyboard.press(key)
    assert page.locator(".step.ready:not([inert])").count() == 0
    assert violations(page) == []


@pytest.mark.parametrize("name", ["index.html", *(f"{language}/index.html" for language in LANGUAGES)])
def test_axe_finds_nothing_at_home(new_page, site, name):
    page = new_page(reduced_motion="reduce")
    page.goto((site / name).as_uri())
    for one in WHOLE["zh" if name.startswith("zh") else "en"]:
        look(page, *one)
        assert violations(page) == [], one
