"""The provider's own comparison of requests: asked for, logged, and in agreement with ours."""

import json

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from stage import SYSTEM, agent_at, ask, config, exchanges_of, logged, looking, model_at, prove

from barograph.audit.explain import why
from barograph.core.events import CallPlanned, HeaderSet, ResponseCame
from barograph.core.policy import Policy
from barograph.langchain.track import _compares
from barograph.simulator import Reply

DONE = Reply(content="Done.")
ON = {"policy": Policy(diagnostics="on")}


def asked(simulator, session):
    bodies = [json.loads(each.request) for each in exchanges_of(simulator, session)]
    return [body.get("diagnostics") for body in bodies]


def answers(store, session):
    return [event for event in logged(store, session) if isinstance(event, ResponseCame)]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_each_call_names_the_answer_of_the_one_before(simulator, store, session, is_streamed):
    simulator.play(session, [looking("a"), looking("b"), DONE])
    agent = agent_at(simulator.url, session, store, barograph=ON)
    if is_streamed:
        list(agent.stream(ask("go"), config(session), stream_mode="messages"))
    else:
        agent.invoke(ask("go"), config(session))

    ids = [answer.provider_id for answer in answers(store, session)]
    assert [one["previous_message_id"] for one in asked(simulator, session)] == [None, *ids[:-1]]
    prove(store, session, exchanges_of(simulator, session))


def test_asking_changes_no_header_from_call_to_call(simulator, store, session):
    simulator.play(session, [looking("a"), looking("b"), DONE])
    agent_at(simulator.url, session, store, barograph=ON).invoke(ask("go"), config(session))

    assert len([e for e in logged(store, session) if isinstance(e, HeaderSet)]) == 1


@pytest.mark.parametrize("is_streamed", [False, True])
def test_both_witnesses_name_the_same_change(simulator, store, session, is_streamed):
    simulator.play(session, [DONE, DONE])
    saver = InMemorySaver()
    for rules in (SYSTEM, SYSTEM + "And be brief."):
        agent = agent_at(
            simulator.url,
            session,
            store,
            barograph=ON,
            system_prompt=rules,
            checkpointer=saver,
            model=model_at(simulator.url, session, streaming=is_streamed),
        )
        agent.invoke(ask("go"), config(session))

    row = why(store, session, 2)
    assert (row.verdict.cause, row.provider_reason) == ("system_changed", "system_changed")
    assert why(store, session, 1).provider_reason is None


def test_a_call_that_only_appends_is_told_to_be_alike(simulator, store, session):
    simulator.play(session, [looking("a"), DONE])
    agent_at(simulator.url, session, store, barograph=ON).invoke(ask("go"), config(session))

    assert [answer.diagnosis for answer in answers(store, session)] == [None, None]


def test_a_caller_who_asks_is_given_the_right_id(simulator, store, session):
    own = {"diagnostics": {"previous_message_id": "msg_of_long_ago"}}
    simulator.play(session, [looking("a"), DONE])
    model = model_at(simulator.url, session, model_kwargs=own)
    agent_at(simulator.url, session, store, model=model).invoke(ask("go"), config(session))

    first = answers(store, session)[0].provider_id
    assert [one["previous_message_id"] for one in asked(simulator, session)] == [None, first]
    prove(store, session, exchanges_of(simulator, session))


@pytest.mark.parametrize("wish", ["auto", "off"])
def test_nobody_else_is_asked_unless_told_to(simulator, store, session, wish):
    simulator.play(session, [DONE])
    policy = Policy(diagnostics=wish)
    agent_at(simulator.url, session, store, barograph={"policy": policy}).invoke(
        ask("go"), config(session)
    )
    assert asked(simulator, session) == [None]
    (plan,) = [event for event in logged(store, session) if isinstance(event, CallPlanned)]
    assert not plan.diagnosed


@pytest.mark.parametrize(
    ("url", "compares"),
    [
        ("https://api.anthropic.com", True),
        ("https://api.anthropic.com/v1/", True),
        ("https://gateway.example/api.anthropic.com", False),
        ("https://api.anthropic.com.example", False),
        ("http://127.0.0.1:9", False),
    ],
)
def test_the_provider_itself_is_known_by_its_address(url, compares):
    assert _compares(model_at(url, "s")) is compares
