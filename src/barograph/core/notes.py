"""What is noted of each message when it enters, so that a digest of it can be written later."""

from msgspec import Struct

from barograph.core.events import Origin
from barograph.core.parts import Parts, Text


class Note(Struct, frozen=True, kw_only=True):
    """Words of a user, and the event that has them."""

    seq: int
    text: str


def take_notes(seq: int, origin: Origin, parts: Parts) -> tuple[Note, ...]:
    """What is worth keeping of a message."""
    if origin != "caller":
        return ()
    return tuple(Note(seq=seq, text=part.text) for part in parts if isinstance(part, Text))
