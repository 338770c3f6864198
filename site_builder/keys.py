"""What is said of an operation is found by its kind, its role and where it is: the keys of prose, sources and symbols.

    layer_norm                        of every layer norm, where nothing more particular is said
    layer_norm (attention)            of the one before attention: the role, what the kind is for there
    layer_norm (attention), backward  on the way back; what does not say so is never said there
    linear (query_key_value), round   in a pass: first, again, evaluation, round, cached
    byte_tokens, validation           of the validation text
    window (ids), long                on a page: training, generation, long, early
    (bytes)                           of a step that shows operations of several kinds, by its role alone
    chapter: text                     of no operation: a name, with a colon

Kinds are those of `tracer.ops`, roles those of the recording (``FORMAT.md``).  The most particular key that holds is
taken: one with the role before one without, then one that says more of where.
"""

import re
from collections.abc import Iterator
from itertools import combinations

from tracer.format.roles import GENERATIONS, KNOWN
from tracer.format.trace import Step
from tracer.ops import KINDS

BACKWARD = "backward"
PASSES = ("single", "first", "again", "evaluation", "round", "cached")
_WORDS = (BACKWARD, *PASSES, "validation", *KNOWN)
_KEY = re.compile(r"(?P<kind>\w*)(?:(?:^| )\((?P<role>\w+)\))?(?P<words>(?:, \w+)*)")


def key(kind: str, role: str = "", *words: str) -> str:
    """A key as it is written: ``key("linear", "mlp_up", "backward")``."""
    return ", ".join([" ".join(filter(None, [kind, f"({role})" if role else ""])), *words])


def wrong(written: str) -> str:
    """What is wrong with a key, or nothing."""
    if ": " in written:
        return ""
    found = _KEY.fullmatch(written)
    if not found:
        return "it is not written as kind (role), word"
    if found["kind"] and found["kind"] not in KINDS:
        return f"{found['kind']} is no kind of operation"
    words = found["words"].split(", ")[1:]
    if unknown := [word for word in words if word not in _WORDS]:
        return f"{unknown[0]} is none of {', '.join(_WORDS)}"
    return "" if words == sorted(words, key=_WORDS.index) else f"its words stand in the order {', '.join(_WORDS)}"


def needed() -> list[str]:
    """The keys that every language has: each kind in general, and on the way back where it has one."""
    back = [kind for kind, one in KINDS.items() if any(target.startswith("d_") for target in one.targets)]
    return [*KINDS, *(key(kind, "", BACKWARD) for kind in back)]


def keys_of(step: Step, route: str) -> Iterator[str]:
    """Keys that hold for a step of a `route`, the most particular first."""
    back = [BACKWARD] if step.direction == BACKWARD else []
    split = ["validation"] if step.split == "validation" else []
    where = [*filter(None, [step.pass_]), *split, route, *(["generation"] if route in GENERATIONS[1:] else [])]
    for role in dict.fromkeys((step.role, "")):
        if step.kind or role:
            for count in range(len(where), -1, -1):
                for words in combinations(where, count):
                    yield key(step.kind, role, *back, *sorted(words, key=_WORDS.index))


def general(written: str) -> tuple[str, str]:
    """The key of an operation, and that of its kind alone."""
    return written, written.partition(" ")[0]
