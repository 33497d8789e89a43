"""The tables of the full-text index, and what is done to them inside a transaction.

The texts are kept beside the index, compressed, so a document outlives what it was made from.
SQLite's FTS5 holds the words that `store.words` cuts, without the text: an index that is told to
forget a document must be told its words once more.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, NamedTuple

import zstandard

from barograph.core.errors import LogCorrupt, StoreUnavailable
from barograph.store.words import words_in

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
# SQLite cannot drop an index that it cannot open: it gets the insides of a new one.
_MEND: Final = (
    "CREATE VIRTUAL TABLE search_new USING fts5(words, content='')",
    "DELETE FROM search_words_data",
    "DELETE FROM search_words_config",
    "INSERT INTO search_words_data SELECT * FROM search_new_data",
    "INSERT INTO search_words_config SELECT * FROM search_new_config",
    "DROP TABLE search_new",
    "DROP TABLE search_words",
    _TABLES[-1],
)
DAMAGED: Final = (zstandard.ZstdError, UnicodeDecodeError, TypeError)
"""What `unpack_text` raises where the bytes are not what was stored."""

_NUMBER: Final = "SELECT id FROM search_namespaces WHERE name = ?"
FIND: Final = (
    "SELECT d.id, d.text, d.at, d.kind, d.source FROM search_documents d"
    " JOIN search_namespaces n ON n.id = d.namespace WHERE n.name = ? AND d.key = ?"
)
_LIST: Final = "INSERT INTO search_words (rowid, namespace, words) VALUES (?, ?, ?)"
_UNLIST: Final = "INSERT INTO search_words (search_words, rowid, namespace, words)"

Connected = Callable[[], AbstractContextManager[sqlite3.Connection]]


class Row(NamedTuple):
    """A document as it is stored: its text packed, and the words that it is found by."""

    key: str
    at: float
    kind: str
    source: str
    data: bytes
    words: str


def new_row(*, key: str, at: float, kind: str, source: str, text: str) -> Row:
    """The row of a document."""
    return Row(key, float(at), kind, source, pack_text(text), " ".join(words_in(text)))


def forget_namespace(connection: sqlite3.Connection, name: str) -> None:
    """Remove a namespace in a transaction of the caller's."""
    if not (is_unicode(name) and has_tables(connection)):
        return
    for number in numbers_of(connection, name):
        rows = connection.execute(
            "SELECT id, text FROM search_documents WHERE namespace = ?", (number,)
        ).fetchall()
        for row, data in rows:
            delete_row(connection, number, row, data)
        connection.execute("DELETE FROM search_namespaces WHERE id = ?", (number,))
        forget_words(connection)


def rename_namespace(connection: sqlite3.Connection, name: str, new_name: str) -> None:
    """Give a namespace another name, in a transaction of the caller's."""
    if has_tables(connection):
        forget_namespace(connection, new_name)
        connection.execute("UPDATE search_namespaces SET name = ? WHERE name = ?", (new_name, name))


def rebuild_words(connection: sqlite3.Connection) -> None:
    """Make the index of words anew; a document whose text is damaged is removed.

    The namespace of such a one is to be read from the beginning: what it has is left alone then.
    """
    for statement in _MEND:
        connection.execute(statement)
    rows = connection.execute("SELECT id, namespace FROM search_documents").fetchall()
    for row, number in rows:
        text = "SELECT text FROM search_documents WHERE id = ?"
        try:
            words = " ".join(words_in(unpack_text(connection.execute(text, (row,)).fetchone()[0])))
        except DAMAGED:
            connection.execute("DELETE FROM search_documents WHERE id = ?", (row,))
            connection.execute("UPDATE search_namespaces SET read_to = 0 WHERE id = ?", (number,))
        else:
            connection.execute(_LIST, (row, f"n{number}", words))


def insert_row(connection: sqlite3.Connection, number: int, row: Row) -> None:
    """Put a new document into a namespace, and its words into the index."""
    cursor = connection.execute(
        "INSERT INTO search_documents (namespace, key, at, kind, source, text)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (number, row.key, row.at, row.kind, row.source, row.data),
    )
    connection.execute(_LIST, (cursor.lastrowid, f"n{number}", row.words))


def delete_row(connection: sqlite3.Connection, number: int, row: int, data: bytes) -> None:
    """Remove a document, and its words from the index."""
    # An index without texts must be told what it held.
    words = " ".join(words_in(unpack_text(data)))
    connection.execute(f"{_UNLIST} VALUES ('delete', ?, ?, ?)", (row, f"n{number}", words))
    connection.execute("DELETE FROM search_documents WHERE id = ?", (row,))


def forget_words(connection: sqlite3.Connection) -> None:
    """Take the words of removed documents out of the file; until then they are only marked."""
    connection.execute("INSERT INTO search_words (search_words) VALUES ('optimize')")


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables where they are missing."""
    if has_tables(connection):
        return
    modules = "SELECT 1 FROM pragma_module_list WHERE name = ?"
    if not connection.execute(modules, (_MODULE,)).fetchone():
        raise StoreUnavailable(
            f"SQLite {sqlite3.sqlite_version} of this Python has no full-text search (FTS5).",
            next_step="Use a Python whose sqlite3 has FTS5, as those of python.org have.",
        )
    for statement in _TABLES:
        connection.execute(statement)


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether anything was ever indexed."""
    tables = "SELECT 1 FROM sqlite_master WHERE name = 'search_words'"
    return connection.execute(tables).fetchone() is not None


def number_of(connection: sqlite3.Connection, name: str) -> int:
    """The number of a namespace, which gets one where it has none."""
    connection.execute("INSERT OR IGNORE INTO search_namespaces (name) VALUES (?)", (name,))
    return numbers_of(connection, name)[0]


def numbers_of(connection: sqlite3.Connection, name: str) -> list[int]:
    """The number of a namespace, or nothing."""
    if not is_unicode(name):
        return []
    return [row[0] for row in connection.execute(_NUMBER, (name,))]


def pack_text(text: str) -> bytes:
    """A text as it is stored."""
    return zstandard.compress(text.encode("utf-8", "surrogatepass"))


def unpack_text(data: bytes) -> str:
    """The text again."""
    return zstandard.decompress(data).decode("utf-8", "surrogatepass")


@contextmanager
def explained_index() -> Iterator[None]:
    """Say that it is the index that is damaged: the log beside it may well be sound."""
    try:
        yield
    except (LogCorrupt, *DAMAGED) as error:
        raise StoreUnavailable(
            f"The search index is damaged ({error}).",
            next_step=(
                "`barograph knowledge repair` makes it anew from the texts beside it and the logs, "
                "which are not touched."
            ),
        ) from error


def is_unicode(*names: str) -> bool:
    """Whether these can be stored as text: none of them holds a lone surrogate."""
    try:
        for name in names:
            name.encode()
    except UnicodeEncodeError:
        return False
    return True
