"""Pins by hand: keep a message, or let it go."""

from barograph.core.errors import UnknownHandle
from barograph.core.inputs import PinWanted
from barograph.core.pins import Pin, list_pins
from barograph.store.session import Session


def pin_message(session: Session, handle: str, *, at: float, holds: bool = True) -> list[Pin]:
    """Keep a message whatever is folded, or let it go; all pins of the session then.

    Args:
        session: whose message.
        handle: `#` and the number of the event that brought it.
        at: seconds since the epoch.
        holds: False to let it go.

    Raises:
        UnknownHandle: no message of that handle is in the history of an agent path.
        PinRefused: it says nothing, or with it too much would be pinned.
        SequenceConflict: another writer holds the session.
        StoreError: the store cannot be read or written, and the policy is to stop.
    """
    session.catch_up(at=at)
    number = handle.strip().removeprefix("#")
    if not number.isascii() or not number.isdecimal() or len(number) > 12:
        raise UnknownHandle(
            f"{handle!r} is no handle.",
            next_step="Give # and the number of the event that brought the message.",
            session=session.id,
            handle=handle,
        )
    session.take(PinWanted(at=at, message=int(number), holds=holds))
    return list_pins(session.state)
