"""A store that leaves nothing durable: for private sessions, and for tests."""

import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from barograph.core.errors import StoreUnavailable
from barograph.core.events import Event
from barograph.store.codec import Record, decode_record, encode_events, highest_call
from barograph.store.database import explained_errors
from barograph.store.ends import check_end
from barograph.store.fulltext import forget_namespace, rename_namespace
from barograph.store.lease import Lease, check_lease
from barograph.store.protocol import End, Logged, SessionInfo
from barograph.store.refusals import check_session_id, names_aside, unknown_session
from barograph.store.search import SearchIndex, archive_of


class _Log(Struct, kw_only=True):
    number: int
    opened_at: float
    last_at: float = 0.0
    calls: int = 0
    records: list[Record]
    bodies: dict[str, bytes]
    lease: Lease | None = None


class MemoryStore:
    """Logs in the memory of this process, gone when it ends.

    It keeps the same records as a durable store: what could not be stored there is refused here
    too, and readers get new values, never the writer's objects.
    """

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._opened = 0
        self._closed = False
        self._lock: Final = threading.Lock()
        self._search: sqlite3.Connection | None = None
        self._search_lock: Final = threading.Lock()
        self._index: Final = SearchIndex(self._searching, self._searching)

    @property
    def index(self) -> SearchIndex:
        """The full-text index, in memory too."""
        return self._index

    def append(
        self,
        session: str,
        events: Sequence[Event],
        *,
        after: End | int,
        lease: Lease | None = None,
    ) -> End:
        """Add events in one step and return where the log ends. See `Store.append`."""
        check_session_id(session)
        number, seq = after if isinstance(after, End) else (0, after)
        encoded = encode_events(session, events, after=seq)
        with self._lock:
            self._check_open()
            log = self._logs.get(session)
            end = _end_of(log)
            if log and events:
                check_lease(session, log.lease, lease, at=events[-1].at)
            check_end(session, end, number, seq)
            if not encoded:
                return end
            if log is None:
                log = self._logs[session] = self._new_log(events[0].at)
            log.records.extend(one.record for one in encoded)
            for one in encoded:
                log.bodies.update(one.bodies)
            log.lease = lease
            log.last_at = float(events[-1].at)
            log.calls = max(log.calls, highest_call(events))
            return _end_of(log)

    def read(self, session: str, *, after: int = 0, bodies: bool = True) -> Iterator[Logged]:
        """Events with seq greater than `after`, in order. See `Store.read`."""
        with self._lock:
            self._check_open()
            log = self._logs.get(session)
            if log is None:
                raise unknown_session(session)
            start = max(after, 0)
            records = log.records[start:]
        fetch = log.bodies.get if bodies else None
        return (
            Logged(seq, decode_record(session, seq, record, fetch))
            for seq, record in enumerate(records, start=start + 1)
        )

    def end(self, session: str) -> End:
        """Where the log of a session ends; zeros where there is no such session."""
        with self._lock:
            self._check_open()
            return _end_of(self._logs.get(session))

    def last_seq(self, session: str) -> int:
        """Seq of the last event; 0 where there is no such session."""
        return self.end(session).seq

    def release(self, session: str, holder: str) -> None:
        """Give up the lease of a session, if it is this holder's."""
        with self._lock:
            self._check_open()
            log = self._logs.get(session)
            if log and log.lease and log.lease.holder == holder:
                log.lease = None

    def sessions(self) -> list[SessionInfo]:
        """All sessions, the most recently written first."""
        with self._lock:
            self._check_open()
            logs = sorted(self._logs.items(), key=_recency, reverse=True)
            return [
                SessionInfo(
                    session=session,
                    opened_at=log.opened_at,
                    last_at=log.last_at,
                    events=len(log.records),
                    calls=log.calls,
                )
                for session, log in logs
            ]

    def set_aside(self, session: str) -> str:
        """Give a session another id. See `Store.set_aside`."""
        with self._lock:
            self._check_open()
            if session not in self._logs:
                raise unknown_session(session)
            name = next(name for name in names_aside(session) if name not in self._logs)
            self._logs[name] = self._logs.pop(session)
        if self._search is not None:
            with self._searching() as connection:
                rename_namespace(connection, archive_of(session), archive_of(name))
        return name

    def delete(self, session: str) -> None:
        """Remove a session and all that belongs to it. See `Store.delete`."""
        with self._lock:
            self._check_open()
            if self._logs.pop(session, None) is None:
                raise unknown_session(session)
        if self._search is not None:
            with self._searching() as connection:
                forget_namespace(connection, archive_of(session))

    def close(self) -> None:
        """Forget everything. Closing twice is harmless."""
        with self._lock:
            self._closed = True
            self._logs.clear()
        with self._search_lock:
            if self._search is not None:
                self._search.close()

    @contextmanager
    def _searching(self) -> Iterator[sqlite3.Connection]:
        """The database of the index in a transaction; it is made when it is first asked for."""
        with self._search_lock, explained_errors(Path(":memory:"), 0):
            self._check_open()
            connection = self._search
            if connection is None:
                connection = sqlite3.connect(
                    ":memory:", isolation_level=None, check_same_thread=False
                )
                self._search = connection
                weakref.finalize(self, connection.close)
            connection.execute("BEGIN")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")

    def _new_log(self, opened_at: float) -> _Log:
        self._opened += 1
        return _Log(number=self._opened, opened_at=float(opened_at), records=[], bodies={})

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("This memory store was closed.", next_step="Open a new one.")


def _end_of(log: _Log | None) -> End:
    return End(log.number, len(log.records)) if log else End(0, 0)


def _recency(item: tuple[str, _Log]) -> tuple[float, int]:
    return item[1].last_at, item[1].number
