"""Fallback models: markers, window and prices are those of the model that is really called."""

import json

import pytest
from langchain.agents.middleware import ModelFallbackMiddleware
from langchain_core.tools import tool
from msgspec.structs import replace
from stage import (
    MODEL,
    SYSTEM,
    agent_at,
    ask,
    config,
    exchanges_of,
    logged,
    looking,
    model_at,
)

from barograph.audit.series_reader import read_series
from barograph.audit.verify import verify_session
from barograph.core.events import CallFailed
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.providers.anthropic.models import facts_of
from barograph.simulator import Reply, Simulator, cost_usd

SMALL = "claude-haiku-4-5"
WINDOW_TOKENS = 20_000
DONE = Reply(content="Done.")
POLICIES = [
    {"name": name, "summary": summary}
    for name in ("balanced", "fixed", "bound-once")
    for summary in ("model", "digest")
]


def facts(model):
    known = facts_of(model)
    return replace(known, window_tokens=WINDOW_TOKENS) if model == SMALL else known


@pytest.fixture(scope="module")
def simulator():
    with Simulator(facts=facts) as running:
        yield running


@tool("look")
def look_long(path: str) -> str:
    """Look at a long file."""
    return "".join(f"{path} line {number}: nothing to see here\n" for number in range(150))


def falling_back(simulator, session, store, *, system=SYSTEM, **policy):
    """An agent whose first model is large, and whose second one has a small window."""
    small = model_at(
        simulator.url, session, model=SMALL, profile={"max_input_tokens": WINDOW_TOKENS}
    )
    ours = Barograph(store, policy=Policy(**policy))
    stack = [ModelFallbackMiddleware(small), ours]
    return agent_at(
        simulator.url, session, store, [look_long], middleware=stack, system_prompt=system
    )


def fail_at(simulator, session, *indices):
    for index in indices:
        simulator.fault("overloaded", session=session, index=index)


def is_system_marked(exchange):
    return any("cache_control" in block for block in json.loads(exchange.request)["system"])


def sound(store, session, count):
    report = verify_session(store, session)
    assert report.findings == ()
    assert report.requests == report.exact == report.derived == count


@pytest.fixture(params=["sync", "async"])
def go(request, loop):
    def run(agent, *given):
        if request.param == "sync":
            return agent.invoke(*given)
        return loop.run(agent.ainvoke(*given))

    return run


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: " ".join(policy.values()))
def test_a_fallback_with_a_smaller_window_gets_no_request_that_is_too_long(
    simulator, session, store, go, policy
):
    long = [looking(f"a{n}") for n in range(14)]
    told = [Reply(content="They looked at many files and found nothing.")]
    simulator.play(session, [*long, *(told if policy["summary"] == "model" else []), DONE, *told])
    fail_at(simulator, session, len(long))
    agent = falling_back(simulator, session, store, **policy)
    go(agent, ask("look at all of them"), config(session))

    *before, refused = (e for e in exchanges_of(simulator, session) if e.model == MODEL)
    small = [each for each in exchanges_of(simulator, session) if each.model == SMALL]
    assert refused.status == 529
    assert before[-1].usage.input_total_tokens > WINDOW_TOKENS
    assert small
    assert all(each.status == 200 for each in small)
    assert all(each.total_tokens <= WINDOW_TOKENS - 512 for each in small)


def test_a_fallback_is_held_to_what_the_policy_says_of_that_model(simulator, session, store, go):
    narrow = 8_000
    simulator.play(session, [*(looking(f"a{n}") for n in range(6)), DONE])
    fail_at(simulator, session, 6)
    knobs = {"window_tokens": narrow, "compact_at_ratio": 0.95}
    agent = falling_back(simulator, session, store, summary="digest", by_model={SMALL: knobs})
    go(agent, ask("look at all of them"), config(session))

    exchanges = exchanges_of(simulator, session)
    *before, refused = (each for each in exchanges if each.model == MODEL)
    (small,) = (each for each in exchanges if each.model == SMALL)
    assert before[-1].usage.input_total_tokens > narrow
    assert (refused.status, small.status) == (529, 200)
    assert small.total_tokens < narrow
    sound(store, session, len(exchanges))


def test_markers_are_planned_for_the_minimum_of_the_model_that_is_called(
    simulator, session, store, go
):
    """The system prompt can be cached by the first model, and is too short for the second."""
    simulator.play(session, [looking("a"), looking("b"), DONE])
    fail_at(simulator, session, 1)
    go(falling_back(simulator, session, store), ask("go"), config(session))

    exchanges = exchanges_of(simulator, session)
    assert [each.model for each in exchanges] == [MODEL, MODEL, SMALL, MODEL]
    assert [is_system_marked(each) for each in exchanges] == [True, True, False, True]
    sound(store, session, 4)
    # and the first model goes on in its own cache
    assert exchanges[3].usage.read_tokens > exchanges[0].usage.write_tokens - 100


def test_the_log_says_which_model_answered_and_what_it_cost(simulator, session, store, go):
    simulator.play(session, [looking("a"), looking("b"), DONE])
    fail_at(simulator, session, 1, 2)
    go(falling_back(simulator, session, store), ask("go"), config(session))

    failed = [each.call for each in logged(store, session) if isinstance(each, CallFailed)]
    assert failed == [2, 4]
    rows = read_series(store, session).calls
    assert [(row.model, row.outcome) for row in rows] == [
        (MODEL, "answered"),
        (MODEL, "failed"),
        (SMALL, "answered"),
        (MODEL, "failed"),
        (SMALL, "answered"),
    ]
    answered = [each for each in exchanges_of(simulator, session) if each.status == 200]
    costs = [row.cost_usd for row in rows if row.outcome == "answered"]
    assert costs == pytest.approx([cost_usd(e.usage, facts_of(e.model)) for e in answered])
    sound(store, session, 5)


def test_a_fallback_reads_what_it_wrote_itself_when_it_is_called_again(
    simulator, session, store, go
):
    simulator.play(session, [looking("a"), looking("b"), looking("c"), DONE])
    fail_at(simulator, session, 1, 2, 3)
    go(falling_back(simulator, session, store), ask("go"), config(session))

    first, *others = (e for e in exchanges_of(simulator, session) if e.model == SMALL)
    cached = first.usage.write_tokens
    for each in others:
        assert each.usage.read_tokens == cached
        cached += each.usage.write_tokens
