"""Whether the chapters and steps of a recording of a route are those of that route, each in its place."""

import re

from tracer.errors import UserError
from tracer.format import roles
from tracer.format.trace import Chapter, Step, Trace

MOST_STEPS = 5_000  # of a chapter: what is drawn of it takes time that grows faster than their number
Place = tuple[str, int | None, int | None]  # kind, block and round of a chapter
_ADDRESS = re.compile(r"[\w.@#]+", re.ASCII)  # chapters are files, steps stand in addresses
_RESERVED = "rest"  # the file of what no chapter shows
_ONCE = (("append", "token"), ("greedy", ""), ("", "bytes"))  # in every round: the pages count from them


def check_steps(trace: Trace) -> None:
    """Raises `UserError` for the first chapter or step that is not where it should be, or is shown too early."""
    found = [(chapter.kind, chapter.block, chapter.round) for chapter in trace.chapters]
    wanted = {"training": _training_chapters, roles.PASS: _pass_chapters}.get(trace.route, _generation_chapters)(trace)
    if found != wanted:
        wrong = next((one for one in found if one not in wanted), None)
        missing = next((one for one in wanted if one not in found), None)
        raise UserError(f"chapter {_named(wrong)} belongs to no recording of this kind" if wrong else
                        f"there is no chapter {_named(missing)}" if missing else "its chapters are in another order")
    forward = {step.id: step for step in trace.steps() if step.direction == "forward"}
    for chapter in trace.chapters:
        _check_chapter(trace, chapter, forward)
    _check_shown(trace)


def _named(place: Place) -> str:
    return " ".join(str(part) for part in place if part is not None)


def _training_chapters(trace: Trace) -> list[Place]:
    after = ("head", "loss", "backward", "adamw", "receipt", "updates", "evaluation")
    return _around_blocks(trace, ("text", "embedding"), after)


def _pass_chapters(trace: Trace) -> list[Place]:
    """Of the loss and the way back where it has targets."""
    targets = "targets" in trace.arrays_of("single")
    return _around_blocks(trace, ("embedding",), ("head", *(("loss", "backward") if targets else ())))


def _around_blocks(trace: Trace, before: tuple[str, ...], after: tuple[str, ...]) -> list[Place]:
    blocks: list[Place] = [("block", n, None) for n in range(trace.make["config"]["blocks"])]
    return [(kind, None, None) for kind in before] + blocks + [(kind, None, None) for kind in after]


def _generation_chapters(trace: Trace) -> list[Place]:
    rounds: list[Place] = [(kind, None, n) for n in range(1, trace.make["rounds"] + 1) for kind in ("round", "cached")
                           if n > 1 or kind == "round"]
    return [("prompt", None, None), *rounds] + [("parameters", None, None)] * (trace.route == "generation")


def _check_chapter(trace: Trace, chapter: Chapter, forward: dict[str, Step]) -> None:
    if not _ADDRESS.fullmatch(chapter.id) or chapter.id.startswith(".") or chapter.id == _RESERVED:
        raise UserError(f"{chapter.id!r} cannot be the name of a chapter")
    if len(chapter.steps) > MOST_STEPS:
        raise UserError(f"chapter {chapter.id} has {len(chapter.steps):,} steps, of which {MOST_STEPS:,} are shown")
    for step in chapter.steps:
        if not _ADDRESS.fullmatch(step.id):
            raise UserError(f"{step.id!r} cannot be the name of a step")
        if not _belongs(trace, chapter, step, forward):
            raise UserError(f"step {step.id} does not belong into chapter {chapter.id}")
    if chapter.kind == "round":
        places = [(step.kind, step.role) for step in chapter.steps]
        if missing := next((one for one in _ONCE if places.count(one) != 1), None):
            raise UserError(f"chapter {chapter.id} has not one step {'/'.join(filter(None, missing))}")
    if chapter.kind == "updates":
        _check_series(trace, chapter)


def _belongs(trace: Trace, chapter: Chapter, step: Step, forward: dict[str, Step]) -> bool:
    """Whether all that a step says of its place is what a step of that chapter may say."""
    place = (step.kind, step.role)
    passed = (step.direction, step.pass_, step.split, step.block, step.round, step.of)
    match chapter.kind:
        case "text" | "prompt":
            split = "training" if chapter.kind == "text" else ""
            return place in roles.TEXT_STEPS and passed == ("", "", split, None, None, "")
        case "embedding" | "block" | "head" | "loss":
            return _of_a_model(step) and passed == ("forward", trace.passes[0].kind, "", chapter.block, None, "")
        case "backward":
            of = forward.get(step.of)
            return (of is not None and place == (of.kind, of.role)
                    and passed == ("backward", of.pass_, of.split, of.block, of.round, step.of))
        case "adamw":
            return place in roles.UPDATE_STEPS and _of_parameter(trace, step, "update")
        case "receipt":
            if step.pass_:
                return _of_a_model(step) and passed == ("forward", "again", "", step.block, None, "")
            update = "update" if step.role == "zero_grad" else ""
            return place in roles.RECEIPT_STEPS and passed == (update, "", "", None, None, "")
        case "updates":
            return place in roles.SERIES_STEPS and passed == ("", "", "", None, None, "")
        case "evaluation":
            if step.pass_:
                return _of_a_model(step) and bool(step.split) and passed == (
                    "forward", "evaluation", step.split, step.block, None, "")
            return place in roles.TEXT_STEPS and passed == ("", "", "validation", None, None, "")
        case "round":
            if place in roles.ROUND_STEPS:
                return passed == ("forward" if step.role == "ids" else "", "round", "", None, chapter.round, "")
            return _of_a_model(step) and passed == ("forward", "round", "", step.block, chapter.round, "")
        case "cached":
            block = step.block if step.role == "block" else None
            return place in roles.CACHED_STEPS and passed == (
                "forward" if step.role else "", "cached", "", block, chapter.round, "")
    return place in roles.CHANGE_STEPS and _of_parameter(trace, step, "")


def _of_a_model(step: Step) -> bool:
    """Whether the step is one of the model or of sampling; kinds that are not listed may be in any role."""
    listed = roles.MODEL_STEPS | roles.SAMPLER_STEPS
    if step.kind in {kind for kind, _ in listed}:
        return (step.kind, step.role) in listed
    return bool(step.kind) and step.role in roles.ROLES


def _of_parameter(trace: Trace, step: Step, direction: str) -> bool:
    of = next((one for one in trace.parameters if one.name == step.of), None)
    return (of is not None and step.role == of.role
            and (step.direction, step.pass_, step.split, step.block, step.round) == (direction, "", "", of.block, None))


def _check_series(trace: Trace, chapter: Chapter) -> None:
    """What is drawn of every update: losses, and the attention weights of each block."""
    shown = {step.role: step.arrays for step in chapter.steps}
    maps = [trace.arrays[name] for name in shown.get("series_attention", ())]
    axes = ("update", "head", "query_position", "key_position")
    if len(maps) != trace.make["config"]["blocks"] or any((one.axes, one.dtype) != (axes, "float32") or one.derived
                                                           for one in maps):
        raise UserError("there are not the attention weights of every block in every update")
    candidates = {role for role in trace.roles if role in roles.CANDIDATE_ROLES}
    if candidates and candidates != {*roles.CANDIDATE_ROLES}:
        raise UserError("there are not the candidates of every moment with their logits and probabilities")


def _check_shown(trace: Trace) -> None:
    """Every operation is shown, and after those that it follows from."""
    names = [name for step in trace.steps() for name in step.operations]
    place = {name: number for number, name in enumerate(names)}
    for operation in trace.operations.values():
        if operation.id not in place:
            raise UserError(f"operation {operation.id} is shown in no step")
        for name in operation.operands.values():
            if place.get(name, 0) > place[operation.id]:
                raise UserError(f"operation {operation.id} is shown before {name}, which it reads")
