"""Find passages of documents: by their words, and by vectors where there are some.

What is asked for is filtered where it is ranked, so whatever is out of scope takes no place from
what is in it. Vectors are compared one by one: about 20 ms for a thousand of 384 numbers.
"""

import sqlite3
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from math import isfinite, sqrt
from operator import mul
from typing import Any, Final, get_args

from barograph.core.errors import UsageError
from barograph.core.recall import Scope
from barograph.core.trust import Item, Trust, reaches
from barograph.store.fulltext import Connected, explained_index, is_unicode, unpack_text
from barograph.store.knowledge import PASSAGES, PREFIX, has_knowledge, make_knowledge
from barograph.store.words import terms_of

MOST_ITEMS: Final = 100

_LEAST_PREFIX_CHARS: Final = 4
"""A short word of a question ("is", "the") begins too many others to tell anything."""

_MATCH: Final = (
    "SELECT d.key, d.text, k.origin, k.domain, k.date, k.trust,"
    " -bm25(search_words, 0.0, 1.0) AS score FROM search_words"
    " JOIN search_documents d ON d.id = search_words.rowid"
    " JOIN knowledge k ON k.id = d.source AND k.namespace = d.namespace"
    " WHERE search_words MATCH ? AND {scope} ORDER BY score DESC, d.id LIMIT ?"
)
_VECTORS: Final = (
    "SELECT d.id, v.vector FROM knowledge_vectors v"
    " JOIN search_documents d ON d.id = v.passage"
    " JOIN knowledge k ON k.id = d.source AND k.namespace = d.namespace"
    " WHERE v.model = ? AND {scope}"
)
_ONE: Final = (
    "SELECT d.key, d.text, k.origin, k.domain, k.date, k.trust, ? FROM search_documents d"
    " JOIN knowledge k ON k.id = d.source AND k.namespace = d.namespace WHERE d.id = ?"
)
_NEWEST: Final = (
    "SELECT k.id, k.origin, k.domain,"
    " CASE k.date WHEN '' THEN coalesce(date(k.added_at, 'unixepoch'), '') ELSE k.date END, k.trust"
    " FROM knowledge k WHERE {scope} ORDER BY k.added_at DESC, k.rowid DESC LIMIT ?"
)
_MISSING: Final = (
    "SELECT d.id, d.text FROM search_documents d"
    " JOIN knowledge k ON k.id = d.source AND k.namespace = d.namespace"
    " WHERE k.superseded_by = ''"
    " AND d.id NOT IN (SELECT passage FROM knowledge_vectors WHERE model = ?)"
    " ORDER BY d.id LIMIT ?"
)
_TWICE: Final = 2
"""So many more are fetched than asked for, since equal passages are given once."""

_MORE: Final = 4
"""So many times more are fetched where most of them were equal."""


class Passages:
    """The passages of the documents of a store (`Store.index.passages`).

    Every method may raise `StoreUnavailable` and `StoreBusy`, as those of `SearchIndex`.
    """

    def __init__(self, reading: Connected, writing: Connected) -> None:
        self._reading, self._writing = reading, writing

    def match(self, query: str, scope: Scope, limit: int) -> tuple[Item, ...]:
        """Passages that hold any word of a query, the best first.

        A query may be any text and has no operators. Equal passages are given once. At most
        `MOST_ITEMS` are given.
        """
        terms = " OR ".join(terms_of(query, _LEAST_PREFIX_CHARS))
        with explained_index(), self._reading() as connection:
            if not (terms and has_knowledge(connection)):
                return ()
            where, values, numbers = _within(connection, scope)
            if not numbers:
                return ()
            within = " OR ".join(f'"n{number}"' for number in numbers)
            wanted = f"{{namespace}} : ({within}) AND {{words}} : ({terms})"
            match = _MATCH.format(scope=where)
            return _first(
                lambda most: connection.execute(match, (wanted, *values, most)).fetchall(), limit
            )

    def nearest(
        self, vector: Sequence[float], *, model: str, scope: Scope, limit: int
    ) -> tuple[Item, ...]:
        """Passages whose vectors point the way of this one most nearly, the best first.

        Args:
            vector: of what is asked for.
            model: what made it; vectors of others are not looked at.
            scope: what may be given.
            limit: at most so many, and `MOST_ITEMS`.
        """
        asked = _unit(vector)
        with explained_index(), self._reading() as connection:
            if not has_knowledge(connection):
                return ()
            where, values, _ = _within(connection, scope)
            rows = connection.execute(_VECTORS.format(scope=where), (model, *values))
            likeness = [(_likeness(asked, data), -passage) for passage, data in rows]
            return _first(
                lambda most: [
                    connection.execute(_ONE, (score, -row)).fetchone()
                    for score, row in nlargest(most, likeness)
                ],
                limit,
            )

    def newest(self, scope: Scope, limit: int) -> tuple[Item, ...]:
        """Whole documents, the one that was added last first; at most so many, and `MOST_ITEMS`.

        One that has no date of its own has that of the day on which it was added.
        """
        with explained_index(), self._reading() as connection:
            if not has_knowledge(connection):
                return ()
            where, values, _ = _within(connection, scope)
            newest = _NEWEST.format(scope=where)
            rows = connection.execute(newest, (*values, _most(limit))).fetchall()
            return tuple(
                Item(
                    id=name,
                    text="".join(
                        unpack_text(data) for _, _, data, _ in connection.execute(PASSAGES, (name,))
                    ).strip("\n"),
                    origin=origin,
                    domain=domain,
                    date=date,
                    trust=trust,
                )
                for name, origin, domain, date, trust in rows
            )

    def without_vector(self, model: str, limit: int) -> dict[int, str]:
        """Texts of passages that have no vector of a model yet, by their numbers."""
        with explained_index(), self._reading() as connection:
            if not has_knowledge(connection):
                return {}
            rows = connection.execute(_MISSING, (model, limit))
            return {row: unpack_text(data) for row, data in rows}

    def put_vectors(self, model: str, vectors: Mapping[int, Sequence[float]]) -> None:
        """Keep vectors of passages; of a passage that is gone, none is kept."""
        made = [(row, model, _unit(vector).tobytes()) for row, vector in vectors.items()]
        with explained_index(), self._writing() as connection:
            make_knowledge(connection)
            for row, *values in made:
                connection.execute(
                    "INSERT OR REPLACE INTO knowledge_vectors"
                    " SELECT id, ?, ? FROM search_documents WHERE id = ?",
                    (*values, row),
                )


def _within(
    connection: sqlite3.Connection, scope: Scope
) -> tuple[str, tuple[object, ...], list[int]]:
    """The condition that a scope sets, its values, and the namespaces that are in it."""
    names = connection.execute(
        "SELECT id, substr(name, ?) FROM search_namespaces"
        " WHERE id IN (SELECT namespace FROM knowledge) ORDER BY id",
        (len(PREFIX) + 1,),
    ).fetchall()
    numbers = [one for one, name in names if scope.namespaces is None or name in scope.namespaces]
    trusts = [one for one in get_args(Trust) if reaches(one, scope.floor)]
    but = [one for one in scope.but_domains if is_unicode(one)]
    where = (
        f"k.superseded_by = '' AND k.trust IN ({_marks(trusts)})"
        f" AND k.namespace IN ({_marks(numbers)}) AND k.domain NOT IN ({_marks(but)})"
    )
    values = (*trusts, *numbers, *but)
    if scope.domains is None:
        return where, values, numbers
    domains = [one for one in scope.domains if is_unicode(one)]
    return f"{where} AND k.domain IN ({_marks(domains)})", (*values, *domains), numbers


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _first(fetch: Callable[[int], list[tuple[Any, ...]]], limit: int) -> tuple[Item, ...]:
    """So many items of the best rows, however many of these are equal."""
    most = _TWICE * _most(limit)
    while True:
        rows = fetch(most)
        items = _items(rows, limit)
        if len(items) >= _most(limit) or len(rows) < most:
            return items
        most *= _MORE


def _items(rows: Iterable[tuple[Any, ...]], limit: int) -> tuple[Item, ...]:
    """The first of the rows as items, the same text once."""
    found: dict[str, Item] = {}
    for key, data, origin, domain, date, trust, score in rows:
        text = unpack_text(data).strip("\n")
        if text not in found:
            found[text] = Item(
                id=key, text=text, origin=origin, domain=domain, date=date, trust=trust, score=score
            )
        if len(found) >= _most(limit):
            break
    return tuple(found.values())


def _most(limit: int) -> int:
    return min(max(1, limit), MOST_ITEMS)


def _unit(vector: Sequence[float]) -> "array[float]":
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    if not isfinite(length):
        raise UsageError(
            "A vector holds a number that is not finite.",
            next_step="Look at what makes the vectors: words find passages meanwhile.",
        )
    return array("f", [one / length for one in vector])


def _likeness(asked: "array[float]", data: bytes) -> float:
    """The cosine of two vectors of length one; 0 where they are not of one kind."""
    if len(data) != len(asked) * asked.itemsize:
        return 0.0
    return float(sum(map(mul, asked, array("f", data))))
