"""Whether what a recording says of itself, in texts and settings, is what its arrays hold.

Operations are recomputed, and so are the headline figures; but a page also shows the text that was trained on, the
shape of the model, the settings and the token beside each id.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracer.format.roles import GENERATIONS, KNOWN
from tracer.format.routes import ids_and_bytes
from tracer.format.sizes import Shape, parameter_count, shape_of
from tracer.format.trace import Operation, Trace
from tracer.ops import KINDS


def wrongly_said(trace: Trace) -> str:
    """The first thing that is said and is not so; empty where all is so, and for routes that say nothing."""
    if trace.route not in KNOWN:
        return ""
    parts = (_texts, _shape, _operations, _counts, _words, _labels)
    return next((problem for part in parts for problem in part(trace)), "")


def _texts(trace: Trace) -> Iterator[str]:
    make = trace.make
    said = {"training": make.get("text"), "validation": make.get("validation_text"), "prompt": make.get("prompt")}
    for which, arrays in trace.texts.items():
        text = str(said[which])
        if text.encode(errors="replace") != bytes(trace.values(arrays["bytes"]).tolist()):
            yield f"{which}: the bytes are not those of the text {text!r:.80} that make says"


def _shape(trace: Trace) -> Iterator[str]:
    config = trace.make["config"]
    table = trace.arrays[trace.table().arrays["trained"]].shape
    if table != (config["vocabulary"], config["width"]):
        yield f"the token table is {list(table)}, make says {[config['vocabulary'], config['width']]}"
    for parameter in trace.parameters:
        positions = trace.arrays[parameter.arrays["trained"]].shape[0]
        if parameter.role == "position_table" and positions != config["context"]:
            yield f"there are {positions} positions, make says {config['context']}"
    blocks = {parameter.block for parameter in trace.parameters if parameter.block is not None}
    if blocks != set(range(config["blocks"])):
        yield f"the blocks are {sorted(blocks)}, make says {config['blocks']}"
    held = sum(trace.arrays[parameter.arrays["trained"]].size for parameter in trace.parameters)
    if held != (claimed := parameter_count(shape_of(config))):
        yield f"its parameters are {held:,} numbers, those of the model that make says are {claimed:,}"


def _operations(trace: Trace) -> Iterator[str]:
    shape = shape_of(trace.make["config"])
    if shape.causal != any(operation.kind == "causal_mask" for operation in trace.operations.values()):
        yield f"make says that the model has {'a' if shape.causal else 'no'} causal mask, which is not so"
    for operation in trace.operations.values():
        for name, value in _settings(trace, operation, shape).items():
            if operation.settings.get(name, value) != value:
                yield f"operation {operation.id} has {name} {operation.settings[name]}, make says {value}"
        place = KINDS[operation.kind].place
        if place and operation.kind != (said := getattr(shape, place)):
            yield f"operation {operation.id} is a {operation.kind}, make says {said} for the {place}"
        if operation.kind == "scaled_scores" and operation.target == "out":
            heads = trace.arrays[operation.id].shape[0]
            if heads != shape.heads:
                yield f"operation {operation.id} has {heads} heads, make says {shape.heads}"


def _settings(trace: Trace, operation: Operation, shape: Shape) -> dict[str, Any]:
    """The settings that make says for a kind of operation."""
    make = trace.make
    match operation.kind:
        case "dropout":
            return {"p": shape.dropout}
        case kind if KINDS[kind].place == "norm":
            return {"eps": shape.norm_eps}
        case "rotary":
            return {"base": shape.rope_base}
        case "split_grouped_heads":
            return {"heads": shape.heads, "kv_heads": shape.key_value_heads, "head_width": shape.head_width}
        case "temperature":
            return {"temperature": make.get("temperature")}
        case "adamw":
            names = ("lr", "beta1", "beta2", "eps")
            decay = make["settings"]["weight_decay"] if len(trace.arrays[operation.id].shape) >= 2 else 0
            return {name: make["settings"][name] for name in names} | {"weight_decay": decay, "update": 1}
    return {}


def _counts(trace: Trace) -> Iterator[str]:
    make, arrays = trace.make, trace.arrays
    if trace.route == "training":
        losses = arrays[trace.roles["series_loss"]].size
        if losses != make["settings"]["updates"]:
            yield f"there are {losses} losses, make says {make['settings']['updates']} updates"
    if trace.route not in GENERATIONS:
        return
    count = min(make["top_k"], make["config"]["vocabulary"])
    for operation in trace.operations.values():
        size = arrays[operation.id].size
        if (operation.kind, operation.target) == ("top_k", "ids") and size != count:
            yield f"array {operation.id} has {size} candidates, make says {count}"
    if make["rounds"] > make["max_new_tokens"]:
        yield f"there are {make['rounds']} rounds, make says at most {make['max_new_tokens']}"


def _words(trace: Trace) -> Iterator[str]:
    """The second forward pass has the masks of the first."""
    if trace.route != "training":
        return
    first, again = (_words_of(trace, kind) for kind in ("first", "again"))
    if len(first) != len(again):
        yield f"the second pass has {len(again)} words for dropout, the first {len(first)}"
    for one, other in zip(first, again, strict=False):
        if not np.array_equal(trace.values(one), trace.values(other)):
            yield f"array {other} is not the word of the first pass"


def _words_of(trace: Trace, kind: str) -> list[str]:
    """The random words of the dropouts of a pass, in order."""
    steps = [step for step in trace.steps() if (step.pass_, step.direction) == (kind, "forward")]
    operands = [trace.operations[name].operands for step in steps for name in step.operations]
    return list(dict.fromkeys(read["word"] for read in operands if "word" in read))


def _labels(trace: Trace) -> Iterator[str]:
    """Beside an id stands its token, beside a byte its two hexadecimal digits."""
    vocabulary = trace.label_list("vocabulary")
    for array, end in ids_and_bytes(trace):
        for axis, labels in array.labels.items():
            values = trace.values(array.name).tolist()
            if array.axes == (axis,) and trace.label_list(labels) != [
                    f"{value:02X}" if end == 256 else vocabulary[value] for value in values]:
                yield f"labels {labels} are not those of the numbers in {array.name}"
