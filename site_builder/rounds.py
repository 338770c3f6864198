"""What a generation's page shows beside its steps: two layers, bytes, the tree of choices."""

import re
from dataclasses import dataclass

from site_builder.labels import isolated
from tracer.format.trace import Trace

LEADS = ((0xF0, 4, "11110"), (0xE0, 3, "1110"), (0xC0, 2, "110"))  # RFC 3629, section 3


@dataclass
class Layers:
    """What the model has (ids, of which the last `new` came last) and what the screen has, at one step."""

    ids: list[tuple[int, str]]
    new: int
    text: str
    held: list[str]  # bytes that wait for the rest of their character


@dataclass
class Byte:
    """One byte: its bits, of which `mark` says what it is, and whether the screen has it after this round."""

    hex: str
    mark: str
    rest: str
    role: str  # a word of the interface: byte.single, byte.lead, byte.continuation, byte.never
    length: int
    held_before: bool
    shown: bool


@dataclass
class Branch:
    """A candidate of one round.  `path`: the probability of all choices up to it together."""

    label: str
    probability: float
    path: float
    chosen: bool


def rounds(trace: Trace) -> int:
    return trace.make.get("rounds", 0)


def layers(trace: Trace, chapter: str, step: str) -> Layers | None:
    """Ids and text when `step` of `chapter` is shown; None where there is no generation going on."""
    if not rounds(trace) or chapter == "parameters":
        return None
    number, order = _round_of(chapter), [v.id for c in trace.chapters if c.id == chapter for v in c.steps]
    done = number - 1
    chosen, shown = done, done
    if number and (chapter.startswith("cached") or order.index(step) >= order.index(f"round{number}.append")):
        chosen = number
    if number and (chapter.startswith("cached") or order.index(step) >= order.index(f"round{number}.bytes")):
        shown = number
    return _after(trace, max(chosen, 0), max(shown, 0))


def _round_of(chapter: str) -> int:
    found = re.fullmatch(r"(?:round|cached)(\d+)", chapter)
    return int(found[1]) if found else 0


def _after(trace: Trace, chosen: int, shown: int) -> Layers:
    names = trace.label_list("vocabulary")
    summary = trace.summary["rounds"]
    ids = [*trace.summary["prompt_ids"], *(r["id"] for r in summary[:chosen])]
    held = trace.arrays.get(f"round{shown}.held")
    return Layers([(i, isolated(names[i])) for i in ids], 1 if chosen else 0,
                  trace.make["prompt"] + "".join(r["new_text"] for r in summary[:shown]),
                  [f"{b:02X}" for b in trace.values(held.name)] if held else [])


def bytes_of(trace: Trace, step: str) -> list[Byte]:
    """The bytes of a round's step ``bytes``: those held back before, then the token's own."""
    prefix = step.removesuffix(".bytes")
    if not re.fullmatch(r"round\d+", prefix) or f"{prefix}.complete" not in trace.arrays:
        return []
    values = trace.values(f"{prefix}.bytes").tolist()
    new = trace.arrays.get(f"{prefix}.new_bytes")
    held = len(values) - (new.size if new else len(values))
    complete = int(trace.values(f"{prefix}.complete"))
    return [_byte(value, n < held, n < complete) for n, value in enumerate(values)]


def _byte(value: int, held_before: bool, shown: bool) -> Byte:
    bits = f"{value:08b}"
    if value < 0x80:
        mark, role, length = "0", "single", 1
    elif value < 0xC0:
        mark, role, length = "10", "continuation", 0
    elif value in (0xC0, 0xC1) or value > 0xF4:
        mark, role, length = bits, "never", 0
    else:
        _, length, mark = next(lead for lead in LEADS if value >= lead[0])
        role = "lead"
    return Byte(f"{value:02X}", mark, bits[len(mark):], role, length, held_before, shown)


def careless(trace: Trace, step: str) -> str:
    """What a program would print that decodes this round's token alone."""
    prefix = step.removesuffix(".bytes")
    own = f"{prefix}.new_bytes" if f"{prefix}.new_bytes" in trace.arrays else f"{prefix}.bytes"
    return bytes(trace.values(own).tolist()).decode("utf-8", errors="replace")


def tree(trace: Trace) -> list[list[Branch]]:
    """For every round its candidates, largest first, after the choices that were made."""
    names, path, found = trace.label_list("vocabulary"), 1.0, []
    for number in range(1, rounds(trace) + 1):
        ids = trace.values(f"round{number}.sampler.top_k.ids").tolist()
        probabilities = trace.values(f"round{number}.sampler.softmax").tolist()
        token = trace.summary["rounds"][number - 1]["id"]
        found.append([Branch(f"{i} {isolated(names[i])}", p, path * p, i == token)
                      for i, p in zip(ids, probabilities, strict=True)])
        path *= next(p for i, p in zip(ids, probabilities, strict=True) if i == token)
    return found


def percent(probability: float) -> str:
    """A probability as a percentage, so many digits that it is neither 0 % nor 100 % by rounding."""
    if probability in (0, 1):
        return f"{probability:.0%}".replace("%", " %")
    value = 100 * probability
    digits = next((d for d in range(1, 16) if 0 < round(value, d) < 100), None)
    if digits and value >= 1e-4:
        return f"{value:.{digits}f} %"
    return f"{value:.1e} %".replace("e-0", "e-").replace("-", "−")
