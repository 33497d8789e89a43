"""A session on a real file: full, locked, read-only, damaged. Nothing is lost quietly."""

import logging
import sqlite3
from contextlib import closing, contextmanager

import pytest
from vocabulary import turn

from barograph.audit.verify import verify_session
from barograph.core.errors import LogCorrupt, StoreError
from barograph.core.events import StoreGap
from barograph.core.learning import restore
from barograph.core.policy import Policy
from barograph.store import SqliteStore, open_store
from talk import Talk


@pytest.fixture
def store(path):
    with closing(SqliteStore(path, busy_timeout_seconds=0.02)) as opened:
        yield opened


@contextmanager
def full(store):
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    yield
    store._connection.execute("PRAGMA max_page_count = 1000000")


@contextmanager
def locked(store):
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def read_only(store):
    store._connection.execute("PRAGMA query_only = ON")
    yield
    store._connection.execute("PRAGMA query_only = OFF")


TROUBLES = [full, locked, read_only]
LONG = "".join(f"line {number}\n" for number in range(20_000))


def is_as_its_log(talk):
    return talk.session.state == restore(talk.codec, talk.store.read(talk.name))


@pytest.mark.parametrize("trouble", TROUBLES)
def test_invariant_13_a_turn_goes_on_through_trouble_and_its_events_are_written_late(
    store, trouble
):
    talk = Talk(store)
    talk.call(say="before")
    with trouble(store):
        talk.session.catch_up(at=talk.at)
        talk.call(say=LONG, reply=[("read", {})], results=[LONG[::-1]])
        assert talk.session.waiting_events
    talk.call(reply="done")

    assert is_as_its_log(talk)
    assert [e.lost for _, e in store.read("s1") if isinstance(e, StoreGap)] == [0]
    result = verify_session(store, "s1")
    assert result.is_sound
    assert result.exact == 3


@pytest.mark.parametrize("trouble", TROUBLES)
def test_invariant_1_where_the_policy_is_to_stop_nothing_leaves_in_trouble(store, trouble):
    talk = Talk(store, policy=Policy(on_store_error="stop"))
    talk.call(say="before")
    with trouble(store), pytest.raises(StoreError):
        talk.call(say=LONG)
    assert len(list(store.read("s1"))) == store.last_seq("s1")
    talk.call(say=None)
    assert verify_session(store, "s1").is_sound


def test_a_log_that_another_writer_left_damaged_is_set_aside_in_mid_life(path, store, caplog):
    one, two = Talk(store), Talk(store)
    two.session.catch_up(at=two.at)
    two.call(say="two")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE events SET data = '{}' WHERE id = (SELECT max(id) FROM events)")

    one.session.catch_up(at=two.at)
    one.call(say="one", after=100.0)

    assert "s1.damaged-1" in caplog.text
    assert is_as_its_log(one)
    assert verify_session(store, "s1").is_sound
    assert not verify_session(store, "s1.damaged-1").is_sound


def test_a_log_that_cannot_even_be_set_aside_does_not_break_the_turn(store, monkeypatch, caplog):
    Talk(store).call(say="before")

    def fail(*_, **__):
        raise LogCorrupt("The file is damaged.")

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR, logger="barograph"):
        for name in ("read", "set_aside", "append"):
            patch.setattr(store, name, fail)
        talk = Talk(store)
        talk.session.catch_up(at=talk.at)
        talk.call(say="go on")
        assert talk.session.waiting_events
        assert "goes on unlogged" in caplog.text
    talk.session.catch_up(at=talk.at)
    talk.call(say="and on")
    assert is_as_its_log(talk)
    assert [one.code for one in verify_session(store, "s1").findings] == ["events_lost"]


def test_nothing_is_written_behind_a_log_that_does_not_fold(store, monkeypatch):
    Talk(store).call(say="before")
    before = store.last_seq("s1")

    def fail(*_, **__):
        raise LogCorrupt("The file is damaged.")

    for name in ("read", "set_aside"):
        monkeypatch.setattr(store, name, fail)
    talk = Talk(store)
    talk.call(say="go on")
    assert store.last_seq("s1") == before
    assert talk.session.waiting_events


@pytest.mark.parametrize("keep", [1000, 5000, 9000])
def test_a_file_cut_short_is_set_aside_and_never_taken_for_a_new_store(path, keep):
    with closing(SqliteStore(path)) as store:
        Talk(store).call(say=LONG)
    cut = path.read_bytes()[:keep]
    path.write_bytes(cut)
    with pytest.raises(LogCorrupt):
        open_store(path)
    assert path.read_bytes() == cut
    with closing(open_store(path, sets_aside=True)) as store:
        assert store.sessions() == []
    assert path.with_name(f"{path.name}.damaged-1").read_bytes() == cut


def test_a_new_store_that_another_process_began_meanwhile_is_left_there(path, monkeypatch):
    path.write_bytes(b"")
    tries = []

    def opened(where, **how):
        tries.append(where)
        if len(tries) == 1:  # another process moves the damaged file, and begins a new one
            path.rename(path.with_name("moved"))
            SqliteStore(path).close()
            raise LogCorrupt("The file is damaged.")
        return SqliteStore(where, **how)

    monkeypatch.setattr("barograph.store.SqliteStore", opened)
    open_store(path, sets_aside=True).close()
    assert len(tries) == 2
    assert not path.with_name(f"{path.name}.damaged-1").exists()


@pytest.mark.parametrize("keep", [0, 50, 1000, 4096, 5000])
def test_what_the_write_ahead_log_of_a_damaged_file_holds_is_set_aside_too(path, tmp_path, keep):
    with closing(SqliteStore(path)) as store:
        Talk(store).call(say=LONG)
        store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.append("s-4242", [turn(1)], after=0)
        left = path.read_bytes()[:keep], path.with_name(f"{path.name}-wal").read_bytes()
    killed = tmp_path / "killed.db"
    killed.write_bytes(left[0])
    killed.with_name("killed.db-wal").write_bytes(left[1])

    with closing(open_store(killed, sets_aside=True)) as store:
        assert store.sessions() == []

    # SQLite may have carried it over into the file itself; it never just goes.
    aside = [one.read_bytes() for one in tmp_path.glob("killed.db.damaged-1*")]
    assert any(b"s-4242" in content for content in aside)
