"""The one full-text index of a store: documents by namespace and key, found by their words.

Archives of sessions and other documents share it; each has a namespace of its own, and a search
names those it may look into. It lives in the file of the store, in tables that are made on first
use. The texts are kept beside the index, compressed, so a document outlives what it was made from.

SQLite's FTS5 holds the words that `store.words` cuts, without the text. It ranks by bm25.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import zstandard
from msgspec import Struct

from barograph.core.errors import LogCorrupt, StoreUnavailable, UsageError
from barograph.store.words import snippet_of, terms_of, words_in

MOST_HITS: Final = 100
SNIPPET_CHARS: Final = 300
"""The longest piece of a document that a hit shows."""

_MODULE: Final = "fts5"
# The number of a namespace is a word of its own, so that a search reads no other namespace's rows.
# AUTOINCREMENT: a number in a list of words is never given to another document.
_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS search_namespaces (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        read_to INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE IF NOT EXISTS search_documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        namespace INTEGER NOT NULL,
        key TEXT NOT NULL,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        source TEXT NOT NULL,
        text BLOB NOT NULL,
        UNIQUE (namespace, key)
    )""",
    """CREATE VIRTUAL TABLE IF NOT EXISTS search_words
    USING fts5(namespace, words, content='', tokenize='ascii')""",
)
_NUMBER: Final = "SELECT id FROM search_namespaces WHERE name = ?"
_FIND: Final = (
    "SELECT d.id, d.text, d.at, d.kind, d.source FROM search_documents d"
    " JOIN search_namespaces n ON n.id = d.namespace WHERE n.name = ? AND d.key = ?"
)
_MATCH: Final = (
    "SELECT n.name, d.key, d.at, d.kind, d.source, d.text, bm25(search_words, 0.0, 1.0) AS cost"
    " FROM search_words JOIN search_documents d ON d.id = search_words.rowid"
    " JOIN search_namespaces n ON n.id = d.namespace"
    " WHERE search_words MATCH ? ORDER BY cost, d.id DESC LIMIT ?"
)
_UNLIST: Final = "INSERT INTO search_words (search_words, rowid, namespace, words)"

Connected = Callable[[], AbstractContextManager[sqlite3.Connection]]


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
    full-text search, the store is closed) and `StoreBusy`.

    Args:
        reading: gives a connection to read with.
        writing: gives a connection in a transaction that is committed at the end.
    """

    def __init__(self, reading: Connected, writing: Connected) -> None:
        self._reading, self._writing = reading, writing

    def add(self, documents: Iterable[Document], *, read_to: Mapping[str, int] = {}) -> int:
        """Put documents in, all or none; how many were new or had changed.

        Args:
            documents: one that is there already, as it is, is left alone.
            read_to: by namespace, how far its source was read; `position` gives it back.

        Raises:
            UsageError: a name that cannot be stored (it holds a lone surrogate).
        """
        made = [(one, _pack(one.text), " ".join(words_in(one.text))) for one in documents]
        _check_names([one for one, *_ in made], read_to)
        with _explained(), self._writing() as connection:
            _make_tables(connection)
            numbers = {
                name: _number(connection, name)
                for name in {*read_to, *(one.namespace for one, *_ in made)}
            }
            changed = sum(
                _put(connection, numbers[one.namespace], one, data, words)
                for one, data, words in made
            )
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
        with _explained(), self._reading() as connection:
            if not (terms and _has_tables(connection)):
                return ()
            found = (_numbers(connection, name) for name in dict.fromkeys(namespaces))
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
        with _explained(), self._reading() as connection:
            if not (_is_storable(namespace, key) and _has_tables(connection)):
                return None
            row = connection.execute(_FIND, (namespace, key)).fetchone()
            if row is None:
                return None
            _, data, at, kind, source = row
            text = _unpack(data)
        return Document(namespace=namespace, key=key, text=text, at=at, kind=kind, source=source)

    def position(self, namespace: str) -> int:
        """How far the source of a namespace was read; 0 where nothing was."""
        with _explained(), self._reading() as connection:
            if not (_is_storable(namespace) and _has_tables(connection)):
                return 0
            row = connection.execute(
                "SELECT read_to FROM search_namespaces WHERE name = ?", (namespace,)
            ).fetchone()
            return row[0] if row else 0

    def forget(self, namespace: str) -> None:
        """Remove a namespace with all its documents, and their words."""
        with _explained(), self._writing() as connection:
            forget_namespace(connection, namespace)

    def reset(self) -> None:
        """Empty an index that is damaged; archives fill again from their logs."""
        with _explained(), self._writing() as connection:
            if not _has_tables(connection):
                return
            # SQLite cannot drop an index that it cannot open: it gets the insides of a new one.
            connection.execute("CREATE VIRTUAL TABLE search_new USING fts5(words, content='')")
            for statement in (
                "DELETE FROM search_words_data",
                "DELETE FROM search_words_config",
                "INSERT INTO search_words_data SELECT * FROM search_new_data",
                "INSERT INTO search_words_config SELECT * FROM search_new_config",
            ):
                connection.execute(statement)
            for table in ("search_new", "search_words", "search_documents", "search_namespaces"):
                connection.execute(f"DROP TABLE {table}")


def forget_namespace(connection: sqlite3.Connection, name: str) -> None:
    """Remove a namespace in a transaction of the caller's."""
    if not (_is_storable(name) and _has_tables(connection)):
        return
    for number in _numbers(connection, name):
        rows = connection.execute(
            "SELECT id, text FROM search_documents WHERE namespace = ?", (number,)
        ).fetchall()
        for row, data in rows:
            _unlist(connection, number, row, data)
        connection.execute("DELETE FROM search_documents WHERE namespace = ?", (number,))
        connection.execute("DELETE FROM search_namespaces WHERE id = ?", (number,))
        # Without this, the words stay in the index, marked as deleted.
        connection.execute("INSERT INTO search_words (search_words) VALUES ('optimize')")


def rename_namespace(connection: sqlite3.Connection, name: str, new_name: str) -> None:
    """Give a namespace another name, in a transaction of the caller's."""
    if _has_tables(connection):
        forget_namespace(connection, new_name)
        connection.execute("UPDATE search_namespaces SET name = ? WHERE name = ?", (new_name, name))


def _put(
    connection: sqlite3.Connection, number: int, one: Document, data: bytes, words: str
) -> bool:
    row = connection.execute(_FIND, (one.namespace, one.key)).fetchone()
    if row is not None:
        known, before, *rest = row
        if rest == [float(one.at), one.kind, one.source] and _unpack(before) == one.text:
            return False
        _unlist(connection, number, known, before)
        connection.execute("DELETE FROM search_documents WHERE id = ?", (known,))
    cursor = connection.execute(
        "INSERT INTO search_documents (namespace, key, at, kind, source, text)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (number, one.key, float(one.at), one.kind, one.source, data),
    )
    connection.execute(
        "INSERT INTO search_words (rowid, namespace, words) VALUES (?, ?, ?)",
        (cursor.lastrowid, f"n{number}", words),
    )
    return True


def _unlist(connection: sqlite3.Connection, number: int, row: int, data: bytes) -> None:
    # An index without texts must be told what it held.
    words = " ".join(words_in(_unpack(data)))
    connection.execute(f"{_UNLIST} VALUES ('delete', ?, ?, ?)", (row, f"n{number}", words))


def _hit(row: tuple[Any, ...], query: str) -> Hit:
    name, key, at, kind, source, data, cost = row
    return Hit(
        namespace=name,
        key=key,
        snippet=snippet_of(_unpack(data), query, SNIPPET_CHARS),
        at=at,
        kind=kind,
        source=source,
        score=-cost,
    )


def _make_tables(connection: sqlite3.Connection) -> None:
    if _has_tables(connection):
        return
    modules = "SELECT 1 FROM pragma_module_list WHERE name = ?"
    if not connection.execute(modules, (_MODULE,)).fetchone():
        raise StoreUnavailable(
            f"SQLite {sqlite3.sqlite_version} of this Python has no full-text search (FTS5).",
            next_step="Use a Python whose sqlite3 has FTS5, as those of python.org have.",
        )
    for statement in _TABLES:
        connection.execute(statement)


def _has_tables(connection: sqlite3.Connection) -> bool:
    tables = "SELECT 1 FROM sqlite_master WHERE name = 'search_words'"
    return connection.execute(tables).fetchone() is not None


def _number(connection: sqlite3.Connection, name: str) -> int:
    connection.execute("INSERT OR IGNORE INTO search_namespaces (name) VALUES (?)", (name,))
    return _numbers(connection, name)[0]


def _numbers(connection: sqlite3.Connection, name: str) -> list[int]:
    """The number of a namespace, or nothing."""
    if not _is_storable(name):
        return []
    return [row[0] for row in connection.execute(_NUMBER, (name,))]


def _check_names(documents: Iterable[Document], read_to: Mapping[str, int]) -> None:
    named = [(one.namespace, one.key, one.kind, one.source) for one in documents]
    for names in (*named, *((name,) for name in read_to)):
        if not _is_storable(*names):
            raise UsageError(
                f"A document of {names[0]!r} has a name that holds a lone surrogate.",
                next_step="Give it names that are valid Unicode; its text may be anything.",
                namespace=names[0],
            )


def _is_storable(*names: str) -> bool:
    try:
        for name in names:
            name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pack(text: str) -> bytes:
    return zstandard.compress(text.encode("utf-8", "surrogatepass"))


def _unpack(data: bytes) -> str:
    return zstandard.decompress(data).decode("utf-8", "surrogatepass")


@contextmanager
def _explained() -> Iterator[None]:
    """Say that it is the index that is damaged: the log beside it may well be sound."""
    try:
        yield
    except (LogCorrupt, zstandard.ZstdError, UnicodeDecodeError, TypeError) as error:
        raise StoreUnavailable(
            f"The search index is damaged ({error}).",
            next_step="`SearchIndex.reset()` empties it; archives fill again from their logs.",
        ) from error
