"""How fast events are appended, beside a bare loop that inserts the same bytes.

The bare loop does what any writer must: the same rows, ready made, into the same tables of a file
with the same settings, by the same driver, in the same transactions. It checks, encodes and
compresses nothing. It is run without and with the row that a session has in the list of sessions;
what an append writes is the latter. All take turns, a batch each, so that what else the machine
does strikes all; a figure is the median of the ratios of neighbouring batches.
"""

import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from barograph.store import End, SqliteStore
from barograph.store.codec import encode_events
from barograph.store.database import SEQ_BITS, open_database
from barograph.store.packing import pack_events
from synthetic import SESSION, Appended, synthetic_appends

ROUNDS: Final = 200
BATCHES: Final = 15
GOAL: Final = 0.70
_LISTED: Final = "SELECT last_at, last_seq, calls, holder, held_until FROM sessions"
_ADVANCE: Final = (
    "UPDATE sessions SET last_at = ?, last_seq = ?, calls = ?, holder = ?, held_until = ?"
    " WHERE id = ?"
)
_INTO_EVENTS: Final = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)"
_INTO_BODIES: Final = "INSERT INTO bodies VALUES (?, ?, ?, ?)"
_LEVELS: Final[tuple[Literal["normal", "full"], ...]] = ("normal", "full")


class Rows(NamedTuple):
    """What one transaction leaves in the tables."""

    events: list[tuple[Any, ...]]
    bodies: list[tuple[Any, ...]]
    listed: tuple[Any, ...]


class Figures(NamedTuple):
    """Of one level: events a second of each, and their ratios with the spread of these."""

    ours: float
    bare: float
    listed: float
    ratios: list[float]
    ratios_without_list: list[float]


def main() -> int:
    """Print a row for each level; 1 where the goal is missed."""
    appends = synthetic_appends(ROUNDS)
    events = sum(len(one.events) for one in appends)
    print(f"{BATCHES} batches of {events} events in {len(appends)} transactions")
    print(f"{'':>11} {'events a second':>29}   {'ratio (middle half)':>19}")
    print(
        f"{'synchronous':>11} {'ours':>9} {'bare':>9} {'no list':>9} {'bare':>21} {'no list':>21}"
    )
    missed = False
    for level in _LEVELS:
        figures = measure(appends, level)
        print(
            f"{level:>11} {figures.ours:>9.0f} {figures.listed:>9.0f} {figures.bare:>9.0f}"
            f" {_spread(figures.ratios):>21} {_spread(figures.ratios_without_list):>21}"
        )
        missed = missed or statistics.median(figures.ratios) < GOAL
    print(f"goal: a ratio of at least {GOAL:.2f} at both; {'missed' if missed else 'met'}")
    return int(missed)


def _spread(ratios: list[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def measure(appends: list[Appended], level: Literal["normal", "full"]) -> Figures:
    """Let all write the session again and again, in turns."""
    events = sum(len(one.events) for one in appends)
    bare, listed, ours = [], [], []
    with tempfile.TemporaryDirectory(prefix="barograph-append-") as name:
        folder = Path(name)
        rows = _rows(appends, folder / "rows.db")
        bare_file = open_database(folder / "bare.db", synchronous=level, wait_seconds=5)
        listed_file = open_database(folder / "listed.db", synchronous=level, wait_seconds=5)
        ours_file = SqliteStore(folder / "ours.db", synchronous=level)
        with closing(bare_file), closing(listed_file), closing(ours_file):
            for number in range(1, BATCHES + 2):
                bare.append(_time_bare(bare_file, rows, number, listed=False))
                ours.append(_time_ours(ours_file, appends, f"{SESSION}-{number}"))
                listed.append(_time_bare(listed_file, rows, number, listed=True))
    # The first batch of each warms up.
    return Figures(
        ours=events / statistics.median(ours[1:]),
        bare=events / statistics.median(bare[1:]),
        listed=events / statistics.median(listed[1:]),
        ratios=[one / other for one, other in zip(listed[1:], ours[1:], strict=True)],
        ratios_without_list=[one / other for one, other in zip(bare[1:], ours[1:], strict=True)],
    )


def _rows(appends: list[Appended], path: Path) -> list[Rows]:
    """The rows of each transaction, without their session's number.

    That a store joins the rows of a block afterwards is work of its own, which no loop must do.
    """
    rows, end, last_body = [], End(0, 0), 0
    with closing(SqliteStore(path)) as store, closing(sqlite3.connect(path)) as reader:
        for events, lease in appends:
            packed = pack_events(encode_events(SESSION, events, after=end.seq), after=end.seq)
            end = store.append(SESSION, events, after=end, lease=lease)
            bodies = reader.execute(
                "SELECT rowid, * FROM bodies WHERE rowid > ? ORDER BY rowid", (last_body,)
            ).fetchall()
            last_body = bodies[-1][0] if bodies else last_body
            listed = reader.execute(_LISTED).fetchone()
            rows.append(Rows([tuple(row) for row in packed], [row[2:] for row in bodies], listed))
    return rows


def _time_bare(
    connection: sqlite3.Connection, rows: list[Rows], number: int, *, listed: bool
) -> float:
    ready, key = [], number << SEQ_BITS
    for one in rows:
        events = []
        for row in one.events:
            key += row[0]
            events.append((key, *row))
        ready.append(Rows(events, [(number, *row) for row in one.bodies], (*one.listed, number)))
    connection.execute(
        "INSERT INTO sessions VALUES (?, ?, 0, 0, 0, 0, NULL, 0)", (number, str(number))
    )
    began = time.perf_counter()
    for one in ready:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_INTO_EVENTS, one.events)
        if one.bodies:
            connection.executemany(_INTO_BODIES, one.bodies)
        if listed:
            connection.execute(_ADVANCE, one.listed)
        connection.execute("COMMIT")
    return time.perf_counter() - began


def _time_ours(store: SqliteStore, appends: list[Appended], session: str) -> float:
    end = End(0, 0)
    began = time.perf_counter()
    for events, lease in appends:
        end = store.append(session, events, after=end, lease=lease)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
