"""Where logs live: one Protocol, one contract test, several backends."""

from os import PathLike
from pathlib import Path
from typing import Literal

from barograph.core.errors import UsageError
from barograph.store.memory import MemoryStore
from barograph.store.protocol import Logged, SessionInfo, Store, resolve_session
from barograph.store.sqlite import SqliteStore

__all__ = [
    "Logged",
    "MemoryStore",
    "SessionInfo",
    "SqliteStore",
    "Store",
    "open_store",
    "resolve_session",
]


def open_store(
    where: str | Path | Store,
    *,
    synchronous: Literal["normal", "full"] = "normal",
    busy_timeout_seconds: float = 5.0,
) -> Store:
    """The store at a path, a new one in memory for `memory`, or the store given.

    A file called `memory` is reached as `./memory`. A leading `~` means the user's folder. The
    settings are those of `SqliteStore`.

    Raises:
        UsageError: `where` is none of these.
        StoreUnavailable: the file cannot be used, or is no store.
        StoreBusy: another writer holds it.
        LogCorrupt: the file is damaged.
        SchemaTooNew: written by a newer version.
    """
    if where == "memory":
        return MemoryStore()
    if isinstance(where, str | PathLike):
        return SqliteStore(
            where if not str(where).startswith("~") else Path(where).expanduser(),
            synchronous=synchronous,
            busy_timeout_seconds=busy_timeout_seconds,
        )
    if not callable(getattr(where, "append", None)):
        what = f"{type(where).__name__} is neither a path, nor 'memory', nor a store."
        raise UsageError(what, next_step="Give the path of a store file.")
    return where
