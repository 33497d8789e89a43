"""Subagents that start at once on a cold cache: what they share is written once, and none is stuck.

The simulator's clock is the real one here, and its answers begin late, so that requests that leave
together find nothing in the cache, as with the real provider.
"""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.tools import tool
from pydantic import BaseModel
from stage import SYSTEM, ask, calling, config, exchanges_of, logged, look, model_at, prove_sound

from barograph.core.events import CallFailed, ResponseCame
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.langchain.fanout import Departure
from barograph.langchain.wire import Watch
from barograph.simulator import Reply, Simulator, Switches

DONE = Reply(content="Done.")
SIBLINGS = 8
LATE_SECONDS = 0.25


@pytest.fixture(scope="module")
def simulator():
    with Simulator(clock=time.monotonic, switches=Switches(first_token_seconds=0.2)) as running:
        yield running


@pytest.fixture
def late(simulator, session):
    """Answers of the children begin late, in the order in which they were asked."""
    simulator.fault("slow", session=f"{session}-child", delay_seconds=LATE_SECONDS, times=100)


def children(simulator, session, store, *, system=SYSTEM, policy=None, form=None, **model):
    """A tool that runs an agent, sync or async as it is called."""
    child = create_agent(
        model_at(simulator.url, f"{session}-child", account=session, **model),
        [look],
        system_prompt=system,
        middleware=[Barograph(store, policy=policy)],
        response_format=form,
    )

    def research(topic: str) -> str:
        """Find something out."""
        return child.invoke(ask(topic))["messages"][-1].text

    async def aresearch(topic: str) -> str:
        answer = await child.ainvoke(ask(topic))
        return answer["messages"][-1].text

    return tool(research), aresearch


def fan_out(simulator, session, store, tools, *, loop=None, policy=None, count=SIBLINGS, said=DONE):
    """A main agent that asks for so many children at once."""
    asked = calling(*((f"r{i}", "research", {"topic": f"topic {i}"}) for i in range(count)))
    simulator.play(session, [asked, DONE])
    simulator.play(f"{session}-child", lambda _request, _index: said)
    sync, coroutine = tools
    both = sync.model_copy(update={"coroutine": coroutine})
    agent = create_agent(
        model_at(simulator.url, session),
        [both],
        system_prompt="You hand out work.",
        middleware=[Barograph(store, policy=policy)],
    )
    if loop is None:
        return agent.invoke(ask("go"), config(session))
    return loop.run(agent.ainvoke(ask("go"), config(session)))


def usages(simulator, session):
    return [each.usage for each in exchanges_of(simulator, f"{session}-child")]


@pytest.fixture(params=["threads", "tasks"])
def way(request, loop):
    return loop if request.param == "tasks" else None


@pytest.mark.usefixtures("late")
def test_of_eight_subagents_on_a_cold_cache_one_writes_what_they_share(
    simulator, session, store, way
):
    fan_out(simulator, session, store, children(simulator, session, store), loop=way)

    first, *others = usages(simulator, session)
    assert first.read_tokens == 0
    assert first.write_tokens > 1024
    assert len(others) == SIBLINGS - 1
    for usage in others:
        assert usage.read_tokens > 1024
        assert usage.write_tokens < 100
    everything = [each for each in simulator.exchanges if each.session.startswith(session)]
    prove_sound(store, session, everything)


def test_without_waiting_each_of_them_would_write_it(session, store):
    """What the rule is for: this is how the provider bills those who leave together."""
    policy = Policy(fanout_wait_seconds=0)
    with Simulator(clock=time.monotonic, switches=Switches(first_token_seconds=60)) as simulator:
        tools = children(simulator, session, store, policy=policy)
        fan_out(simulator, session, store, tools, policy=policy)
        assert [usage.read_tokens for usage in usages(simulator, session)] == [0] * SIBLINGS


@contextmanager
def waiting(caplog):
    """Texts of the calls that waited meanwhile."""
    caplog.clear()
    waited = []
    with caplog.at_level(logging.DEBUG, logger="barograph"):
        yield waited
    waited += [line for line in caplog.messages if "a call waits" in line]


@pytest.mark.usefixtures("late")
def test_nobody_waits_where_the_cache_is_warm(simulator, session, store, way, caplog):
    tools = children(simulator, session, store)
    with waiting(caplog) as waited:
        fan_out(simulator, session, store, tools, loop=way)
    assert waited
    with waiting(caplog) as waited:
        fan_out(simulator, session, store, tools, loop=way)
    assert waited == []
    assert all(usage.read_tokens > 1024 for usage in usages(simulator, session)[1:])


@pytest.mark.usefixtures("late")
def test_nobody_waits_where_agents_with_a_tool_of_the_clients_find_the_cache_warm(
    simulator, session, store, way, caplog
):
    class Verdict(BaseModel):
        """A verdict."""

        good: bool

    tools = children(simulator, session, store, form=ToolStrategy(Verdict))
    said = calling(("v", "Verdict", {"good": True}))
    for is_warm in (False, True):
        with waiting(caplog) as waited:
            fan_out(simulator, session, store, tools, loop=way, said=said)
        assert bool(waited) is not is_warm

    first, *others = usages(simulator, session)
    assert first.read_tokens == 0
    assert all(usage.read_tokens > 1024 for usage in others)


@pytest.mark.usefixtures("late")
def test_nobody_waits_for_what_is_below_the_models_minimum(simulator, session, store, caplog):
    tools = children(simulator, session, store, system="You find out.")
    with waiting(caplog) as waited:
        fan_out(simulator, session, store, tools)
    assert waited == []


@pytest.mark.usefixtures("late")
def test_nobody_waits_where_no_markers_are_placed(simulator, session, store, caplog):
    policy = Policy(markers="off")
    tools = children(simulator, session, store, policy=policy)
    with waiting(caplog) as waited:
        fan_out(simulator, session, store, tools, policy=policy)
    assert waited == []


@pytest.mark.usefixtures("late")
def test_nobody_waits_for_another_prefix(simulator, session, store, caplog):
    one, other = (
        children(simulator, session, store, system=SYSTEM + name)[0].func for name in ("a", "b")
    )

    def research(topic: str) -> str:
        """Find something out."""
        return one(topic) if topic.endswith("0") else other(topic)

    async def aresearch(topic: str) -> str:
        return await asyncio.to_thread(research, topic)

    with waiting(caplog) as waited:
        fan_out(simulator, session, store, (tool(research), aresearch), count=2)
    assert waited == []
    assert [usage.read_tokens for usage in usages(simulator, session)] == [0, 0]


@pytest.mark.parametrize("kind", ["server_error", "drop", "too_large"])
def test_where_the_first_one_fails_the_next_one_is_the_first(simulator, session, store, way, kind):
    child = f"{session}-child"
    simulator.fault(kind, session=child, index=0)
    simulator.fault("slow", session=child, delay_seconds=LATE_SECONDS, times=100)
    research, aresearch = children(simulator, session, store)

    def forgiving(topic: str) -> str:
        """Find something out."""
        try:
            return research.func(topic)
        except Exception as error:  # noqa: BLE001 - whatever the client makes of it
            return type(error).__name__

    async def aforgiving(topic: str) -> str:
        try:
            return await aresearch(topic)
        except Exception as error:  # noqa: BLE001
            return type(error).__name__

    tools = tool("research")(forgiving), aforgiving
    fan_out(simulator, session, store, tools, loop=way)

    failed = [each for each in logged(store, session) if isinstance(each, CallFailed)]
    assert len(failed) == 1
    answered = [usage for usage in usages(simulator, session) if usage is not None]
    assert [usage.read_tokens == 0 for usage in answered] == [True] + [False] * (SIBLINGS - 2)


def test_where_the_first_one_hangs_the_others_leave_in_time(simulator, session, store, way):
    simulator.fault("hang", session=f"{session}-child", index=0)
    policy = Policy(fanout_wait_seconds=0.5)
    sync, coroutine = children(simulator, session, store, policy=policy, timeout=4.0)

    def patient(topic: str) -> str:
        """Find something out."""
        try:
            return sync.func(topic)
        except Exception:  # noqa: BLE001
            return "timed out"

    async def apatient(topic: str) -> str:
        try:
            return await coroutine(topic)
        except Exception:  # noqa: BLE001
            return "timed out"

    fan_out(
        simulator,
        session,
        store,
        (tool("research")(patient), apatient),
        loop=way,
        policy=policy,
        count=3,
    )

    events = logged(store, session)
    (failed,) = [each for each in events if isinstance(each, CallFailed)]
    others = [
        e for e in events if isinstance(e, ResponseCame) and e.path not in ("main", failed.path)
    ]
    assert len(others) == 2
    assert all(each.at < failed.at for each in others)


@pytest.mark.usefixtures("late")
def test_where_the_first_one_is_cancelled_the_next_one_is_the_first(
    simulator, session, store, loop
):
    _, research = children(simulator, session, store)
    simulator.play(f"{session}-child", lambda _request, _index: DONE)

    results = []

    @tool("research")
    async def all_of_them(topic: str) -> str:
        """Find all of it out."""
        tasks = [asyncio.create_task(research(f"{topic} {number}")) for number in range(4)]
        while not exchanges_of(simulator, f"{session}-child"):  # noqa: ASYNC110 - in a thread
            await asyncio.sleep(0.01)
        tasks[0].cancel()
        results.extend(await asyncio.gather(*tasks, return_exceptions=True))
        return "Done."

    simulator.play(session, [calling(("r1", "research", {"topic": "topic"})), DONE])
    agent = create_agent(
        model_at(simulator.url, session), [all_of_them], middleware=[Barograph(store)]
    )
    loop.run(agent.ainvoke(ask("go"), config(session)))

    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == ["Done."] * 3
    _cancelled, _next, *others = usages(simulator, session)
    assert all(usage.read_tokens > 1024 for usage in others)


def test_a_response_that_begins_is_told_of_and_an_error_is_not():
    told = []
    watch = Watch(lambda _body: None, lambda: told.append("begun"), "5m")
    watch.arrive(httpx2.Response(529))
    assert told == []
    watch.arrive(httpx2.Response(200))
    assert told == ["begun"]


def test_one_that_waits_and_is_cancelled_takes_nobody_along(loop, held_session):
    async def play():
        with Departure(held_session, b"key") as first, Departure(held_session, b"key") as second:
            await first.turn_async()
            waits = asyncio.create_task(second.turn_async())
            await asyncio.sleep(0.01)
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
            with Departure(held_session, b"key") as third:
                goes = asyncio.create_task(third.turn_async())
                await asyncio.sleep(0.01)
                assert not goes.done()
                first.begun()
                await asyncio.wait_for(goes, 1)

    loop.run(play())


def test_a_thread_and_a_task_wait_for_each_other(loop, held_session):
    def in_a_thread(first):
        with Departure(held_session, b"key") as other:
            other.turn()
            return first.outcome.done()

    async def play():
        with Departure(held_session, b"key") as first, ThreadPoolExecutor() as pool:
            await first.turn_async()
            waits = asyncio.wrap_future(pool.submit(in_a_thread, first))
            await asyncio.sleep(0.05)  # the loop is free meanwhile
            assert not waits.done()
            first.begun()
            assert await waits

    loop.run(play())


def test_a_sync_call_on_the_thread_of_a_loop_does_not_block_it(loop, held_session):
    async def play():
        with Departure(held_session, b"key") as first, Departure(held_session, b"key") as other:
            await first.turn_async()
            other.turn()
            assert not first.outcome.done()

    loop.run(play())


def test_after_a_wait_that_was_too_long_those_who_come_wait_for_another(held_session):
    hung, tired, newcomer = (Departure(held_session, b"key") for _ in range(3))
    with hung, tired, newcomer:
        hung.turn()
        tired.turn()
        assert newcomer._ahead() is tired
    assert not hung.outcome.result()


@pytest.fixture
def held_session(store, session):
    """A session whose calls may wait a fifth of a second."""
    ours = Barograph(store, policy=Policy(fanout_wait_seconds=0.2), session=session)
    with ours._places.of_call([]) as track:
        return track.session
