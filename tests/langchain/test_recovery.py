"""A request that a provider refuses as too long goes out once more, shorter, or with less room."""

import json
import logging
from typing import get_args

import anthropic
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware, wrap_model_call
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from msgspec.structs import replace
from stage import SYSTEM, agent_at, ask, calling, config, exchanges_of, kinds, logged, model_at

from barograph.audit.explain import list_calls
from barograph.audit.series_reader import read_series
from barograph.audit.verify import verify_session
from barograph.core.events import AttemptFailed, CallFailed, CallPlanned, Compacted, Pruned
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.providers.anthropic.models import facts_of
from barograph.simulator import Reply, Simulator, Switches
from barograph.simulator.faults import Wording

# no pass of its own, as long as all fits, and no call of its own
BALANCED = Policy(rent_ratio=100.0, summary="digest")
DONE = Reply(content="Done.")
ROUNDS = 6
WORDINGS = [
    each for each in get_args(Wording) if each not in ("stop_reason", "input_and_max_tokens")
]


@tool
def scan(path: str) -> str:
    """Scan a folder."""
    return "\n".join(f"{path}/module_{n}.py:{n}: def handler_{n}(event): ..." for n in range(200))


def scanning(*numbers):
    return calling(*((f"s{n}", "scan", {"path": f"src/part{n}"}) for n in numbers), say="Scanning.")


def script(rounds=ROUNDS, *, first=0):
    return [*(scanning(n) for n in range(first, first + rounds)), DONE]


def agent_on(simulator, session, store, policy=BALANCED, **more):
    return agent_at(simulator.url, session, store, [scan], barograph={"policy": policy}, **more)


def statuses(simulator, session):
    return [each.status for each in exchanges_of(simulator, session)]


def of(kind, store, session):
    return [event for event in logged(store, session) if isinstance(event, kind)]


def sound(store, session, requests):
    """The log holds every request, the refused ones too: exact, derived, nothing found."""
    report = verify_session(store, session)
    assert report.findings == ()
    assert report.exact == report.derived == report.requests == requests


@pytest.fixture
def small():
    """A provider whose models take far less than their names say."""

    def narrow(model):
        return replace(facts_of(model), window_tokens=26_000)

    with Simulator(facts=narrow) as running:
        yield running


@pytest.mark.parametrize("wording", WORDINGS)
def test_a_call_that_is_too_long_goes_on_shorter(simulator, session, store, wording):
    simulator.play(session, script())
    simulator.fault("overflow", session=session, index=ROUNDS, wording=wording)
    answer = agent_on(simulator, session, store).invoke(ask("go"), config(session))

    assert answer["messages"][-1].text == "Done."
    assert statuses(simulator, session) == [*[200] * ROUNDS, 400 if _is_400(wording) else 413, 200]
    refused, taken = exchanges_of(simulator, session)[-2:]
    assert taken.total_tokens < refused.total_tokens
    (failed,) = of(AttemptFailed, store, session)
    (fold,) = of(Pruned, store, session)
    assert (failed.cause, failed.call, failed.attempt) == ("overflow", ROUNDS + 1, 1)
    assert (fold.cause, kinds(store, session)["CallFailed"]) == ("forced", 0)
    sound(store, session, ROUNDS + 2)


def _is_400(wording):
    return wording != "request_too_large"


def test_the_window_that_was_named_holds_from_then_on(small, session, store):
    small.play(session, [*script(12), *script(12, first=12)])
    saver = InMemorySaver()
    for _ in range(2):  # a middleware of its own each time: what was learned is in the log
        agent = agent_on(small, session, store, checkpointer=saver)
        agent.invoke(ask("go"), config(session))

    assert statuses(small, session).count(400) == 1
    (failed,) = of(AttemptFailed, store, session)
    assert failed.window_tokens == 26_000
    assert failed.input_tokens > 26_000
    assert [fold.cause for fold in of(Pruned, store, session)].count("forced") >= 1
    sound(store, session, len(exchanges_of(small, session)))


def test_where_nothing_is_pruned_history_gives_way_to_its_digest(simulator, session, store):
    simulator.play(session, script())
    simulator.fault("overflow", session=session, index=ROUNDS)
    agent_on(simulator, session, store, Policy(name="bound-once")).invoke(
        ask("go"), config(session)
    )

    assert statuses(simulator, session) == [*[200] * ROUNDS, 400, 200]
    (fold,) = of(Compacted, store, session)
    assert (fold.cause, fold.narrated_by) == ("forced", None)
    sound(store, session, ROUNDS + 2)


def test_the_newest_round_and_the_request_stay_whole(simulator, session, store):
    simulator.play(session, script())
    simulator.fault("overflow", session=session, index=ROUNDS)
    agent_on(simulator, session, store).invoke(ask("go " * 2000), config(session))

    messages = json.loads(exchanges_of(simulator, session)[-1].request)["messages"]
    text = json.dumps(messages)
    assert "go " * 2000 in text
    newest = messages[-1]["content"][-1]["content"][0]["text"]
    assert newest == scan.invoke({"path": f"src/part{ROUNDS - 1}"})


def test_it_takes_no_more_than_is_needed(simulator, session, store):
    """A window that is missed by little costs the oldest results alone, if they suffice."""
    simulator.play(session, script(12))
    simulator.fault("overflow", session=session, index=12)
    policy = replace(BALANCED, prune_after_rounds=8, window_tokens=60_000)
    agent_on(simulator, session, store, policy).invoke(ask("go"), config(session))

    (fold,) = of(Pruned, store, session)
    assert 1 < len(fold.stubs) < 11
    assert fold.tokens_before - fold.tokens_after >= 0.1 * 60_000


def test_nothing_to_shorten_is_nothing_to_try(simulator, session, store):
    simulator.play(session, [DONE])
    simulator.fault("overflow", session=session, index=0)
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        agent_on(simulator, session, store).invoke(ask("go"), config(session))

    assert statuses(simulator, session) == [400]
    (failed,) = of(CallFailed, store, session)
    assert failed.window_tokens == 1_000_000
    assert of(AttemptFailed, store, session) == []
    sound(store, session, 1)


def test_a_second_refusal_is_the_callers_and_the_thread_stays_smaller(simulator, session, store):
    simulator.play(session, [*script(), DONE])
    simulator.fault("overflow", session=session, index=ROUNDS, times=2)
    agent = agent_on(simulator, session, store, checkpointer=InMemorySaver())
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        agent.invoke(ask("go"), config(session))
    agent.invoke(ask("and now?"), config(session))

    assert statuses(simulator, session) == [*[200] * ROUNDS, 400, 400, 200]
    first, second, later = exchanges_of(simulator, session)[-3:]
    assert later.total_tokens < 0.7 * first.total_tokens
    assert second.total_tokens < 0.7 * first.total_tokens
    assert kinds(store, session)["AttemptFailed"] == kinds(store, session)["CallFailed"] == 1
    sound(store, session, ROUNDS + 3)


def test_the_callers_error_is_the_object_that_the_client_raised(simulator, session, store):
    raised = []

    @wrap_model_call
    def outside(request, handler):
        try:
            return handler(request)
        except Exception as error:
            raised.append(error)
            raise

    simulator.play(session, [DONE])
    simulator.fault("overflow", session=session, index=0)
    ours = [outside, Barograph(store, policy=BALANCED)]
    agent = agent_at(simulator.url, session, store, [scan], middleware=ours)
    with pytest.raises(anthropic.BadRequestError) as seen:
        agent.invoke(ask("go"), config(session))
    assert raised == [seen.value]


def test_where_nothing_is_folded_the_window_is_learned_all_the_same(simulator, session, store):
    simulator.play(session, script())
    simulator.fault("overflow", session=session, index=ROUNDS)
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        agent_on(simulator, session, store, Policy(name="off")).invoke(ask("go"), config(session))

    assert statuses(simulator, session) == [*[200] * ROUNDS, 400]
    assert of(Pruned, store, session) == []
    (failed,) = of(CallFailed, store, session)
    assert failed.window_tokens == 1_000_000


def test_too_much_room_for_the_answer_is_given_back_and_nothing_is_folded(small, session, store):
    small.play(session, script(1))
    model = model_at(small.url, session, model="claude-opus-4-1", max_tokens=20_000)
    agent_on(small, session, store, model=model).invoke(ask("go"), config(session))

    refused, taken = exchanges_of(small, session)[1:]
    assert (refused.status, taken.status) == (400, 200)
    one, other = json.loads(refused.request), json.loads(taken.request)
    assert one["max_tokens"] == 20_000
    assert other["max_tokens"] == 26_000 - refused.total_tokens
    assert {**one, "max_tokens": 0} == {**other, "max_tokens": 0}
    (failed,) = of(AttemptFailed, store, session)
    assert failed.cause == "output_room"
    assert of(Pruned, store, session) == []
    sound(store, session, 3)


def test_thinking_keeps_the_room_that_it_must_have(small, session, store):
    """`max_tokens` below the budget of the thinking would be refused for another reason."""
    model = model_at(
        small.url,
        session,
        model="claude-opus-4-1",
        max_tokens=16_000,
        thinking={"type": "enabled", "budget_tokens": 15_000},
    )
    small.play(session, script(4))
    agent = agent_on(small, session, store, model=model)
    agent.invoke(ask("go"), config(session))

    bodies = [json.loads(each.request) for each in exchanges_of(small, session)]
    assert {body["max_tokens"] for body in bodies} == {16_000}
    assert [event.cause for event in of(AttemptFailed, store, session)] == ["overflow"]


@pytest.mark.parametrize("way", ["async", "stream", "astream"])
def test_async_and_streamed_calls_recover_too(simulator, session, store, loop, way):
    simulator.play(session, script())
    simulator.fault("overflow", session=session, index=ROUNDS)
    agent = agent_on(simulator, session, store)

    async def read():
        return [each async for each in agent.astream(ask("go"), config(session))]

    if way == "async":
        loop.run(agent.ainvoke(ask("go"), config(session)))
    elif way == "astream":
        loop.run(read())
    else:
        list(agent.stream(ask("go"), config(session), stream_mode="messages"))

    assert statuses(simulator, session) == [*[200] * ROUNDS, 400, 200]
    sound(store, session, ROUNDS + 2)


def test_an_error_inside_a_stream_is_recovered_from(simulator, session, store):
    simulator.play(session, script())
    simulator.fault(
        "error_event",
        session=session,
        index=ROUNDS,
        after_events=1,
        error_type="request_too_large",
    )
    model = model_at(simulator.url, session, streaming=True)
    agent = agent_on(simulator, session, store, model=model)
    answer = agent.invoke(ask("go"), config(session))

    assert answer["messages"][-1].text == "Done."
    (failed,) = of(AttemptFailed, store, session)
    assert failed.cause == "overflow"
    sound(store, session, ROUNDS + 2)


def test_a_subagent_recovers_by_itself(simulator, session, store, loop):
    child_session = f"{session}-child"
    child = create_agent(
        model_at(simulator.url, child_session, account=session),
        [scan],
        system_prompt=SYSTEM,
        middleware=[Barograph(store, policy=BALANCED)],
    )

    @tool
    async def research(topic: str) -> str:
        """Find something out."""
        answer = await child.ainvoke(ask(topic))
        return answer["messages"][-1].text

    simulator.play(session, [calling(("r1", "research", {"topic": "all"})), DONE])
    simulator.play(child_session, script())
    simulator.fault("overflow", session=child_session, index=ROUNDS)
    ours = [Barograph(store, policy=BALANCED)]
    agent = agent_at(simulator.url, session, store, [research], middleware=ours)
    loop.run(agent.ainvoke(ask("go"), config(session)))

    assert statuses(simulator, child_session)[-2:] == [400, 200]
    (failed,) = of(AttemptFailed, store, session)
    (fold,) = of(Pruned, store, session)
    assert failed.path == fold.path == "main/research#1"
    sound(store, session, ROUNDS + 4)


@pytest.mark.parametrize("times", [1, 2])
def test_a_fallback_model_is_asked_last_and_never_for_what_was_too_long(
    simulator, session, store, times
):
    other = f"{session}-other"
    simulator.play(session, script())
    simulator.play(other, [DONE])
    simulator.fault("overflow", session=session, index=ROUNDS, times=times)
    fallback = ModelFallbackMiddleware(model_at(simulator.url, other, model="claude-sonnet-5"))
    ours = [fallback, Barograph(store, policy=BALANCED)]
    agent = agent_at(simulator.url, session, store, [scan], middleware=ours)
    agent.invoke(ask("go"), config(session))

    refused = max(each.total_tokens for each in exchanges_of(simulator, session))
    asked = exchanges_of(simulator, other)
    assert len(asked) == times - 1
    assert all(each.total_tokens < 0.7 * refused for each in asked)


@pytest.mark.parametrize("fault", ["rate_limit", "spend_cap", "overloaded", "server_error"])
def test_no_other_refusal_folds_anything(simulator, session, store, fault):
    simulator.play(session, script())
    simulator.fault(fault, session=session, index=ROUNDS)
    with pytest.raises(anthropic.APIStatusError):
        agent_on(simulator, session, store).invoke(ask("go"), config(session))

    assert of(Pruned, store, session) == of(AttemptFailed, store, session) == []
    assert len(of(CallFailed, store, session)) == 1


def test_an_answer_that_ends_at_the_window_is_an_answer(simulator, session, store):
    simulator.play(session, script())
    simulator.fault("overflow", session=session, index=ROUNDS, wording="stop_reason")
    agent_on(simulator, session, store).invoke(ask("go"), config(session))

    assert statuses(simulator, session) == [200] * (ROUNDS + 1)
    assert of(AttemptFailed, store, session) == []


def test_markers_and_length_are_not_both_mended_in_one_call(session, store):
    """A call is planned again once, whatever its refusals are about."""
    with Simulator(switches=Switches(markers="unsupported")) as gateway:
        gateway.play(session, [DONE])
        gateway.fault("overflow", session=session, request=2)
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
            agent_on(gateway, session, store).invoke(ask("go"), config(session))
        assert statuses(gateway, session) == [400, 400]


def test_a_loud_line_says_how_it_goes_on(simulator, session, store, caplog):
    simulator.play(session, script())
    simulator.fault("overflow", session=session, index=ROUNDS)
    with caplog.at_level(logging.WARNING, "barograph"):
        agent_on(simulator, session, store).invoke(ask("go"), config(session))

    (line,) = [each.getMessage() for each in caplog.records]
    plan = of(CallPlanned, store, session)[-1]
    assert f"with about {plan.projected_tokens} tokens, old content folded" in line
    assert "prompt is too long" in line


def test_what_cannot_be_shortened_is_told_part_by_part(simulator, session, store, caplog):
    simulator.play(session, [DONE])
    simulator.fault("overflow", session=session, index=0)
    agent = agent_on(simulator, session, store)
    with pytest.raises(anthropic.BadRequestError), caplog.at_level(logging.ERROR, "barograph"):
        agent.invoke(ask("go"), config(session))
    (line,) = [each.getMessage() for each in caplog.records]
    assert "cannot be shortened further" in line
    assert "tools and system take about" in line
    assert f"barograph context {session}" in line


@pytest.mark.parametrize(("refusals", "counted"), [(1, (1, 1, 0)), (2, (1, 0, 1))])
def test_recoveries_are_counted_from_the_log(simulator, session, store, refusals, counted):
    simulator.play(session, script())
    simulator.fault("overflow", session=session, index=ROUNDS, times=refusals)
    try:
        agent_on(simulator, session, store).invoke(ask("go"), config(session))
    except anthropic.BadRequestError:
        assert refusals > 1
    came = "succeeded" if refusals == 1 else "failed"
    series = read_series(store, session)
    total = series.total
    assert {row.call: row.recovery for row in series.calls if row.recovery} == {ROUNDS + 1: came}
    assert list_calls(store, session)[ROUNDS].recovery == came
    figures = (total.recoveries_attempted, total.recoveries_succeeded, total.recoveries_failed)
    assert figures == counted


def test_a_prompt_that_fills_the_window_by_itself_is_spoken_of_once(
    simulator, session, store, caplog
):
    simulator.play(session, [DONE, DONE])
    small = replace(BALANCED, window_tokens=1000)
    agent = agent_on(simulator, session, store, small, checkpointer=InMemorySaver())
    with caplog.at_level(logging.WARNING, "barograph"):
        agent.invoke(ask("go"), config(session))
        agent.invoke(ask("go on"), config(session))
    (line,) = [each.getMessage() for each in caplog.records]
    assert "a fixed part that no fold takes off" in line
    assert "Offer fewer tools" in line
