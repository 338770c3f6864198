"""A page read as HTML: what is wrong with it, what it says and links to."""

import html.parser
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT / "traces"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static").rglob("*.js"))
STYLES = sorted((ROOT / "static").rglob("*.css"))
CJK = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")

VOID = {"meta", "link", "br", "hr", "img", "input", "area", "base", "col", "embed", "source", "track", "wbr"}
SVG_LEAVES = {"path", "rect", "circle", "line", "ellipse", "polygon", "polyline", "use", "stop"}


@dataclass
class Checker(html.parser.HTMLParser):
    """Notes what is wrong with a page, and what it says and links to."""

    problems: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # ids that other elements refer to
    links: list[str] = field(default_factory=list)
    metas: dict[str, str] = field(default_factory=dict)
    texts: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    language: str = ""

    def __post_init__(self):
        super().__init__()
        self.open: list[str] = []  # "tag" or "tag:language"

    def handle_starttag(self, tag, attributes):
        self.start(tag, attributes)
        if tag not in VOID:
            language = dict(attributes).get("lang", "")
            self.open.append(f"{tag}:{language}" if language else tag)

    def handle_startendtag(self, tag, attributes):
        self.start(tag, attributes)
        if tag not in VOID | SVG_LEAVES and not tag.startswith("m"):
            self.problems.append(f"<{tag}/> closes itself")

    def start(self, tag, attributes):
        self.tags.append(tag)
        given = dict(attributes)
        if len(given) < len(attributes):
            self.problems.append(f"<{tag}> has an attribute twice")
        self.problems += [f"<{tag} {name}=…>" for name in given if name == "style" or name.startswith("on")]
        self.ids += [given["id"]] if "id" in given else []
        if "hidden" not in given:
            self.names += [name for key in ("for", "aria-labelledby", "aria-describedby", "aria-controls")
                           for name in (given.get(key) or "").split()]
        self.links += [given[key] for key in ("href", "src") if given.get(key)]
        if tag == "html":
            self.language = given.get("lang", "")
        if tag == "meta":
            self.metas[(given.get("name") or given.get("http-equiv") or "charset").lower()] = given.get("content", "")

    def handle_endtag(self, tag):
        if not self.open or self.open[-1].split(":")[0] != tag:
            self.problems.append(f"</{tag}> inside {self.open[-3:]}, line {self.getpos()[0]}")
        else:
            self.open.pop()

    def handle_data(self, text):
        self.texts.append((text, tuple(self.open)))


def pages_of(site: Path) -> dict[str, Checker]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        checker = Checker()
        checker.feed(path.read_text("utf-8"))
        checker.close()
        found[str(path.relative_to(site))] = checker
    return found
