"""Events that wait for their store: in order, within bounds, and never quietly.

While there is room, a store that comes back gets all of them, and its log has no hole. Beyond that
they are only counted: what follows an event that is lost cannot be derived, so nothing of it is
worth keeping.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from barograph.core.events import Event, RequestSent, StoreGap

MOST_EVENTS: Final = 10_000
MOST_BYTES: Final = 64 * 2**20


class Backlog:
    """What one session could not write.

    Attributes:
        events: those that wait.
        lost: number of those that were given up.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.lost = 0
        self._bytes = 0
        self._since = 0.0
        self._reason = ""
        self._left: list[int] = []

    def __bool__(self) -> bool:
        return bool(self.events or self.lost)

    def add(self, events: Sequence[Event], reason: str) -> bool:
        """Let events wait; whether these were too many, and all are given up."""
        if not self:
            self._since, self._reason = events[0].at, reason
        left = [event.call for event in events if isinstance(event, RequestSent)]
        self._left = [min(self._left + left), max(self._left + left)] if self._left + left else []
        was_whole = not self.lost
        self.events.extend(events)
        if was_whole:
            self._bytes += sum(len(msgspec.json.encode(event)) for event in events)
        if self.lost or len(self.events) > MOST_EVENTS or self._bytes > MOST_BYTES:
            self.give_up()
        return was_whole and bool(self.lost)

    def give_up(self) -> None:
        """Keep the number of the events that wait, and nothing else."""
        self.lost += sum(
            event.lost or 1 if isinstance(event, StoreGap) else 1 for event in self.events
        )
        self.events.clear()

    def gap(self, *, at: float, after: int, calls: int) -> StoreGap:
        """The event that tells of it, for a log whose last event in time has that seq."""
        first, last = self._left or (0, 0)
        return StoreGap(
            at=at,
            since=self._since,
            reason=self._reason,
            first_late=after + 1 if self.events else 0,
            late=len(self.events),
            lost=self.lost,
            first_call=first,
            last_call=last,
            calls=calls,
        )
