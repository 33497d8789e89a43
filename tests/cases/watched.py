"""A store that tells when something is archived or folded, and whose archive can be down."""

from barograph.core.errors import StoreUnavailable
from barograph.core.events import Compacted
from cases.registry import UnknownWordError


def archive_fails(case, which=0):
    """Whether the archive is down for that compaction of the case."""
    told = case.given.get("archive") or ()
    said = told[which] if which < len(told) else "ok"
    if said not in ("ok", "fail"):
        raise UnknownWordError(f"an archive that says {said!r}")
    return said == "fail"


class WatchedStore:
    """A store as it is, with an eye on what a compaction does to it.

    `moments` gets `archive` for each write to the index and `compact` for each compaction that is
    committed; while `archive_fails`, the index takes nothing.
    """

    def __init__(self, store, moments, *, archive_fails=False):
        self._store, self.moments = store, moments
        self.archive_fails = archive_fails

    def __getattr__(self, name):
        return getattr(self._store, name)

    @property
    def index(self):
        return _WatchedIndex(self._store.index, self)

    def append(self, session, events, **more):
        end = self._store.append(session, events, **more)
        self.moments += ["compact" for event in events if isinstance(event, Compacted)]
        return end


class _WatchedIndex:
    def __init__(self, index, store):
        self._index, self._store = index, store

    def __getattr__(self, name):
        return getattr(self._index, name)

    def add(self, documents, **more):
        if self._store.archive_fails:
            raise StoreUnavailable(
                "The archive is down.", next_step="Wait until it is back, and try again."
            )
        added = self._index.add(documents, **more)
        self._store.moments.append("archive")
        return added
