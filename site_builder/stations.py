"""The stations of a route, for the picture of the whole network at work: the residual stream after each addition.

They are found by what the recording says of its steps, so that any model has such a picture.
"""

from typing import Any

import numpy as np

from site_builder.labels import isolated
from tracer.format.trace import Pass, Step, Trace

# Pass → which of its arrays say how it ended: what a training is judged by, what a generation chooses by.
OUTCOMES = {"first": ("targets", "target_probability", "loss"),
            "single": ("targets", "target_probability", "loss"),
            "round": ("candidates", "probabilities", "choice", "uniform", "token")}
STREAM = (("add", "attention"), ("add", "mlp"))  # kind and role of the steps that add to the stream


def stations(trace: Trace) -> list[dict[str, Any]]:
    """For each pass of a route, in order: the stream's stations, the attention weights, the gradients, the outcome."""
    return [_stations(trace, one) for one in trace.passes
            if one.kind in OUTCOMES and any(name in one.arrays for name in OUTCOMES[one.kind])]


def _stations(trace: Trace, one: Pass) -> dict[str, Any]:
    forward = [step for step in trace.steps() if step.direction == "forward" and trace.pass_of(step) is one]
    backward = {step.of: step for step in trace.steps() if step.direction == "backward"} if one.kind != "round" else {}
    embedding = [step for step in forward if step.role == "embedding"][-1:]
    stream = embedding + [step for step in forward if (step.kind, step.role) in STREAM]
    return {
        "round": one.round, "updates": any(step.direction == "update" for step in trace.steps()),
        "stops": [_stop(trace, step, backward.get(step.id)) for step in stream],
        "attention": [{"step": step.id, "array": step.operations[-1], "block": step.block} for step in forward
                      if (step.kind, step.role) == ("softmax", "attention")],
        "outcome": {name: one.arrays[name] for name in OUTCOMES[one.kind] if name in one.arrays},
        "norm": next((step.operations[-1] for step in forward if step.role == "final"), ""),
        "head": next((step.operations[-1] for step in forward if step.kind == "tied_head"), ""),
        "names": _names(trace, one), "before": _text(trace, (one.round or 1) - 1),
        "text": _text(trace, one.round or 0),
        "end": _maker(trace, one.arrays.get("loss", one.arrays.get("choice", ""))),
    }


def _stop(trace: Trace, step: Step, backward: Step | None) -> dict[str, Any]:
    gradient = trace.operations[backward.operations[0]].operands.get("d_out") if backward else None
    return {"step": step.id, "array": step.operations[-1], "role": step.role, "block": step.block,
            "back": backward.id if backward else None, "gradient": gradient}


def _names(trace: Trace, one: Pass) -> list[str]:
    """What the candidates are called, or the tokens that should come."""
    ids = one.arrays.get("candidates") or one.arrays["targets"]
    vocabulary = trace.label_list("vocabulary")
    return [isolated(vocabulary[i]) for i in trace.values(ids).tolist()]


def _text(trace: Trace, number: int) -> str:
    """What the screen shows after so many rounds."""
    if "rounds" not in trace.summary:
        return ""
    return str(trace.make["prompt"]) + "".join(one["new_text"] for one in trace.summary["rounds"][:number])


def _maker(trace: Trace, array: str) -> str:
    """The step that makes an array."""
    return next((step.id for step in trace.steps() if array in step.operations), "")


def arrays_of(found: list[dict[str, Any]]) -> list[str]:
    """Every array that a picture of these stations reads."""
    names: list[str] = []
    for one in found:
        names += [stop[key] for stop in one["stops"] for key in ("array", "gradient") if stop[key]]
        names += [attention["array"] for attention in one["attention"]] + list(one["outcome"].values())
    return list(dict.fromkeys(names))


def home_outline(outline: dict[str, Any], trace: Trace, found: list[dict[str, Any]]) -> dict[str, Any]:
    """As much of a route's outline as the picture on the home page reads; all its numbers come with it."""
    names = arrays_of(found)
    arrays = {name: {key: value for key, value in outline["arrays"][name].items() if key not in ("derived", "same_as")}
              | {"script": f"home-{trace.route}"} for name in names}
    lists = {label for array in arrays.values() for label in array.get("labels", {}).values()}
    return {
        "route": trace.route, "arrays": arrays, "stations": found, "letters": outline["letters"],
        "labels": {name: _labels(trace, name) for name in sorted(lists)},
        "firsts": {name: first for name, first in outline["firsts"].items() if name in lists},
        "equations": [], "operations": {}, "chapters": [], "sampling": {},
        "summary": trace.summary, "torch": {}, "symbols": {},
    }


def _labels(trace: Trace, name: str) -> list[str]:
    return [isolated(label) for label in trace.label_list(name)]


def home_numbers(trace: Trace, found: list[dict[str, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """The numbers that go with `home_outline`, by array."""
    return {name: trace.values(name) for name in arrays_of(found)}
