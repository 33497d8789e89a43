"""What a place for logs must do."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from barograph.core.errors import UnknownSession
from barograph.core.events import Event
from barograph.store.lease import Lease
from barograph.store.search import SearchIndex


class Logged(NamedTuple):
    """An event and its number in the session."""

    seq: int
    event: Event


class End(NamedTuple):
    """Where a log ends.

    Attributes:
        log: number of the log in its store, 0 where there is none. A session that is deleted and
            begun anew, to whatever length, has a log of another number.
        seq: of its last event.
    """

    log: int
    seq: int


class SessionInfo(Struct, frozen=True, kw_only=True):
    """One row of the list of sessions.

    Attributes:
        session: the id, exactly as given.
        opened_at: seconds since the epoch of the first event.
        last_at: seconds since the epoch of the last event.
        events: number of events.
        calls: number of model calls.
    """

    session: str
    opened_at: float
    last_at: float
    events: int
    calls: int


class Store(Protocol):
    """An append-only home for sessions. There is no update, and deletion is by whole session.

    Every method may raise `StoreUnavailable` (cannot be opened, read or written) and `StoreBusy`
    (locked by another writer for longer than the store waits).
    """

    @property
    def index(self) -> SearchIndex:
        """The full-text index that lives beside the logs, as durable as they are."""
        ...

    def append(
        self,
        session: str,
        events: Sequence[Event],
        *,
        after: End | int,
        lease: Lease | None = None,
    ) -> End:
        """Commit events in one transaction and return where the log ends with them.

        `after` is where the writer believes it to end: what `end` or its last append told, or a
        seq alone (0 for a new session), which may be that of any log of this id. `lease` replaces
        the lease of the session; without one, the session is held by nobody afterwards. The time
        is that of the last event.

        Raises:
            SequenceConflict: another writer was first, or holds the session, or the session was
                deleted; nothing was written.
            UsageError: an empty session id, or a value that JSON cannot hold; nothing was written.
        """
        ...

    def read(self, session: str, *, after: int = 0, bodies: bool = True) -> Iterator[Logged]:
        """Events with seq greater than `after`, in order.

        Without `bodies`, fields that are stored by content hash keep their empty default where the
        stored value is external: enough for lists and figures, and quick.

        Raises:
            UnknownSession: no session of exactly that id.
            LogCorrupt: a gap, a body that is missing or altered, an event that does not decode.
            SchemaTooNew: written by a newer version.
        """
        ...

    def end(self, session: str) -> End:
        """Where the log of a session ends; zeros where there is no such session."""
        ...

    def last_seq(self, session: str) -> int:
        """Seq of the last event; 0 where there is no such session."""
        ...

    def release(self, session: str, holder: str) -> None:
        """Give up the lease of a session, if it is this holder's."""
        ...

    def sessions(self) -> list[SessionInfo]:
        """All sessions, the most recently written first."""
        ...

    def set_aside(self, session: str) -> str:
        """Give a session another id, so that its own is free; return that id.

        For a log that is damaged: nothing of it is lost, and its events are as they were.

        Raises:
            UnknownSession: no session of exactly that id.
        """
        ...

    def delete(self, session: str) -> None:
        """Remove a session and all that belongs to it.

        Raises:
            UnknownSession: no session of exactly that id.
        """
        ...

    def close(self) -> None:
        """Release what the store holds. Closing twice is harmless."""
        ...


def resolve_session(store: Store, wanted: str) -> str:
    """The full id for an id, a unique prefix of one, or `latest`.

    Raises:
        UnknownSession: none matches, or several do; the error lists what is there.
    """
    known = [info.session for info in store.sessions()]
    if wanted == "latest" and known:
        return known[0]
    matches = [name for name in known if name == wanted] or [
        name for name in known if wanted and name.startswith(wanted)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        what = f"{len(matches)} sessions start with {wanted!r}: {', '.join(matches[:5])}."
        raise UnknownSession(what, next_step="Give more of the id.", session=wanted)
    shown = ", ".join(known[:5]) or "none"
    raise UnknownSession(
        f"No session {wanted!r} in this store.",
        next_step=f"`barograph sessions` lists them; the most recent are: {shown}.",
        session=wanted,
    )
