"""Accessibility, as axe sees it: every page, light and dark, in both languages, wide and narrow."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from driver import ALL_ROUTES, DESK, LANGUAGES, PHONE, address, go, opened, visit


def violations(page) -> list:
    options = {"preload": False, "resultTypes": ["violations"]}  # the policy of the pages lets nothing be fetched
    found = Axe().run(page, None, options).response["violations"]
    return [(one["id"], one["help"], [node["html"][:160] for node in one["nodes"][:4]]) for one in found]


# What pages show beside their first step: long tables, pictures, opened numbers, choices, bytes.
PLACES = {
    "training": ["#step=head", "#step=text", "#step=series.loss&s=40", "#step=series.attention&s=40",
                 "#step=blocks.0.attention.scores&of=blocks.0.attention.scores&h=0&i=2&j=1", "#step=series.rows&s=40",
                 "#step=adamw.token_embedding.weight&of=token_embedding.weight&r=220&d=0", "#step=receipt.change"],
    "generation": ["#step=round2.choices", "#step=round3.bytes", "#step=round4.head", "#step=round3.cached.kept",
                   "#step=round1.sampler.top_k&of=round1.sampler.top_k.ids&c=1", "#step=round5.bytes",
                   "#step=parameters.blocks.0.mlp.up.weight", "#step=round2.cached.compare"],
    "long": ["#step=round2.cached.slide", "#step=round2.choices", "#step=text.merges", "#step=round1.ids",
             "#step=round2.blocks.1.attention.mask", "#step=round2.cached.kept", "#step=round2.bytes",
             "#step=round1.head"],
}
LOOKS = [(scheme, viewport) for scheme in ("light", "dark") for viewport in (DESK, PHONE)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("route", ALL_ROUTES)
def test_axe_finds_nothing_on_a_route(new_page, site, route, language):
    """Light and dark, wide and narrow, each at a step of its own; in the other language at four others."""
    page = visit(new_page(reduced_motion="reduce"), address(site, route, language))
    places = PLACES[route][::2] if language == "en" else PLACES[route][1::2]
    for (scheme, viewport), fragment in zip(LOOKS, places, strict=True):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(viewport)
        go(page, fragment)
        if "&of=" in fragment:
            opened(page)
        if "choices" in fragment:
            page.wait_for_selector(".step.current .playground tr.now")
        assert violations(page) == [], (scheme, viewport, fragment)
    page.click("#help-open")
    assert violations(page) == []


@pytest.mark.parametrize("route", ALL_ROUTES)
def test_axe_finds_nothing_right_after_quick_keys(new_page, site, route):
    """Steps that are left and made ready are out of reach at every moment."""
    page = visit(new_page(reduced_motion="reduce"), address(site, route))
    for keys in ("n" * 20 + "p" * 5 + "n" * 15, "pnpnpn"):
        for key in keys:
            page.keyboard.press(key)
        assert page.locator(".step.ready:not([inert])").count() == 0
        assert violations(page) == []


@pytest.mark.parametrize("name", ["index.html", *(f"{language}/index.html" for language in LANGUAGES)])
def test_axe_finds_nothing_at_home(new_page, site, name):
    page = new_page(reduced_motion="reduce")
    page.goto((site / name).as_uri())
    for scheme, viewport in LOOKS:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(viewport)
        assert violations(page) == [], (scheme, viewport)
