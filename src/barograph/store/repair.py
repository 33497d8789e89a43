"""Making a damaged search index anew: what is kept, what is filled again, and what is lost.

Logs are not touched. An archive is read again from its log. A document that somebody added is
nowhere else, so one that has lost a part of its text is lost: it is named before it is removed.
"""

from msgspec import Struct
from msgspec.structs import replace

from barograph.core.errors import LogError, UnknownSession
from barograph.store.archive import fill_archive
from barograph.store.documents import Entry
from barograph.store.protocol import Store
from barograph.store.search import archive_of


class Unread(Struct, frozen=True, kw_only=True):
    """A session whose log could not be read to its end; its archive has what it had.

    Attributes:
        session: whose.
        what: what is wrong with the log.
    """

    session: str
    what: str


class Repair(Struct, frozen=True, kw_only=True):
    """What was made of a search index, or would be.

    Attributes:
        done: False where nothing was changed, because documents would be lost.
        sessions: how many logs are in the store; none was changed.
        events: how many events they have.
        kept: how many documents are whole.
        lost: documents that are not.
        archives: how many archives were read again from their logs.
        restored: how many of their records were missing, or not as in the log.
        unread: sessions whose archive could not be completed.
    """

    done: bool
    sessions: int
    events: int
    kept: int
    lost: list[Entry]
    archives: int = 0
    restored: int = 0
    unread: list[Unread] = []


def repair_index(store: Store, *, drops: bool) -> Repair:
    """Make the search index of a store anew.

    Args:
        store: whose index.
        drops: whether documents that are not whole may be removed; else nothing is changed where
            there are some.

    Raises:
        StoreError: the store cannot be read or written.
        LogCorrupt: its file is damaged in more than the index.
    """
    sessions = store.sessions()
    lost = store.index.documents.incomplete()
    every = store.index.documents.entries(with_superseded=True)
    found = Repair(
        done=drops or not lost,
        sessions=len(sessions),
        events=sum(info.events for info in sessions),
        kept=len(every) - len(lost),
        lost=lost,
    )
    if not found.done:
        return found
    archived = [one.session for one in sessions if store.index.position(archive_of(one.session))]
    store.index.reset()
    return _refill(store, archived, found)


def _refill(store: Store, sessions: list[str], found: Repair) -> Repair:
    archives, restored, unread = 0, 0, []
    for session in sessions:
        try:
            restored += fill_archive(store, session, anew=True)
        except UnknownSession:  # it was deleted meanwhile
            continue
        except LogError as error:
            unread.append(Unread(session=session, what=error.what))
        else:
            archives += 1
    return replace(found, archives=archives, restored=restored, unread=unread)
