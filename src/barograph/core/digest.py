"""What stands in the place of hidden history, computed from the log alone."""

from collections.abc import Sequence

from barograph.core.notes import Note


def write_digest(notes: Sequence[Note], *, budget_chars: int, narrative: str = "") -> str:
    """The words of users, the newest ones where not all have room, and a narrative."""
    room = max(0, budget_chars - len(narrative))
    said: list[str] = []
    for note in reversed(notes):
        room -= len(note.text) + 1
        if room < 0:
            break
        said.insert(0, note.text)
    return "\n".join(["[Earlier work, summed up. Users said:", *said, narrative, "]"])
