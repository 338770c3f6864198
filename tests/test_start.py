"""When the player cannot start, a page shows all its text and says why; and what the policy lets run."""

import html
import os
import re
import shutil
import threading
from pathlib import Path

import pytest
from driver import ALL_ROUTES, LANGUAGES, WORDS, address, steps_of, visit

from site_builder.listing import listed
from site_builder.modules import ENTRY, import_map, policy, sha256
from site_builder.server import Handler, server_of

ROUTES = list(ALL_ROUTES)


@pytest.fixture
def strange_page(browser):
    """A page whose console may say anything."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def broken(site, tmp_path) -> Path:
    """The site, to be damaged."""
    return shutil.copytree(site, tmp_path / "site", copy_function=os.link)


@pytest.fixture
def headers(monkeypatch) -> dict[str, str]:
    """What a host adds to every answer, in place of our own policy."""
    added: dict[str, str] = {}
    monkeypatch.setattr(Handler, "log_message", lambda *_: None)
    monkeypatch.setattr("site_builder.server._policy", lambda site: added["Content-Security-Policy"])
    return added


@pytest.fixture
def served(site, headers):
    with server_of(site, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


# Of every step: its name, whether it, its title and its text can be seen, and all that it says.
TOLD = """() => [...document.querySelectorAll("section.step")].map((section) => [section.dataset.step,
    section.checkVisibility(), ...["h2", ".say, .elsewhere a"].map(
        (part) => section.querySelector(part)?.checkVisibility() ?? false),
    section.textContent.replace(/\\s+/g, " ")])"""


def text_of(page, url: str) -> list:
    page.goto(url)
    page.wait_for_selector("html:not(.scripts) section.step h2")
    return page.evaluate(TOLD)


@pytest.fixture(scope="module")
def plain(browser, site):
    """``plain(route, language)``: what the steps of a page tell without scripts."""
    context = browser.new_context(java_script_enabled=False)
    pages = {}

    def tell(route: str, language: str) -> list:
        if (route, language) not in pages:
            page = context.new_page()
            page.goto(address(site, route, language))
            pages[route, language] = page.evaluate(TOLD)
            page.close()
        return pages[route, language]

    yield tell
    context.close()


def is_text(page, url: str, plain: list, language: str, why: str, what: str = "") -> None:
    """The page shows what it does without scripts, and the sentence that says why."""
    told = text_of(page, url)
    assert len(told) > 10
    assert all(all(shown) for _, *shown, _ in told)
    assert told == plain
    assert page.locator("#not-started").inner_text() == WORDS[language](f"not_started.{why}").replace("{what}", what)
    assert not set((page.get_attribute("html", "class") or "").split()) & {"scripts", "scripted"}
    assert page.locator(".no-script").count() == 0 or page.locator(".no-script").is_hidden()
    assert page.locator(".go").is_hidden()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_host_that_forbids_inline_scripts(strange_page, served, headers, plain, language):
    headers["Content-Security-Policy"] = "script-src 'self'"
    is_text(strange_page, f"{served}/{language}/long.html", plain("long", language), language, "blocked")


@pytest.mark.parametrize("file", ["data/long.js", "modules.js"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_file_that_is_missing(strange_page, broken, plain, language, file):
    (broken / file).unlink()
    is_text(strange_page, address(broken, "long", language), plain("long", language), language, "missing", file)


def test_a_browser_without_import_maps(strange_page, site, plain):
    strange_page.add_init_script("""HTMLScriptElement.supports = () => false;
        Object.defineProperty(window, "twoRoutes", { get() { return this.made; },
            set(value) { this.made = Object.assign(value, { map() {} }); } });""")
    is_text(strange_page, address(site, "long"), plain("long", "en"), "en", "old")


def test_a_browser_that_finds_no_hashes_in_an_import_map(strange_page, served, headers, plain):
    """It blocks the modules, as every browser does whose policy lists the hashes of the other scripts alone."""
    known = f"'{sha256(import_map())}' '{sha256(ENTRY)}'"
    headers["Content-Security-Policy"] = re.sub(r"'sha256.*sha256-[^']*'", known, policy())
    is_text(strange_page, f"{served}/en/long.html", plain("long", "en"), "en", "old")


def test_a_player_that_fails(strange_page, site, plain):
    strange_page.add_init_script("JSON.parse = () => { throw new TypeError('no such thing'); };")
    told = text_of(strange_page, address(site, "long"))
    assert told == plain("long", "en")
    notice = strange_page.locator("#not-started").inner_text()
    assert "no such thing" in notice
    assert notice.startswith("The interactive part could not start (")


@pytest.mark.parametrize("language", LANGUAGES)
def test_without_any_script_it_is_said_how_to_read_the_steps(strange_page, broken, language):
    (broken / "boot.js").unlink()
    strange_page.goto(address(broken, "long", language))
    assert strange_page.locator("#not-started").inner_text() == WORDS[language]("not_started.nothing")


def test_the_step_of_the_address_is_in_view(strange_page, broken, recordings):
    (broken / "data" / "long.js").unlink()
    step = steps_of(recordings["long"])[-3]
    text_of(strange_page, address(broken, "long", "en", f"#step={step}"))
    top = strange_page.evaluate("(id) => document.getElementById(id).getBoundingClientRect().top", f"step={step}")
    assert -5 < top < strange_page.viewport_size["height"]


def test_data_that_comes_late_starts_the_player_all_the_same(strange_page, site, plain):
    """The text is there after a while; when the data comes, the page is the player's, as if it had come at once."""
    strange_page.add_init_script("{ const set = setTimeout; window.setTimeout = (run, ms) => set(run, ms && 300); }")
    waiting = []
    strange_page.route("**/data/long.js", lambda route: waiting.append(route))
    strange_page.goto(address(site, "long"), wait_until="commit")
    strange_page.wait_for_selector("html:not(.scripts) section.step h2")
    assert strange_page.evaluate(TOLD) == plain("long", "en")
    assert strange_page.locator("#not-started").is_visible()
    (route,) = waiting
    route.continue_()
    strange_page.wait_for_selector("html.scripts.scripted section.step.current h2", state="attached")
    strange_page.wait_for_selector("#step-title:not(:empty)")
    assert strange_page.locator("#not-started").is_hidden()
    assert strange_page.locator("section.step.current").count() == 1
    assert strange_page.locator("section.step:not(.current):not(.ready):visible").count() == 0


def test_the_player_starts_with_the_notice_out_of_sight(new_page, site):
    page = visit(new_page(), address(site, "long"))
    assert page.locator("#not-started").is_hidden()
    assert set(page.get_attribute("html", "class").split()) == {"scripts", "scripted"}


# The policy ------------------------------------------------------------------------------------------

def test_every_page_has_the_one_policy_and_it_knows_every_script(site):
    count = 0
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        (own,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
        assert html.unescape(own) == policy() == listed(site).about["policy"], path
        assert "nonce" not in text
        for attributes, script in re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL):
            if "src=" not in attributes and "application/json" not in attributes:
                assert f"'{sha256(script)}'" in policy()
                count += 1
    lessons = list((site / "en").glob("lesson-*.html"))
    others = ("index", "teach", "course", "experiments", "search", "glossary")
    passes = list((site / "en").glob("pass-*.html"))
    assert lessons and passes
    assert count == (len(ROUTES) + len(others) + len(lessons) + len(passes)) * len(LANGUAGES)
    assert sha256("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="  # known from everywhere


def test_the_page_has_the_map_whose_hash_the_policy_names(new_page, site):
    page = visit(new_page(), address(site, "long"))
    assert page.locator("script[type=importmap]").text_content() == import_map()
    assert f"'{sha256(import_map())}'" in policy()
    assert f"'{sha256(ENTRY)}'" in policy()
    hashes = re.findall(r"'(sha256-[^']+)'", policy())
    files = list((Path(__file__).parent.parent / "static/js").rglob("*.js"))
    assert len(hashes) == len(set(hashes)) == 7 + len(files)  # two maps, two starts; functions, drawings, tools


@pytest.mark.parametrize("change", ["a module", "the start"])
def test_a_script_that_was_changed_does_not_run(strange_page, broken, plain, change):
    name = "modules.js" if change == "a module" else "en/long.html"
    text = (broken / name).read_text("utf-8")
    was, becomes = {"a module": ("export class Player", "window.stray = 1; export class Player"),
                    "the start": (ENTRY, f"window.stray = 1; {ENTRY}")}[change]
    changed = text.replace(was, becomes, 1)
    assert changed != text
    (broken / name).unlink()
    (broken / name).write_text(changed, "utf-8")
    is_text(strange_page, address(broken, "long"), plain("long", "en"), "en", "blocked")
    assert strange_page.evaluate("window.stray") is None


STRAYS = {
    "inline": "const s = document.createElement('script'); s.textContent = 'window.stray = 1';"
              "document.head.append(s);",
    "data": "const s = document.createElement('script'); s.src = 'data:text/javascript,window.stray = 1';"
            "document.head.append(s);",
    "module": "const s = document.createElement('script'); s.type = 'module';"
              "s.src = 'data:text/javascript,window.stray = 1'; document.head.append(s);",
    "blob": "const s = document.createElement('script'); s.src = URL.createObjectURL(new Blob(['window.stray = 1']));"
            "document.head.append(s);",
    "handler": "const i = document.createElement('b'); i.setAttribute('onclick', 'window.stray = 1');"
               "document.body.append(i); i.click();",
}


@pytest.mark.parametrize("stray", STRAYS)
def test_a_script_that_is_not_of_the_site_does_not_run(strange_page, site, stray):
    visit(strange_page, address(site, "long"))
    said = []
    strange_page.on("console", lambda message: said.append(message.text))
    strange_page.evaluate(STRAYS[stray])
    strange_page.wait_for_timeout(200)
    assert strange_page.evaluate("window.stray") is None
    assert any("Content Security Policy" in text for text in said)


def test_the_server_sends_the_policy_of_the_pages_and_they_work(new_page, site, monkeypatch):
    monkeypatch.setattr(Handler, "log_message", lambda *_: None)
    with server_of(site, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        base = f"http://localhost:{running.server_port}/"
        page = new_page(allowed=(base, "data:", "blob:"))
        with page.expect_response(f"{base}en/long.html") as response:
            visit(page, f"{base}en/long.html")
        assert response.value.headers["content-security-policy"] == policy()
        running.shutdown()
