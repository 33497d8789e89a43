"""What was said in sessions: read from their logs, and never more of one than is asked for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Final, Protocol, TypeGuard

from msgspec import Struct

from barograph.core.events import Event, MessageSeen, Mode, Replaced, ResponseCame, SessionOpened
from barograph.core.parts import Part, Text
from barograph.core.recalltexts import Saying
from barograph.core.state import is_main

_OPENING_EVENTS: Final = 64
"""A session that begins has its first message among so many events."""

_TAKEN_BACK: Final = ("rewound", "edited")


class Row(Protocol):
    """What a list of sessions says of one."""

    @property
    def session(self) -> str:
        """Its id."""
        ...

    @property
    def opened_at(self) -> float:
        """When it began, in seconds since the epoch."""
        ...


class Logs(Protocol):
    """Where the logs of sessions are. A `Store` is one."""

    def sessions(self) -> Sequence[Row]:
        """All sessions."""
        ...

    def read(self, session: str, *, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Events of a session with their numbers, in order."""
        ...


class Opening(Struct, frozen=True, kw_only=True):
    """How a session began.

    Attributes:
        mode: the kind of run that it began as.
        said: the first words of the user; empty where there are none yet.
    """

    mode: Mode
    said: str


def opening_of(events: Iterable[tuple[int, Event]]) -> Opening:
    """How a session began. No more is read than that takes."""
    mode: Mode = "normal"
    for _, event in islice(events, _OPENING_EVENTS):
        if isinstance(event, SessionOpened):
            mode = event.mode
        if _is_spoken(event) and event.role == "user":
            said = _text(event.original or event.parts)
            if said:
                return Opening(mode=mode, said=said)
    return Opening(mode=mode, said="")


def sayings(events: Iterable[tuple[int, Event]]) -> list[Saying]:
    """What users said to the main agent, then what it answered; in their order.

    What tools returned, what was thought and what was taken back is left out. Main agents of one
    graph show each other's messages too: what several of them show is there once.
    """
    said, answers = dict[int, tuple[str, Saying]](), dict[int, str]()
    unseen = dict[str, tuple[int, ResponseCame]]()
    for seq, event in events:
        if isinstance(event, ResponseCame) and is_main(event.path):
            unseen[event.path], answers[seq] = (seq, event), _text(event.parts)
        elif isinstance(event, Replaced) and event.cause in _TAKEN_BACK:
            for gone in event.shadows:
                said.pop(gone, None)
        elif _is_spoken(event):
            known = answers.get(event.same_as or 0)
            if known is not None:
                unseen.pop(event.path, None)
            text = _text(event.original or event.parts) if known is None else known
            said[seq] = event.path, _saying(seq, event.role, event.at, text)
    for path, (seq, last) in unseen.items():  # it enters the history when the session goes on
        said[seq] = path, _saying(seq, "assistant", last.at, _text(last.parts))
    once = _once(said[seq] for seq in sorted(said))
    return sorted(filter(_has_text, once), key=lambda one: one.said_by != "user")


def _once(said: Iterable[tuple[str, Saying]]) -> Iterator[Saying]:
    """As often as one path shows it, whatever others show; in their order."""
    shown, given = Counter[tuple[str, str, str]](), Counter[tuple[str, str]]()
    for path, one in said:
        shown[path, one.said_by, one.text] += 1
        if shown[path, one.said_by, one.text] > given[one.said_by, one.text]:
            given[one.said_by, one.text] += 1
            yield one


def moment(at: float) -> str:
    """A time as a model reads it."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def _is_spoken(event: Event) -> TypeGuard[MessageSeen]:
    """Whether a user or the main agent says something: what agents below it say is its work."""
    return isinstance(event, MessageSeen) and is_main(event.path) and event.role != "tool"


def _text(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text)).strip()


def _saying(seq: int, said_by: str, at: float, text: str) -> Saying:
    return Saying(handle=f"#{seq}", said_by=said_by, moment=moment(at), text=text)


def _has_text(one: Saying) -> bool:
    return bool(one.text)
