"""The tables of documents that somebody added, and what is done to them inside a transaction.

**Theory of operation.** A document is cut into passages, which are rows of the full-text index in
namespaces of their own. They are stored once; joined they are the text. A table beside the index
holds what is known of the whole. A document is named by its namespace, its origin and its text, so
another text of the same origin is another version: it takes the place of the one before, which is
no longer found and is still listed. One that a document of another origin has replaced stays
replaced when it is added again, as it is with a folder that holds both.

**Invariants.** Trust never rises (11): the same text has one trust everywhere in a store, the
lowest that was said of it, and nothing takes the place of what is trusted more.

**Out of scope.** Transactions, reading, finding (`store.documents`); reading files
(`barograph.frame.files`).
"""

import sqlite3
from collections.abc import Iterable, Mapping
from functools import reduce
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from barograph.core.errors import UnknownDocument, UsageError
from barograph.core.trust import Trust, lower, reaches
from barograph.store.fulltext import (
    DAMAGED,
    Row,
    delete_row,
    forget_words,
    insert_row,
    make_tables,
    number_of,
    unpack_text,
)

NAMESPACE: Final = "default"
PREFIX: Final = "knowledge:"
"""What a namespace of documents has before its name in the index, where archives have another."""

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS knowledge (
        id TEXT PRIMARY KEY,
        namespace INTEGER NOT NULL,
        origin TEXT NOT NULL,
        domain TEXT NOT NULL,
        date TEXT NOT NULL,
        trust TEXT NOT NULL,
        added_at REAL NOT NULL,
        chars INTEGER NOT NULL,
        passages INTEGER NOT NULL,
        text_hash BLOB NOT NULL,
        superseded_by TEXT NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS knowledge_origins ON knowledge (namespace, origin)",
    "CREATE INDEX IF NOT EXISTS knowledge_texts ON knowledge (text_hash)",
    """CREATE TABLE IF NOT EXISTS knowledge_vectors (
        passage INTEGER NOT NULL,
        model TEXT NOT NULL,
        vector BLOB NOT NULL,
        UNIQUE (passage, model)
    )""",
)
PASSAGES: Final = (
    "SELECT d.id, d.key, d.text, d.namespace FROM knowledge k JOIN search_documents d"
    # The key of a passage is DOCUMENT.NUMBER, and '/' comes right behind '.'.
    " ON d.namespace = k.namespace AND d.key > k.id || '.' AND d.key < k.id || '/'"
    " WHERE k.id = ? ORDER BY d.id"
)
# Versions whose place a new one takes, each with what has replaced it already.
_HEADS: Final = (
    "SELECT k.id, k.trust, coalesce(r.id, '') FROM knowledge k"
    " LEFT JOIN knowledge r ON r.id = k.superseded_by"
    " WHERE k.namespace = ? AND k.origin = ? AND (k.origin <> '' OR k.id = ?)"
    " AND (r.id IS NULL OR r.namespace <> k.namespace OR r.origin <> k.origin OR r.origin = '')"
)

Outcome: TypeAlias = Literal["added", "changed", "unchanged"]


class NewDocument(Struct, frozen=True, kw_only=True):
    """A document to add.

    Attributes:
        text: all of it; not blank.
        namespace: what it belongs to.
        origin: what it was taken from: a file, an address, a session. Another text of the same
            origin is a new version of it. Empty for a text that stands alone.
        domain: the field it belongs to; empty to leave it as it was.
        date: of the text, as ISO 8601; empty to leave it as it was.
        trust: how far it may be trusted. None leaves it as it was; a new text is `external` then,
            for that a text is the operator's has to be said.
        supersedes: id of a document that it takes the place of, besides one of the same origin.
    """

    text: str
    namespace: str = NAMESPACE
    origin: str = ""
    domain: str = ""
    date: str = ""
    trust: Trust | None = None
    supersedes: str = ""


class Added(Struct, frozen=True, kw_only=True):
    """What became of a document that was added.

    Attributes:
        id: names the document.
        outcome: `changed` where its text was there and what is known of it is new.
        trust: the one it has, which may be lower than what was said.
        superseded: ids of documents whose place it took now.
    """

    id: str
    outcome: Outcome
    trust: Trust
    superseded: tuple[str, ...] = ()


def name_of(new: NewDocument) -> str:
    """The id of a document: the same in every store."""
    named = msgspec.json.encode((new.namespace, new.origin, new.text))
    return blake2b(named, digest_size=8).hexdigest()


def make_knowledge(connection: sqlite3.Connection) -> None:
    """Make the tables, and those of the index, where they are missing."""
    make_tables(connection)
    if not has_knowledge(connection):
        for statement in _TABLES:
            connection.execute(statement)


def has_knowledge(connection: sqlite3.Connection) -> bool:
    """Whether a document was ever added."""
    tables = "SELECT 1 FROM sqlite_master WHERE name = 'knowledge'"
    return connection.execute(tables).fetchone() is not None


def add_document(
    connection: sqlite3.Connection, new: NewDocument, rows: Iterable[Row], at: float
) -> Added:
    """Add a document with its passages, or what is new about one that is there.

    Raises:
        UsageError: it would take the place of one that is trusted more.
        UnknownDocument: there is none that it could supersede.
    """
    number, name = number_of(connection, PREFIX + new.namespace), name_of(new)
    text_hash = _text_hash(new.text)
    trust = _trust(connection, text_hash, new.trust)
    places, successor = _places(connection, number, name, new)
    _check_places(new, trust, places)
    outcome = _tell(connection, name, new, trust, successor)
    if outcome is None:
        outcome, passages = "added", list(rows)
        for row in passages:
            insert_row(connection, number, row)
        said = (number, new.origin, new.domain, new.date, trust, float(at))
        whole = (len(new.text), len(passages), text_hash, successor)
        connection.execute(
            "INSERT INTO knowledge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (name, *said, *whole)
        )
    connection.execute("UPDATE knowledge SET trust = ? WHERE text_hash = ?", (trust, text_hash))
    _give_back_places(connection, text_hash, trust)
    replaced = "UPDATE knowledge SET superseded_by = ? WHERE id = ? AND superseded_by <> ?"
    gone = [one for one in places if connection.execute(replaced, (name, one, name)).rowcount]
    return Added(id=name, outcome=outcome, trust=trust, superseded=tuple(gone))


def delete_document(connection: sqlite3.Connection, name: str) -> None:
    """Remove a document with all that was made of it.

    What it took the place of is not found again: that it is out of date has not changed.
    """
    for row, _, data, number in connection.execute(PASSAGES, (name,)).fetchall():
        connection.execute("DELETE FROM knowledge_vectors WHERE passage = ?", (row,))
        delete_row(connection, number, row, data)
    _unlist(connection, name)


def clear_away(connection: sqlite3.Connection) -> None:
    """Take the words of removed documents out of the file, and the names of empty namespaces."""
    forget_words(connection)
    connection.execute(
        "DELETE FROM search_namespaces WHERE substr(name, 1, ?) = ?"
        " AND id NOT IN (SELECT namespace FROM knowledge)",
        (len(PREFIX), PREFIX),
    )


def list_incomplete(connection: sqlite3.Connection) -> list[str]:
    """The documents whose passages are no longer the text that was added."""
    if not has_knowledge(connection):
        return []
    known = connection.execute("SELECT id, text_hash FROM knowledge").fetchall()
    return [name for name, text_hash in known if _hash_passages(connection, name) != text_hash]


def drop_incomplete(connection: sqlite3.Connection) -> None:
    """Remove these, once the index of words was made anew without the damaged passages."""
    for name in list_incomplete(connection):
        delete_document(connection, name)
    if has_knowledge(connection):
        connection.execute(
            "DELETE FROM knowledge_vectors WHERE passage NOT IN (SELECT id FROM search_documents)"
        )


def _text_hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def _hash_passages(connection: sqlite3.Connection, name: str) -> bytes | None:
    rows = connection.execute(PASSAGES, (name,)).fetchall()
    try:
        return _text_hash("".join(unpack_text(data) for _, _, data, _ in rows))
    except DAMAGED:
        return None


def _unlist(connection: sqlite3.Connection, name: str) -> None:
    successor = "SELECT superseded_by FROM knowledge WHERE id = ?"
    ((later,),) = connection.execute(successor, (name,)).fetchall()
    if later:
        connection.execute(
            "UPDATE knowledge SET superseded_by = ? WHERE superseded_by = ?", (later, name)
        )
    connection.execute("DELETE FROM knowledge WHERE id = ?", (name,))


def _give_back_places(connection: sqlite3.Connection, text_hash: bytes, trust: Trust) -> None:
    """Let documents be found again whose successor has come to be trusted less than they are."""
    for higher in (one for one in get_args(Trust) if not reaches(trust, one)):
        connection.execute(
            "UPDATE knowledge SET superseded_by = '' WHERE trust = ? AND superseded_by IN"
            " (SELECT id FROM knowledge WHERE text_hash = ?)",
            (higher, text_hash),
        )


def _trust(connection: sqlite3.Connection, text_hash: bytes, said: Trust | None) -> Trust:
    """The lowest trust that was ever said of a text, now included."""
    known = connection.execute("SELECT trust FROM knowledge WHERE text_hash = ?", (text_hash,))
    told: list[Trust] = [trust for (trust,) in known]
    if said is not None:
        told.append(said)
    return reduce(lower, told) if told else "external"


def _places(
    connection: sqlite3.Connection, number: int, name: str, new: NewDocument
) -> tuple[dict[str, Trust], str]:
    """Trust of the documents whose place it takes, by id; and what has taken its own, if any."""
    heads = connection.execute(_HEADS, (number, new.origin, name)).fetchall()
    places = {one: trust for one, trust, _ in heads if one != name}
    successor = max((later for *_, later in heads), default="")
    if new.supersedes:
        one = "SELECT id, trust FROM knowledge WHERE id = ?"
        row = connection.execute(one, (new.supersedes,)).fetchone()
        if row is None or row[0] == name:
            raise UnknownDocument(
                f"There is no other document {new.supersedes!r} to supersede.",
                next_step="`barograph knowledge list` shows the ids.",
                document=new.supersedes,
            )
        places[row[0]] = row[1]
        successor = ""
    return places, successor


def _check_places(new: NewDocument, trust: Trust, places: Mapping[str, Trust]) -> None:
    for one, trusted in places.items():
        if not reaches(trust, trusted):
            raise UsageError(
                f"{new.origin or 'A text'!r} is trusted as {trust}, and cannot take the place of "
                f"document {one}, which is trusted as {trusted}.",
                next_step="Say how far it may be trusted, if it is so; else forget that one first.",
                document=one,
                origin=new.origin,
            )


def _tell(
    connection: sqlite3.Connection, name: str, new: NewDocument, trust: Trust, successor: str
) -> Outcome | None:
    """Write down what is new about a document that is there; None where it is not."""
    known = "SELECT domain, date, trust, superseded_by FROM knowledge WHERE id = ?"
    before: tuple[Any, ...] | None = connection.execute(known, (name,)).fetchone()
    if before is None:
        return None
    after = (new.domain or before[0], new.date or before[1], trust, successor)
    if after == before:
        return "unchanged"
    connection.execute(
        "UPDATE knowledge SET domain = ?, date = ?, trust = ?, superseded_by = ? WHERE id = ?",
        (*after, name),
    )
    return "changed"
