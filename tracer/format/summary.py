"""The headline figures of a recording, read from its arrays: nothing in a summary is stored twice unchecked."""

import numpy as np

from tracer.format.trace import AXES, Trace
from tracer.ops.replay import Replay


def summarise(trace: Trace) -> dict:
    """The `summary` block of a trace, from its arrays and from how it was made; empty for other routes."""
    routes = {"training": _training, "generation": _generation, "long": _generation}
    return routes[trace.route](trace) if trace.route in routes else {}


def _training(trace: Trace) -> dict:
    def number(name):
        return _plain(trace.values(name))

    targets = trace.values("y")
    logit_gradients = trace.values("grad.head")
    return {
        "parameters": sum(trace.arrays[name].size for name in trace.make["parameters"]),
        "ids": number("text.ids"),
        "x": number("x"),
        "y": number("y"),
        "loss": number("loss"),
        "token_losses": number("cross_entropy"),
        "target_probabilities": number("cross_entropy.target_probability"),
        "target_logit_gradients": [_plain(logit_gradients[t, y]) for t, y in enumerate(targets)],
        "tracked": _tracked(trace),
        "updates": trace.arrays["series.loss"].shape[0],
        "train_loss": number("evaluation.training.loss"),
        "validation_loss": number("evaluation.validation.loss"),
        "validation_ids": number("validation.ids"),
    }


def _tracked(trace: Trace) -> dict:
    """One number through its first update: of the first id that the text uses twice, as input and as target."""
    token = trace.make["tracked_id"]
    row = trace.values("used_ids").tolist().index(token)
    table = trace.make["token_table"]
    after = {key: _plain(trace.values(f"adamw.{table}.{key}.used")[row, 0]) for key in ("m", "v", "after")}
    return {"parameter": f"{table}[{token},0]", "before": _plain(trace.values(table)[token, 0]),
            "gradient": _plain(trace.values(f"grad.{table}")[token, 0]), **after}


def _generation(trace: Trace) -> dict:
    make = trace.make
    rounds = [_round(trace, f"round{n}") for n in range(1, make["rounds"] + 1)]
    return {"prompt_ids": _plain(trace.values("text.ids")), "temperature": make["temperature"],
            "top_k": make["top_k"], "seed": make["seed"], "rounds": rounds,
            "text": make["prompt"] + "".join(r["new_text"] for r in rounds)}


def _round(trace: Trace, prefix: str) -> dict:
    choice = int(trace.values(f"{prefix}.sampler.draw.choice"))
    token = int(trace.values(f"{prefix}.sampler.draw.token"))
    logits = Replay(trace, AXES).values(f"{prefix}.head")  # a long recording does not hold them
    return {"id": token, "logit": _plain(logits[0, token]),
            "scaled_logit": _plain(trace.values(f"{prefix}.sampler.top_k.kept")[choice]),
            "probability": _plain(trace.values(f"{prefix}.sampler.softmax")[choice]),
            "new_text": _new_text(trace, prefix)}


def _new_text(trace: Trace, prefix: str) -> str:
    """The characters that this round completed; the token that ends the text has no bytes to show."""
    if f"{prefix}.complete" not in trace.arrays:
        return ""
    shown = trace.values(f"{prefix}.bytes")[: int(trace.values(f"{prefix}.complete"))]
    return bytes(shown.tolist()).decode("utf-8", errors="replace")


def _plain(values: np.ndarray | np.generic):
    """Python numbers; a float32 in its shortest exact decimal form, as the trace prints it.

    JSON has no NaN and no infinity: they stand as the texts "nan", "inf" and "-inf".
    """
    if values.ndim:
        return [_plain(value) for value in values]
    if values.dtype.kind == "i":
        return int(values)
    number = str(values[()])
    return float(number) if np.isfinite(values) else number
