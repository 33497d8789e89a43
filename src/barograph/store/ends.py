"""Where the log of each session ends, and who may write on: the rows of `sessions`.

The check that a writer follows the last event and that nobody else holds the session is part of the
statement that moves the end, so a writer that goes on pays one statement for it. It must name the
session by its number, which is kept here and may be wrong: the session was deleted, renamed, or
never committed. The statement therefore asks for the id too; numbers are never given twice to what
was committed. Where it finds nothing to change, the row is read, which says why.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

from barograph.core.events import Event
from barograph.store.codec import highest_call
from barograph.store.lease import Lease, check_lease
from barograph.store.refusals import conflict

FIND: Final = "SELECT id, last_seq, holder, held_until FROM sessions WHERE session = ?"
_ADVANCE: Final = (
    "UPDATE sessions SET last_at = ?, last_seq = ?, calls = max(calls, ?), holder = ?,"
    " held_until = ? WHERE id = ?"
)
_ADVANCE_IF_FREE: Final = (
    f"{_ADVANCE} AND session = ? AND last_seq = ?"
    " AND (holder IS NULL OR holder = ? OR held_until <= ?)"
)
_INSERT: Final = (
    "INSERT INTO sessions (session, opened_at, last_at, last_seq, calls) VALUES (?, ?, ?, 0, 0)"
)
_KEPT: Final = 1024


class Ends:
    """The ends of logs, and the numbers of the sessions that were written last."""

    def __init__(self) -> None:
        self._numbers: Final[dict[str, int]] = {}

    def advance(
        self,
        connection: sqlite3.Connection,
        session: str,
        events: Sequence[Event],
        *,
        after: int,
        lease: Lease | None,
    ) -> int:
        """Move the end of a session, or of a new one, from `after` on; return its number.

        Without events nothing changes, and only `after` is checked.

        Raises:
            SequenceConflict: its log ends elsewhere, or another writer holds it.
        """
        if not events:
            return _check(connection, session, after)
        at = float(events[-1].at)
        holder, until = (lease.holder, lease.until) if lease else (None, 0.0)
        end = (at, after + len(events), highest_call(events), holder, until)
        number = self._numbers.get(session)
        if number is not None:
            values = (*end, number, session, after, holder, at)
            if connection.execute(_ADVANCE_IF_FREE, values).rowcount:
                return number
        number = _check(connection, session, after, writer=lease, at=at)
        if not number:
            number = _insert(connection, session, opened_at=float(events[0].at))
        connection.execute(_ADVANCE, (*end, number))
        if len(self._numbers) >= _KEPT:
            self._numbers.clear()
        self._numbers[session] = number
        return number


def _check(
    connection: sqlite3.Connection,
    session: str,
    after: int,
    *,
    writer: Lease | None = None,
    at: float | None = None,
) -> int:
    """The number of a session whose log ends at `after`, and 0 of one that is new.

    Whose lease it is matters to those who write at some time, and to nobody else.
    """
    row = connection.execute(FIND, (session,)).fetchone()
    number, last, holder, held_until = row or (0, 0, None, 0.0)
    if at is not None and holder is not None:
        check_lease(session, Lease(holder=holder, until=held_until), writer, at=at)
    if last != after:
        raise conflict(session, after=after, last=last)
    return int(number)


def _insert(connection: sqlite3.Connection, session: str, *, opened_at: float) -> int:
    cursor = connection.execute(_INSERT, (session, opened_at, opened_at))
    return int(cursor.lastrowid or 0)
