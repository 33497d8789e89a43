"""What only the durable store does: files, locks, disks, damage."""

import os
import sqlite3
import stat
import threading
from contextlib import closing

import pytest
from vocabulary import LARGE_CHARS, message, turn

from barograph.core.errors import (
    LogCorrupt,
    SchemaTooNew,
    StoreBusy,
    StoreUnavailable,
    UnknownSession,
    UsageError,
)
from barograph.core.parts import encode_parts
from barograph.store import MemoryStore, SqliteStore, open_store
from barograph.store.codec import encode_events
from barograph.store.packing import ROW_EVENTS, pack_events

LARGE = "x" * LARGE_CHARS


def edit(path, statement, *values):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


def run_at_once(work, names):
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def files_of(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# Opening


def test_the_folder_is_created_and_the_file_is_for_its_owner_only(tmp_path):
    path = tmp_path / "new" / "folder" / "sessions.db"
    with closing(SqliteStore(path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_was_written_is_there_after_reopening(path):
    with closing(SqliteStore(path)) as store:
        store.append("s", [message(LARGE), turn(1)], after=0)
    with closing(SqliteStore(path)) as store:
        assert [logged.event for logged in store.read("s")] == [message(LARGE), turn(1)]


@pytest.mark.parametrize(("synchronous", "level"), [("normal", 1), ("full", 2)])
def test_it_uses_the_write_ahead_log_and_the_durability_asked_for(path, synchronous, level):
    with closing(SqliteStore(path, synchronous=synchronous, busy_timeout_seconds=2.5)) as store:
        pragma = {
            name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "busy_timeout")
        }
    assert pragma == {"journal_mode": "wal", "synchronous": level, "busy_timeout": 2500}


def test_a_path_may_be_text_and_open_store_finds_the_right_kind(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with closing(open_store("memory")) as memory:
        assert isinstance(memory, MemoryStore)
    for where in (str(tmp_path / "a.db"), tmp_path / "b.db", "~/c.db"):
        with closing(open_store(where)) as store:
            assert store.path.parent == tmp_path
    assert {"a.db", "b.db", "c.db"} <= {file.name for file in tmp_path.iterdir()}


@pytest.mark.parametrize("where", [None, 7, object()], ids=["None", "number", "object"])
def test_what_is_no_place_for_logs_is_refused(where):
    with pytest.raises(UsageError, match="neither a path"):
        open_store(where)


@pytest.mark.parametrize(
    "given",
    [
        {"path": ":memory:"},
        {"path": ""},
        {"synchronous": "off"},
        {"busy_timeout_seconds": -1},
        {"busy_timeout_seconds": float("nan")},
    ],
    ids=str,
)
def test_a_setting_outside_its_range_is_refused(path, given):
    with pytest.raises(UsageError) as caught:
        SqliteStore(**{"path": path, **given})
    assert caught.value.next_step
    assert not path.exists()


def test_processes_that_create_the_same_store_at_once_all_succeed(path):
    start, problems = threading.Barrier(8), []

    def create(number):
        start.wait()
        try:
            with closing(SqliteStore(path)) as store:
                store.append(f"s{number}", [turn(number)], after=0)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must see it
            problems.append(error)

    run_at_once(create, range(8))
    assert problems == []
    with closing(SqliteStore(path)) as store:
        assert len(store.sessions()) == 8


def make_text(path):
    path.write_text("Not a database, and longer than the header of one. " * 100)


def make_foreign(path):
    edit(path, "CREATE TABLE customers (name TEXT)")


def make_foreign_with_meta(path):
    edit(path, "CREATE TABLE meta (key TEXT, value TEXT)")
    edit(path, "INSERT INTO meta VALUES ('layout', '1')")


def make_foreign_with_other_meta(path):
    edit(path, "CREATE TABLE meta (id INTEGER, name TEXT, more TEXT)")


@pytest.mark.parametrize(
    "make", [make_text, make_foreign, make_foreign_with_meta, make_foreign_with_other_meta]
)
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(path, make):
    make(path)
    before = files_of(path.parent)
    with pytest.raises(StoreUnavailable, match="not a Barograph store") as caught:
        SqliteStore(path)
    assert caught.value.ids == {"path": str(path)}
    assert caught.value.next_step
    assert files_of(path.parent) == before


def test_a_store_of_a_newer_layout_is_refused_and_left_as_it_is(path):
    SqliteStore(path).close()
    edit(path, "UPDATE meta SET value = 99 WHERE key = 'layout'")
    before = files_of(path.parent)
    with pytest.raises(SchemaTooNew, match="newer than this Barograph") as caught:
        SqliteStore(path)
    assert caught.value.ids == {"path": str(path), "layout": 99}
    assert files_of(path.parent) == before


def test_a_damaged_file_is_refused_and_left_as_it_is(path):
    SqliteStore(path).close()
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * (4096 - 100)
    path.write_bytes(content)
    with pytest.raises(LogCorrupt, match="damaged") as caught:
        SqliteStore(path)
    assert caught.value.ids == {"path": str(path)}
    assert caught.value.next_step
    assert files_of(path.parent) == {path.name: bytes(content)}


def test_a_path_that_cannot_hold_a_file_is_unavailable(tmp_path):
    (tmp_path / "file").write_text("kept")
    for path in (tmp_path, tmp_path / "file" / "sessions.db", tmp_path / "nul\0.db"):
        with pytest.raises(StoreUnavailable) as caught:
            SqliteStore(path)
        assert caught.value.ids == {"path": str(path)}
        assert caught.value.next_step
    assert files_of(tmp_path) == {"file": b"kept"}


def test_a_file_that_may_not_be_written_is_unavailable(path, monkeypatch):
    SqliteStore(path).close()
    before = files_of(path.parent)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StoreUnavailable, match="may not be written"):
        SqliteStore(path)
    assert files_of(path.parent) == before


# Locks and disks


def test_a_lock_held_for_too_long_is_busy_and_nothing_is_lost(path):
    with closing(SqliteStore(path, busy_timeout_seconds=0.05)) as store:
        store.append("s", [turn(1)], after=0)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusy, match=r"0\.05 s") as caught:
                store.append("s", [turn(2)], after=1)
            assert caught.value.ids == {"path": str(path)}
            assert "try again" in caught.value.next_step
            assert list(store.read("s")) == [(1, turn(1))]
            other.execute("ROLLBACK")
        assert store.append("s", [turn(2)], after=1).seq == 2


def test_a_store_can_be_opened_and_read_while_another_process_writes(path, sqlite):
    sqlite.append("s", [message(LARGE)], after=0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE sessions SET calls = 1")
        with closing(SqliteStore(path, busy_timeout_seconds=0)) as store:
            assert list(store.read("s")) == [(1, message(LARGE))]
        other.execute("ROLLBACK")


def test_a_writer_sees_what_another_process_wrote(path, sqlite):
    with closing(SqliteStore(path)) as other:
        assert sqlite.append("s", [turn(1)], after=0).seq == 1
        assert other.append("s", [turn(2)], after=1).seq == 2
        assert [logged.event.turn for logged in sqlite.read("s")] == [1, 2]


def test_writers_of_several_processes_wait_for_each_other(path):
    problems = []

    def write(name):
        try:
            with closing(SqliteStore(path)) as store:
                for number in range(60):
                    store.append(
                        name, [turn(number), message(name * LARGE_CHARS)], after=2 * number
                    )
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must see it
            problems.append(error)

    SqliteStore(path).close()
    run_at_once(write, "abcd")
    assert problems == []
    with closing(SqliteStore(path)) as store:
        assert [info.events for info in store.sessions()] == [120] * 4


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_new_file_that_another_process_holds_is_waited_for(path, lock):
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute(f"BEGIN {lock}")
        release = threading.Timer(0.1, other.execute, ["ROLLBACK"])
        release.start()
        with closing(SqliteStore(path)) as store:
            assert store.append("s", [turn(1)], after=0).seq == 1
        release.join()


def test_a_full_disk_is_unavailable_and_leaves_nothing_behind(sqlite):
    sqlite.append("s", [turn(1)], after=0)
    (pages,) = sqlite._connection.execute("PRAGMA page_count").fetchone()
    sqlite._connection.execute(f"PRAGMA max_page_count = {pages}")
    noise = os.urandom(50_000).hex()
    with pytest.raises(StoreUnavailable, match="full") as caught:
        sqlite.append("s", [turn(2), message(noise)], after=1)
    assert "room" in caught.value.next_step
    assert list(sqlite.read("s")) == [(1, turn(1))]
    sqlite._connection.execute("PRAGMA max_page_count = 1000000")
    assert sqlite.append("s", [turn(2), message(noise)], after=1).seq == 3


def test_a_disk_that_became_read_only_is_unavailable(sqlite):
    sqlite.append("s", [turn(1)], after=0)
    sqlite._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreUnavailable):
        sqlite.append("s", [turn(2)], after=1)
    assert list(sqlite.read("s")) == [(1, turn(1))]


def test_an_interrupted_append_leaves_nothing_behind(sqlite, monkeypatch):
    sqlite.append("s", [turn(1)], after=0)
    with monkeypatch.context() as patch:
        patch.setattr("barograph.store.sqlite.insert_bodies", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sqlite.append("s", [turn(2), message(LARGE)], after=1)
    assert sqlite.append("s", [turn(3)], after=1).seq == 2
    assert [logged.event.turn for logged in sqlite.read("s")] == [1, 3]


def test_a_store_does_not_cross_a_fork(sqlite, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(StoreUnavailable, match="forked"):
        sqlite.append("s", [turn(1)], after=0)


# Content


def test_a_body_is_stored_once_in_each_session(path, sqlite):
    sqlite.append("a", [message(LARGE), message(LARGE)], after=0)
    sqlite.append("a", [message(LARGE)], after=2)
    sqlite.append("b", [message(LARGE)], after=0)
    assert edit(path, "SELECT session, count(*) FROM bodies GROUP BY session") == [(1, 1), (2, 1)]


@pytest.mark.parametrize("text", ["word " * 500, os.urandom(3).hex() * 400], ids=["words", "hex"])
def test_bodies_are_compressed(path, sqlite, text):
    sqlite.append("s", [message(text)], after=0)
    [(zstd, size)] = edit(path, "SELECT zstd, length(data) FROM bodies")
    assert zstd == 1
    assert size < len(encode_parts(message(text).parts)) / 2


def test_a_deleted_session_leaves_no_byte_of_its_text(path, sqlite):
    private = "said-in-confidence-Zq7"
    sqlite.append("stays", [turn(1)], after=0)
    sqlite.append("goes", [message(private), message(private * 120), turn(1)], after=0)
    stored = [private.encode()]
    stored += [row[0] for row in edit(path, "SELECT substr(data, 5, 40) FROM events")][1:]
    stored += [row[0] for row in edit(path, "SELECT substr(data, 5, 40) FROM bodies")]
    assert all(
        any(one in content for content in files_of(path.parent).values()) for one in stored[1:]
    )
    sqlite.delete("goes")
    assert not any(one in content for content in files_of(path.parent).values() for one in stored)
    assert list(sqlite.read("stays")) == [(1, turn(1))]
    assert edit(path, "SELECT count(*) FROM events") == [(1,)]
    assert edit(path, "SELECT count(*) FROM bodies") == [(0,)]


def test_a_session_deleted_under_its_reader_is_unknown_not_corrupt(sqlite):
    for rest in ([message(LARGE)], [turn(number) for number in range(5000)]):
        sqlite.append("s", [turn(0), *rest], after=0)
        reader = sqlite.read("s")
        next(reader)
        sqlite.delete("s")
        with pytest.raises(UnknownSession):
            list(reader)


def test_a_session_that_was_deleted_and_begun_again_is_not_mixed_into_an_old_reader(sqlite):
    many = [turn(number) for number in range(5000)]
    sqlite.append("s", many, after=0)
    reader = sqlite.read("s")
    next(reader)
    sqlite.delete("s")
    sqlite.append("s", many, after=0)
    with pytest.raises(UnknownSession):
        list(reader)


# Damage


def test_a_row_costs_few_bytes_beside_its_content(path):
    with closing(SqliteStore(path)) as store:
        for number in range(0, 10_000, 2):
            noise = os.urandom(75).hex()
            store.append("s", [turn(number), message(noise)], after=number)
        [(rows, content)] = edit(path, "SELECT count(*), sum(length(data)) FROM events")
    assert rows == 10_000 // ROW_EVENTS + (10_000 % ROW_EVENTS) // 2
    assert path.stat().st_size < 1.1 * content


def test_events_are_a_fraction_of_their_json_on_disk(path, sqlite):
    events = [turn(number, at=1.7e9 + number / 7) for number in range(1000)]
    json = sum(len(one.record.data) for one in encode_events("s", events, after=0))
    for number, event in enumerate(events):
        sqlite.append("s", [event], after=number)
    assert edit(path, "SELECT sum(length(data)) FROM events")[0][0] < 0.25 * json


@pytest.mark.parametrize("after", [0, 1, 63, 64, 65, 127, 128, 129, 150])
def test_a_reader_may_begin_anywhere_in_what_was_appended_at_once(path, sqlite, after):
    sqlite.append("s", [turn(0)], after=0)
    sqlite.append("s", [turn(number) for number in range(1, 150)], after=1)
    rows = edit(path, "SELECT count FROM events ORDER BY id")
    assert rows == [(ROW_EVENTS,), (ROW_EVENTS,), (22,)]
    expected = [(number + 1, turn(number)) for number in range(after, 150)]
    assert list(sqlite.read("s", after=after)) == expected


def fill(store, first, last, size=1):
    """Append turns of these numbers, so many at once; their seqs are their numbers."""
    for number in range(first, last + 1, size):
        turns = [turn(one) for one in range(number, min(number + size, last + 1))]
        store.append("s", turns, after=number - 1)


def counts(path):
    return [count for (count,) in edit(path, "SELECT count FROM events ORDER BY id")]


def turns_in(store, **how):
    return [(seq, event.turn) for seq, event in store.read("s", **how)]


@pytest.mark.parametrize("size", [1, 3, 5, 63, 64, 65, 200])
def test_a_block_is_one_row_as_soon_as_its_last_event_is_written(path, sqlite, size):
    fill(sqlite, 1, ROW_EVENTS - 1)
    assert counts(path) == [1] * (ROW_EVENTS - 1)
    fill(sqlite, ROW_EVENTS, 3 * ROW_EVENTS, size)
    assert counts(path) == [ROW_EVENTS] * 3
    assert turns_in(sqlite) == [(seq, seq) for seq in range(1, 3 * ROW_EVENTS + 1)]


def test_events_keep_their_bodies_when_their_rows_become_one(path, sqlite):
    events = [message(f"{number} " * LARGE_CHARS) for number in range(ROW_EVENTS)]
    for number, event in enumerate(events):
        sqlite.append("s", [turn(number), event], after=2 * number)
    assert counts(path) == [ROW_EVENTS] * 2
    assert [event for _, event in sqlite.read("s")][1::2] == events


def test_the_rows_of_another_session_are_left_alone(path, sqlite):
    sqlite.append("other", [turn(1)], after=0)
    fill(sqlite, 1, ROW_EVENTS)
    sqlite.append("other", [turn(2)], after=1)
    assert counts(path) == [1, 1, ROW_EVENTS]
    assert [event.turn for _, event in sqlite.read("other")] == [1, 2]


def test_rows_that_were_written_across_the_end_of_a_block_become_one_with_the_next(path, sqlite):
    """As all versions did that did not cut them there."""
    fill(sqlite, 1, ROW_EVENTS - 4)
    records = encode_events("s", [turn(one) for one in range(61, 71)], after=60)
    [row] = pack_events(records, after=0)
    edit(path, "INSERT INTO events VALUES (4294967296 + 70, ?, ?, ?, ?, ?)", *row)
    edit(path, "UPDATE sessions SET last_seq = 70")
    fill(sqlite, 71, 3 * ROW_EVENTS)
    assert counts(path) == [1] * 60 + [ROW_EVENTS + 4, ROW_EVENTS]
    for after in (0, 59, 60, 63, 64, 65, 69, 70, 128, 190):
        expected = [(seq, seq) for seq in range(after + 1, 3 * ROW_EVENTS + 1)]
        assert turns_in(sqlite, after=after) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET data = x'00' WHERE id & 255 = 9",
        "UPDATE events SET count = 2 WHERE id & 255 = 9",
        "UPDATE events SET schema = 2 WHERE id & 255 = 9",
        "DELETE FROM events WHERE id & 255 = 9",
    ],
    ids=["altered", "other count", "newer schema", "missing"],
)
def test_a_block_with_damage_is_left_as_it_is_and_the_append_succeeds(path, sqlite, statement):
    fill(sqlite, 1, ROW_EVENTS - 1)
    edit(path, statement)
    before = edit(path, "SELECT * FROM events")
    fill(sqlite, ROW_EVENTS, ROW_EVENTS + 5)
    assert edit(path, "SELECT * FROM events WHERE id <= 4294967296 + 63") == before
    reader = sqlite.read("s")
    assert [next(reader).seq for _ in range(8)] == list(range(1, 9))
    with pytest.raises((LogCorrupt, SchemaTooNew)) as caught:
        next(reader)
    assert caught.value.ids["seq"] == 9
    assert turns_in(sqlite, after=ROW_EVENTS) == [(seq, seq) for seq in range(65, 70)]


def test_a_block_that_has_lost_its_first_row_is_left_as_it_is(path, sqlite):
    fill(sqlite, 1, ROW_EVENTS - 1)
    edit(path, "DELETE FROM events WHERE id = 4294967296 + 1")
    fill(sqlite, ROW_EVENTS, ROW_EVENTS)
    assert counts(path) == [1] * (ROW_EVENTS - 1)
    with pytest.raises(LogCorrupt):
        turns_in(sqlite)


def test_an_interrupted_append_leaves_the_rows_of_the_block_it_ends(path, sqlite, monkeypatch):
    fill(sqlite, 1, ROW_EVENTS - 1)
    before = edit(path, "SELECT * FROM events")
    with monkeypatch.context() as patch:
        patch.setattr("barograph.store.sqlite.insert_bodies", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fill(sqlite, ROW_EVENTS, ROW_EVENTS)
    assert edit(path, "SELECT * FROM events") == before


def test_the_rows_that_a_block_had_before_leave_no_byte_when_it_is_deleted(path, sqlite):
    for number in range(ROW_EVENTS - 1):
        sqlite.append("s", [message(os.urandom(40).hex())], after=number)
    stored = [row[0] for row in edit(path, "SELECT substr(data, 9, 40) FROM events")]
    sqlite.append("s", [turn(1)], after=ROW_EVENTS - 1)
    sqlite.delete("s")
    assert not any(one in content for content in files_of(path.parent).values() for one in stored)


def test_what_was_stored_with_dictionary_1_is_read_for_ever(path, sqlite):
    sqlite.append("s", [turn(1)], after=0)
    frame = bytes.fromhex(
        "28b52ffd2041dd00004875726e302e22377d5d05fc79b1bf3a593af1e6bd9f6431fe1a45"
    )
    edit(path, "UPDATE events SET dictionary = 1, data = ?", frame)
    assert list(sqlite.read("s")) == [(1, turn(7, at=1_700_000_000.25))]


# The low byte of an event's key is its seq here.
DAMAGE = {
    "a missing body": ("DELETE FROM bodies", "missing"),
    "an altered body": ("UPDATE bodies SET data = substr(data, 1, 99) || x'00'", "altered"),
    "a body that is no frame": ("UPDATE bodies SET zstd = 1, data = 'text'", "altered"),
    "a body turned into text": ("UPDATE bodies SET zstd = 0, data = 'text'", "altered"),
    "a body under another hash": ("UPDATE bodies SET hash = x'00'", "missing"),
    "an altered event": (
        "UPDATE events SET dictionary = 0, data = '[{}]' WHERE id & 255 = 2",
        "type",
    ),
    "an event that is no frame": ("UPDATE events SET data = '{}' WHERE id & 255 = 2", "frame"),
    "an event with another dictionary": (
        "UPDATE events SET dictionary = 99 WHERE id & 255 = 2",
        "no dictionary 99",
    ),
    "a row of fewer events": ("UPDATE events SET count = 0 WHERE id & 255 = 2", "3 follows|row of"),
    "a row of more events": ("UPDATE events SET count = 2 WHERE id & 255 = 2", "row of 2"),
    "an event turned into a number": ("UPDATE events SET data = 7 WHERE id & 255 = 2", "frame"),
    "altered references": (
        "UPDATE events SET refs = x'c1' WHERE id & 255 = 2",
        "MessagePack|decode",
    ),
    "references of an unknown kind": (
        "UPDATE events SET refs = x'9181a57061727473c403623378' WHERE id & 255 = 2",
        "hash",
    ),
    "a schema that never was": ("UPDATE events SET schema = 'x' WHERE id & 255 = 2", "schema 0"),
    "a missing event": ("DELETE FROM events WHERE id & 255 = 2", "3 follows"),
    "missing events at the end": ("DELETE FROM events WHERE id & 255 > 1", "ends there"),
}


@pytest.mark.parametrize(("statement", "why"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_corrupt_with_session_and_seq_and_the_events_before_it_are_read(
    path, statement, why
):
    with closing(SqliteStore(path)) as store:
        for number, event in enumerate((turn(1), message("word " * 500), turn(3))):
            store.append("s", [event], after=number)
        edit(path, statement)
        reader = store.read("s")
        assert next(reader) == (1, turn(1))
        with pytest.raises(LogCorrupt, match=why) as caught:
            list(reader)
    assert caught.value.ids["session"] == "s"
    assert caught.value.ids["seq"] == 2
    assert caught.value.next_step


def test_a_record_of_a_newer_schema_is_refused_by_seq(path, sqlite):
    sqlite.append("s", [turn(1)], after=0)
    sqlite.append("s", [turn(2)], after=1)
    edit(path, "UPDATE events SET schema = 2 WHERE id = 4294967296 + 2")
    reader = sqlite.read("s")
    assert next(reader) == (1, turn(1))
    with pytest.raises(SchemaTooNew) as caught:
        next(reader)
    assert caught.value.ids == {"session": "s", "seq": 2, "schema": 2}


def test_an_append_that_meets_an_event_that_should_not_be_there_is_refused(path, sqlite):
    sqlite.append("s", [turn(1), turn(2)], after=0)
    edit(path, "UPDATE sessions SET last_seq = 1")
    with pytest.raises(LogCorrupt) as caught:
        sqlite.append("s", [turn(9)], after=1)
    assert caught.value.ids == {"path": str(path)}


# Setting aside


def test_a_damaged_file_is_moved_aside_whole_where_one_may_go_on(path, caplog):
    SqliteStore(path).close()
    damage(path)
    content = path.read_bytes()
    with closing(open_store(path, sets_aside=True)) as store:
        assert store.append("s", [turn(1)], after=0).seq == 1
    assert path.with_name(f"{path.name}.damaged-1").read_bytes() == content
    (told,) = caplog.messages
    assert "damaged-1" in told
    damage(path)
    with closing(open_store(path, sets_aside=True)):
        assert path.with_name(f"{path.name}.damaged-2").exists()


def test_what_is_not_a_damaged_store_is_never_moved(path):
    path.write_bytes(b"a letter to somebody" * 300)
    before = files_of(path.parent)
    with pytest.raises(StoreUnavailable):
        open_store(path, sets_aside=True)
    assert files_of(path.parent) == before


def damage(path):
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * (4096 - 100)
    path.write_bytes(content)
