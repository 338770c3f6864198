"""What belongs to an experiment of a kind, by its schema: what stands in it, its headline figures, what follows."""

from collections.abc import Callable, Iterator
from typing import Any

from tracer.format import experiment_families as families
from tracer.format import experiment_heads as heads
from tracer.format import experiment_initial as initial

Body = dict[str, Any]
CHECKS: dict[str, Callable[[Body], None]] = {
    heads.INDUCTION_SCHEMA: heads.check_induction, heads.NOUN_SCHEMA: heads.check_noun,
    initial.INITIAL_SCHEMA: initial.check_initial, families.FAMILIES_SCHEMA: families.check_families}
SUMMARIES: dict[str, Callable[[Body], list[Body]]] = {
    heads.INDUCTION_SCHEMA: heads.induction_summary, heads.NOUN_SCHEMA: heads.noun_summary,
    initial.INITIAL_SCHEMA: initial.initial_summary, families.FAMILIES_SCHEMA: families.families_summary}
# Place, what stands there, and what the rest of the experiment gives for it.
RECOMPUTED: dict[str, Callable[[Body], Iterator[tuple[str, object, object]]]] = {
    heads.INDUCTION_SCHEMA: heads.recomputed, heads.NOUN_SCHEMA: heads.noun_recomputed,
    initial.INITIAL_SCHEMA: initial.initial_recomputed, families.FAMILIES_SCHEMA: families.families_recomputed}
