"""What `barograph verify` says of a store that had its troubles."""

import pytest

from barograph.core.errors import StoreUnavailable
from barograph.store import SqliteStore, open_store
from talk import Talk


@pytest.fixture
def troubled(tmp_path, monkeypatch):
    """A store that could not be written during the second of three calls."""

    def make(most_events):
        def fail(*_, **__):
            raise StoreUnavailable("The disk is full.")

        monkeypatch.setattr("barograph.store.backlog.MOST_EVENTS", most_events)
        store = SqliteStore(tmp_path / "troubled.db")
        talk = Talk(store)
        talk.call(say="one")
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "append", fail)
            talk.call(say="two")
        talk.session.catch_up(at=talk.at)
        talk.call(say="three")
        store.close()
        return store.path

    return make


def test_events_that_were_late_are_a_note(run, run_json, troubled):
    path = troubled(10_000)
    result = run("verify", store=path)
    assert result.exit_code == 0
    assert "events_late" in result.stdout
    assert "Calls 2 to 2 left before they were logged" in " ".join(result.stdout.split())
    [session] = run_json("verify", store=path)["sessions"]
    assert [note["code"] for note in session["notes"]] == ["events_late"]
    assert session["findings"] == []


def test_a_file_that_was_set_aside_is_a_finding_until_it_is_moved(run, tmp_path):
    path = tmp_path / "sessions.db"
    SqliteStore(path).close()
    content = bytearray(path.read_bytes())
    content[100:4096] = bytes(4096 - 100)
    path.write_bytes(content)
    assert run("verify", store=path).exit_code == 5
    open_store(path, sets_aside=True).close()

    result = run("verify", store=path)
    assert result.exit_code == 1
    assert "sessions.db.damaged-1" in result.stderr
    assert run("verify", store=f"{path}.damaged-1").exit_code == 5


def test_events_that_are_lost_are_a_finding(run, troubled):
    result = run("verify", store=troubled(3))
    assert result.exit_code == 1
    assert "events_lost" in result.stdout
    assert "the rest of it is sound" in " ".join(result.stdout.split())
