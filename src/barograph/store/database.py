"""A SQLite file that holds a store: opening it, its tables, and what its errors mean."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

from barograph.core.errors import (
    BarographError,
    LogCorrupt,
    SchemaTooNew,
    StoreBusy,
    StoreUnavailable,
)
from barograph.store.refusals import names_aside

LAYOUT: Final = 1
"""Version of the tables. The version of an event's vocabulary is kept with each event."""

SEQ_BITS: Final = 32
"""The key of a row of events is its session's number shifted by this, plus the seq of the last.

One integer key makes (session, seq) unique without a second tree, keeps a session's events side by
side, and lets SQLite append at the right edge, where it fills pages completely. With the last seq
as the key, the rows that hold an event after seq n are those whose key is larger than that of n.
"""

_PAGE_BYTES: Final = 512
"""A transaction rewrites a few pages and a body leaves its last one half empty: small ones win."""

_CHECKPOINT_PAGES: Final = 8192
"""As many bytes of write-ahead log as SQLite allows with its usual pages."""

# AUTOINCREMENT: the number of a deleted session is never given to another one. Bodies keep a rowid,
# because large rows in an index tree cost half as much again on disk.
_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL UNIQUE,
    opened_at REAL NOT NULL,
    last_at REAL NOT NULL,
    last_seq INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    holder TEXT,
    held_until REAL NOT NULL DEFAULT 0
);
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    schema INTEGER NOT NULL,
    dictionary INTEGER NOT NULL,
    data BLOB NOT NULL,
    refs BLOB
);
CREATE TABLE bodies (
    session INTEGER NOT NULL,
    hash BLOB NOT NULL,
    zstd INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (session, hash)
)
"""

_TABLE_NAMES: Final = frozenset({"meta", "sessions", "events", "bodies"})


def open_database(path: Path, *, synchronous: str, wait_seconds: float) -> sqlite3.Connection:
    """Open a store's file, creating it and its folder where there is none.

    A file that is not a store of ours, or of a newer layout, is left exactly as it is.

    Raises:
        StoreUnavailable: the file or its folder cannot be used, or belongs to something else.
        StoreBusy: another process held it for longer than `wait_seconds`.
        LogCorrupt: the file is damaged.
        SchemaTooNew: its tables are of a newer layout.
    """
    _prepare_file(path)
    with explained_errors(path, wait_seconds):
        # The time-out of `connect` is SQLite's busy_timeout: it holds before the first statement.
        connection = sqlite3.connect(
            path, timeout=wait_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            if _is_empty(connection):
                _create(connection, path, wait_seconds)
            _check_layout(connection, path)
            _use_wal(connection, path, wait_seconds)
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            # A deleted session is overwritten, not only forgotten.
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
    return connection


def identify_file(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one that came to stand in its place; None where none is."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def files_aside(path: Path) -> list[Path]:
    """The damaged files that were set aside from this path."""
    found = (path.with_name(name) for name in names_aside(path.name))
    return list(takewhile(Path.exists, found))


def set_file_aside(path: Path) -> Path:
    """Move a damaged file and its write-ahead log out of the way; return where it is now.

    Raises:
        StoreUnavailable: it cannot be moved.
    """
    try:
        for name in names_aside(path.name):
            aside = path.with_name(name)
            if not aside.exists():
                break
        for suffix in ("-wal", "-shm", ""):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.rename(aside.with_name(aside.name + suffix))
    except OSError as error:
        raise _unusable(path, f"is damaged and cannot be moved ({error})") from error
    return aside


@contextmanager
def explained_errors(path: Path, wait_seconds: float) -> Iterator[None]:
    """Turn every error of SQLite into one of ours, with the original as its cause."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, path, wait_seconds) from error


def explain(error: sqlite3.Error, path: Path, wait_seconds: float) -> BarographError:
    """The error of ours that says what this one of SQLite means."""
    # The low byte is the primary code; the rest refines it. A closed connection has no code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreBusy(
            f"The store {path} was locked by another writer for more than {wait_seconds:g} s.",
            next_step="Nothing was written; try again, or find the process that holds it.",
            path=str(path),
        )
    if code == sqlite3.SQLITE_NOTADB:
        return _foreign(path)
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT}:
        return _damaged(path, str(error))
    return StoreUnavailable(
        f"The store {path} cannot be used ({error}).",
        next_step="Check that the file is there and writable and that its disk has room.",
        path=str(path),
    )


def _damaged(path: Path, how: str) -> LogCorrupt:
    return LogCorrupt(
        f"The store {path} is damaged ({how}).",
        next_step="Restore it from a copy, or run SQLite's `.recover` on a copy of it.",
        path=str(path),
    )


def _foreign(path: Path) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} is not a Barograph store; it was left as it is.",
        next_step="Give the path of a store, or one where no file exists yet.",
        path=str(path),
    )


def _prepare_file(path: Path) -> None:
    """Create folder and file where they are missing; refuse what cannot be written.

    An existing file is not opened to find out: closing a second descriptor on it would drop the
    locks that this process holds on it through SQLite.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            # A log holds what was said in confidence: readable for its owner only.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unusable(path, f"cannot be created ({error})") from error
    if not path.is_file():
        raise _unusable(path, "is not a file")
    _check_length(path)
    if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)):
        raise _unusable(path, "may not be written, or its folder may not")


def _check_length(path: Path) -> None:
    """Refuse a file that was cut to less than a page: SQLite would delete its write-ahead log."""
    with suppress(FileNotFoundError):
        if path.with_name(f"{path.name}-wal").stat().st_size and path.stat().st_size < _PAGE_BYTES:
            raise _damaged(path, "it is shorter than a page, and has a write-ahead log")


def _unusable(path: Path, how: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"The store {path} {how}.",
        next_step="Choose another path, or change what is there.",
        path=str(path),
    )


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(tables == 0)


def _create(connection: sqlite3.Connection, path: Path, wait_seconds: float) -> None:
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    _use_wal(connection, path, wait_seconds)
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have created the tables while we waited for the lock.
    if _is_empty(connection):
        for statement in _TABLES.split(";"):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO meta VALUES ('made_by', 'barograph'), ('layout', ?)", [LAYOUT]
        )
    connection.execute("COMMIT")


def _check_layout(connection: sqlite3.Connection, path: Path) -> None:
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "meta" not in names:
        raise _foreign(path)
    try:
        meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    except sqlite3.OperationalError as error:
        raise _foreign(path) from error
    layout = meta.get("layout")
    if "made_by" not in meta and names >= _TABLE_NAMES:
        # Our tables, and the page that says so is gone: a file that was cut short.
        raise _damaged(path, "its first table does not say whose it is")
    if meta.get("made_by") != "barograph" or not isinstance(layout, int):
        raise _foreign(path)
    if layout > LAYOUT:
        raise SchemaTooNew(
            f"The store {path} has layout {layout}; this Barograph reads up to {LAYOUT}: "
            "the store is newer than this Barograph.",
            next_step="Upgrade Barograph; the file was left as it is.",
            path=str(path),
            layout=layout,
        )


def _use_wal(connection: sqlite3.Connection, path: Path, wait_seconds: float) -> None:
    """Switch to the write-ahead log: readers do not wait for the writer, nor it for them."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            # The switch of a new file does not heed the busy time-out.
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise _unusable(path, "is on a file system that cannot hold a write-ahead log")
        return
