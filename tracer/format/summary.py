"""The headline figures of a recording, read from its arrays: nothing in a summary is stored twice unchecked."""

from typing import Any

import numpy as np

from tracer.format.roles import GENERATIONS, PASS
from tracer.format.trace import AXES, Trace
from tracer.ops.replay import Replay


def summarise(trace: Trace) -> dict[str, Any]:
    """The `summary` block of a trace, from its arrays and from how it was made; empty for other routes."""
    if trace.route in GENERATIONS:
        return _generation(trace)
    if trace.route == PASS:
        return _pass(trace)
    return _training(trace) if trace.route == "training" else {}


def _training(trace: Trace) -> dict[str, Any]:
    def number(name: str) -> Any:
        return _plain(trace.values(name))

    first = trace.arrays_of("first")
    train, validation = (trace.arrays_of("evaluation", split) for split in ("training", "validation"))
    logit_gradients = trace.values(first["logits_gradient"])
    return {
        "parameters": sum(trace.arrays[one.arrays["initial"]].size for one in trace.parameters),
        "ids": number(trace.texts["training"]["ids"]),
        "x": number(first["ids"]),
        "y": number(first["targets"]),
        "loss": number(first["loss"]),
        "token_losses": number(first["losses"]),
        "target_probabilities": number(first["target_probability"]),
        "target_logit_gradients": [_plain(logit_gradients[t, y]) for t, y in enumerate(trace.values(first["targets"]))],
        "tracked": _tracked(trace),
        "updates": trace.arrays[trace.roles["series_loss"]].shape[0],
        "train_loss": number(train["loss"]),
        "validation_loss": number(validation["loss"]),
        "validation_ids": number(trace.texts["validation"]["ids"]),
    }


def _tracked(trace: Trace) -> dict[str, Any]:
    """One number through its first update: of the first id that the text uses twice, as input and as target."""
    token = trace.make["tracked_id"]
    row = trace.values(trace.roles["used_ids"]).tolist().index(token)
    table, arrays = trace.table(), trace.table().arrays
    after = {key: _plain(trace.values(arrays[role])[row, 0])
             for key, role in (("m", "m_used"), ("v", "v_used"), ("after", "updated_used"))}
    return {"parameter": f"{table.name}[{token},0]", "before": _plain(trace.values(arrays["initial"])[token, 0]),
            "gradient": _plain(trace.values(arrays["gradient"])[token, 0]), **after}


def _pass(trace: Trace) -> dict[str, Any]:
    arrays = trace.arrays_of("single")
    said = {key: _plain(trace.values(arrays[role])) for key, role in (
        ("ids", "ids"), ("targets", "targets"), ("loss", "loss"), ("target_probabilities", "target_probability"))
        if role in arrays}
    return {"parameters": sum(trace.arrays[one.arrays["trained"]].size for one in trace.parameters), **said}


def _generation(trace: Trace) -> dict[str, Any]:
    make = trace.make
    rounds = [_round(trace, trace.arrays_of("round", round=n)) for n in range(1, make["rounds"] + 1)]
    return {"prompt_ids": _plain(trace.values(trace.texts["prompt"]["ids"])), "temperature": make["temperature"],
            "top_k": make["top_k"], "seed": make["seed"], "rounds": rounds,
            "text": make["prompt"] + "".join(r["new_text"] for r in rounds)}


def _round(trace: Trace, arrays: dict[str, str]) -> dict[str, Any]:
    choice, token = (int(trace.values(arrays[role])) for role in ("choice", "token"))
    logits = Replay(trace, AXES).values(arrays["logits"])  # a long recording does not hold them
    return {"id": token, "logit": _plain(logits[0, token]),
            "scaled_logit": _plain(trace.values(arrays["kept"])[choice]),
            "probability": _plain(trace.values(arrays["probabilities"])[choice]),
            "new_text": _new_text(trace, arrays)}


def _new_text(trace: Trace, arrays: dict[str, str]) -> str:
    """The characters that this round completed; the token that ends the text has no bytes to show."""
    if "complete" not in arrays:
        return ""
    shown = trace.values(arrays["bytes"])[: int(trace.values(arrays["complete"]))]
    return bytes(shown.tolist()).decode("utf-8", errors="replace")


def _plain(values: np.ndarray | np.generic) -> Any:
    """Python numbers; a float32 in its shortest exact decimal form, as the trace prints it.

    JSON has no NaN and no infinity: they stand as the texts "nan", "inf" and "-inf".
    """
    if isinstance(values, np.ndarray) and values.ndim:
        return [_plain(value) for value in values]
    value = np.asarray(values)[()]  # a number of NumPy, which prints itself as short as it can
    if value.dtype.kind == "i":
        return int(value)
    return float(str(value)) if np.isfinite(value) else str(value)
