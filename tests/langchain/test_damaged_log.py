"""A damaged store or log: told, set aside, and the agent goes on."""

import sqlite3
from contextlib import closing

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from stage import agent_at, ask, config, exchanges_of, looking

from barograph.audit.verify import verify_session
from barograph.core.errors import LogCorrupt, SchemaTooNew
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.simulator import Reply
from barograph.store import SqliteStore

DONE = Reply(content="Done.")
STOP = Policy(on_store_error="stop")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions.db"


def edit(path, statement):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def play(simulator, session, path, saver, policy=None):
    """One turn in a process of its own, as far as the store can tell."""
    ours = Barograph(path, policy=policy)
    try:
        agent = agent_at(simulator.url, session, None, middleware=[ours], checkpointer=saver)
        return agent.invoke(ask("go"), config(session))["messages"][-1].text
    finally:
        ours.close()


LOST_BODY = "DELETE FROM bodies"
HOLE = "DELETE FROM events WHERE id = (SELECT id FROM events ORDER BY id DESC LIMIT 1 OFFSET 1)"
NONSENSE = (
    "UPDATE events SET data = x'7b7d'"
    " WHERE id = (SELECT id FROM events ORDER BY id DESC LIMIT 1 OFFSET 1)"
)


@pytest.mark.parametrize("harm", [LOST_BODY, HOLE, NONSENSE])
def test_a_damaged_log_is_set_aside_and_the_thread_goes_on(simulator, session, path, caplog, harm):
    simulator.play(session, [looking("a"), DONE, DONE])
    saver = InMemorySaver()
    play(simulator, session, path, saver)
    edit(path, harm)

    assert play(simulator, session, path, saver) == "Done."

    assert "damaged-1" in caplog.text
    with closing(SqliteStore(path)) as store:
        assert {info.session for info in store.sessions()} == {session, f"{session}.damaged-1"}
        assert verify_session(store, session).is_sound
        assert not verify_session(store, f"{session}.damaged-1").is_sound


def test_a_damaged_log_stops_the_agent_where_the_policy_says_so(simulator, session, path):
    simulator.play(session, [DONE, DONE])
    saver = InMemorySaver()
    play(simulator, session, path, saver)
    edit(path, LOST_BODY)
    with pytest.raises(LogCorrupt):
        play(simulator, session, path, saver, STOP)
    assert len(exchanges_of(simulator, session)) == 1


@pytest.mark.parametrize("policy", [Policy(), STOP])
def test_a_newer_log_is_refused_and_never_set_aside(simulator, session, path, policy):
    simulator.play(session, [DONE, DONE])
    saver = InMemorySaver()
    play(simulator, session, path, saver)
    edit(path, "UPDATE events SET schema = 99 WHERE id = (SELECT max(id) FROM events)")
    with pytest.raises(SchemaTooNew, match="newer than this Barograph"):
        play(simulator, session, path, saver, policy)
    with closing(SqliteStore(path)) as store:
        assert [info.session for info in store.sessions()] == [session]


def test_a_damaged_file_is_moved_aside_and_the_agent_goes_on(simulator, session, path):
    simulator.play(session, [DONE, DONE])
    saver = InMemorySaver()
    play(simulator, session, path, saver)
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * (4096 - 100)
    path.write_bytes(content)

    assert play(simulator, session, path, saver) == "Done."

    assert path.with_name("sessions.db.damaged-1").read_bytes() == content
    with pytest.raises(LogCorrupt):
        Barograph(path.with_name("sessions.db.damaged-1"), policy=STOP)
