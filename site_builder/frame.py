"""What stands around every page: the way to the other pages, and to the same one in the other languages."""

from dataclasses import dataclass

from site_builder.language import Language, languages
from site_builder.strings import Strings

# Page → its word; routes are called as they are.
NAMES = {"index": "home", "experiments": "experiments.name", "course": "lesson.course",
         "search": "lesson.search"}


@dataclass
class Link:
    """A page by its file; `is_here`: the one that the link stands on."""

    file: str
    text: str
    is_here: bool


@dataclass
class LanguageLink:
    """The same page in another language."""

    file: str
    language: Language
    is_here: bool


def page_links(page: str, routes: tuple[str, ...], has_experiments: bool, has_course: bool,
               strings: Strings) -> list[Link]:
    """Every page of the site, in order."""
    pages = ["index", *(["course"] if has_course else []), *routes, *(["experiments"] if has_experiments else []),
             "search"]
    return [Link(f"{one}.html", strings(NAMES.get(one, one)), one == page) for one in pages]


def language_links(page: str, language: Language) -> list[LanguageLink]:
    return [LanguageLink(f"../{one.code}/{page}.html", one, one.code == language.code) for one in languages().values()]
