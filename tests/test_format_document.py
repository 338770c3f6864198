"""``FORMAT.md`` is what is made of the types and tables now, and says every word that a recording uses."""

from tracer.format.document import FILE, document
from tracer.format.roles import ROLES
from tracer.format.trace import CHAPTERS, PASSES


def test_the_committed_file_is_what_is_made_now():
    assert FILE.read_text(encoding="utf-8") == document(), "run python -m tracer.format.document"


def test_every_word_of_the_committed_recordings_stands_in_it(recordings):
    said = document()
    used = {*CHAPTERS, *PASSES, *ROLES}
    for trace in recordings.values():
        used |= {word for step in trace.steps() for word in (step.kind, step.role, step.direction, step.split)}
        used |= {role for one in (*trace.passes, *trace.parameters) for role in one.arrays} | trace.roles.keys()
    assert [word for word in sorted(used - {""}) if f"`{word}`" not in said] == []
