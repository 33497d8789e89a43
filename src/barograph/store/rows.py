"""The rows of a session: those that an append adds, and those that become one as a block ends."""

import sqlite3
from typing import Final

from barograph.store.packing import (
    ROW_EVENTS,
    PackedBody,
    PackedEvents,
    block_start,
    block_stop,
    join_rows,
)

# The casts undo what an edit by hand may do to a type, so that its bytes can be judged.
READ_EVENTS: Final = (
    "SELECT id, CAST(count AS INTEGER), CAST(schema AS INTEGER), CAST(dictionary AS INTEGER),"
    " CAST(data AS BLOB), CAST(refs AS BLOB) FROM events"
    " WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
)
_INSERT_EVENTS: Final = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)"
_DELETE_EVENTS: Final = "DELETE FROM events WHERE id > ? AND id <= ?"


def insert_events(
    connection: sqlite3.Connection, base: int, after: int, rows: list[PackedEvents]
) -> None:
    """Write the rows of events that follow seq `after`; `base` is the key of the session."""
    first, *_ = rows
    if after % ROW_EVENTS and after + first.events == block_stop(after):
        joined = _take_block(connection, base, after, first)
        if joined is not None:
            after, rows = after + first.events - joined.events, [joined, *rows[1:]]
    key = base + after
    for row in rows:
        key += row.events
        connection.execute(_INSERT_EVENTS, (key, *row))


def _take_block(
    connection: sqlite3.Connection, base: int, after: int, last: PackedEvents
) -> PackedEvents | None:
    """Remove the rows of the block that ends with this one; one row that takes their place.

    None, and nothing is removed, where one of them is missing or damaged.
    """
    start = base + block_start(after)
    found = connection.execute(READ_EVENTS, (start, base + after, ROW_EVENTS)).fetchall()
    rows = [PackedEvents(*columns) for _, *columns in found]
    stops = [key for key, *_ in found]
    starts = [key - row.events for key, row in zip(stops, rows, strict=True)]
    # The first may begin in the block before: rows were not always cut where a block ends.
    if [*starts[1:], base + after] != stops or starts[0] > start:
        return None
    joined = join_rows([*rows, last])
    if joined is not None:
        connection.execute(_DELETE_EVENTS, (start, base + after))
    return joined


def insert_bodies(connection: sqlite3.Connection, number: int, bodies: list[PackedBody]) -> None:
    """Write the bodies of a session, by its number."""
    # A body that the session already holds is not stored again: its hash is its key.
    if bodies:
        connection.executemany(
            "INSERT OR IGNORE INTO bodies VALUES (?, ?, ?, ?)",
            [(number, *body) for body in bodies],
        )
