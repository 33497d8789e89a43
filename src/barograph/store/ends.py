"""Where the log of each session ends, and who may write on: the rows of `sessions`.

The check that a writer follows the last event of the very log that it knows, and that nobody else
holds the session, is part of the statement that moves the end, so a writer that goes on pays one
statement for it. The statement asks for the number of the log and for the id: the session may have
been renamed. No number is given to a second log (`AUTOINCREMENT`). Where the statement finds
nothing to change, or the writer knows no number, the row is read, which says why.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

from barograph.core.events import Event
from barograph.store.codec import highest_call
from barograph.store.lease import Lease, check_lease
from barograph.store.protocol import End
from barograph.store.refusals import another_log, conflict

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


def advance(
    connection: sqlite3.Connection,
    session: str,
    events: Sequence[Event],
    *,
    log: int,
    after: int,
    lease: Lease | None,
) -> int:
    """Move the end of a session, or of a new one, from `after` on; return the number of its log.

    `log` is the number that the writer knows; 0 where it knows none. Without events nothing
    changes, and only `log` and `after` are checked.

    Raises:
        SequenceConflict: its log is another one or ends elsewhere, or another writer holds it.
    """
    if not events:
        return _check(connection, session, log, after)
    at = float(events[-1].at)
    holder, until = (lease.holder, lease.until) if lease else (None, 0.0)
    end = (at, after + len(events), highest_call(events), holder, until)
    if log:
        values = (*end, log, session, after, holder, at)
        if connection.execute(_ADVANCE_IF_FREE, values).rowcount:
            return log
    number = _check(connection, session, log, after, writer=lease, at=at)
    if not number:
        number = _insert(connection, session, opened_at=float(events[0].at))
    connection.execute(_ADVANCE, (*end, number))
    return number


def check_end(session: str, end: End, log: int, after: int) -> None:
    """Refuse a writer that is mistaken about the end of a log, or knows another log of that id.

    Raises:
        SequenceConflict: it is.
    """
    if log and end.log and log != end.log:
        raise another_log(session, after=after, last=end.seq)
    if after != end.seq:
        raise conflict(session, after=after, last=end.seq)


def _check(
    connection: sqlite3.Connection,
    session: str,
    log: int,
    after: int,
    *,
    writer: Lease | None = None,
    at: float | None = None,
) -> int:
    """The number of the log that ends at `after`, and 0 of one that is new.

    Whose lease it is matters to those who write at some time, and to nobody else.
    """
    row = connection.execute(FIND, (session,)).fetchone()
    number, last, holder, held_until = row or (0, 0, None, 0.0)
    if at is not None and holder is not None:
        check_lease(session, Lease(holder=holder, until=held_until), writer, at=at)
    check_end(session, End(number, last), log, after)
    return int(number)


def _insert(connection: sqlite3.Connection, session: str, *, opened_at: float) -> int:
    cursor = connection.execute(_INSERT, (session, opened_at, opened_at))
    return int(cursor.lastrowid or 0)
