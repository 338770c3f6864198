"""What a generation's page shows beside its steps: two layers, bytes, the tree of choices."""

from dataclasses import dataclass

from site_builder.labels import isolated
from tracer.format.trace import Chapter, Pass, Step, Trace

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
    return int(trace.make.get("rounds", 0))


def layers(trace: Trace, chapter: Chapter, step: Step) -> Layers | None:
    """Ids and text when `step` of `chapter` is shown; None where there is no generation going on."""
    if not rounds(trace) or chapter.kind == "parameters":
        return None
    number = chapter.round or 0
    if chapter.kind != "round":
        return _after(trace, number, number)
    places = [(one.kind, one.role) for one in chapter.steps]
    at = next(n for n, one in enumerate(chapter.steps) if one is step)
    chosen, shown = (number if at >= places.index(place) else number - 1
                     for place in (("append", "token"), ("", "bytes")))
    return _after(trace, chosen, shown)


def _after(trace: Trace, chosen: int, shown: int) -> Layers:
    names = trace.label_list("vocabulary")
    summary = trace.summary["rounds"]
    ids = [*trace.summary["prompt_ids"], *(r["id"] for r in summary[:chosen])]
    held = trace.arrays_of("round", round=shown).get("held") if shown else None
    return Layers([(i, isolated(names[i])) for i in ids], 1 if chosen else 0,
                  trace.make["prompt"] + "".join(r["new_text"] for r in summary[:shown]),
                  [f"{b:02X}" for b in trace.values(held)] if held else [])


def bytes_of(trace: Trace, step: Step) -> list[Byte]:
    """The bytes of a round, in the step that shows them: those held back before, then the token's own."""
    arrays = _round(trace, step).arrays
    if step.role != "bytes" or "complete" not in arrays:
        return []
    values = trace.values(arrays["bytes"]).tolist()
    held = len(values) - trace.arrays[arrays.get("new_bytes", arrays["bytes"])].size
    complete = int(trace.values(arrays["complete"]))
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


def careless(trace: Trace, step: Step) -> str:
    """What a program would print that decodes this round's token alone."""
    arrays = _round(trace, step).arrays
    own = arrays.get("new_bytes", arrays["bytes"])
    return bytes(trace.values(own).tolist()).decode("utf-8", errors="replace")


def _round(trace: Trace, step: Step) -> Pass:
    """The pass of the round that a step is of; outside of rounds one without arrays."""
    return (trace.find_pass("round", round=step.round) if step.round else None) or Pass("")


def tree(trace: Trace) -> list[list[Branch]]:
    """For every round its candidates, largest first, after the choices that were made."""
    names, path, found = trace.label_list("vocabulary"), 1.0, []
    for number in range(1, rounds(trace) + 1):
        arrays = trace.arrays_of("round", round=number)
        ids = trace.values(arrays["candidates"]).tolist()
        probabilities = trace.values(arrays["probabilities"]).tolist()
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
