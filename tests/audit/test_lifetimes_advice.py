"""What other lifetimes would have cost, against sessions that had them."""

import pytest
from msgspec.structs import replace

from barograph.audit.lifetimes import advise_ttl, steps_of
from barograph.audit.reading import read_session
from barograph.core import breakpoints
from barograph.core.breakpoints import plan_breakpoints
from barograph.core.inputs import Answered
from barograph.core.policy import Policy
from barograph.providers.anthropic.response import read_response
from barograph.store import MemoryStore
from talk import TOOLS, Talk

PAUSE = 900.0


def played(policy, *, gaps, child=False):
    """A session that reads a file a call, with these gaps between its calls."""
    store = MemoryStore()
    talk = Talk(store, policy=policy)
    talk.call(say="begin " * 300, reply=[("read", {"path": "a"})], results=["text " * 500])
    for number, gap in enumerate(gaps):
        chars = 20 if number % 3 else 1500
        talk.call(
            after=gap, reply=[("read", {"path": f"{number}"})], results=[f"line {number}\n" * chars]
        )
        if child:
            talk.call(path="main/read#1", say=f"look {number}", after=5.0)
    return advise_ttl(store, "s1")


GAPS = {
    "no pause": [10.0] * 12,
    "pauses": [10.0, 10.0, PAUSE, 10.0, 10.0, 10.0, PAUSE, PAUSE, 10.0, 10.0, PAUSE, 10.0],
    "a night": [10.0, PAUSE, 10.0, 30_000.0, 10.0, 10.0, PAUSE, 10.0],
}
POLICIES = {
    "5m": Policy(name="off", ttl="5m"),
    "1h": Policy(name="off", ttl="1h"),
    "auto": Policy(name="off", ttl="auto"),
}


@pytest.mark.parametrize("child", [False, True], ids=["alone", "with a child"])
@pytest.mark.parametrize("gaps", GAPS)
def test_whatever_was_recorded_the_estimates_are_what_the_others_really_cost(gaps, child):
    advices = {
        ttl: played(policy, gaps=GAPS[gaps], child=child) for ttl, policy in POLICIES.items()
    }
    for advice in advices.values():
        for choice in advice.choices[:3]:
            really = advices[choice.ttl].recorded
            assert choice.cost_usd == pytest.approx(really.cost_usd, rel=0.01)
            assert bool(choice.write_1h_tokens) == bool(really.write_1h_tokens)


def test_pauses_and_what_expired_are_counted():
    advice = played(POLICIES["5m"], gaps=GAPS["a night"])

    assert (advice.calls, advice.gaps, advice.pauses, advice.longer) == (9, 8, 2, 1)
    assert advice.pause_ratio == 0.25
    short, long, auto, expecting = advice.choices
    assert (short.expiries, long.expiries) == (3, 1)
    assert (auto.pause_ratio, expecting.pause_ratio) == (0.0, 0.25)
    assert advice.recorded.expiries is None


def test_a_session_that_pauses_is_told_what_would_have_saved_money():
    advice = played(POLICIES["5m"], gaps=GAPS["pauses"])

    assert advice.is_worth_it
    assert advice.choices[advice.best].ttl != "5m"
    assert advice.saved_usd == pytest.approx(
        advice.recorded.cost_usd - advice.choices[advice.best].cost_usd
    )


def test_a_session_that_does_not_pause_is_left_as_it_is():
    advice = played(POLICIES["auto"], gaps=GAPS["no pause"])

    assert not advice.is_worth_it
    assert len(advice.choices) == 3
    assert advice.choices[advice.best].ttl in {"5m", "auto"}


def test_calls_whose_usage_is_unknown_count_nowhere():
    store = MemoryStore()
    talk = Talk(store, policy=POLICIES["5m"])
    talk.call(say="hello")
    talk.call(say="and?", usage=False)
    talk.call(say="never left", leaves=False)

    advice = advise_ttl(store, "s1")

    assert (advice.calls, advice.gaps) == (1, 1)
    assert not advise_ttl_of_nothing().is_worth_it


def compared_entries(monkeypatch, calls):
    """How often an entry is held against a request, in a session of two agents in turns."""
    talk = Talk(MemoryStore(), policy=POLICIES["5m"])
    for number in range(calls):
        talk.call(path="other" if number % 2 else "main", say=f"number {number}")
    compared = []
    real = breakpoints._is_prefix
    with monkeypatch.context() as patched:
        patched.setattr(
            breakpoints, "_is_prefix", lambda *given: compared.append(1) or real(*given)
        )
        advise_ttl(talk.store, "s1")
    return len(compared)


def test_a_call_costs_no_more_the_longer_the_session_is(monkeypatch):
    few, many = (compared_entries(monkeypatch, calls) for calls in (20, 80))
    assert few < many < 5 * few


def test_the_header_ends_before_an_identity_that_stands_alone():
    identity = "You are an agent. " * 300
    talk = Talk(MemoryStore(), policy=replace(POLICIES["5m"], identity=identity.strip()))
    talk.system = identity.strip()
    talk.tools = [{**TOOLS[0], "description": "Read a file. " * 600}]
    for number in range(3):
        talk.call(say=f"number {number}")

    first, *_ = steps = steps_of(read_session(talk.store, "s1"))
    assert {(step.view.header_level, step.view.header_block) for step in steps} == {("tools", 0)}
    sent = first.view.header_level, first.view.header_block
    marks = plan_breakpoints(first.view).breakpoints
    assert (marks[0].level, marks[0].block) == sent


@pytest.mark.parametrize("reserved", [0, 1, 2, 3, 4])
def test_slots_of_others_are_left_to_them(reserved):
    talk = Talk(MemoryStore(), policy=POLICIES["5m"])
    for number in range(6):
        talk.call(say=f"number {number} " * 300, reserved=reserved)

    calls = read_session(talk.store, "s1")
    for step, call in zip(steps_of(calls), calls.calls, strict=True):
        assert len(plan_breakpoints(step.view).breakpoints) <= 4 - reserved
        assert call.plan.reserved == reserved
    advice = advise_ttl(talk.store, "s1")
    assert advice.choices[0].cost_usd == pytest.approx(advice.recorded.cost_usd, rel=0.01)


def test_refreshes_are_paid_for_and_are_no_calls_of_the_agent():
    policy = replace(POLICIES["5m"], keep_warm_tokens=1_000_000)
    talk = Talk(MemoryStore(), policy=policy)
    talk.call(say="hello")
    paid = advise_ttl(talk.store, "s1").recorded
    talk.at += 240
    repeat = talk.session.warm("main", 1, at=talk.at)
    talk.session.leave(
        at=talk.at, path=repeat.path, header=repeat.header, body=repeat.body, observed=True
    )
    headers = {"x-api-key": "k", "x-sim-session": "talk", "x-sim-now": str(talk.at)}
    exchange = talk.provider.handle(repeat.body, headers)
    usage = read_response(exchange.response, streamed=False).usage
    talk.session.take(
        Answered(at=talk.at, path=repeat.path, parts=(), stop_reason="max_tokens", usage=usage)
    )
    talk.call(say="more", after=200)

    advice = advise_ttl(talk.store, "s1")
    assert (advice.calls, advice.gaps) == (2, 1)
    assert usage.read_tokens > 1024
    assert advice.recorded.read_tokens >= 2 * usage.read_tokens
    assert advice.recorded.cost_usd > paid.cost_usd
    assert advice.choices[0].expiries == 1  # without the refresh


def advise_ttl_of_nothing():
    store = MemoryStore()
    Talk(store)
    return advise_ttl(store, "s1")
