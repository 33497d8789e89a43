"""Documents that somebody added: taken in whole or not at all, listed, read, forgotten."""

from collections.abc import Collection
from datetime import datetime
from typing import Final, get_args

from msgspec import Struct

from barograph.core.errors import UnknownDocument, UsageError
from barograph.core.passages import cut_passages
from barograph.core.trust import Trust
from barograph.store.fulltext import Connected, explained_index, is_unicode, new_row, unpack_text
from barograph.store.knowledge import (
    PASSAGES,
    PREFIX,
    Added,
    NewDocument,
    add_document,
    clear_away,
    delete_document,
    has_knowledge,
    list_incomplete,
    make_knowledge,
    name_of,
)

_ENTRIES: Final = (
    "SELECT k.id, substr(n.name, ?), k.origin, k.domain, k.date, k.trust, k.added_at, k.chars,"
    " k.passages, k.superseded_by FROM knowledge k JOIN search_namespaces n ON n.id = k.namespace"
)


class Entry(Struct, frozen=True, kw_only=True):
    """What is known of a document, without its text.

    Attributes:
        id: names the document.
        namespace: what it belongs to.
        origin: what it was taken from.
        domain: the field it belongs to.
        date: of the text, as it was given.
        trust: how far it may be trusted.
        added_at: seconds since the epoch.
        chars: length of the text.
        passages: how many it was cut into.
        superseded_by: id of the document that took its place, which may be forgotten since; empty
            while it stands.
    """

    id: str
    namespace: str
    origin: str
    domain: str
    date: str
    trust: Trust
    added_at: float
    chars: int
    passages: int
    superseded_by: str


class Documents:
    """The documents of a store (`Store.index.documents`).

    Every method may raise `StoreUnavailable` and `StoreBusy`, as those of `SearchIndex`.
    """

    def __init__(self, reading: Connected, writing: Connected) -> None:
        self._reading, self._writing = reading, writing

    def add(self, new: NewDocument, *, at: float) -> Added:
        """Add a document, or what is new about one that is there; in one transaction.

        Args:
            new: the document.
            at: seconds since the epoch.

        Raises:
            UsageError: a text or a name that cannot be stored, a date that is none, or it would
                take the place of one that is trusted more. Nothing was changed.
            UnknownDocument: there is none that it could supersede.
        """
        _check(new)
        name = name_of(new)
        rows = [
            new_row(key=f"{name}.{number}", at=at, kind="passage", source=name, text=passage)
            for number, passage in enumerate(cut_passages(new.text), 1)
        ]
        with explained_index(), self._writing() as connection:
            make_knowledge(connection)
            return add_document(connection, new, rows, at)

    def entries(self, *, with_superseded: bool = False) -> list[Entry]:
        """What is known of every document, the oldest first."""
        with explained_index(), self._reading() as connection:
            if not has_knowledge(connection):
                return []
            which = "" if with_superseded else " WHERE k.superseded_by = ''"
            rows = connection.execute(
                f"{_ENTRIES}{which} ORDER BY k.added_at, k.rowid", (len(PREFIX) + 1,)
            ).fetchall()
        names = Entry.__struct_fields__
        return [Entry(**dict(zip(names, row, strict=True))) for row in rows]

    def incomplete(self) -> list[Entry]:
        """Documents that lost a part of their text, the oldest first; they cannot be mended."""
        with self._reading() as connection:
            names = set(list_incomplete(connection))
        return [one for one in self.entries(with_superseded=True) if one.id in names]

    def find(self, wanted: str) -> Entry:
        """The document of an id, or of a beginning of one that fits no other.

        Raises:
            UnknownDocument: none matches, or several do.
        """
        found = [one for one in self.entries(with_superseded=True) if one.id.startswith(wanted)]
        if wanted and len(found) == 1:
            return found[0]
        raise UnknownDocument(
            f"{len(found)} documents have an id that begins with {wanted!r}.",
            next_step="`barograph knowledge list --all` shows the ids.",
            document=wanted,
        )

    def read(self, document: str) -> tuple[str, ...]:
        """The passages of the document of exactly that id; joined they are its text."""
        with explained_index(), self._reading() as connection:
            if not (is_unicode(document) and has_knowledge(connection)):
                return ()
            rows = connection.execute(PASSAGES, (document,)).fetchall()
            return tuple(unpack_text(data) for _, _, data, _ in rows)

    def forget(self, documents: Collection[str]) -> int:
        """Remove documents and overwrite their bytes; how many there were.

        What they took the place of is not found again.
        """
        with explained_index(), self._writing() as connection:
            if not has_knowledge(connection):
                return 0
            known = {name for (name,) in connection.execute("SELECT id FROM knowledge")}
            gone = known.intersection(documents)
            for name in gone:
                delete_document(connection, name)
            if gone:
                clear_away(connection)
        with self._reading() as connection:
            # The write-ahead log still holds them. Where a reader is in the way, the next
            # checkpoint takes them out.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return len(gone)


def _check(new: NewDocument) -> None:
    names = (new.namespace, new.origin, new.domain, new.date, new.supersedes)
    where = new.origin or "A text"
    if not new.text.strip():
        what, next_step = f"{where!r} holds no text.", "Give a document that has some."
    elif not is_unicode(new.text, *names):
        what = f"{where!r} holds a lone surrogate, in its text or its names."
        next_step = "Give valid Unicode: no model can be sent anything else."
    elif not new.namespace:
        what, next_step = "A namespace may not be empty.", "Give it a name, or leave it out."
    elif new.trust not in (None, *get_args(Trust)):
        what = f"trust is {new.trust!r}."
        next_step = f"Choose one of {', '.join(get_args(Trust))}."
    elif not _is_date(new.date):
        what, next_step = f"{new.date!r} is no date.", "Write it as 2026-01-31, with a time or not."
    else:
        return
    raise UsageError(what, next_step=next_step, origin=new.origin)


def _is_date(text: str) -> bool:
    try:
        return not text or bool(datetime.fromisoformat(text))
    except ValueError:
        return False
