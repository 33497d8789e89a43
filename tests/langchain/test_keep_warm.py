"""Agents that are kept warm through pauses: what is sent, what it saves, and when it stops.

The simulator's clock and that of the middleware are one, moved by hand. What the thread would do
when it wakes is done here by `refresh_due`, except where the thread itself is looked at.
"""

import json
import logging
import threading
import time

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from stage import (
    SYSTEM,
    agent_at,
    ask,
    calling,
    config,
    exchanges_of,
    logged,
    look,
    model_at,
    prove_sound,
    records,
)

from barograph.audit.explain import list_calls
from barograph.audit.series_reader import read_series
from barograph.core.errors import StoreUnavailable
from barograph.core.events import CallFailed, KeptWarm, ResponseCame, TurnEnded
from barograph.core.inputs import ToolStarted
from barograph.core.policy import Policy
from barograph.langchain import Barograph, warmer
from barograph.simulator import Reply, Simulator
from barograph.store import MemoryStore
from barograph.store.folding import compact_session
from barograph.store.session import Session

FOUR_MINUTES = 240.0
WARM = Policy(keep_warm_tokens=1_000_000)
DONE = Reply(content="Done.")


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def simulator(clock):
    with Simulator(clock=clock) as running:
        yield running


class Stage:
    """An agent under a clock that stands still, and a thread that never wakes by itself."""

    def __init__(self, simulator, session, store, clock, *, policy=WARM, mode="normal", **model):
        self.simulator, self.session, self.store, self.clock = simulator, session, store, clock
        kept = None if mode == "private" else store
        self.ours = Barograph(kept, policy=policy, mode=mode, clock=clock)
        system = model.pop("system", SYSTEM)
        self.model = model_at(simulator.url, session, **model)
        self.build(tools=[look], system_prompt=system)
        simulator.play(session, lambda _request, _index: DONE)

    def build(self, **more):
        self.agent = agent_at(
            self.simulator.url,
            self.session,
            self.store,
            middleware=[self.ours],
            model=self.model,
            checkpointer=InMemorySaver(),
            **more,
        )

    def say(self, text):
        return self.agent.invoke(ask(text), config(self.session))

    def wait(self, seconds):
        """Let time pass, and let the thread look at the clock."""
        self.clock.now += seconds
        return self.ours._warmer.refresh_due()

    @property
    def exchanges(self):
        return exchanges_of(self.simulator, self.session)

    @property
    def refreshes(self):
        return [each for each in logged(self.store, self.session) if isinstance(each, KeptWarm)]


@pytest.fixture
def sleeping(monkeypatch):
    """The thread never wakes."""
    monkeypatch.setattr(warmer.Warmer, "_run", lambda _self: None)


@pytest.fixture
def place(simulator, session, store):
    return simulator, session, store


@pytest.fixture
def stage(place, clock, request, sleeping):
    made = Stage(*place, clock, **getattr(request, "param", {}))
    yield made
    made.ours.close()


def set_up(**given):
    """A stage of another make."""
    return pytest.mark.parametrize("stage", [given], indirect=True, ids=[""])


def test_after_a_pause_of_eight_minutes_all_is_read_that_was_written(stage):
    stage.say("Hello.")
    assert stage.wait(FOUR_MINUTES) == stage.clock.now + FOUR_MINUTES
    stage.wait(FOUR_MINUTES - 1)
    stage.say("Are you there?")

    first, refresh, last = (each.usage for each in stage.exchanges)
    assert refresh.read_tokens == first.write_tokens > 1024
    assert refresh.write_tokens == 0
    assert last.read_tokens == first.write_tokens
    prove_sound(stage.store, stage.session, stage.exchanges)


@set_up(policy=Policy())
def test_it_is_off_by_default_and_then_nothing_is_sent_and_the_pause_is_paid_for(stage):
    stage.say("Hello.")
    assert stage.wait(FOUR_MINUTES) is None
    stage.wait(FOUR_MINUTES)
    stage.say("Are you there?")

    first, last = (each.usage for each in stage.exchanges)
    assert last.read_tokens == 0
    assert last.write_tokens > first.write_tokens
    assert stage.refreshes == []


def test_what_is_sent_is_the_last_request_but_for_what_asks_for_an_answer(stage):
    stage.say("Hello.")
    stage.wait(FOUR_MINUTES)

    first, refresh = (json.loads(each.request) for each in stage.exchanges)
    assert refresh.pop("max_tokens") == 0
    assert first.pop("max_tokens") == 512
    assert refresh == first
    assert stage.exchanges[1].request == stage.exchanges[0].request.replace(
        b'"max_tokens":512', b'"max_tokens":0'
    )


@set_up(streaming=True)
def test_a_stream_is_repeated_without_streaming(stage):
    stage.say("Hello.")
    stage.wait(FOUR_MINUTES)

    first, refresh = (json.loads(each.request) for each in stage.exchanges)
    assert first["stream"] is True
    assert "stream" not in refresh
    assert stage.exchanges[1].usage.read_tokens == stage.exchanges[0].usage.write_tokens
    prove_sound(stage.store, stage.session, stage.exchanges)


@set_up(
    model="claude-sonnet-4-6",
    system=SYSTEM * 5,
    thinking={"type": "enabled", "budget_tokens": 1024},
    max_tokens=4096,
)
def test_a_budget_of_thinking_is_kept_and_stays_below_the_room(stage):
    stage.say("Hello.")
    stage.wait(FOUR_MINUTES)

    refresh = json.loads(stage.exchanges[1].request)
    assert refresh["max_tokens"] == 1025
    assert refresh["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert stage.exchanges[1].status == 200
    assert stage.exchanges[1].usage.read_tokens == stage.exchanges[0].usage.write_tokens


def test_it_is_billed_and_shown_and_moves_neither_turn_nor_meter(stage):
    stage.say("Hello.")
    before = stage.ours._places.session_of(stage.session).state.path("main")
    stage.wait(FOUR_MINUTES)
    after = stage.ours._places.session_of(stage.session).state.path("main")
    assert (after.turn, after.round, after.meter) == (before.turn, before.round, before.meter)
    assert after.pauses == before.pauses
    stage.wait(FOUR_MINUTES - 1)
    stage.say("Are you there?")

    series = read_series(stage.store, stage.session)
    assert [(row.path, row.call, row.turn, row.cause) for row in series.calls] == [
        ("main", 1, 1, "cold_start"),
        ("main/~keep-warm", 2, 1, "held"),
        ("main", 3, 2, "held"),
    ]
    assert series.calls[1].cost_usd > 0
    assert series.total.cost_usd == pytest.approx(sum(row.cost_usd for row in series.calls))
    explained = list_calls(stage.store, stage.session)
    assert [one.verdict.cause for one in explained] == [row.cause for row in series.calls]
    ended = [each for each in logged(stage.store, stage.session) if isinstance(each, TurnEnded)]
    assert [(each.path, each.turn) for each in ended] == [("main", 1), ("main", 2)]


def test_the_next_call_expects_what_was_kept(stage):
    stage.say("Hello.")
    stage.wait(FOUR_MINUTES)
    stage.wait(FOUR_MINUTES - 1)
    stage.say("Are you there?")

    plan = stage.ours._places.session_of(stage.session).state.path("main").planned
    assert plan.expected_read_tokens == stage.exchanges[0].usage.write_tokens


def test_the_record_stands_in_the_log_before_the_request_leaves(stage):
    stage.say("Hello.")
    seen = []
    hooks = stage.model._client._client.event_hooks["request"]
    hooks.append(lambda _request: seen.append(records(stage.store, stage.session)[-1].path))
    stage.wait(FOUR_MINUTES)
    assert seen == ["main/~keep-warm"]


@set_up(policy=Policy(keep_warm_tokens=500))
def test_the_budget_of_the_session_ends_it(stage):
    stage.say("Hello.")
    while stage.wait(FOUR_MINUTES) is not None:
        pass
    cost = stage.refreshes[0].cost_tokens
    assert len(stage.refreshes) == 500 // cost
    assert 0 < len(stage.refreshes) < 5

    stage.say("Are you there?")  # the budget is that of the session, not of one pause
    assert stage.wait(FOUR_MINUTES) is None


@set_up(policy=Policy(keep_warm_tokens=1_000_000, keep_warm_seconds=600))
def test_it_stops_when_the_agent_is_idle_for_too_long(stage):
    stage.say("Hello.")
    assert stage.wait(FOUR_MINUTES) is not None
    assert stage.wait(FOUR_MINUTES) is None
    assert len(stage.refreshes) == 2


def test_it_stops_before_it_costs_more_than_what_would_be_lost(stage):
    stage.say("Hello.")
    while stage.wait(FOUR_MINUTES) is not None:
        pass
    assert len(stage.refreshes) == 11  # (1.25 - 0.1) / 0.1
    written = stage.exchanges[0].usage.write_tokens
    assert sum(each.cost_tokens for each in stage.refreshes) <= 1.15 * written


def test_a_prefix_that_was_folded_is_not_kept(stage):
    long = Reply(content="There is much to say of it. " * 400)
    stage.simulator.play(stage.session, lambda _request, _index: long)
    for number in range(6):
        stage.say(f"Number {number}.")
    session = stage.ours._places.session_of(stage.session)
    assert session.next_refresh("main") is not None
    assert compact_session(session, "main", at=stage.clock.now) is not None
    assert session.next_refresh("main") is None
    assert stage.wait(FOUR_MINUTES) is None
    assert stage.refreshes == []


def test_a_newer_call_ends_the_pause_and_begins_its_own(stage):
    stage.say("Hello.")
    stage.clock.now += FOUR_MINUTES - 10
    stage.say("Still there?")
    assert stage.wait(30) == stage.clock.now + FOUR_MINUTES - 30
    assert stage.refreshes == []
    stage.wait(FOUR_MINUTES - 30)
    assert [each.call for each in stage.refreshes] == [2]


def test_what_is_dead_is_not_written_anew(stage):
    stage.say("Hello.")
    assert stage.wait(301) is None
    assert len(stage.exchanges) == 1


@pytest.mark.parametrize("kind", ["overloaded", "server_error", "drop"])
def test_a_refusal_ends_it_with_one_line(stage, caplog, kind):
    stage.say("Hello.")
    stage.simulator.fault(kind, session=stage.session, index=1, times=10)
    with caplog.at_level(logging.WARNING, logger="barograph"):
        assert stage.wait(FOUR_MINUTES) is None
        assert stage.wait(10) is None
    (line,) = caplog.messages
    assert "main of session" in line
    assert "not kept warm any more" in line
    failed = [each for each in logged(stage.store, stage.session) if isinstance(each, CallFailed)]
    assert [each.path for each in failed] == ["main/~keep-warm"]


def test_a_long_tool_is_a_pause_too(stage):
    @tool
    def think(stage_of: str) -> str:
        """Think for long."""
        stage.wait(FOUR_MINUTES)
        stage.clock.now += FOUR_MINUTES - 1
        return stage_of

    stage.build(tools=[think])
    stage.simulator.play(stage.session, [calling(("a", "think", {"stage_of": "a"})), DONE])
    stage.say("Think.")

    assert len(stage.refreshes) == 1
    first, _, last = (each.usage for each in stage.exchanges)
    assert last.read_tokens == first.write_tokens
    prove_sound(stage.store, stage.session, stage.exchanges)


def test_a_child_that_gave_its_answer_is_left_to_cool(stage):
    child = create_agent(
        model_at(stage.simulator.url, f"{stage.session}-child", account=stage.session),
        [look],
        system_prompt=SYSTEM + "You are a child.",
        middleware=[stage.ours],
    )
    stage.simulator.play(f"{stage.session}-child", [DONE])

    @tool
    def research(topic: str) -> str:
        """Find something out."""
        child.invoke(ask(topic))
        stage.wait(FOUR_MINUTES)
        return "found"

    stage.build(tools=[research])
    asked = calling(("r", "research", {"topic": "oslo"}))
    stage.simulator.play(stage.session, [asked, DONE])
    stage.say("Find it.")

    assert [each.path for each in stage.refreshes] == ["main"]


def test_async_agents_are_kept_warm_by_the_synchronous_client(stage, loop):
    loop.run(stage.agent.ainvoke(ask("Hello."), config(stage.session)))
    stage.wait(FOUR_MINUTES)
    assert stage.exchanges[1].usage.read_tokens == stage.exchanges[0].usage.write_tokens
    prove_sound(stage.store, stage.session, stage.exchanges)


@set_up(mode="private")
def test_a_private_session_is_kept_warm_and_leaves_nothing_durable(stage):
    assert isinstance(stage.ours.store, MemoryStore)
    stage.say("Hello.")
    stage.wait(FOUR_MINUTES)
    assert len(stage.exchanges) == 2
    assert list(stage.store.sessions()) == []


def test_a_session_that_another_process_went_on_with_is_left_to_it(stage):
    stage.say("Hello.")
    other = Session.open(
        stage.store,
        stage.session,
        stage.ours._places._engine,
        at=stage.clock.now,
        made_by="another",
    )
    other.take(
        ToolStarted(at=stage.clock.now, path="main", call_id="x", name="look", arguments="{}")
    )
    assert stage.wait(FOUR_MINUTES) is None
    assert len(stage.exchanges) == 1


def test_nothing_is_sent_after_it_was_closed(stage):
    stage.say("Hello.")
    stage.ours.close()
    stage.wait(FOUR_MINUTES)
    assert len(stage.exchanges) == 1


def threads():
    return [one for one in threading.enumerate() if one.name == "barograph-keep-warm"]


def test_a_thread_wakes_by_the_clock_and_ends_with_its_middleware(
    simulator, session, store, clock, monkeypatch
):
    monkeypatch.setattr(warmer, "_NAP_SECONDS", 0.01)
    stage = Stage(simulator, session, store, clock)
    stage.say("Hello.")
    (thread,) = threads()
    assert thread.daemon
    clock.now += FOUR_MINUTES
    until = time.monotonic() + 10
    while len(answers := _answers(stage)) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert [each.path for each in answers] == ["main", "main/~keep-warm"]
    stage.ours.close()
    assert threads() == []
    assert not thread.is_alive()


def _answers(stage):
    return [each for each in logged(stage.store, stage.session) if isinstance(each, ResponseCame)]


def test_the_thread_ends_by_itself_when_no_refresh_is_to_come(
    simulator, session, store, clock, monkeypatch
):
    monkeypatch.setattr(warmer, "_NAP_SECONDS", 0.01)
    stage = Stage(simulator, session, store, clock)
    stage.say("Hello.")
    (thread,) = threads()
    clock.now += 3600
    thread.join(10)
    assert not thread.is_alive()
    assert len(stage.exchanges) == 1
    stage.ours.close()


def test_no_thread_begins_where_it_is_off(simulator, session, store, clock, monkeypatch):
    monkeypatch.setattr(warmer, "Thread", None)
    stage = Stage(simulator, session, store, clock, policy=Policy())
    stage.say("Hello.")
    assert threads() == []
    stage.ours.close()


class Unstartable(threading.Thread):
    def start(self):
        raise RuntimeError("can't start new thread")


def test_a_turn_goes_on_where_no_thread_can_be_started(place, clock, monkeypatch, caplog):
    monkeypatch.setattr(warmer, "Thread", Unstartable)
    stage = Stage(*place, clock)
    assert stage.say("Hello.")["messages"][-1].text == "Done."
    assert stage.ours._warmer.refresh_due() is None
    stage.ours.close()
    assert "nothing is kept warm: can't start new thread" in caplog.text


def test_what_goes_wrong_with_one_session_ends_its_pause_alone(stage, monkeypatch, caplog):
    stage.say("Hello.")
    stage.session += "-other"
    stage.say("Hello.")

    def broken(one, path):
        if one.id.endswith("-other"):
            raise ZeroDivisionError(path)
        return whole(one, path)

    whole = Session.next_refresh
    monkeypatch.setattr(Session, "next_refresh", broken)
    assert stage.wait(FOUR_MINUTES) is not None
    (line,) = caplog.messages
    assert f"main of session {stage.session} is not kept warm any more" in line


def test_a_session_that_was_deleted_in_a_pause_is_not_begun_anew(stage):
    stage.say("Hello.")
    stage.store.delete(stage.session)
    assert stage.wait(FOUR_MINUTES) is None
    assert list(stage.store.sessions()) == []
    assert len(stage.exchanges) == 1


@pytest.mark.parametrize("broken", ["append", "end"])
def test_nothing_is_sent_while_the_log_cannot_be_written(stage, monkeypatch, caplog, broken):
    stage.say("Hello.")
    before = logged(stage.store, stage.session)

    def refuse(*_given, **_more):
        raise StoreUnavailable("The disk is full.", next_step="Make room.")

    with monkeypatch.context() as patched:
        patched.setattr(stage.store, broken, refuse)
        assert stage.wait(FOUR_MINUTES) is None
    assert len(stage.exchanges) == 1
    assert logged(stage.store, stage.session) == before
    (line,) = caplog.messages
    assert "is not kept warm any more: The disk is full." in line
    stage.say("Are you there?")
    prove_sound(stage.store, stage.session, stage.exchanges)
