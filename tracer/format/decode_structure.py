"""From the JSON of a recording to its structure: chapters and steps, passes, texts, parameters and roles."""

from typing import Any

from tracer.errors import UserError
from tracer.format.trace import CHAPTERS, DIRECTIONS, PASSES, SPLITS, Chapter, Parameter, Pass, Step
from tracer.format.typed import few, name_of, only, take

MOST = 10_000  # blocks or rounds
_PLACE = {"kind": str, "role": str, "block": int, "round": int}
_STEP = _PLACE | {"direction": str, "pass": str, "split": str, "of": str}
_PASS = {"split": str, "round": int}
_PARAMETER = {"role": str, "block": int}


def structure_from_json(body: dict[str, Any]) -> dict[str, Any]:
    """The fields of `Trace` that say where things belong."""
    def each(key: str) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = few(take(body, key, list, "the trace", of=dict), key)
        return parts

    texts = few(take(body, "texts", dict, "the trace", of=dict), "texts")
    return {"chapters": [_chapter(one) for one in each("chapters")],
            "passes": [_pass(one) for one in each("passes")],
            "texts": {name_of(name, "a text"): take(texts, name, dict, "texts", of=str) for name in texts},
            "parameters": [_parameter(one) for one in each("parameters")],
            "roles": take(body, "roles", dict, "the trace", of=str)}


def _chapter(body: dict[str, Any]) -> Chapter:
    chapter = name_of(take(body, "id", str, "a chapter"), "a chapter")
    where = f"chapter {chapter}"
    only(body, {"id", "steps", *_PLACE} - {"role"}, where)
    steps = few(take(body, "steps", list, where, of=dict), f"steps in {where}")
    said = _said(body, {key: _PLACE[key] for key in ("kind", "block", "round")}, where, kind=("", *CHAPTERS))
    return Chapter(chapter, [_step(step, chapter) for step in steps], **said)


def _step(body: dict[str, Any], chapter: str) -> Step:
    step = name_of(take(body, "id", str, f"a step of chapter {chapter}"), "a step")
    where = f"step {step}"
    only(body, {"id", "operations", "arrays", *_STEP}, where)
    operations, arrays = (take(body, key, list, where, of=str) for key in ("operations", "arrays"))
    said = _said(body, _STEP, where, direction=DIRECTIONS, split=SPLITS, **{"pass": ("", *PASSES)})
    if "pass" in said:
        said["pass_"] = said.pop("pass")
    return Step(step, operations, arrays, **said)


def _pass(body: dict[str, Any]) -> Pass:
    kind = take(body, "kind", str, "a pass")
    where = f"pass {kind!r:.40}"
    if kind not in PASSES:
        raise UserError(f"{where} is none of {', '.join(PASSES)}")
    only(body, {"kind", "arrays", *_PASS}, where)
    return Pass(kind, arrays=take(body, "arrays", dict, where, of=str), **_said(body, _PASS, where, split=SPLITS))


def _parameter(body: dict[str, Any]) -> Parameter:
    name = name_of(take(body, "name", str, "a parameter"), "a parameter")
    where = f"parameter {name}"
    only(body, {"name", "arrays", *_PARAMETER}, where)
    said = {"role": ""} | _said(body, _PARAMETER, where)
    return Parameter(name, arrays=take(body, "arrays", dict, where, of=str), **said)


def _said(body: dict[str, Any], kinds: dict[str, type], where: str, **known: tuple[str, ...]) -> dict[str, Any]:
    """What `body` says of the keys of `kinds`.  `known`: the words that a key may have."""
    said = {key: take(body, key, kind, where) for key, kind in kinds.items() if key in body}
    for key, value in said.items():
        if key in known and value not in known[key]:
            words = ", ".join(filter(None, known[key]))
            raise UserError(f"{key!r} of {where} is {value!r:.40}, which is none of {words}")
        if type(value) is int and not 0 <= value < MOST:
            raise UserError(f"{key!r} of {where} is {value}, not from 0 to {MOST - 1}")
    return said
