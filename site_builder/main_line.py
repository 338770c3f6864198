"""The main line of a recording: what a learner walks step by step, with all that repeats folded into variants.

Steps that do the same with other numbers are one family: the same kind, role and direction in another pass, round or
block, on another text, of another parameter.  The first of a family stands on the line, the others are its variants.
All of this is read from what a recording says of its steps, whatever the model and however long.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tracer.format.trace import Chapter, Step, Trace

AXES = ("text", "pass", "round", "block", "parameter", "role")  # along which steps of a family differ
# Kinds that do to every array the same, whatever it is for: their roles are variants.
FOR_ANY_ROLE = ("dropout",)

Value = str | int


@dataclass
class Member:
    """A step in its family.  `at`: axis → where it is, of the axes along which its family differs.

    `place`: its number on the line, from 0; between two numbers where it stands beside the line.
    """

    step: Step
    chapter: Chapter
    family: "Family"
    at: dict[str, Value] = field(default_factory=dict)
    place: float = 0.0

    @property
    def variants(self) -> list["Member"]:
        """Of a step on the line, the others for which it stands: those that have no stop of their own."""
        is_first = self is self.family.members[0]
        return [one for one in self.family.members if one is not self
                and (one.place == self.place or (is_first and not one.place.is_integer()))]


@dataclass
class Family:
    """Steps that do the same with other numbers, in the order of the recording."""

    members: list[Member] = field(default_factory=list)

    def values(self, axis: str) -> list[Value]:
        """All places of its steps along an axis: blocks, rounds in order, the rest as they come."""
        found = dict.fromkeys(member.at[axis] for member in self.members if axis in member.at)
        numbers = [value for value in found if isinstance(value, int)]
        return [*sorted(numbers), *(value for value in found if not isinstance(value, int))]

    @property
    def axes(self) -> list[str]:
        return [axis for axis in AXES if self.values(axis)]


@dataclass
class MainLine:
    """`stops`: the steps of the line in order.  `members`: every step of the recording by its id."""

    stops: list[Member]
    families: list[Family]
    members: dict[str, Member]

    @cached_property
    def chapters(self) -> list[Chapter]:
        """The chapters that have a stop."""
        return list({stop.chapter.id: stop.chapter for stop in self.stops}.values())

    def folded(self, chapter: Chapter) -> list[Chapter]:
        """The chapters whose stops stand in this one: itself, and those that repeat it."""
        stands = {stop.family.members[0].step.id for stop in self.stops if stop.chapter is chapter}
        found = {member.chapter.id: member.chapter for member in self.members.values()
                 if member.chapter.kind == chapter.kind and member.family.members[0].step.id in stands}
        return list(found.values())

    def stop(self, member: Member) -> Member:
        """The step on the line that stands for one, or that it stands beside."""
        return self.stops[int(member.place)]


def main_line(trace: Trace) -> MainLine:
    """The line of a recording."""
    families: dict[tuple[str, str, str, bool], Family] = {}
    members: dict[str, Member] = {}
    for chapter in trace.chapters:
        for step in chapter.steps:
            family = families.setdefault(_does(step), Family())
            members[step.id] = Member(step, chapter, family, _coordinates(step))
            family.members.append(members[step.id])
    for family in families.values():
        _leave_what_differs(family)
    stops = _stops(trace, members)
    _place(members, stops)
    return MainLine(list(stops.values()), list(families.values()), members)


def _is_of_parameter(step: Step) -> bool:
    return bool(step.of) and step.direction != "backward"


def _does(step: Step) -> tuple[str, str, str, bool]:
    """What a step has in common with its family."""
    own = _is_of_parameter(step)
    return step.kind, "" if own or step.kind in FOR_ANY_ROLE else step.role, step.direction, own


def _coordinates(step: Step) -> dict[str, Value]:
    if _is_of_parameter(step):
        return {"parameter": step.of}
    found: dict[str, Value | None] = {
        "text": None if step.pass_ else step.split, "round": step.round, "block": step.block,
        "pass": ".".join(filter(None, (step.pass_, step.split))) if step.pass_ else None,
        "role": step.role if step.kind in FOR_ANY_ROLE else None}
    return {axis: value for axis in AXES if (value := found.get(axis)) not in (None, "")}


def _leave_what_differs(family: Family) -> None:
    """Forget the axes along which all members are at one place."""
    differ = [axis for axis in AXES if len(family.values(axis)) > 1]
    for member in family.members:
        member.at = {axis: value for axis, value in member.at.items() if axis in differ}


def _stops(trace: Trace, members: dict[str, Member]) -> dict[tuple[int, str], Member]:
    """Family and chapter → the step on the line.

    The first of each family; and what a further pass ends in, for which it was run: in a chapter of another kind it
    has a stop of its own there.
    """
    ends = set(_ends(trace))
    stops: dict[tuple[int, str], Member] = {}
    for member in members.values():
        first = member.family.members[0]
        if member is first:
            stops[id(member.family), ""] = member
        elif member.step.id in ends and member.chapter.kind != first.chapter.kind:
            stops.setdefault((id(member.family), member.chapter.kind), member)
    return stops


def _ends(trace: Trace) -> Iterator[str]:
    """The last step forward of every pass."""
    last = {(step.pass_, step.split, step.round): step.id for step in trace.steps()
            if step.pass_ and step.direction == "forward"}
    return iter(last.values())


def _place(members: dict[str, Member], stops: dict[tuple[int, str], Member]) -> None:
    """Number the line, and say where each variant stands: at its stop, or beside the step that it comes after."""
    numbers = {key: float(n) for n, key in enumerate(stops)}
    before = 0.0
    for member in members.values():
        own = numbers[id(member.family), ""]
        own = numbers.get((id(member.family), member.chapter.kind), own)
        stop = stops[id(member.family), ""]
        member.place = own if member.at.get("role") == stop.at.get("role") else int(before) + 0.5
        before = member.place
