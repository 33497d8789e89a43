"""Histories that lost something, were answered anew, or went on elsewhere."""

import json

import anthropic
import pytest
from langchain_core.messages import (
    AIMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt
from stage import agent_at, ask, calling, config, exchanges_of, logged, looking

from barograph.audit.verify import verify_session
from barograph.core.events import MessageSeen, Replaced, ResponseCame
from barograph.simulator import Reply

DONE = Reply(content="Done.")


def sound(store, session, exchanges):
    """Every request that was received is in the log, exact and derived, and none was refused."""
    report = verify_session(store, session)
    assert report.findings == ()
    assert report.exact == report.derived == report.requests == len(exchanges)
    assert [each.status for each in exchanges] == [200] * len(exchanges)


def departures(store, session):
    return [event.cause for event in logged(store, session) if isinstance(event, Replaced)]


def repairs(store, session):
    seen = [event for event in logged(store, session) if isinstance(event, MessageSeen)]
    return [event for event in seen if event.origin == "repair"]


def words_of(exchange):
    return json.dumps(json.loads(exchange.request)["messages"])


@pytest.fixture
def thread(simulator, session, store):
    """An agent with a checkpointer, and its thread's config."""
    agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
    return agent, config(session)


# The checkpointer's history is changed


def test_an_answer_that_is_edited_before_it_was_shown_enters_as_it_is(
    simulator, store, session, thread
):
    simulator.play(session, [DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    last = agent.get_state(at).values["messages"][-1]
    agent.update_state(at, {"messages": [AIMessage("Not done.", id=last.id)]})
    agent.invoke(ask("two"), at)

    sound(store, session, exchanges_of(simulator, session))
    assert departures(store, session) == []
    assert "Not done." in words_of(exchanges_of(simulator, session)[1])
    assert [e.parts[0].text for e in logged(store, session) if isinstance(e, ResponseCame)] == [
        "Done.",
        "Done.",
    ]


def test_a_removal_that_no_provider_takes_is_the_callers_and_the_log_stays_sound(
    simulator, store, session, thread
):
    simulator.play(session, [DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    gone = agent.get_state(at).values["messages"][0]
    agent.update_state(at, {"messages": [RemoveMessage(gone.id)]})
    with pytest.raises(anthropic.BadRequestError, match="first message must use"):
        agent.invoke(ask("two"), at)

    assert verify_session(store, session).findings == ()


def test_removing_a_result_closes_its_call_with_a_repair(simulator, store, session, thread):
    simulator.play(session, [looking("a", "b"), DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    result = next(
        one for one in agent.get_state(at).values["messages"] if isinstance(one, ToolMessage)
    )
    agent.update_state(at, {"messages": [RemoveMessage(result.id)]})
    agent.invoke(ask("two"), at)

    sound(store, session, exchanges_of(simulator, session))
    assert len(repairs(store, session)) == 1


def test_removing_all_messages_begins_anew(simulator, store, session, thread):
    simulator.play(session, [looking("a"), DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    agent.update_state(at, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    agent.invoke(ask("two"), at)

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    assert departures(store, session) == ["rewound"]
    assert len(json.loads(exchanges[-1].request)["messages"]) == 1


# Time travel


def test_regenerating_an_answer_sends_the_same_request_again(simulator, store, session, thread):
    simulator.play(session, [Reply(content="First."), Reply(content="Second.")])
    agent, at = thread
    agent.invoke(ask("one"), at)
    before = next(s for s in agent.get_state_history(at) if s.next == ("model",))
    agent.invoke(None, before.config)

    first, second = exchanges_of(simulator, session)
    sound(store, session, [first, second])
    assert words_of(first) == words_of(second)
    assert second.usage.read_tokens > 0


# Interrupts


@tool
def confirm(what: str) -> str:
    """Ask a person."""
    return f"{what}: {interrupt(what)}"


def test_an_interrupt_resumed_in_another_process_goes_on(simulator, store, session):
    simulator.play(session, [calling(("c1", "confirm", {"what": "delete"})), DONE])
    saver = InMemorySaver()
    for given in (ask("go"), Command(resume="yes")):
        agent = agent_at(simulator.url, session, store, [confirm], checkpointer=saver)
        agent.invoke(given, config(session))

    sound(store, session, exchanges_of(simulator, session))
    assert repairs(store, session) == []


def test_a_thread_that_died_after_the_call_is_closed_when_its_user_speaks(
    simulator, store, session, thread
):
    @tool
    def dies() -> str:
        """Never returns."""
        raise KeyboardInterrupt

    simulator.play(session, [calling(("d1", "dies", {})), DONE])
    saver = InMemorySaver()
    agent = agent_at(simulator.url, session, store, [dies], checkpointer=saver)
    with pytest.raises(KeyboardInterrupt):
        agent.invoke(ask("go"), config(session))
    again = agent_at(simulator.url, session, store, [dies], checkpointer=saver)
    again.update_state(config(session), ask("still there?"))
    again.invoke(ask("hello"), config(session))

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    assert len(repairs(store, session)) == 1
    assert 'is_error": true' in words_of(exchanges[1])
