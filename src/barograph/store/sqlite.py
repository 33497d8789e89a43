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

import msgspec
import zstandard

from barograph.core.canonical import PREFIX
from barograph.core.errors import LogCorrupt, StoreUnavailable, UsageError
from barograph.core.events import CallPlanned, Event
from barograph.store.codec import Encoded, Fetch, Record, decode_record, encode_events
from barograph.store.database import SEQ_BITS, explained_errors, open_database
from barograph.store.protocol import Logged, SessionInfo
from barograph.store.refusals import (
    check_session_id,
    conflict,
    gap,
    is_storable,
    unknown_session,
)

COMPRESS_BYTES: Final = 1024
"""Shorter bodies are stored as they are: a frame would save little and cost time."""

_ZSTD_LEVEL: Final = 3
_BATCH_EVENTS: Final = 256
_LARGEST_INTEGER: Final = 2**63 - 1
_refs_decoder: Final = msgspec.msgpack.Decoder(dict[str, bytes])


class SqliteStore:
    """Logs in a SQLite file. Safe for several threads of a process and for several processes.

    Args:
        path: the file; it and its folder are created when missing.
        synchronous: `normal` survives a killed process, `full` a power cut too.
        busy_timeout_seconds: how long to wait for another writer before `StoreBusy`.

    Raises:
        UsageError: a path that names no file (`:memory:`), or an unknown `synchronous`.
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
        if str(path) in {"", ":memory:"}:
            what = f"{str(path)!r} names no file."
            raise UsageError(what, next_step="For a log that leaves nothing, use MemoryStore.")
        if synchronous not in {"normal", "full"}:
            what = f"synchronous is 'normal' or 'full', not {synchronous!r}."
            raise UsageError(what, next_step="'normal' survives a kill, 'full' a power cut.")
        self.path: Final = Path(path)
        self._wait_seconds: Final = busy_timeout_seconds
        self._lock: Final = threading.Lock()
        self._compressor: Final = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)
        self._owner: Final = os.getpid()
        self._connection: sqlite3.Connection | None = open_database(
            self.path, synchronous=synchronous, wait_seconds=busy_timeout_seconds
        )

    def append(self, session: str, events: Sequence[Event], *, after: int) -> int:
        """Commit events in one transaction and return the seq of the last. See `Store.append`."""
        check_session_id(session)
        encoded = encode_events(session, events, after=after)
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT id, last_seq FROM sessions WHERE session = ?", (session,)
            ).fetchone()
            last = row[1] if row else 0
            if last != after:
                raise conflict(session, after=after, last=last)
            if not encoded:
                return last
            number = row[0] if row else _open_session(connection, session, events[0])
            self._insert(connection, number, last, encoded)
            last += len(encoded)
            connection.execute(
                "UPDATE sessions SET last_at = ?, last_seq = ?, calls = max(calls, ?) WHERE id = ?",
                (float(events[-1].at), last, _highest_call(events), number),
            )
        return last

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

    def last_seq(self, session: str) -> int:
        """Seq of the last event; 0 where there is no such session."""
        row = self._find(session)
        return row[1] if row else 0

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

    def delete(self, session: str) -> None:
        """Remove a session and all that belongs to it. See `Store.delete`."""
        row = self._find(session)
        if row is None:
            raise unknown_session(session)
        first = row[0] << SEQ_BITS
        with self._transaction() as connection:
            connection.execute("DELETE FROM bodies WHERE session = ?", (row[0],))
            connection.execute(
                "DELETE FROM events WHERE id BETWEEN ? AND ?", (first, first + 2**SEQ_BITS - 1)
            )
            connection.execute("DELETE FROM sessions WHERE id = ?", (row[0],))

    def close(self) -> None:
        """Release the file. Closing twice is harmless."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _insert(
        self, connection: sqlite3.Connection, number: int, last: int, encoded: list[Encoded]
    ) -> None:
        first = (number << SEQ_BITS) + last + 1
        connection.executemany(
            "INSERT INTO events VALUES (?, ?, ?, ?)",
            [
                (key, one.record.schema, one.record.data, _pack_refs(one.record.refs))
                for key, one in enumerate(encoded, start=first)
            ],
        )
        bodies = [
            (number, _pack_hash(ref), *self._shrink(body))
            for one in encoded
            for ref, body in one.bodies.items()
        ]
        if bodies:
            connection.executemany("INSERT OR IGNORE INTO bodies VALUES (?, ?, ?, ?)", bodies)

    def _shrink(self, body: bytes) -> tuple[bool, bytes]:
        if len(body) >= COMPRESS_BYTES:
            frame = self._compressor.compress(body)
            if len(frame) < len(body):
                return True, frame
        return False, body

    def _read(
        self, session: str, number: int, after: int, last: int, *, bodies: bool
    ) -> Iterator[Logged]:
        base = number << SEQ_BITS
        fetch = self._fetcher(number) if bodies else None
        seq = after
        while seq < last:
            rows = self._fetch_all(
                "SELECT id, schema, data, refs FROM events WHERE id > ? AND id <= ?"
                " ORDER BY id LIMIT ?",
                (base + seq, base + last, _BATCH_EVENTS),
            )
            if not rows:
                raise gap(session, expected=seq + 1, found=None)
            for key, schema, data, refs in rows:
                seq += 1
                if key != base + seq:
                    raise gap(session, expected=seq, found=key - base)
                record = Record(schema, data, _unpack_refs(session, seq, refs))
                yield Logged(seq, decode_record(session, seq, record, fetch))

    def _fetcher(self, number: int) -> Fetch:
        # One for each reader: a zstd context may not be used by two threads at once.
        decompressor = zstandard.ZstdDecompressor()

        def fetch(ref: str) -> bytes | None:
            rows = self._fetch_all(
                "SELECT zstd, data FROM bodies WHERE session = ? AND hash = ?",
                (number, _pack_hash(ref)),
            )
            if not rows:
                return None
            compressed, data = rows[0]
            if not compressed:
                return bytes(data)
            try:
                return decompressor.decompress(data)
            except (zstandard.ZstdError, MemoryError):
                # Not the bytes that were stored, and so without their hash.
                return b""

        return fetch

    def _find(self, session: str) -> tuple[int, int] | None:
        """Number and last seq of a session."""
        if not is_storable(session):
            return None
        rows = self._fetch_all("SELECT id, last_seq FROM sessions WHERE session = ?", (session,))
        return (rows[0][0], rows[0][1]) if rows else None

    def _fetch_all(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, explained_errors(self.path, self._wait_seconds):
            return self._usable().execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explained_errors(self.path, self._wait_seconds):
            connection = self._usable()
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    def _usable(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailable(
                f"The store {self.path} was closed.",
                next_step="Open it again.",
                path=str(self.path),
            )
        if os.getpid() != self._owner:
            raise StoreUnavailable(
                f"The store {self.path} was opened before this process was forked.",
                next_step="Open a store of its own in each process.",
                path=str(self.path),
            )
        return self._connection


def _open_session(connection: sqlite3.Connection, session: str, first: Event) -> int:
    cursor = connection.execute(
        "INSERT INTO sessions (session, opened_at, last_at, last_seq, calls)"
        " VALUES (?, ?, ?, 0, 0)",
        (session, float(first.at), float(first.at)),
    )
    return int(cursor.lastrowid or 0)


def _highest_call(events: Sequence[Event]) -> int:
    calls = [event.call for event in events if isinstance(event, CallPlanned)]
    return min(max(calls, default=0), _LARGEST_INTEGER)


def _pack_hash(ref: str) -> bytes:
    """`b2:` and 64 hex digits in 35 bytes."""
    return PREFIX.encode() + bytes.fromhex(ref.removeprefix(PREFIX))


def _pack_refs(refs: dict[str, str]) -> bytes | None:
    if not refs:
        return None
    return msgspec.msgpack.encode({name: _pack_hash(ref) for name, ref in refs.items()})


def _unpack_refs(session: str, seq: int, packed: bytes | None) -> dict[str, str]:
    if packed is None:
        return {}
    try:
        refs = _refs_decoder.decode(packed)
    except msgspec.MsgspecError as error:
        raise LogCorrupt(
            f"The references of event {seq} of session {session!r} do not decode: {error}.",
            next_step="Restore the store from a copy, or delete the session.",
            session=session,
            seq=seq,
        ) from error
    prefix = len(PREFIX)
    return {name: PREFIX + packed_hash[prefix:].hex() for name, packed_hash in refs.items()}
