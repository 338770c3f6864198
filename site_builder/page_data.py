"""What the browser gets of a recording: an outline at once, the numbers chapter by chapter.

A page opened by double-click may not fetch files, but it may add scripts.  So every part is a classic
script that hands its content to ``twoRoutes.receive(name, content)``.
"""

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from site_builder.counting import FIRST
from site_builder.keys import general
from site_builder.labels import isolated
from site_builder.main_line import Member, main_line
from site_builder.network_graph import main_array
from site_builder.notation import Notation
from site_builder.source import torch_sources
from site_builder.stations import home_numbers, home_outline, stations
from site_builder.symbols import symbol_text
from tracer.format.roles import PASS
from tracer.format.trace import AXES, DTYPES, Array, Step, Trace
from tracer.ops import KINDS
from tracer.ops.language import walk
from tracer.ops.replay import Replay, bound_equations


def script(name: str, content: object) -> bytes:
    """A classic script that hands over `content`.  Safe for any text: nothing in it can end the script."""
    body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY).replace(b"<", b"\\u003c")
    body = body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return b"twoRoutes.receive(" + orjson.dumps(name) + b"," + body + b");\n"


@dataclass
class RouteData:
    """Scripts of one route by file name, and which script holds which array."""

    route: str
    scripts: dict[str, bytes] = field(default_factory=dict)


def route_data(trace: Trace, page: str = "") -> RouteData:
    """The outline and the number scripts of the trace that a page shows; it is called as the route unless said."""
    page = page or trace.route
    data = RouteData(page)
    chunk_of = _chunks(trace)
    for chunk in dict.fromkeys(chunk_of.values()):
        names = [name for name, own in chunk_of.items() if own == chunk]
        path = f"{page}-{chunk}"
        data.scripts[f"{path}.js"] = script(path, {name: encode(trace.values(name)) for name in names})
    for array in trace.arrays.values():
        if array.file:
            name = _file_chunk(array)
            data.scripts[f"{name}.js"] = script(name, encode(trace.values(array.name)))
    for labels in trace.labels.values():
        if isinstance(labels, dict):
            name = _label_chunk(labels)
            data.scripts[f"{name}.js"] = script(name, labels_of(trace, labels))
    whole = outline(trace, page, chunk_of)
    data.scripts[f"{page}.js"] = script(page, whole)
    if trace.route == PASS:
        return data
    numbers = {name: encode(values) for name, values in home_numbers(trace, whole["stations"]).items()}
    home = f"home-{trace.route}"
    data.scripts[f"{home}.js"] = script(home, numbers) + script(f"{home}-outline",
                                                                home_outline(whole, trace, whole["stations"]))
    return data


def labels_of(trace: Trace, labels: dict[str, Any]) -> list[str]:
    return next(_shown(trace, name) for name, own in trace.labels.items() if own is labels)


def _shown(trace: Trace, name: str) -> list[str]:
    return [isolated(label) for label in trace.label_list(name)]


def _file_chunk(array: Array) -> str:
    return "array-" + Path(array.file or "").stem


def vocabulary_script(trace: Trace) -> str:
    """The name of the data script with the labels of all tokens; none where they are few and stand in the outline."""
    labels = trace.labels["vocabulary"]
    return _label_chunk(labels) if isinstance(labels, dict) else ""


def _label_chunk(labels: dict[str, Any]) -> str:
    return "labels-" + Path(labels["file"]).stem


def encode(values: np.ndarray[Any, Any]) -> str:
    """Little-endian bytes as base64: exact, NaN and infinities included."""
    return base64.b64encode(np.ascontiguousarray(values).astype(DTYPES[values.dtype.name]).tobytes()).decode()


def _chunks(trace: Trace) -> dict[str, str]:
    """Array name → the chapter that shows it first; with a step's numbers come those it reads."""
    found: dict[str, str] = {}

    def place(name: str, chapter: str) -> None:
        array = trace.arrays[name]
        if array.same_as:
            place(array.same_as, chapter)
        elif not (array.file or array.derived):
            found.setdefault(name, chapter)

    for chapter in trace.chapters:
        for step in chapter.steps:
            for name in shown_arrays(trace, step):
                place(name, chapter.id)
    for name in trace.arrays:
        place(name, "rest")
    return found


def shown_arrays(trace: Trace, step: Step) -> list[str]:
    """Arrays of a step in order: what is given, then for each operation its operands and what it makes."""
    names = list(step.arrays)
    for operation in step.operations:
        names += [*trace.operations[operation].operands.values(), operation]
    return list(dict.fromkeys(names))


def outline(trace: Trace, page: str, chunk_of: dict[str, str]) -> dict[str, Any]:
    """Everything but the numbers: operations with their equations, arrays with their shapes, the chapters."""
    replay, notation = Replay(trace, AXES), Notation(trace)
    notations = {operation.id: notation(operation) for operation in trace.operations.values()}
    equations: dict[bytes, int] = {}
    operations = {}
    for operation in trace.operations.values():
        text = orjson.dumps([eq.to_json() for eq in replay.equations(operation)])
        number = equations.setdefault(text, len(equations))
        operations[operation.id] = {"kind": operation.kind, "target": operation.target, "equations": number,
                                    "operands": operation.operands, "settings": operation.settings}
        if operation.target.startswith("d_"):
            operations[operation.id]["is_gradient"] = True
        if notations[operation.id] != operation.kind:
            operations[operation.id]["notation"] = notations[operation.id]
    return {
        "route": page,
        "equations": [orjson.loads(text) for text in equations],
        "operations": operations,
        "arrays": {array.name: _array_outline(page, array, chunk_of) for array in trace.arrays.values()},
        "labels": {name: {"script": _label_chunk(labels), "length": labels["length"]}
                   if isinstance(labels, dict) else _shown(trace, name) for name, labels in trace.labels.items()},
        "firsts": _first_places(trace),
        "numbered": FIRST,
        "tokens": _tokens(trace),
        **_steps(trace),
        "letters": AXES,
        "stations": stations(trace),
        "sampling": _sampling_equations() if trace.make.get("rounds") else {},
        "summary": trace.summary,
        "torch": {kind: torch_sources()[kind] for kind in sorted({one.kind for one in trace.operations.values()})
                  if kind in torch_sources()},
        "symbols": {one: _symbols(one) for one in sorted(set(notations.values()))},
    }


def _tokens(trace: Trace) -> dict[str, str]:
    """Id → token, of the candidates of a training's moments: the whole vocabulary is more than a picture needs."""
    name = trace.roles.get("series_candidates")
    vocabulary = trace.label_list("vocabulary") if name else []
    return {str(i): isolated(vocabulary[i]) for i in sorted({*trace.values(name).flatten().tolist()})} if name else {}


def _steps(trace: Trace) -> dict[str, Any]:
    """Chapters and steps, the main line, and the families: axes, and the steps that do the same along them."""
    line = main_line(trace)
    return {
        "chapters": [{"id": chapter.id,
                      "steps": [_step_outline(trace, step, line.members[step.id]) for step in chapter.steps]}
                     for chapter in trace.chapters],
        "start": _start(trace),
        "line": [stop.step.id for stop in line.stops],
        "families": [{"axes": {axis: family.values(axis) for axis in family.axes},
                      "steps": [member.step.id for member in family.members]} for family in line.families],
    }


def _start(trace: Trace) -> dict[str, int]:
    """The row of the token table that a training follows, among all rows and among those in use; its early moment."""
    row, early = trace.make.get("tracked_id"), trace.make.get("early_updates")
    used = trace.values(trace.roles["used_ids"]).tolist() if "used_ids" in trace.roles else []
    return ({} if row is None else {"row": row} | ({"used_row": used.index(row)} if row in used else {})) | (
        {} if early is None else {"moment": early})


def _step_outline(trace: Trace, step: Step, member: Member) -> dict[str, Any]:
    """A step, its place on the line, and what the recording says of where it belongs, without what it does not say."""
    belongs = {"main": main_array(trace, step), "kind": step.kind, "role": step.role,
               "direction": step.direction, "pass": step.pass_,
             "split": step.split, "block": step.block, "round": step.round, "of": step.of}
    return {"id": step.id, "operations": step.operations, "arrays": step.arrays, "place": member.place, "at": member.at,
            **{name: value for name, value in belongs.items() if value not in ("", None)}}


def _first_places(trace: Trace) -> dict[str, int]:
    """Labels of positions that do not begin with the first one → where they begin: those of the last one alone."""
    found: dict[str, int] = {}
    for operation in trace.operations.values():
        start = operation.settings.get({"last_position": "position", "positions": "start"}.get(operation.kind, ""))
        labels = trace.arrays[operation.id].labels.get("position")
        if start and labels:
            found[labels] = int(start)
    return found


def _sampling_equations() -> dict[str, dict[str, list[Any]]]:
    """What a draw with other settings is computed from: kind → target → equations over candidates."""
    over_candidates = {"softmax", "top_p", "cumulative"}

    def equations(kind: str, target: str) -> list[Any]:
        own = (bound_equations(kind, target, lambda name: [AXES["candidate"]]) if kind in over_candidates
               else KINDS[kind].targets[target])
        return [equation.to_json() for equation in own]

    return {kind: {target: equations(kind, target) for target in KINDS[kind].targets if not target.startswith("d_")}
            for kind in ("temperature", "top_k", *sorted(over_candidates), "draw")}


def _symbols(notation: str) -> dict[str, str]:
    names = set()
    for target, equations in KINDS[general(notation)[1]].targets.items():
        names |= {target, *(equation.name for equation in equations)}
        names |= {node[1] for equation in equations for node in walk(equation.body) if node[0] in ("read", "name")}
    return {name: symbol_text(notation, name) for name in sorted(names)}


def _array_outline(page: str, array: Array, chunk_of: dict[str, str]) -> dict[str, Any]:
    body: dict[str, Any] = {"shape": array.shape, "axes": array.axes, "dtype": array.dtype}
    if array.labels:
        body["labels"] = array.labels
    if array.same_as:
        body["same_as"] = array.same_as
    elif array.file:
        body["script"] = _file_chunk(array)
    elif array.derived:
        body["derived"] = True
    else:
        body["script"] = f"{page}-{chunk_of[array.name]}"
    return body
