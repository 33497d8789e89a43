"""A sound log is proved; whatever is done to it is found, named, and never a traceback."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from barograph.audit.verify import MOST_FINDINGS, verify_session, verify_store
from barograph.core.errors import UnknownSession
from barograph.core.events import MessageSeen, RequestSent, ToolEnded, TurnBegan
from barograph.store import MemoryStore, SqliteStore
from talk import Talk

LONG = "line of text\n" * 200


def play(store, name="s1"):
    talk = Talk(store, name)
    talk.call(say="hello " + LONG, reply=[("read", {"path": "a"})], results=[LONG])
    talk.call(reply="done " + LONG)
    talk.call(say="more", path="main/helper#1")
    talk.call(say="again")
    return talk


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions.db"


@pytest.fixture
def store(path):
    opened = SqliteStore(path)
    play(opened)
    yield opened
    opened.close()


def tamper(path, statement, *values):
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(statement, values).rowcount
    connection.close()


def delete_row(path, seq):
    """Delete what was appended together with that event; the seqs that are gone."""
    with closing(sqlite3.connect(path)) as connection, connection:
        [(key, count)] = connection.execute(
            "SELECT id, count FROM events WHERE id >= (1 << 32) + ? ORDER BY id LIMIT 1", [seq]
        )
        connection.execute("DELETE FROM events WHERE id = ?", [key])
    last = key - (1 << 32)
    return list(range(last - count + 1, last + 1))


def codes(result):
    return [finding.code for finding in result.findings]


def seq_of(store, kind, index=0):
    return [seq for seq, event in store.read("s1") if isinstance(event, kind)][index]


def rewritten(store, change):
    """The log in a new store, each event as `change` gives it; None leaves it out."""
    events = [change(seq, event) for seq, event in store.read("s1")]
    altered = MemoryStore()
    altered.append("s1", [event for event in events if event is not None], after=0)
    return altered


def test_a_sound_log(store):
    result = verify_session(store, "s1")

    assert result.is_sound
    assert (result.calls, result.requests, result.exact, result.derived) == (4, 4, 4, 4)
    assert (result.events, result.observed, result.unchecked) == (store.last_seq("s1"), 4, 0)


def test_all_sessions_of_a_store(store):
    play(store, "s2")

    assert [(one.session, one.is_sound) for one in verify_store(store)] == [
        ("s2", True),
        ("s1", True),
    ]


def test_an_unknown_session(store):
    with pytest.raises(UnknownSession):
        verify_session(store, "s2")


def test_an_altered_body_is_found_and_the_rest_is_still_read(store, path):
    tamper(path, "UPDATE bodies SET data = ?, zstd = 0 WHERE rowid = 1", b'"x"')
    result = verify_session(store, "s1")
    [finding] = result.findings

    assert finding.code == "log_corrupt"
    assert "altered" in finding.what
    assert finding.seq is not None
    assert finding.next_step
    assert result.events == store.last_seq("s1") - 1
    assert result.requests == result.unchecked == 4


def test_every_missing_body_is_found(store, path):
    tamper(path, "DELETE FROM bodies")
    result = verify_session(store, "s1")

    assert len(result.findings) > 3
    assert set(codes(result)) == {"log_corrupt"}
    assert all("is missing" in finding.what for finding in result.findings)


def test_a_gap_in_the_numbers(store, path):
    seqs = delete_row(path, seq_of(store, TurnBegan, 1))
    result = verify_session(store, "s1")

    assert [(finding.code, finding.seq) for finding in result.findings] == [
        ("log_corrupt", seq) for seq in seqs
    ]
    assert 0 < result.exact < result.requests
    assert result.exact + result.unchecked == result.requests


def test_the_end_cut_off(store, path):
    seqs = delete_row(path, store.last_seq("s1"))

    assert [finding.seq for finding in verify_session(store, "s1").findings] == seqs


def test_many_damages_end_the_list(store, path):
    for _ in range(MOST_FINDINGS):
        store.append("s1", [TurnBegan(at=0.0, path="main", turn=9)], after=store.last_seq("s1"))
    tamper(path, "UPDATE events SET data = x'00' WHERE id > (1 << 32) + 5")

    assert len(verify_session(store, "s1").findings) == MOST_FINDINGS


def test_a_newer_event(store, path):
    tamper(path, "UPDATE events SET schema = 99 WHERE id = (1 << 32) + 7")
    [finding] = verify_session(store, "s1").findings

    assert (finding.code, finding.seq) == ("schema_too_new", 7)
    assert "Upgrade" in finding.next_step


def test_an_unknown_renderer(store):
    def change(seq, event):
        return replace(event, renderer="other/9") if seq == 1 else event

    [finding] = verify_session(rewritten(store, change), "s1").findings

    assert finding.code == "schema_too_new"


def test_another_hash_is_not_exact(store):
    def change(seq, event):
        return replace(event, body_hash="b2:00") if isinstance(event, RequestSent) else event

    result = verify_session(rewritten(store, change), "s1")

    assert codes(result) == ["not_exact"] * 4
    assert (result.exact, result.derived) == (0, 4)
    assert [finding.call for finding in result.findings] == [1, 2, 3, 4]


def test_a_changed_word_in_the_history_is_found_in_every_request_that_shows_it(store):
    def change(seq, event):
        del seq
        if isinstance(event, MessageSeen) and event.origin == "caller" and event.path == "main":
            return replace(event, parts=(replace(event.parts[0], text="changed"),))
        return event

    result = verify_session(rewritten(store, change), "s1")

    assert codes(result) == ["not_exact", "digest_differs"] * 3
    assert result.exact == 1


def test_a_request_that_was_rewritten_is_a_mismatch_and_still_exact():
    talk = play(MemoryStore())
    talk.call(say="more", edit=lambda body: body.replace(b'"text":"more"', b'"text":"MORE"'))
    result = verify_session(talk.store, "s1")
    [finding] = result.findings

    assert (finding.code, finding.call) == ("mismatch_at_send", 5)
    assert "message" in finding.what
    assert (result.requests, result.exact, result.derived) == (5, 5, 4)


def test_a_body_that_cannot_be_taken_apart_is_a_mismatch():
    talk = play(MemoryStore())
    talk.call(say="more", edit=lambda body: b" " + body)
    result = verify_session(talk.store, "s1")

    assert codes(result) == ["mismatch_at_send"]
    assert result.exact == 5


def test_a_result_for_another_call_is_unpaired(store):
    def change(seq, event):
        del seq
        if isinstance(event, ToolEnded):
            return replace(event, parts=(replace(event.parts[0], call_id="toolu_other"),))
        return event

    result = verify_session(rewritten(store, change), "s1")
    faults = [finding for finding in result.findings if finding.code == "unpaired"]

    assert {finding.call for finding in faults} == {2, 4}
    assert any("toolu_other" in finding.what for finding in faults)


def test_a_log_that_does_not_fold(store):
    def change(seq, event):
        return replace(event, same_as=1) if getattr(event, "same_as", None) else event

    result = verify_session(rewritten(store, change), "s1")

    assert codes(result) == ["log_corrupt"]
    assert result.unchecked == 3


def test_a_log_without_its_beginning(store):
    result = verify_session(rewritten(store, lambda seq, event: event if seq > 1 else None), "s1")

    assert codes(result) == ["log_corrupt"]
    assert result.unchecked == 4


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_edit_of_the_file_ends_in_a_traceback_or_passes_for_sound(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("edited") / "sessions.db"
    store = SqliteStore(path)
    play(store)
    rows = sqlite3.connect(path)
    table, key = data.draw(st.sampled_from([("events", "id"), ("bodies", "rowid")]))
    ids = [row[0] for row in rows.execute(f"SELECT {key} FROM {table} ORDER BY 1")]  # noqa: S608
    chosen = data.draw(st.sampled_from(ids))
    [(old,)] = rows.execute(f"SELECT data FROM {table} WHERE {key} = ?", [chosen])  # noqa: S608
    place = data.draw(st.integers(0, len(old) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != old[place]))
    new = old[:place] + bytes([byte]) + old[place + 1 :]
    with rows:
        rows.execute(f"UPDATE {table} SET data = ? WHERE {key} = ?", [new, chosen])  # noqa: S608
    rows.close()
    result = verify_session(store, "s1")
    if result.is_sound:  # a time, or a figure that no hash covers, became another one
        assert [seq for seq, _ in store.read("s1")] == list(range(1, result.events + 1))
        assert result.exact == result.derived == result.requests
    store.close()

    assert result.exact + result.unchecked + codes(result).count("not_exact") == result.requests
