"""A provider that takes fewer markers, or none: one more attempt of the same call, for an hour."""

import json

import anthropic
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from stage import agent_at, ask, config, exchanges_of, kinds, logged, looking, model_at

from barograph.audit.verify import verify_session
from barograph.core.events import AttemptFailed, CallPlanned, RequestSent
from barograph.core.policy import Policy
from barograph.core.recovery import REST_SECONDS
from barograph.simulator import Reply, Simulator, Switches

DONE = Reply(content="Done.")


class Clock:
    """Seconds that a test moves."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def gateway():
    with Simulator(switches=Switches(markers="unsupported")) as running:
        yield running


@pytest.fixture
def crowded():
    with Simulator(switches=Switches(markers="one_taken")) as running:
        yield running


def markers_in(exchange):
    return exchange.request.count(b'"cache_control"')


def told(store, session):
    return [event for event in logged(store, session) if isinstance(event, AttemptFailed)]


def test_a_gateway_without_markers_costs_one_attempt_and_no_call(gateway, store, session):
    gateway.play(session, [looking("a"), looking("b"), DONE])
    answer = agent_at(gateway.url, session, store).invoke(ask("go"), config(session))

    assert answer["messages"][-1].text == "Done."
    exchanges = exchanges_of(gateway, session)
    assert [each.status for each in exchanges] == [400, 200, 200, 200]
    assert [markers_in(each) > 0 for each in exchanges] == [True, False, False, False]
    (failed,) = told(store, session)
    assert (failed.cause, failed.call, failed.attempt) == ("markers_unsupported", 1, 1)
    assert kinds(store, session)["CallFailed"] == 0
    sent = [event for event in logged(store, session) if isinstance(event, RequestSent)]
    assert [(one.call, one.attempt) for one in sent] == [(1, 1), (1, 2), (2, 1), (3, 1)]


def test_every_attempt_is_in_the_log_exact_and_derived(gateway, store, session):
    gateway.play(session, [looking("a"), DONE])
    agent_at(gateway.url, session, store).invoke(ask("go"), config(session))

    report = verify_session(store, session)
    assert report.findings == ()
    assert (report.calls, report.requests, report.exact, report.derived) == (2, 3, 3, 3)


def test_where_one_slot_is_taken_the_others_go_on_caching(crowded, store, session):
    crowded.play(session, [looking("a"), looking("b"), looking("c"), DONE])
    agent = agent_at(crowded.url, session, store, checkpointer=InMemorySaver())
    agent.invoke(ask("go"), config(session))

    exchanges = exchanges_of(crowded, session)
    refused = [each for each in exchanges if each.status == 400]
    assert len(refused) == 1
    (failed,) = told(store, session)
    assert (failed.cause, failed.slots) == ("markers_over_limit", 1)
    assert exchanges[-1].usage.read_tokens > 0
    assert max(markers_in(each) for each in exchanges if each.status == 200) == 3


def test_markers_are_tried_again_after_an_hour(gateway, store, session):
    clock = Clock()
    gateway.play(session, [DONE, DONE, DONE])
    agent = agent_at(
        gateway.url, session, store, barograph={"clock": clock}, checkpointer=InMemorySaver()
    )
    for seconds in (0.0, REST_SECONDS - 1.0, 2.0):
        clock.now += seconds
        agent.invoke(ask("go"), config(session))

    assert [each.status for each in exchanges_of(gateway, session)] == [400, 200, 200, 400, 200]


def test_another_model_of_the_session_is_not_under_suspicion(gateway, store, session):
    gateway.play(session, [DONE, DONE])
    saver = InMemorySaver()
    for name in ("claude-opus-4-8", "claude-sonnet-5"):
        model = model_at(gateway.url, session, model=name)
        agent = agent_at(gateway.url, session, store, model=model, checkpointer=saver)
        agent.invoke(ask("go"), config(session))

    assert [event.model for event in told(store, session)] == ["claude-opus-4-8", "claude-sonnet-5"]


def test_what_was_learned_survives_a_restart(gateway, store, session):
    gateway.play(session, [DONE, DONE])
    saver = InMemorySaver()
    for _ in range(2):  # a middleware of its own each time
        agent_at(gateway.url, session, store, checkpointer=saver).invoke(ask("go"), config(session))

    assert [each.status for each in exchanges_of(gateway, session)] == [400, 200, 200]


@pytest.mark.parametrize("is_async", [False, True])
def test_async_and_streamed_calls_try_once_more_too(gateway, store, session, loop, is_async):
    gateway.play(session, [looking("a"), DONE])
    agent = agent_at(gateway.url, session, store)
    if is_async:
        loop.run(agent.ainvoke(ask("go"), config(session)))
    else:
        list(agent.stream(ask("go"), config(session), stream_mode="messages"))

    assert [each.status for each in exchanges_of(gateway, session)] == [400, 200, 200]


def test_forced_markers_are_never_given_up(gateway, store, session):
    gateway.play(session, [DONE])
    agent = agent_at(gateway.url, session, store, barograph={"policy": Policy(markers="force")})
    with pytest.raises(anthropic.BadRequestError, match="Extra inputs"):
        agent.invoke(ask("go"), config(session))
    assert told(store, session) == []
    assert kinds(store, session)["CallFailed"] == 1


def test_no_markers_are_placed_where_the_policy_says_so(simulator, store, session):
    simulator.play(session, [looking("a"), DONE])
    agent = agent_at(simulator.url, session, store, barograph={"policy": Policy(markers="off")})
    agent.invoke(ask("go"), config(session))

    assert [markers_in(each) for each in exchanges_of(simulator, session)] == [0, 0]
    plans = [event for event in logged(store, session) if isinstance(event, CallPlanned)]
    assert all(plan.breakpoints == () for plan in plans)


def test_a_second_refusal_is_the_callers(gateway, store, session):
    """The marker is the model's own: doing without ours does not help, and nothing loops."""
    own = {"cache_control": {"type": "ephemeral"}}
    model = model_at(gateway.url, session, model_kwargs=own)
    gateway.play(session, [DONE])
    with pytest.raises(anthropic.BadRequestError, match="Extra inputs"):
        agent_at(gateway.url, session, store, model=model).invoke(ask("go"), config(session))

    assert [each.status for each in exchanges_of(gateway, session)] == [400, 400]
    assert kinds(store, session)["CallFailed"] == 1


def test_bodies_differ_in_their_markers_alone(gateway, store, session):
    gateway.play(session, [DONE])
    agent_at(gateway.url, session, store).invoke(ask("go"), config(session))
    refused, taken = (json.loads(each.request) for each in exchanges_of(gateway, session))

    def bare(value):
        if isinstance(value, dict):
            return {k: bare(v) for k, v in value.items() if k != "cache_control"}
        return [bare(one) for one in value] if isinstance(value, list) else value

    assert bare(refused) == taken
