"""A writer that knows the number of its log is never wrong about the session."""

from contextlib import closing

import pytest
from vocabulary import turn

from barograph.core.errors import SequenceConflict
from barograph.store import SqliteStore
from barograph.store.lease import Lease, new_holder


@pytest.fixture
def other(path, sqlite):
    """Another process with the same file."""
    with closing(SqliteStore(path)) as store:
        yield store


def turns(store, session):
    return [logged.event.turn for logged in store.read(session)]


def test_a_session_that_another_process_deleted_is_begun_anew(sqlite, other):
    end = sqlite.append("s", [turn(1)], after=0)
    other.delete("s")

    with pytest.raises(SequenceConflict):
        sqlite.append("s", [turn(2)], after=end)
    assert sqlite.append("s", [turn(3)], after=0).seq == 1
    assert turns(other, "s") == [3]


def test_a_session_that_was_begun_anew_is_not_taken_for_the_old_one(sqlite, other):
    end = sqlite.append("s", [turn(1)], after=0)
    other.delete("s")
    other.append("s", [turn(2)], after=0)

    with pytest.raises(SequenceConflict, match="begun anew"):
        sqlite.append("s", [turn(3)], after=end)
    assert sqlite.append("s", [turn(3)], after=sqlite.end("s")).seq == 2
    assert turns(other, "s") == [2, 3]


def test_a_writer_that_goes_on_asks_nothing_of_the_list_but_to_move_its_end(sqlite):
    end = sqlite.append("s", [turn(1)], after=0)
    said = []
    sqlite._connection.set_trace_callback(said.append)
    sqlite.append("s", [turn(2)], after=end)
    assert [statement.split()[0] for statement in said] == ["BEGIN", "UPDATE", "INSERT", "COMMIT"]


def test_a_session_that_was_set_aside_gets_no_more_events(sqlite, other):
    end = sqlite.append("s", [turn(1)], after=0)
    aside = other.set_aside("s")

    with pytest.raises(SequenceConflict):
        sqlite.append("s", [turn(2)], after=end)
    assert sqlite.append("s", [turn(3)], after=0).seq == 1
    assert (turns(other, aside), turns(other, "s")) == ([1], [3])


def test_a_number_that_was_never_committed_may_be_anothers(sqlite, other, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("barograph.store.sqlite.insert_bodies", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sqlite.append("s", [turn(1)], after=0)
    other.append("t", [turn(2)], after=0)

    assert sqlite.append("s", [turn(3)], after=0).seq == 1
    assert (turns(other, "s"), turns(other, "t")) == ([3], [2])


def test_a_lease_that_another_process_took_meanwhile_is_heeded(sqlite, other):
    sqlite.append("s", [turn(1)], after=0)
    mine = Lease(holder=new_holder(), until=100.0)
    other.append("s", [turn(2, at=50.0)], after=1, lease=mine)

    with pytest.raises(SequenceConflict) as held:
        sqlite.append("s", [turn(3, at=60.0)], after=2)
    assert "until" in held.value.ids
    assert sqlite.append("s", [turn(3, at=100.0)], after=2).seq == 3
