"""Open a store: a reader never creates one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barograph.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from barograph.store import Store


def store_path_of(given: Path | None) -> Path:
    """The path given, with `~` meaning the user's folder; the default store where none is.

    Raises:
        SettingsError: a settings file or a variable cannot be used.
    """
    from barograph.settings import default_store_path

    return default_store_path() if given is None else given.expanduser()


@contextmanager
def open_to_read(given: Path | None) -> Iterator["Store"]:
    """The store at a path, or the default one; closed afterwards.

    Raises:
        StoreUnavailable: there is none, or it cannot be used.
        StoreBusy: another writer holds it.
        LogError: it is damaged, or of a newer version.
        SettingsError: a settings file or a variable cannot be used.
    """
    from barograph.settings import current_settings
    from barograph.store import SqliteStore

    settings = current_settings().store
    path = settings.path if given is None else given.expanduser()
    if not path.exists():
        raise StoreUnavailable(
            f"There is no store at {path}.",
            next_step="Name one with --store PATH; an agent creates it on its first call.",
            path=str(path),
        )
    store = SqliteStore(path, busy_timeout_seconds=settings.busy_timeout_seconds)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def open_to_write(given: Path | None) -> Iterator["Store"]:
    """The same, made where there is none yet."""
    from barograph.settings import current_settings
    from barograph.store import SqliteStore

    settings = current_settings().store
    store = SqliteStore(
        settings.path if given is None else given.expanduser(),
        synchronous=settings.synchronous,
        busy_timeout_seconds=settings.busy_timeout_seconds,
    )
    try:
        yield store
    finally:
        store.close()
