"""Look into the whole past of a session, whatever its surface still shows.

A search fills the archive from the log first, so it is right whether or not anything was archived
before. Reading goes to the log itself.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from barograph.core.errors import UnknownHandle
from barograph.core.events import MessageSeen
from barograph.store.archive import Messages, fill_archive
from barograph.store.protocol import Store
from barograph.store.search import Document, Hit, archive_of

MOST_FOUND: Final = 20
"""The most hits of one search."""

MOST_AROUND: Final = 10
"""The most messages that are read on either side of one."""

_TRIES: Final = 4
"""Messages that were taken in again after a rewind say the same: they are hits of one message."""


def search_history(store: Store, session: str, query: str, limit: int) -> tuple[Hit, ...]:
    """Messages of a session that hold the words of a query, the best first.

    Raises:
        UnknownSession: no session of exactly that id.
        LogError: the log is damaged, or of a newer version.
        StoreError: the log or the index cannot be used.
    """
    fill_archive(store, session)
    most = min(max(1, limit), MOST_FOUND)
    found: dict[tuple[str, str], Hit] = {}
    for hit in store.index.search((archive_of(session),), query, most * _TRIES):
        found.setdefault((hit.kind, hit.snippet), hit)
    return tuple(found.values())[:most]


def read_history(store: Store, session: str, handle: str, around: int) -> tuple[Document, ...]:
    """A message of a session, and as many of its agent path before and after it, in their order.

    Args:
        store: where the log lives.
        session: whose messages.
        handle: `#` and the seq of the message.
        around: how many on either side, at most `MOST_AROUND`.

    Raises:
        UnknownHandle: no message of that session has that handle.
        UnknownSession: no session of exactly that id.
        LogError: the log is damaged, or of a newer version.
        StoreError: the store cannot be read.
    """
    number = handle.strip().removeprefix("#")
    wanted = int(number) if number.isascii() and number.isdecimal() and len(number) < 12 else 0
    seqs = _seqs_around(store, session, wanted, min(max(0, around), MOST_AROUND))
    if not seqs:
        raise UnknownHandle(
            f"Session {session!r} has no message {handle!r}.",
            next_step="Give the id of a record that history_search found: # and a number.",
            session=session,
            handle=handle,
        )
    return tuple(_documents(store, session, seqs))


def _seqs_around(store: Store, session: str, wanted: int, around: int) -> list[int]:
    """Seqs of a message and its neighbours; nothing where there is no such message."""
    if not 0 < wanted <= store.last_seq(session):
        return []
    before: dict[str, deque[int]] = {}
    seqs: list[int] = []
    path = ""
    for seq, event in store.read(session, bodies=False):
        if not isinstance(event, MessageSeen):
            continue
        if seq == wanted:
            path, seqs = event.path, [*before.get(event.path, ()), seq]
            most = len(seqs) + around
        elif seqs and event.path == path:
            seqs.append(seq)
        elif not seqs:
            before.setdefault(event.path, deque(maxlen=around)).append(seq)
        if seq >= wanted and (not seqs or len(seqs) >= most):
            break
    return seqs


def _documents(store: Store, session: str, seqs: Iterable[int]) -> Iterable[Document]:
    messages = Messages(store, session)
    for seq in seqs:
        logged = next(iter(store.read(session, after=seq - 1)))
        document = messages.document(*logged)
        if document is not None:
            yield document
