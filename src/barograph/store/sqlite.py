"""The durable store: one SQLite file, in WAL mode, one transaction an append.

What `append` acknowledged survives the death of the process at any moment. With
`synchronous="full"` it survives a power cut too, at the price of one disk flush an append.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

from barograph.core.errors import StoreUnavailable, UsageError
from barograph.core.events import Event
from barograph.store.codec import Record, decode_record, encode_events
from barograph.store.database import SEQ_BITS, explain, explained_errors, open_database
from barograph.store.ends import FIND, advance
from barograph.store.fulltext import explained_index, forget_namespace, rename_namespace
from barograph.store.lease import Lease
from barograph.store.packing import (
    PackedEvents,
    block_stop,
    pack_bodies,
    pack_events,
    pack_hash,
    unpack_body,
    unpack_events,
)
from barograph.store.protocol import End, Logged, SessionInfo
from barograph.store.refusals import (
    check_session_id,
    gap,
    is_storable,
    names_aside,
    undecodable,
    unknown_session,
)
from barograph.store.rows import READ_EVENTS, insert_bodies, insert_events
from barograph.store.search import SearchIndex, archive_of

_BATCH_ROWS: Final = 64
_READ_BODY: Final = (
    "SELECT CAST(zstd AS INTEGER), CAST(data AS BLOB) FROM bodies WHERE session = ? AND hash = ?"
)
_RELEASE: Final = (
    "UPDATE sessions SET holder = NULL, held_until = 0 WHERE session = ? AND holder = ?"
)
_RENAME: Final = "UPDATE sessions SET session = ?, holder = NULL, held_until = 0 WHERE session = ?"


class SqliteStore:
    """Logs in a SQLite file. Safe for several threads of a process and for several processes.

    Args:
        path: the file; it and its folder are created when missing.
        synchronous: `normal` survives a killed process, `full` a power cut too.
        busy_timeout_seconds: how long to wait for another writer before `StoreBusy`.

    Raises:
        UsageError: a path that names no file (`:memory:`), or a setting outside its range.
        StoreUnavailable: the file cannot be used, or is no store.
        StoreBusy: another writer holds it.
        LogCorrupt: the file is damaged.
        SchemaTooNew: written by a newer version.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["normal", "full"] = "normal",
        busy_timeout_seconds: float = 5.0,
    ) -> None:
        _check_settings(path, synchronous, busy_timeout_seconds)
        self.path: Final = Path(path)
        self._wait_seconds: Final = busy_timeout_seconds
        self._lock: Final = threading.Lock()
        self._owner: Final = os.getpid()
        self._connection: sqlite3.Connection | None = open_database(
            self.path, synchronous=synchronous, wait_seconds=busy_timeout_seconds
        )
        self._index: Final = SearchIndex(self._reading, self._transaction)

    @property
    def index(self) -> SearchIndex:
        """The full-text index in the same file."""
        return self._index

    def append(
        self,
        session: str,
        events: Sequence[Event],
        *,
        after: End | int,
        lease: Lease | None = None,
    ) -> End:
        """Commit events in one transaction and return where the log ends. See `Store.append`."""
        check_session_id(session)
        known, seq = after if isinstance(after, End) else (0, after)
        # All work that needs no lock comes before the transaction: it keeps other writers out.
        encoded = encode_events(session, events, after=seq)
        rows, bodies = pack_events(encoded, after=seq), pack_bodies(encoded)
        with self._transaction() as connection:
            number = advance(connection, session, events, log=known, after=seq, lease=lease)
            if encoded:
                insert_events(connection, number << SEQ_BITS, seq, rows)
                insert_bodies(connection, number, bodies)
        return End(number, seq + len(encoded))

    def read(self, session: str, *, after: int = 0, bodies: bool = True) -> Iterator[Logged]:
        """Events with seq greater than `after`, in order. See `Store.read`.

        Rows are fetched in batches, so a reader that stops half-way holds nothing open. Events
        appended after the call are not part of it.
        """
        row = self._find(session)
        if row is None:
            raise unknown_session(session)
        number, last = row
        return self._read(session, number, max(after, 0), last, bodies=bodies)

    def end(self, session: str) -> End:
        """Where the log of a session ends; zeros where there is no such session."""
        return self._find(session) or End(0, 0)

    def last_seq(self, session: str) -> int:
        """Seq of the last event; 0 where there is no such session."""
        return self.end(session).seq

    def release(self, session: str, holder: str) -> None:
        """Give up the lease of a session, if it is this holder's."""
        if is_storable(session):
            self._fetch_all(_RELEASE, (session, holder))

    def sessions(self) -> list[SessionInfo]:
        """All sessions, the most recently written first."""
        rows = self._fetch_all(
            "SELECT session, opened_at, last_at, last_seq, calls FROM sessions"
            " ORDER BY last_at DESC, id DESC"
        )
        return [
            SessionInfo(session=name, opened_at=opened, last_at=last, events=events, calls=calls)
            for name, opened, last, events, calls in rows
        ]

    def set_aside(self, session: str) -> str:
        """Give a session another id. See `Store.set_aside`."""
        if not is_storable(session):
            raise unknown_session(session)
        with self._transaction() as connection:
            for name in names_aside(session):
                if connection.execute(FIND, (name,)).fetchone() is None:
                    break
            if not connection.execute(_RENAME, (name, session)).rowcount:
                raise unknown_session(session)
            rename_namespace(connection, archive_of(session), archive_of(name))
        return name

    def delete(self, session: str) -> None:
        """Remove a session and all that belongs to it. See `Store.delete`.

        Its bytes are overwritten in the file. The file does not shrink: its pages are used again.
        """
        if not is_storable(session):
            raise unknown_session(session)
        with self._transaction() as connection:
            row = connection.execute(FIND, (session,)).fetchone()
            if row is None:
                raise unknown_session(session)
            first = row[0] << SEQ_BITS
            connection.execute("DELETE FROM bodies WHERE session = ?", (row[0],))
            connection.execute(
                "DELETE FROM events WHERE id BETWEEN ? AND ?", (first, first + 2**SEQ_BITS - 1)
            )
            connection.execute("DELETE FROM sessions WHERE id = ?", (row[0],))
            with explained_index(), explained_errors(self.path, self._wait_seconds):
                forget_namespace(connection, archive_of(session))
        # The write-ahead log still holds the text. Where a reader is in the way, this does
        # nothing, and the next checkpoint does it.
        self._fetch_all("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Release the file. Closing twice is harmless."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _read(
        self, session: str, number: int, after: int, last: int, *, bodies: bool
    ) -> Iterator[Logged]:
        base = number << SEQ_BITS
        # By the time it is read, the last event may be in a row with later ones of its block.
        stop = base + block_stop(last)
        seq = after
        while seq < last:
            rows = self._fetch_all(READ_EVENTS, (base + seq, stop, _BATCH_ROWS))
            if not rows:
                raise self._missing(session, number, seq + 1, None)
            for key, *columns in rows:
                packed = PackedEvents(*columns)
                first = key - base - packed.events + 1
                if first > seq + 1:
                    raise self._missing(session, number, seq + 1, first)
                try:
                    records = unpack_events(packed)
                except (ValueError, RecursionError) as error:
                    raise undecodable(session, seq + 1, error) from error
                for record in records[seq + 1 - first : last + 1 - first]:
                    seq += 1
                    yield Logged(seq, self._decode(session, number, seq, record, bodies=bodies))

    def _decode(
        self, session: str, number: int, seq: int, record: Record, *, bodies: bool
    ) -> Event:
        if not (bodies and record.refs):
            return decode_record(session, seq, record, None)
        return decode_record(session, seq, record, lambda ref: self._body(session, number, ref))

    def _body(self, session: str, number: int, ref: str) -> bytes | None:
        rows = self._fetch_all(_READ_BODY, (number, pack_hash(ref)))
        if rows:
            return unpack_body(zstd=rows[0][0], data=rows[0][1])
        self._check_still_there(session, number)
        return None

    def _missing(self, session: str, number: int, expected: int, found: int | None) -> Exception:
        self._check_still_there(session, number)
        return gap(session, expected=expected, found=found)

    def _check_still_there(self, session: str, number: int) -> None:
        """A session that was deleted under its reader is unknown, not corrupt."""
        row = self._find(session)
        if row is None or row[0] != number:
            raise unknown_session(session)

    def _find(self, session: str) -> End | None:
        if not is_storable(session):
            return None
        rows = self._fetch_all(FIND, (session,))
        return End(*rows[0][:2]) if rows else None

    def _fetch_all(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._reading() as connection:
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explained_errors(self.path, self._wait_seconds):
            yield self._usable()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._usable()
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise explain(error, self.path, self._wait_seconds) from error
            finally:
                # An error, or a caller that had nothing to write.
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")

    def _usable(self) -> sqlite3.Connection:
        if self._connection is None:
            what, next_step = "was closed", "Open it again."
        elif os.getpid() != self._owner:
            what = "was opened before this process was forked"
            next_step = "Open a store of its own in each process."
        else:
            return self._connection
        raise StoreUnavailable(
            f"The store {self.path} {what}.", next_step=next_step, path=str(self.path)
        )


def _check_settings(path: str | Path, synchronous: str, busy_timeout_seconds: float) -> None:
    if str(path) in {"", ":memory:"}:
        what = f"{str(path)!r} names no file."
        next_step = "Give the path of a file; MemoryStore keeps a log that leaves nothing."
    elif synchronous not in {"normal", "full"}:
        what = f"synchronous is 'normal' or 'full', not {synchronous!r}."
        next_step = "'normal' survives a killed process, 'full' a power cut too."
    elif not 0 <= busy_timeout_seconds <= 3600:
        what = f"busy_timeout_seconds is {busy_timeout_seconds!r}, outside 0 to 3600."
        next_step = "Give the seconds to wait for another writer."
    else:
        return
    raise UsageError(what, next_step=next_step)
