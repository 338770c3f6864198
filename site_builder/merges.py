"""How a text becomes tokens, as one picture: characters, their bytes, and every merge as a row below."""

from dataclasses import dataclass

from site_builder.labels import isolated
from tracer.format.trace import Step, Trace


@dataclass
class Piece:
    """A token that covers `width` bytes; `new` where the merge of this row made it."""

    id: int
    label: str
    width: int
    new: bool = False


@dataclass
class Merges:
    """`characters`: (text, number of bytes); `bytes` in hexadecimal; `rows` of pieces, one more for every merge."""

    characters: list[tuple[str, int]]
    bytes: list[str]
    rows: list[list[Piece]]


def merges(trace: Trace, step: Step) -> Merges | None:
    """The picture for a step of bytes or merges; None for every other step."""
    if step.kind not in ("byte_tokens", "bpe_merge"):
        return None
    text = trace.texts[step.split or "prompt"]
    raw = bytes(trace.values(text["bytes"]).tolist())
    names = trace.label_list("vocabulary")
    row = [Piece(i, isolated(names[i]), 1) for i in trace.values(text["byte_tokens"]).tolist()]
    rows = [row]
    if step.kind == "bpe_merge":
        for name in step.operations:
            row = _merged(row, trace.operations[name].settings, names)
            rows.append(row)
    characters = [("␣" if c == " " else c, len(c.encode())) for c in raw.decode("utf-8", errors="replace")]
    return Merges(characters, [f"{b:02X}" for b in raw], rows)


def _merged(row: list[Piece], merge: dict[str, float], names: list[str]) -> list[Piece]:
    at, made = int(merge["position"]), int(merge["merged"])
    kept = [Piece(piece.id, piece.label, piece.width) for piece in row]
    width = kept[at].width + kept[at + 1].width
    return [*kept[:at], Piece(made, isolated(names[made]), width, new=True), *kept[at + 2:]]
