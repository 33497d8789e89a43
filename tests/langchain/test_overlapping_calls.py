"""Calls that overlap: each is a conversation of its own, and none loses its answer."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from stage import agent_at, ask, config, exchanges_of, logged

from barograph.audit.verify import verify_session
from barograph.core.events import ResponseCame
from barograph.simulator import Reply
from barograph.store import MemoryStore

DONE = Reply(content="Done.")


@pytest.fixture
def slow_answers(simulator, monkeypatch):
    """Let all requests leave before the first answer comes."""
    answer = simulator.provider.handle

    def handle(body, headers):
        time.sleep(0.2)
        return answer(body, headers)

    monkeypatch.setattr(simulator.provider, "handle", handle)


@pytest.mark.usefixtures("slow_answers")
def test_histories_without_a_thread_that_begin_at_once_are_sessions_of_their_own(
    simulator, session
):
    class Slow(MemoryStore):
        def append(self, *what, **how):
            time.sleep(0.01)
            return super().append(*what, **how)

    store = Slow()
    simulator.play(session, [DONE] * 4)
    agent = agent_at(simulator.url, session, store)

    agent.batch([ask(text) for text in ("one", "two", "same", "same")])

    reports = [verify_session(store, info.session) for info in store.sessions()]
    assert [(report.requests, report.derived) for report in reports] == [(1, 1)] * 4


@pytest.mark.usefixtures("slow_answers")
@pytest.mark.parametrize("texts", [("same", "same"), ("one", "another")], ids=["same", "other"])
def test_two_turns_of_a_thread_at_once_are_two_conversations(simulator, store, session, texts):
    simulator.play(session, [Reply(content=word) for word in ("First.", "Second.", "Third.")])
    agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
    where = config(session)
    agent.invoke(ask("before"), where)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda text: agent.invoke(ask(text), where), texts))

    report = verify_session(store, session)
    assert report.exact == report.derived == len(exchanges_of(simulator, session)) == 3
    answers = [event for event in logged(store, session) if isinstance(event, ResponseCame)]
    assert sorted(event.parts[0].text for event in answers) == ["First.", "Second.", "Third."]
    assert len({event.path for event in answers[1:]}) == 2
