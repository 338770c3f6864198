"""From a recording of version 1 to one of version 2.

In version 1 a step (then called a view) said where it belonged by its name alone, and arrays were found by composing
names.  This module is the one place outside of `tracer.recording` that takes such names apart.
"""

import hashlib
import re
from typing import Any

import orjson

from tracer.errors import UserError
from tracer.format.roles import GENERATIONS, PASS_OUTPUTS

_STEP = re.compile(r"(?:(?P<again>again)|evaluation\.(?P<split>training|validation)|round(?P<round>\d{1,4})"
                   r"(?P<cached>\.cached)?|(?P<grad>grad))\.(?P<path>.+)|(?P<plain>.+)")
_BLOCK = re.compile(r"blocks\.(\d{1,4})(?:\.(.+))?")
_CHAPTER = re.compile(r"(blocks\.|round|cached)(\d{1,4})")
_ROLES = {
    "token_embedding": "token", "position_embedding": "position", "embedding_sum": "embedding",
    "embedding_dropout": "embedding", "norm_1": "attention", "attention.qkv": "query_key_value",
    "attention.softmax": "attention", "attention.weights_dropout": "attention_weights",
    "attention.projection": "attention_output", "attention.dropout": "attention_output", "residual_1": "attention",
    "norm_2": "mlp", "mlp.up": "mlp_up", "mlp.down": "mlp_down", "mlp.dropout": "mlp_output", "residual_2": "mlp",
    "final_norm": "final", "loss": "loss", "sampler.softmax": "candidates",
}
_ROUND_ROLES = {"ids": "ids", "append": "token", "bytes": "bytes"}  # of the steps of a round outside of the model
_ROUND_ARRAYS = ("uniform", "multinomial", "greedy", "next_ids", "is_end", "bytes", "new_bytes", "complete", "held")
_CACHED = {"kept": "", "slide": "", "compare": "", "embedding": "embedding", "head": "head", "sampler.draw": "draw"}
_TEXT_ARRAYS = {"bytes": "bytes", "byte_tokens": "byte_tokens", "ids": "ids", "end": "eos", "with_end": "with_eos"}
_TRAINING_ROLES = {
    "byte_table": "byte_table", "used_ids": "used_ids", "predicted_change": "receipt.predicted",
    "loss_change": "receipt.change", "series_loss": "series.loss", "series_probability": "series.target_probability",
    "series_rows": "series.rows"}
_SERIES = {"series.loss": "series_loss", "series.attention": "series_attention", "series.rows": "series_rows"}


def upgrade(body: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The content of a file of version 2, and whether the outline was as its hash says.

    Raises `UserError` for a recording that is not as version 1 has it.
    """
    try:
        return _Upgrade(_with_moments(body)).body(), _outline_hash(body) == body["outline_sha256"]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"it is of version 1, but not as recordings of that version were written "
                        f"({type(error).__name__}: {error!s:.100})") from None


def _outline_hash(body: dict[str, Any]) -> str:
    """SHA-256 of what version 1 held by it."""
    outline = {"route": body["route"], "make": body["make"], "labels": body["labels"], "chapters": body["chapters"],
               "steps": [[one[key] for key in ("id", "kind", "target", "operands")] + [one.get("attributes", {})]
                         for one in body["steps"]],
               "arrays": [[name, one["shape"], one["dtype"], one["axes"], one.get("labels", {}),
                           one.get("derived", False)] for name, one in body["arrays"].items()]}
    return hashlib.sha256(orjson.dumps(outline, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _with_moments(old: dict[str, Any]) -> dict[str, Any]:
    """With the moments before AdamW's update, which was the first: version 1 held them to be zero without saying so."""
    arrays, steps, before = dict(old["arrays"]), [], {}
    for one in old["steps"]:
        if one["kind"] == "adamw":
            target, own = one["target"], one["id"].removesuffix(f".{one['target']}")
            if target == "m":
                before[one["id"]] = [f"{own}.m_before", f"{own}.v_before"]
                steps += [{"id": name, "kind": "initial_moments", "target": name.rpartition(".")[2], "operands": {}}
                          for name in before[one["id"]]]
                like = {key: value for key, value in arrays[one["id"]].items() if key in ("shape", "axes", "labels")}
                arrays |= dict.fromkeys(before[one["id"]], like | {"dtype": "float32", "derived": True})
            more = {} if target == "after" else {f"{target}_before": f"{own}.{target}_before"}
            settings = {"update" if key == "step" else key: value for key, value in one.get("attributes", {}).items()}
            one = one | {"operands": more | one["operands"], "attributes": settings}
        steps.append(one)
    chapters = [chapter | {"views": [view | {"steps": [made for name in view["steps"]
                                                       for made in (*before.get(name, ()), name)]}
                                     for view in chapter["views"]]} for chapter in old["chapters"]]
    return old | {"arrays": arrays, "steps": steps, "chapters": chapters}


class _Upgrade:
    """One recording of version 1, and what is found of it on the way."""

    def __init__(self, old: dict[str, Any]):
        self.old = old
        self.training = old["route"] == "training"
        self.ours = self.training or old["route"] in GENERATIONS
        self.operations = {one["id"]: one for one in old["steps"]}
        self.passes: dict[tuple[str, str, int | None], dict[str, Any]] = {}
        self.make = dict(old["make"])
        self.names = self.make.pop("parameters", []) if self.ours else []
        if self.ours:
            del self.make["token_table"]
        self.parameters = [self.parameter(name if self.training else name.removeprefix("trained."))
                           for name in self.names]

    def body(self) -> dict[str, Any]:
        """All of it."""
        chapters = [self.chapter(chapter) for chapter in self.old["chapters"]]
        operations = [{"settings" if key == "attributes" else key: value for key, value in one.items()}
                      for one in self.old["steps"]]
        kept = {key: self.old[key] for key in ("schema", "route", "summary", "labels", "arrays", "outline_sha256")}
        more = self.old.keys() - kept.keys() - {"version", "make", "chapters", "steps"}
        return kept | {key: self.old[key] for key in more} | {
            "version": 2, "make": self.make, "chapters": chapters, "passes": [*self.passes.values()],
            "texts": self.texts(), "parameters": self.parameters, "roles": self.roles(), "operations": operations}

    def texts(self) -> dict[str, Any]:
        if not self.ours:
            return {}
        texts = {"training": "text", "validation": "validation"} if self.training else {"prompt": "text"}
        return {which: {role: f"{prefix}.{name}" for role, name in _TEXT_ARRAYS.items()
                        if f"{prefix}.{name}" in self.old["arrays"]} for which, prefix in texts.items()}

    def roles(self) -> dict[str, Any]:
        if not self.ours:
            return {}
        return _TRAINING_ROLES if self.training else {"byte_table": "byte_table", "end": "eos"}

    def parameter(self, name: str) -> dict[str, Any]:
        arrays = self.old["arrays"]
        where = ({"initial": name, "gradient": f"grad.{name}", "m": f"adamw.{name}.m", "v": f"adamw.{name}.v",
                  "updated": f"adamw.{name}.after", "trained": f"trained.{name}", "m_used": f"adamw.{name}.m.used",
                  "v_used": f"adamw.{name}.v.used", "updated_used": f"adamw.{name}.after.used"} if self.training else
                 {"trained": f"trained.{name}", "initial": f"initial.{name}", "change": f"change.{name}"})
        rank = len(arrays[where["trained"]]["shape"])
        role = {"token_embedding.weight": "token_table", "position_embedding.weight": "position_table"}.get(name) or (
            "query_key_value_bias" if name.endswith(".attention.qkv.bias") else "matrix" if rank > 1 else "vector")
        return {"name": name, "role": role, **_block(name)[0],
                "arrays": {role: array for role, array in where.items() if array in arrays}}

    def chapter(self, old: dict[str, Any]) -> dict[str, Any]:
        numbered = _CHAPTER.fullmatch(old["id"])
        place = {"kind": old["id"]}
        if numbered:
            block = numbered[1] == "blocks."
            place = {"kind": "block" if block else numbered[1], "block" if block else "round": int(numbered[2])}
        if not self.ours:
            place = {}
        return {"id": old["id"], **place, "steps": [self.step(view) for view in old["views"]]}

    def step(self, old: dict[str, Any]) -> dict[str, Any]:
        kinds = [self.operations[name]["kind"] for name in old["steps"]]
        own = {*kinds} - {"loss_seed", "gradient_sum"}
        kind = own.pop() if len(own) == 1 else ""
        shown = {"id": old["id"], "operations": old["steps"], "arrays": old["arrays"]}
        return shown | {key: value for key, value in (self.place(old, kind) if self.ours else {}).items()
                        if value not in ("", None)}

    def place(self, old: dict[str, Any], kind: str) -> dict[str, Any]:
        """What a step said by its name."""
        found = _STEP.fullmatch(old["id"])
        assert found is not None  # its last part takes anything
        path = found["plain"] or found["path"]
        for name in ("adamw", "parameters"):
            if path.startswith(f"{name}."):
                of = {f"{name}.{one['name']}": one for one in self.parameters}[path]
                return {"kind": "adamw" if name == "adamw" else "change", "role": of["role"], "of": of["name"],
                        "direction": "update" if name == "adamw" else "", "block": of.get("block")}
        text, _, part = path.partition(".")
        if found["plain"] and text in ("text", "validation"):
            return {"kind": kind if part else "byte_tokens", "role": {"eos": "end", "shift": "pairs"}.get(part, ""),
                    "split": ("training" if text == "text" else text) if self.training else ""}
        if path in ("zero_grad", "receipt.predicted", "receipt.change") or path in _SERIES:
            return {"kind": kind, "role": {"zero_grad": "zero_grad", "receipt.change": "loss"}.get(
                path, _SERIES.get(path, "")), "direction": "update" if path == "zero_grad" else ""}
        return self.in_pass(old, kind, found, path)

    def in_pass(self, old: dict[str, Any], kind: str, found: re.Match[str], path: str) -> dict[str, Any]:
        block, inside = _block(path)
        round = int(found["round"]) if found["round"] else None
        word = ("again" if found["again"] else "evaluation" if found["split"] else "cached" if found["cached"] else
                "round" if round else "first")
        place = {"kind": kind, "pass": word, "split": found["split"] or "", "round": round, **block}
        if word == "cached":
            role = "block" if block else _CACHED[path]
            place |= {"kind": "" if role else kind, "role": role, "direction": "forward" if role else ""}
        elif found["grad"]:
            place |= {"role": _ROLES.get(inside, ""), "direction": "backward", "of": path}
            self.arrays_of(word, "", None)["logits_gradient"] = "grad.head"
            return place
        elif word == "round" and path in ("append", "choices", "bytes", "end"):
            place |= {"kind": "" if path == "bytes" else kind, "role": _ROUND_ROLES.get(path, "")}
        else:
            role = _ROUND_ROLES[path] if (word, path) == ("round", "ids") else _ROLES.get(inside, "")
            place |= {"role": role, "direction": "forward"}
        self.note_arrays(old, self.arrays_of(word, found["split"] or "", round))
        return place

    def arrays_of(self, kind: str, split: str, round: int | None) -> dict[str, Any]:
        """The arrays by role of a pass; it is made with those that it is given."""
        key = (kind, split, round)
        if key not in self.passes:
            given = ({"ids": "validation.x", "targets": "validation.y"} if split == "validation" else
                     {"ids": "x", "targets": "y"} if round is None else {"uniform": f"round{round}.uniform"})
            if kind == "round":
                given |= {name: f"round{round}.{name}" for name in ("ids", *_ROUND_ARRAYS)
                          if f"round{round}.{name}" in self.old["arrays"]}
            if kind == "cached":
                given |= {"ids": f"round{round}.cached.ids", "difference": f"round{round}.cached.difference"}
            said = {"kind": kind, "split": split, "round": round, "arrays": given}
            self.passes[key] = {name: value for name, value in said.items() if value not in ("", None)}
        arrays: dict[str, Any] = self.passes[key]["arrays"]
        return arrays

    def note_arrays(self, old: dict[str, Any], arrays: dict[str, Any]) -> None:
        for name in old["steps"]:
            made = self.operations[name]
            found = next((role for (kind, _, target), role in PASS_OUTPUTS.items()
                          if (kind, target) == (made["kind"], made["target"])), None)
            axes = self.old["arrays"][name]["axes"]
            if found and (made["kind"] != "softmax" or axes == ["candidate"]) and (made["kind"] != "mean" or not axes):
                arrays[found] = name


def _block(path: str) -> tuple[dict[str, Any], str]:
    """The block that a path leads into, and the path inside of it; nothing and the path itself outside of blocks."""
    found = _BLOCK.fullmatch(path)
    return ({"block": int(found[1])}, found[2] or "") if found else ({}, path)
