"""Where logs live: one Protocol, one contract test, several backends."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from typing import Final, Literal

from barograph.core.errors import LogCorrupt, UsageError
from barograph.store.database import identify_file, set_file_aside
from barograph.store.memory import MemoryStore
from barograph.store.protocol import End, Logged, SessionInfo, Store, resolve_session
from barograph.store.sqlite import SqliteStore

_log = logging.getLogger("barograph")
_without_files: Final[ContextVar[bool]] = ContextVar("barograph_without_files", default=False)

__all__ = [
    "End",
    "Logged",
    "MemoryStore",
    "SessionInfo",
    "SqliteStore",
    "Store",
    "open_store",
    "resolve_session",
]


@contextmanager
def without_files() -> Iterator[None]:
    """While it lasts, a store that is opened by a path is in memory."""
    token = _without_files.set(True)
    try:
        yield
    finally:
        _without_files.reset(token)


def open_store(
    where: str | Path | Store,
    *,
    synchronous: Literal["normal", "full"] = "normal",
    busy_timeout_seconds: float = 5.0,
    sets_aside: bool = False,
) -> Store:
    """The store at a path, a new one in memory for `memory`, or the store given.

    A file called `memory` is reached as `./memory`. A leading `~` means the user's folder. The
    settings are those of `SqliteStore`. With `sets_aside`, a damaged file is moved aside and a new
    store is begun, with one loud line; nothing of it is deleted.

    Raises:
        UsageError: `where` is none of these.
        StoreUnavailable: the file cannot be used, or is no store.
        StoreBusy: another writer holds it.
        LogCorrupt: the file is damaged.
        SchemaTooNew: written by a newer version.
    """
    is_path = isinstance(where, str | PathLike)
    if where == "memory" or (is_path and _without_files.get()):
        return MemoryStore()
    if isinstance(where, str | PathLike):
        path = Path(where).expanduser() if str(where).startswith("~") else where

        def opened() -> Store:
            return SqliteStore(
                path, synchronous=synchronous, busy_timeout_seconds=busy_timeout_seconds
            )

        before = identify_file(Path(path))
        try:
            return opened()
        except LogCorrupt as error:
            if not sets_aside:
                raise
            # Another process may have been here first: what is there now is then its new store.
            if identify_file(Path(path)) == before:
                aside = set_file_aside(Path(path))
                _log.error("barograph: a new store is begun, the old one is %s: %s", aside, error)
            return opened()
    if not callable(getattr(where, "append", None)):
        what = f"{type(where).__name__} is neither a path, nor 'memory', nor a store."
        raise UsageError(what, next_step="Give the path of a store file.")
    return where
