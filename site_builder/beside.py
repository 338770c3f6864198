"""What a generation's page shows beside its steps, in the words of a language: layers, bytes, the tree of choices."""

from dataclasses import dataclass

from site_builder.rounds import Byte, Layers, percent, tree
from site_builder.strings import Strings
from tracer.format.trace import Trace


@dataclass
class Id:
    """An id of the sequence; `is_new`: the one that came last."""

    id: int
    label: str
    is_new: bool


@dataclass
class ShownLayers:
    """What the model has and what the screen has; `held`: bytes that wait for the rest of their character."""

    ids: list[Id]
    text: str
    held: str


@dataclass
class ByteRow:
    """One byte in words; the first bits of it, `mark`, say what it is."""

    hex: str
    mark: str
    rest: str
    is_shown: bool
    role: str
    origin: str
    now: str


@dataclass
class Candidate:
    """A token that could be drawn; `path`: the probability of all choices up to it together."""

    label: str
    probability: str
    path: str
    is_chosen: bool


@dataclass
class Round:
    """One round of the tree of choices."""

    title: str
    is_now: bool
    candidates: list[Candidate]


@dataclass
class Choices:
    """The tree as it stands in round `number`, and the arrays on which other settings can be tried there."""

    number: int
    rounds: list[Round]
    arrays: dict[str, str]  # data- attribute of `static/js/playground.js` → array


def shown_layers(layers: Layers | None) -> ShownLayers | None:
    """The same with each id marked as new or not, and the bytes that wait as text."""
    if layers is None:
        return None
    first_new = len(layers.ids) - layers.new
    return ShownLayers([Id(i, label, n >= first_new) for n, (i, label) in enumerate(layers.ids)], layers.text,
                       " ".join(layers.held))


def byte_rows(rows: list[Byte], strings: Strings) -> list[ByteRow]:
    return [ByteRow(byte.hex, byte.mark, byte.rest, byte.shown, strings(f"byte.{byte.role}", n=byte.length),
                    strings("byte.before" if byte.held_before else "byte.token"),
                    strings("byte.shown" if byte.shown else "byte.held")) for byte in rows]


def choices(trace: Trace, number: int, strings: Strings) -> Choices:
    """What is shown where a choice of round `number` is."""
    rounds = [Round(strings("round", n=n), n == number, [
        Candidate(one.label, percent(one.probability), percent(one.path), one.chosen) for one in candidates])
        for n, candidates in enumerate(tree(trace), start=1)]
    arrays = next(one.arrays for one in trace.passes if one.kind == "round" and one.round == number)
    return Choices(number, rounds, {"logits": arrays["logits"], "scaled": arrays["scaled_logits"]} | {
        name: arrays[name] for name in ("uniform", "candidates", "token")})
