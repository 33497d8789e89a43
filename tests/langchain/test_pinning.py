"""An agent's message is pinned through the middleware, in mid-turn too, and outlives its folds."""

import json

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from stage import agent_at, ask, calling, config, exchanges_of, logged
from test_compacting_agents import ALONE, DONE, scan, scanning

from barograph.audit.verify import verify_session
from barograph.core.errors import PinRefused, UsageError
from barograph.core.events import Compacted, MessageSeen, Pinned
from barograph.langchain import Barograph

RULE = "The vault of tenant 8812 is /srv/vault/8812; nobody else reads it."


def first_message(store, session):
    return next(
        seq
        for seq, event in store.read(session)
        if isinstance(event, MessageSeen) and event.role == "user"
    )


def test_a_pinned_message_is_in_every_later_request(simulator, session, store):
    simulator.play(session, [DONE, *(scanning(n) for n in range(5)), DONE])
    barograph = Barograph(store, policy=ALONE)
    agent = agent_at(
        simulator.url, session, store, [scan], middleware=[barograph], checkpointer=InMemorySaver()
    )
    agent.invoke(ask(RULE), config(session))
    (pin,) = barograph.pin(f"#{first_message(store, session)}", session=session)
    assert pin.text == RULE

    agent.invoke(ask("go on"), config(session))
    assert [event for event in logged(store, session) if isinstance(event, Compacted)]
    for exchange in exchanges_of(simulator, session):
        said = json.dumps(json.loads(exchange.request)["messages"])
        assert said.count(RULE) == 1
    assert verify_session(store, session).findings == ()


def test_a_tool_can_pin_in_its_own_session(simulator, session, store):
    barograph = Barograph(store, policy=ALONE)

    @tool
    def remember(number: int) -> str:
        """Keep a message."""
        return str(len(barograph.pin(f"#{number}")))

    simulator.play(
        session,
        lambda _body, index: (
            DONE if index else calling(("r", "remember", {"number": first_message(store, session)}))
        ),
    )
    agent = agent_at(simulator.url, session, store, [remember], middleware=[barograph])
    agent.invoke(ask(RULE), config(session))
    (pinned,) = [event for event in logged(store, session) if isinstance(event, Pinned)]
    assert pinned.path == "main"


def test_where_no_session_is_named_and_none_runs_it_says_so(store):
    with pytest.raises(UsageError, match="thread_id"):
        Barograph(store).pin("#3")


def test_what_is_too_long_is_refused_and_is_found_by_a_search(simulator, session, store):
    simulator.play(session, [DONE])
    barograph = Barograph(store, policy=ALONE)
    agent = agent_at(simulator.url, session, store, [scan], middleware=[barograph])
    agent.invoke(ask("a very long word " * 400), config(session))
    with pytest.raises(PinRefused, match="history_search"):
        barograph.pin(f"#{first_message(store, session)}", session=session)
