"""How places are counted for readers, said once: from zero, as the code and the names of its parameters count.

What happens one time after the other is numbered from one: updates, as AdamW numbers its steps, and rounds.
"""

FIRST = {"update": 1}  # axis → the number of its first place, where that is not 0


def numbered(axis: str, i: int) -> int:
    """The number of a place along an axis, for readers; scripts count by the same table (`outline.numbered`)."""
    return i + FIRST.get(axis, 0)
