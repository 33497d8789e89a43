"""The loop: a real agent's every request is logged, derived, byte-stable and cached."""

import asyncio
import copy

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from stage import (
    agent_at,
    ask,
    calling,
    config,
    exchanges_of,
    kinds,
    logged,
    look,
    looking,
    model_at,
    prove,
    records,
)

from barograph.core.events import CallPlanned, HeaderSet, MessageSeen, Replaced, ResponseCame
from barograph.langchain import Barograph
from barograph.simulator import Reply
from barograph.store import SqliteStore

CALLS_A_TURN = 4


def script(turns=1):
    """Replies of whole turns: two calls at once, one call without a word, another tool, the end."""
    replies = []
    for turn in range(turns):
        replies += [
            looking(f"a{turn}", f"b{turn}"),
            looking(f"c{turn}", say=""),
            calling((f"d{turn}", "act", {"what": "x"})),
            Reply(content="Done."),
        ]
    return replies


async def drain(stream):
    return [chunk async for chunk in stream]


def run(agent, mode, text, session):
    match mode:
        case "invoke":
            agent.invoke(ask(text), config(session))
        case "stream":
            list(agent.stream(ask(text), config(session), stream_mode="messages"))
        case "ainvoke":
            return agent.ainvoke(ask(text), config(session))
        case "astream":
            return drain(agent.astream(ask(text), config(session), stream_mode="messages"))
    return None


def play(loop, agent, modes, session):
    async def everything():
        for number, mode in enumerate(modes):
            pending = run(agent, mode, f"turn {number}", session)
            if pending is not None:
                await pending

    if any(mode.startswith("a") for mode in modes):
        loop.run(everything())
    else:
        for number, mode in enumerate(modes):
            run(agent, mode, f"turn {number}", session)


@pytest.mark.parametrize(
    "modes",
    [
        ("invoke",),
        ("stream",),
        ("ainvoke",),
        ("astream",),
        ("invoke", "stream", "invoke"),
        ("astream", "ainvoke"),
    ],
    ids="+".join,
)
def test_every_request_is_logged_derived_and_cached(loop, simulator, store, session, modes):
    simulator.play(session, script(len(modes)))
    agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())

    play(loop, agent, modes, session)

    exchanges = exchanges_of(simulator, session)
    assert len(exchanges) == CALLS_A_TURN * len(modes)
    requests = prove(store, session, exchanges)
    assert not any(request.record.deviations for request in requests)
    counted = kinds(store, session)
    assert counted["TurnBegan"] == counted["TurnEnded"] == len(modes)
    assert counted["ToolBegan"] == counted["ToolEnded"] == 4 * len(modes)
    assert not counted["Replaced"]


def test_without_a_checkpointer_the_whole_history_is_recognised(simulator, store, session):
    simulator.play(session, script(2))
    agent = agent_at(simulator.url, session, store)
    state = agent.invoke(ask("one"), config(session))

    agent.invoke({"messages": [*state["messages"], HumanMessage("two")]}, config(session))

    prove(store, session, exchanges_of(simulator, session))
    assert not kinds(store, session)["Replaced"]


def test_a_new_process_goes_on_where_the_log_ends(simulator, tmp_path, session):
    simulator.play(session, script(2))
    saver = InMemorySaver()
    for text in ("one", "two"):
        store = SqliteStore(tmp_path / "sessions.db")
        agent = agent_at(simulator.url, session, store, checkpointer=saver)
        agent.invoke(ask(text), config(session))
        store.close()

    store = SqliteStore(tmp_path / "sessions.db")
    prove(store, session, exchanges_of(simulator, session))
    assert not kinds(store, session)["Replaced"]
    store.close()


def test_usage_keeps_its_split_when_the_answer_is_streamed(simulator, store, session):
    simulator.play(session, script())
    agent = agent_at(simulator.url, session, store)

    list(agent.stream(ask("go"), config(session), stream_mode="messages"))

    usages = [e.usage for e in logged(store, session) if isinstance(e, ResponseCame)]
    assert usages == [each.usage for each in exchanges_of(simulator, session)]


@pytest.mark.parametrize("first", range(1, 101, 20))
def test_the_next_call_reads_all_of_any_number_of_parallel_calls(simulator, store, session, first):
    for count in range(first, first + 20):
        thread = f"{session}-{count}"
        replies = [looking(*(f"k{n}" for n in range(count))), looking("z"), script()[-1]]
        simulator.play(thread, replies)
        agent = agent_at(simulator.url, thread, store)

        agent.invoke(ask("look at all"), config(thread))

        _, wide, after = exchanges_of(simulator, thread)
        assert after.usage.read_tokens == wide.usage.read_tokens + wide.usage.write_tokens
        assert wide.usage.uncached_tokens == 0


def test_parallel_sessions_of_one_agent_log_apart(loop, simulator, store, session):
    names = [f"{session}-{n}" for n in range(4)]
    for name in names:
        simulator.play(name, script())
    ours = Barograph(store)

    async def together():
        agents = [
            agent_at(
                simulator.url, name, store, model=model_at(simulator.url, name), middleware=[ours]
            )
            for name in names
        ]
        await asyncio.gather(
            *(
                agent.ainvoke(ask(f"hello {name}"), config(name))
                for agent, name in zip(agents, names, strict=True)
            )
        )

    loop.run(together())

    for name in names:
        prove(store, name, exchanges_of(simulator, name))


def test_tools_are_sent_in_one_order_whatever_order_they_came_in(simulator, store, session):
    simulator.play(session, script(2))
    one = agent_at(simulator.url, session, store, [look, _zebra, _alpha])
    other = agent_at(simulator.url, session, store, [_alpha, look, _zebra])
    one.invoke(ask("one"), config(session))

    other.invoke(ask("one"), config(session + "b"))

    sent = {bytes(b.prefix_key) for e in exchanges_of(simulator, session) for b in e.blocks[:3]}
    assert len(sent) == 3
    assert [b.kind for b in exchanges_of(simulator, session)[0].blocks[:3]] == ["tool"] * 3


def test_the_handed_messages_are_never_changed(simulator, store, session):
    simulator.play(session, script())
    agent = agent_at(simulator.url, session, store)
    given = [HumanMessage("plain"), HumanMessage([{"type": "text", "text": "blocks"}])]
    before = copy.deepcopy(given)

    state = agent.invoke({"messages": given}, config(session))

    assert [m.content for m in state["messages"][:2]] == [m.content for m in before]
    assert not any("cache_control" in str(m.content) for m in state["messages"])
    for message in state["messages"]:
        message.content = "changed afterwards"
    prove(store, session, exchanges_of(simulator, session))


def test_an_edited_message_is_named_and_the_log_keeps_the_old_one(simulator, store, session):
    simulator.play(session, script(2))
    agent = agent_at(simulator.url, session, store)
    state = agent.invoke(ask("one"), config(session))
    edited = state["messages"][:2]
    edited[0] = HumanMessage("another one", id=state["messages"][0].id)

    agent.invoke({"messages": [edited[0]]}, config(session))

    prove(store, session, exchanges_of(simulator, session), breaks=1)
    replaced = [e for e in logged(store, session) if isinstance(e, Replaced)]
    assert [(e.cause, e.planned) for e in replaced] == [("edited", False)]
    texts = [
        e.parts[0].text
        for e in logged(store, session)
        if isinstance(e, MessageSeen) and e.role == "user"
    ]
    assert texts == ["one", "another one"]


def test_a_message_that_is_edited_in_its_place_is_sent_as_it_is_now(simulator, store, session):
    simulator.play(session, script(2))
    agent = agent_at(simulator.url, session, store)
    messages = agent.invoke(ask("my password is 1234"), config(session))["messages"]

    messages[0].content = "my password is [removed]"
    agent.invoke({"messages": [*messages, HumanMessage("two")]}, config(session))

    exchanges = exchanges_of(simulator, session)
    prove(store, session, exchanges, breaks=1)
    assert b"1234" in exchanges[0].request
    assert b"1234" not in exchanges[-1].request
    replaced = [e for e in logged(store, session) if isinstance(e, Replaced)]
    assert [e.cause for e in replaced] == ["edited"]


def test_a_dangling_call_is_repaired_and_logged(simulator, store, session):
    simulator.play(session, [script()[-1]])
    agent = agent_at(simulator.url, session, store)
    call = {"name": "look", "args": {"path": "p"}, "id": "d1", "type": "tool_call"}
    history = [HumanMessage("look"), AIMessage("", tool_calls=[call]), HumanMessage("and now?")]

    agent.invoke({"messages": history}, config(session))

    prove(store, session, exchanges_of(simulator, session))
    repairs = [e for e in logged(store, session) if getattr(e, "origin", "") == "repair"]
    assert [e.parts[0].call_id for e in repairs] == ["d1"]


def test_structured_output_adopts_the_clients_tool_and_keeps_the_cache(simulator, store, session):
    from langchain.agents.structured_output import ToolStrategy
    from pydantic import BaseModel

    class Verdict(BaseModel):
        """A verdict."""

        good: bool

    simulator.play(session, [looking("a1"), calling(("v1", "Verdict", {"good": True}))])
    agent = agent_at(simulator.url, session, store, response_format=ToolStrategy(Verdict))

    state = agent.invoke(ask("judge"), config(session))

    assert state["structured_response"].good
    prove(store, session, exchanges_of(simulator, session))
    (header,) = [e for e in logged(store, session) if isinstance(e, HeaderSet)]
    assert header.adopted == ("tools",)


def test_with_a_tool_of_the_clients_the_anchor_stands_where_the_tail_stood(
    simulator, store, session
):
    from langchain.agents.structured_output import ToolStrategy
    from pydantic import BaseModel

    class Verdict(BaseModel):
        """A verdict."""

        good: bool

    # more blocks in each round than the provider looks back over
    wide = [looking(*(f"r{turn}-{n}" for n in range(12))) for turn in range(2)]
    simulator.play(session, [*wide, calling(("v1", "Verdict", {"good": True}))])
    agent = agent_at(simulator.url, session, store, response_format=ToolStrategy(Verdict))
    agent.invoke(ask("judge"), config(session))

    prove(store, session, exchanges_of(simulator, session))
    plans = [e for e in logged(store, session) if isinstance(e, CallPlanned)]
    at = [{mark.slot: (mark.level, mark.block) for mark in plan.breakpoints} for plan in plans]
    assert [each.get("anchor") for each in at] == [None, at[0]["tail"], at[1]["tail"]]


def test_an_agent_without_a_system_prompt_marks_its_last_tool(simulator, store, session):
    @tool
    def wordy(text: str) -> str:
        """Say a lot."""
        return text

    wordy.description = "Say a lot. " * 900
    simulator.play(session, [calling(("w1", "wordy", {"text": "t"})), script()[-1]])
    agent = agent_at(simulator.url, session, store, [wordy], system_prompt=None)

    agent.invoke(ask("go"), config(session))

    prove(store, session, exchanges_of(simulator, session))
    assert [b.marked for b in exchanges_of(simulator, session)[0].blocks if b.level == "tools"][-1]


def test_a_message_that_cannot_be_sent_in_its_place_is_refused_before_anything_leaves(
    simulator, store, session
):
    from barograph import UsageError

    simulator.play(session, script())
    agent = agent_at(simulator.url, session, store)
    history = [HumanMessage("one"), SystemMessage("be brief", id="s9")]

    with pytest.raises(UsageError, match="s9"):
        agent.invoke({"messages": history}, config(session))

    assert exchanges_of(simulator, session) == []
    assert records(store, session) == []


@tool
def _zebra(text: str) -> str:
    """Zebra."""
    return text


@tool
def _alpha(text: str) -> str:
    """Alpha."""
    return text
