"""Several middlewares on one session: they take turns, and no two are in one turn."""

import asyncio
import contextvars
import threading

import pytest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from stage import agent_at, ask, calling, config, exchanges_of, look, looking, prove

from barograph import SequenceConflict
from barograph.simulator import Reply

DONE = Reply(content="Done.")


def two_workers(simulator, session, store, tools, **more):
    saver = InMemorySaver()
    return [
        agent_at(simulator.url, session, store, tools, checkpointer=saver, **more) for _ in range(2)
    ]


def outside(work):
    """Run on a thread of its own, as another worker would; what it raised, if it did."""
    raised = []

    def run():
        try:
            contextvars.Context().run(work)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


def test_workers_that_serve_a_thread_turn_by_turn_break_nothing(simulator, store, session):
    simulator.play(session, [looking("w1"), DONE, looking("w2"), DONE, looking("w3"), DONE])
    one, two = two_workers(simulator, session, store, [look])
    for number, worker in enumerate([one, two, one]):
        worker.invoke(ask(f"turn {number}"), config(session))
    prove(store, session, exchanges_of(simulator, session))


def test_a_turn_that_ends_in_an_answer_of_a_given_form_is_over(simulator, store, session):
    class Verdict(BaseModel):
        """A verdict."""

        good: bool

    verdicts = [calling((f"v{n}", "Verdict", {"good": True})) for n in range(3)]
    simulator.play(session, [looking("w1"), *verdicts])
    form = ToolStrategy(Verdict)
    one, two = two_workers(simulator, session, store, [look], response_format=form)
    for number, worker in enumerate([one, two, one]):
        state = worker.invoke(ask(f"turn {number}"), config(session))
        assert state["structured_response"].good
    prove(store, session, exchanges_of(simulator, session))


def test_a_turn_is_not_over_while_tools_run_beside_such_an_answer(simulator, store, session):
    refused = []

    class Verdict(BaseModel):
        """A verdict."""

        good: bool

    @tool
    def slow() -> str:
        """Take long."""
        refused.append(outside(lambda: two.invoke(ask("me too"), config(session))))
        return "slow"

    simulator.play(session, [calling(("t1", "slow", {}), ("v1", "Verdict", {"good": True})), DONE])
    form = ToolStrategy(Verdict)
    one, two = two_workers(simulator, session, store, [slow], response_format=form)
    one.invoke(ask("go"), config(session))

    assert [type(error) for error in refused] == [SequenceConflict]


@pytest.mark.parametrize("where", ["call", "tool"])
def test_a_second_writer_in_mid_turn_gets_a_clear_error_and_the_first_goes_on(
    simulator, store, session, where, monkeypatch
):
    refused = []
    answer = simulator.provider.handle

    def disturb():
        refused.append(outside(lambda: two.invoke(ask("me too"), config(session))))

    def handle(body, headers):
        if where == "call" and not refused:
            disturb()
        return answer(body, headers)

    @tool
    def slow() -> str:
        """Take long."""
        if where == "tool":
            disturb()
        return "slow"

    monkeypatch.setattr(simulator.provider, "handle", handle)
    simulator.play(session, [calling(("t1", "slow", {})), DONE])
    one = agent_at(simulator.url, session, store, [slow])
    two = agent_at(simulator.url, session, store, [slow])

    one.invoke(ask("go"), config(session))

    [error] = refused
    assert isinstance(error, SequenceConflict)
    assert session in str(error)
    assert "a turn is under way there" in str(error)
    prove(store, session, exchanges_of(simulator, session))


def test_an_interrupted_turn_is_resumed_by_another_worker(simulator, store, session):
    @tool
    def approve(what: str) -> str:
        """Ask a person."""
        return f"{what}: {interrupt('may I?')}"

    simulator.play(session, [calling(("i1", "approve", {"what": "it"})), DONE])
    one, two = two_workers(simulator, session, store, [approve])

    one.invoke(ask("go"), config(session))
    state = two.invoke(Command(resume="yes"), config(session))

    assert state["messages"][-2].content == "it: yes"
    prove(store, session, exchanges_of(simulator, session))


def test_a_cancelled_turn_is_continued_by_another_worker(simulator, store, session, loop):
    begun = asyncio.Event()

    @tool
    async def endless() -> str:
        """Never end."""
        begun.set()
        await asyncio.sleep(3600)
        return "never"

    async def cancel_in_the_tool():
        running = asyncio.create_task(one.ainvoke(ask("go"), config(session)))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    simulator.play(session, [calling(("c1", "endless", {})), DONE])
    one, two = two_workers(simulator, session, store, [endless])
    loop.run(cancel_in_the_tool())
    loop.run(two.ainvoke(ask("and now?"), config(session)))

    prove(store, session, exchanges_of(simulator, session))


def test_a_worker_whose_history_another_one_rewound_starts_over(simulator, store, session):
    simulator.play(session, [looking("r1"), DONE, DONE, DONE])
    one = agent_at(simulator.url, session, store, [look])
    two = agent_at(simulator.url, session, store, [look])

    state = one.invoke(ask("one"), config(session))
    two.invoke(ask("two"), config(session))
    one.invoke({"messages": [*state["messages"], HumanMessage("three")]}, config(session))

    requests = prove(store, session, exchanges_of(simulator, session), breaks=2)
    assert len(requests[-1].surface.entries) == len(state["messages"]) + 1
