"""Read back what a pass hid: the original of an entry, by the handle that its stub names.

A handle is `#` and the seq of the event that brought the content. The event is as it was: a pass
changes what a model sees, never the log.
"""

from typing import Final

from msgspec import Struct

from barograph.core.errors import LogCorrupt, UnknownHandle
from barograph.core.events import Event, MessageSeen, Nudged
from barograph.core.parts import Parts, Text, Thinking, texts_in
from barograph.store.protocol import Store

MOST_CHARS: Final = 20_000
"""The longest piece that is given at once: what is read back is a tool result itself."""


class Excerpt(Struct, frozen=True, kw_only=True):
    """A piece of an original: where it begins, and how long the whole is."""

    text: str
    start_chars: int
    total_chars: int


def read_original(store: Store, session: str, handle: str) -> str:
    """The whole text of an original.

    Raises:
        UnknownHandle: no event of that session has content of that handle.
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    number = handle.strip().removeprefix("#")
    parts: Parts = ()
    if number.isascii() and number.isdecimal() and len(number) < 12 and int(number):
        parts = parts_of(store, session, int(number))
    if not parts:
        raise UnknownHandle(
            f"Session {session!r} has no original {handle!r}.",
            next_step="Give a handle as a stub names it: # and a number.",
            session=session,
            handle=handle,
        )
    return "\n".join(texts_in(part for part in parts if not isinstance(part, Thinking)))


def excerpt_of(text: str, start_chars: int, length_chars: int) -> Excerpt:
    """A piece of a text; an empty one where it begins behind the end."""
    start = min(max(0, start_chars), len(text))
    stop = start + min(max(1, length_chars), MOST_CHARS)
    return Excerpt(text=text[start:stop], start_chars=start, total_chars=len(text))


def lines_with(text: str, wanted: str, most_chars: int = MOST_CHARS) -> list[str]:
    """Lines that hold a text, with their numbers, up to so many characters in all."""
    found, room = [], most_chars
    for number, line in enumerate(text.split("\n"), start=1):
        if wanted in line:
            shown = f"{number}: {line}"[:room]
            found.append(shown)
            room -= len(shown) + 1
            if room <= 0:
                break
    return found


def source_of(event: MessageSeen) -> int | None:
    """Seq of the event that has the whole of a message; None where the message has it itself."""
    return event.same_as if event.original_in is None else event.original_in


def parts_of(store: Store, session: str, seq: int) -> Parts:
    """The whole content that came with an event; nothing where it brings none.

    Raises:
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    event = _event(store, session, seq)
    if isinstance(event, Nudged):
        return (Text(event.text),)
    if isinstance(event, MessageSeen):
        if event.original:
            return event.original
        source = source_of(event)
        event = event if source is None else _event(store, session, source)
    parts: Parts = getattr(event, "parts", ())
    return parts


def _event(store: Store, session: str, seq: int) -> Event | None:
    if seq > store.last_seq(session):
        return None
    logged = next(iter(store.read(session, after=seq - 1)), None)
    if logged is None or logged.seq != seq:
        raise LogCorrupt(
            f"Event {seq} of session {session!r} cannot be found.",
            next_step="Run `barograph verify` to see what is damaged.",
            session=session,
            seq=seq,
        )
    return logged.event
