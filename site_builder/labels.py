"""Labels of a recording as a page shows them."""

import re

FIRST_STRONG_ISOLATE, POP_ISOLATE = "\u2068", "\u2069"  # Unicode Standard Annex 9, section 2.2
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufeff"
                            r"\U00010800-\U00010fff\U0001e800-\U0001efff]")


def isolated(label: str) -> str:
    """The label so that what stands beside it keeps its place, in attributes, options and drawings too.

    Text from right to left would carry numbers and signs beside it to its other side.
    """
    return f"{FIRST_STRONG_ISOLATE}{label}{POP_ISOLATE}" if _RIGHT_TO_LEFT.search(label) else label
