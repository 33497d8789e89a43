"""The one full-text index of a store: documents by namespace and key, found by their words.

Archives of sessions and other documents share it; each has a namespace of its own, and a search
names those it may look into. It lives in the file of the store, in tables that are made on first
use (`store.fulltext`). It ranks by bm25.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from barograph.core.errors import UsageError
from barograph.store.documents import Documents
from barograph.store.fulltext import (
    FIND,
    Connected,
    Row,
    delete_row,
    explained_index,
    forget_namespace,
    has_tables,
    insert_row,
    is_unicode,
    make_tables,
    new_row,
    number_of,
    numbers_of,
    rebuild_words,
    unpack_text,
)
from barograph.store.knowledge import drop_incomplete
from barograph.store.passages import Passages
from barograph.store.words import snippet_of, terms_of

MOST_HITS: Final = 100
SNIPPET_CHARS: Final = 300
"""The longest piece of a document that a hit shows."""

_MATCH: Final = (
    "SELECT n.name, d.key, d.at, d.kind, d.source, d.text, bm25(search_words, 0.0, 1.0) AS cost"
    " FROM search_words JOIN search_documents d ON d.id = search_words.rowid"
    " JOIN search_namespaces n ON n.id = d.namespace"
    " WHERE search_words MATCH ? ORDER BY cost, d.id DESC LIMIT ?"
)


def archive_of(session: str) -> str:
    """The namespace of the messages of a session."""
    return f"chat-archive:{session}"


class Document(Struct, frozen=True, kw_only=True):
    """A text that can be found.

    Attributes:
        namespace: what it belongs to; `archive_of(session)` for messages of a session.
        key: its name in the namespace. Adding another text under it replaces the first.
        text: what is searched, and given back exactly.
        at: seconds since the epoch at which it was said or written.
        kind: what it is; for messages the role, and the tool's name.
        source: where it comes from; for messages the agent path.
    """

    namespace: str
    key: str
    text: str
    at: float = 0.0
    kind: str = ""
    source: str = ""


class Hit(Struct, frozen=True, kw_only=True):
    """A document that a search found, without its whole text.

    Attributes:
        snippet: a piece of it on one line, around what was found; at most `SNIPPET_CHARS`.
        score: bm25 of the words that were asked for; more is better.
    """

    namespace: str
    key: str
    snippet: str
    at: float
    kind: str
    source: str
    score: float


class SearchIndex:
    """The full-text index of a store; a store makes its own (`Store.index`).

    Every method may raise `StoreUnavailable` (the index is damaged, this Python's SQLite has no
    full-text search, the store is closed) and `StoreBusy`. Documents that somebody added are kept
    through `documents` and found through `passages`.

    Args:
        reading: gives a connection to read with.
        writing: gives a connection in a transaction that is committed at the end.
    """

    def __init__(self, reading: Connected, writing: Connected) -> None:
        self._reading, self._writing = reading, writing
        self.documents: Final = Documents(reading, writing)
        self.passages: Final = Passages(reading, writing)

    def add(self, documents: Iterable[Document], *, read_to: Mapping[str, int] = {}) -> int:
        """Put documents in, all or none; how many were new or had changed.

        Args:
            documents: one that is there already, as it is, is left alone.
            read_to: by namespace, how far its source was read; `position` gives it back.

        Raises:
            UsageError: a name that cannot be stored (it holds a lone surrogate).
        """
        made = [(one, _row(one)) for one in documents]
        _check_names([one for one, _ in made], read_to)
        with explained_index(), self._writing() as connection:
            make_tables(connection)
            numbers = {
                name: number_of(connection, name)
                for name in {*read_to, *(one.namespace for one, _ in made)}
            }
            changed = sum(_put(connection, numbers[one.namespace], one, row) for one, row in made)
            for name, seq in read_to.items():
                connection.execute(
                    "UPDATE search_namespaces SET read_to = max(read_to, ?) WHERE id = ?",
                    (seq, numbers[name]),
                )
        return changed

    def search(self, namespaces: Collection[str], query: str, limit: int = 10) -> tuple[Hit, ...]:
        """Documents of these namespaces that hold all words of a query, the best first.

        Where none holds them all, those that hold any. A query may be any text: it has no
        operators, and one without a word finds nothing. At most `MOST_HITS` are given.
        """
        terms = terms_of(query)
        with explained_index(), self._reading() as connection:
            if not (terms and has_tables(connection)):
                return ()
            found = (numbers_of(connection, name) for name in dict.fromkeys(namespaces))
            within = " OR ".join(f'"n{number}"' for numbers in found for number in numbers)
            if not within:
                return ()
            most = min(max(1, limit), MOST_HITS)
            rows: list[tuple[Any, ...]] = []
            for joined in (" AND ".join(terms), " OR ".join(terms)):
                wanted = f"{{namespace}} : ({within}) AND {{words}} : ({joined})"
                rows = rows or connection.execute(_MATCH, (wanted, most)).fetchall()
            return tuple(_hit(row, query) for row in rows)

    def get(self, namespace: str, key: str) -> Document | None:
        """A document, exactly as it was added; None where there is none."""
        with explained_index(), self._reading() as connection:
            if not (is_unicode(namespace, key) and has_tables(connection)):
                return None
            row = connection.execute(FIND, (namespace, key)).fetchone()
            if row is None:
                return None
            _, data, at, kind, source = row
            text = unpack_text(data)
        return Document(namespace=namespace, key=key, text=text, at=at, kind=kind, source=source)

    def position(self, namespace: str) -> int:
        """How far the source of a namespace was read; 0 where nothing was."""
        with explained_index(), self._reading() as connection:
            if not (is_unicode(namespace) and has_tables(connection)):
                return 0
            row = connection.execute(
                "SELECT read_to FROM search_namespaces WHERE name = ?", (namespace,)
            ).fetchone()
            return row[0] if row else 0

    def forget(self, namespace: str) -> None:
        """Remove a namespace with all its documents, and their words."""
        with explained_index(), self._writing() as connection:
            forget_namespace(connection, namespace)

    def reset(self) -> None:
        """Make a damaged index anew from the texts beside it.

        A text that is damaged itself is removed: archives fill again from their logs, and a
        document that was added from elsewhere goes as a whole (`documents.incomplete`).
        `barograph.store.repair` does all that can be done.

        Raises:
            LogCorrupt: more than the index is damaged.
        """
        with self._writing() as connection:
            if not has_tables(connection):
                return
            rebuild_words(connection)
            drop_incomplete(connection)


def _row(one: Document) -> Row:
    return new_row(key=one.key, at=one.at, kind=one.kind, source=one.source, text=one.text)


def _put(connection: sqlite3.Connection, number: int, one: Document, row: Row) -> bool:
    known = connection.execute(FIND, (one.namespace, one.key)).fetchone()
    if known is not None:
        place, before, *rest = known
        if rest == [row.at, row.kind, row.source] and unpack_text(before) == one.text:
            return False
        delete_row(connection, number, place, before)
    insert_row(connection, number, row)
    return True


def _hit(row: tuple[Any, ...], query: str) -> Hit:
    name, key, at, kind, source, data, cost = row
    return Hit(
        namespace=name,
        key=key,
        snippet=snippet_of(unpack_text(data), query, SNIPPET_CHARS),
        at=at,
        kind=kind,
        source=source,
        score=-cost,
    )


def _check_names(documents: Iterable[Document], read_to: Mapping[str, int]) -> None:
    named = [(one.namespace, one.key, one.kind, one.source) for one in documents]
    for names in (*named, *((name,) for name in read_to)):
        if not is_unicode(*names):
            raise UsageError(
                f"A document of {names[0]!r} has a name that holds a lone surrogate.",
                next_step="Give it names that are valid Unicode; its text may be anything.",
                namespace=names[0],
            )
