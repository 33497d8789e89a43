"""Every way in which a history can arrive: the log stays whole, and every request legal."""

import json
import uuid

import anthropic
import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt
from stage import agent_at, ask, calling, config, exchanges_of, logged, looking

from barograph.audit.verify import verify_session
from barograph.core.errors import UsageError
from barograph.core.events import MessageSeen, Replaced, ResponseCame
from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")


def sound(store, session, exchanges):
    """Every request that was received is in the log, exact and derived, and none was refused."""
    report = verify_session(store, session)
    assert report.findings == ()
    assert report.exact == report.derived == report.requests == len(exchanges)
    assert [each.status for each in exchanges] == [200] * len(exchanges)


def departures(store, session):
    return [event.cause for event in logged(store, session) if isinstance(event, Replaced)]


def repairs(store, session):
    seen = [event for event in logged(store, session) if isinstance(event, MessageSeen)]
    return [event for event in seen if event.origin == "repair"]


def words_of(exchange):
    return json.dumps(json.loads(exchange.request)["messages"])


@pytest.fixture
def thread(simulator, session, store):
    """An agent with a checkpointer, and its thread's config."""
    agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
    return agent, config(session)


# The caller holds the history


def test_a_caller_without_memory_shows_it_all_each_time_with_fresh_ids(simulator, store, session):
    simulator.play(session, [looking("a"), DONE, DONE, DONE])
    agent = agent_at(simulator.url, session, store)
    history = []
    for text in ("one", "two", "three"):
        history.append(HumanMessage(text))
        shown = [one.model_copy(update={"id": str(uuid.uuid4())}) for one in history]
        history = agent.invoke({"messages": shown}, config(session))["messages"]

    sound(store, session, exchanges_of(simulator, session))
    assert departures(store, session) == []


def test_a_caller_who_leaves_out_the_newest_answer_rewinds(simulator, store, session):
    simulator.play(session, [DONE, DONE])
    agent = agent_at(simulator.url, session, store)
    agent.invoke({"messages": [HumanMessage("one"), HumanMessage("two")]}, config(session))
    agent.invoke({"messages": [HumanMessage("one")]}, config(session))

    sound(store, session, exchanges_of(simulator, session))
    assert departures(store, session) == ["rewound"]


# The checkpointer's history is changed


def test_a_message_that_is_edited_in_the_middle_is_one_named_departure(
    simulator, store, session, thread
):
    simulator.play(session, [looking("a"), DONE, DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    first = agent.get_state(at).values["messages"][0]
    agent.update_state(at, {"messages": [HumanMessage("changed", id=first.id)]})
    agent.invoke(ask("two"), at)
    agent.invoke(ask("three"), at)

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    assert departures(store, session) == ["edited"]
    assert '"changed"' in words_of(exchanges[2])
    assert '"one"' not in words_of(exchanges[2])


def test_an_answer_that_is_edited_before_it_was_shown_enters_as_it_is(
    simulator, store, session, thread
):
    simulator.play(session, [DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    last = agent.get_state(at).values["messages"][-1]
    agent.update_state(at, {"messages": [AIMessage("Not done.", id=last.id)]})
    agent.invoke(ask("two"), at)

    sound(store, session, exchanges_of(simulator, session))
    assert departures(store, session) == []
    assert "Not done." in words_of(exchanges_of(simulator, session)[1])
    assert [e.parts[0].text for e in logged(store, session) if isinstance(e, ResponseCame)] == [
        "Done.",
        "Done.",
    ]


def test_removing_messages_leaves_the_rest(simulator, store, session, thread):
    simulator.play(session, [DONE, DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    agent.invoke(ask("two"), at)
    gone = agent.get_state(at).values["messages"][:2]
    agent.update_state(at, {"messages": [RemoveMessage(one.id) for one in gone]})
    agent.invoke(ask("three"), at)

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    assert departures(store, session) == ["rewound"]
    assert '"one"' not in words_of(exchanges[2])
    assert '"two"' in words_of(exchanges[2])


def test_a_removal_that_no_provider_takes_is_the_callers_and_the_log_stays_sound(
    simulator, store, session, thread
):
    simulator.play(session, [DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    gone = agent.get_state(at).values["messages"][0]
    agent.update_state(at, {"messages": [RemoveMessage(gone.id)]})
    with pytest.raises(anthropic.BadRequestError, match="first message must use"):
        agent.invoke(ask("two"), at)

    assert verify_session(store, session).findings == ()


def test_removing_a_result_closes_its_call_with_a_repair(simulator, store, session, thread):
    simulator.play(session, [looking("a", "b"), DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    result = next(
        one for one in agent.get_state(at).values["messages"] if isinstance(one, ToolMessage)
    )
    agent.update_state(at, {"messages": [RemoveMessage(result.id)]})
    agent.invoke(ask("two"), at)

    sound(store, session, exchanges_of(simulator, session))
    assert len(repairs(store, session)) == 1


def test_removing_all_messages_begins_anew(simulator, store, session, thread):
    simulator.play(session, [looking("a"), DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    agent.update_state(at, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    agent.invoke(ask("two"), at)

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    assert departures(store, session) == ["rewound"]
    assert len(json.loads(exchanges[-1].request)["messages"]) == 1


# Time travel


def test_going_on_from_an_earlier_checkpoint_is_a_rewind_and_reads_what_is_cached(
    simulator, store, session, thread
):
    simulator.play(session, [looking("a"), DONE, DONE, DONE])
    agent, at = thread
    agent.invoke(ask("one"), at)
    then = agent.get_state(at).config
    agent.invoke(ask("two"), at)
    agent.invoke(ask("other"), then)

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    assert departures(store, session) == ["rewound"]
    assert exchanges[3].usage.read_tokens >= exchanges[1].usage.read_tokens


def test_two_branches_may_take_turns(simulator, store, session, thread):
    simulator.play(session, [DONE] * 6)
    agent, at = thread
    agent.invoke(ask("root"), at)
    root = agent.get_state(at).config
    agent.invoke(ask("left"), at)
    left = agent.get_state(at).config
    agent.invoke(ask("right"), root)
    right = agent.get_state(at).config
    agent.invoke(ask("left again"), left)
    agent.invoke(ask("right again"), right)

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    assert departures(store, session) == ["rewound"] * 3
    assert "left" in words_of(exchanges[3])
    assert "right" not in words_of(exchanges[3])
    assert "left" not in words_of(exchanges[4])
    # a branch that comes back finds what it left in the cache
    assert exchanges[3].usage.read_tokens == exchanges[1].usage.input_total_tokens


def test_regenerating_an_answer_sends_the_same_request_again(simulator, store, session, thread):
    simulator.play(session, [Reply(content="First."), Reply(content="Second.")])
    agent, at = thread
    agent.invoke(ask("one"), at)
    before = next(s for s in agent.get_state_history(at) if s.next == ("model",))
    agent.invoke(None, before.config)

    first, second = exchanges_of(simulator, session)
    sound(store, session, [first, second])
    assert words_of(first) == words_of(second)
    assert second.usage.read_tokens > 0


# Interrupts


@tool
def confirm(what: str) -> str:
    """Ask a person."""
    return f"{what}: {interrupt(what)}"


def test_an_interrupt_in_a_tool_is_resumed_with_one_result(simulator, store, session):
    simulator.play(session, [calling(("c1", "confirm", {"what": "delete"})), DONE])
    agent = agent_at(simulator.url, session, store, [confirm], checkpointer=InMemorySaver())
    agent.invoke(ask("go"), config(session))
    agent.invoke(Command(resume="yes"), config(session))

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    assert repairs(store, session) == []
    assert "delete: yes" in words_of(exchanges[1])


def test_an_interrupt_resumed_in_another_process_goes_on(simulator, store, session):
    simulator.play(session, [calling(("c1", "confirm", {"what": "delete"})), DONE])
    saver = InMemorySaver()
    for given in (ask("go"), Command(resume="yes")):
        agent = agent_at(simulator.url, session, store, [confirm], checkpointer=saver)
        agent.invoke(given, config(session))

    sound(store, session, exchanges_of(simulator, session))
    assert repairs(store, session) == []


DECISIONS = {
    "approve": {"type": "approve"},
    "edit": {"type": "edit", "edited_action": {"name": "act", "args": {"what": "less"}}},
    "reject": {"type": "reject", "message": "Not today."},
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_person_may_approve_edit_or_reject_a_call(simulator, store, session, decision):
    simulator.play(
        session,
        [calling(("c1", "act", {"what": "all"}), ("c2", "look", {"path": "a"})), DONE, DONE],
    )
    asking = HumanInTheLoopMiddleware(interrupt_on={"act": True})
    agent = agent_at(
        simulator.url,
        session,
        store,
        middleware=[asking, Barograph(store)],
        checkpointer=InMemorySaver(),
    )
    agent.invoke(ask("go"), config(session))
    agent.invoke(Command(resume={"decisions": [DECISIONS[decision]]}), config(session))
    agent.invoke(ask("more"), config(session))

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    expected = {"approve": "did all", "edit": "did less", "reject": "Not today."}[decision]
    assert expected in words_of(exchanges[1])


# Calls that are open, broken or cut


def test_a_thread_that_died_after_the_call_is_closed_when_its_user_speaks(
    simulator, store, session, thread
):
    @tool
    def dies() -> str:
        """Never returns."""
        raise KeyboardInterrupt

    simulator.play(session, [calling(("d1", "dies", {})), DONE])
    saver = InMemorySaver()
    agent = agent_at(simulator.url, session, store, [dies], checkpointer=saver)
    with pytest.raises(KeyboardInterrupt):
        agent.invoke(ask("go"), config(session))
    again = agent_at(simulator.url, session, store, [dies], checkpointer=saver)
    again.update_state(config(session), ask("still there?"))
    again.invoke(ask("hello"), config(session))

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    assert len(repairs(store, session)) == 1
    assert 'is_error": true' in words_of(exchanges[1])


def test_a_call_whose_arguments_are_no_json_is_sent_back_as_an_error(
    simulator, store, session, thread
):
    broken = AIMessage(
        "",
        invalid_tool_calls=[
            {
                "name": "look",
                "args": '{"path": ',
                "id": "i1",
                "error": "cut",
                "type": "invalid_tool_call",
            }
        ],
    )
    simulator.play(session, [DONE, DONE])
    agent, at = thread
    agent.invoke({"messages": [HumanMessage("go"), broken, HumanMessage("again")]}, at)
    agent.invoke(ask("more"), at)

    sound(store, session, exchanges_of(simulator, session))


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(content="Half a sent", stop_reason="max_tokens"), "Half a sent"),
        (Reply(content="Up to here", stop_reason="stop_sequence"), "Up to here"),
        (Reply(content="I will not.", stop_reason="refusal"), "I will not."),
        (Reply(content="Wait.", stop_reason="pause_turn"), "Wait."),
        (Reply(content=[], stop_reason="end_turn"), ""),
    ],
    ids=["max_tokens", "stop_sequence", "refusal", "pause_turn", "empty"],
)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_answer_may_stop_for_any_reason(
    simulator, store, session, thread, *, reply, says, is_streamed
):
    simulator.play(session, [reply, DONE])
    agent, at = thread
    for text in ("one", "two"):
        if is_streamed:
            list(agent.stream(ask(text), at, stream_mode="messages"))
        else:
            agent.invoke(ask(text), at)

    exchanges = exchanges_of(simulator, session)
    sound(store, session, exchanges)
    assert says in words_of(exchanges[1])
    reasons = [
        event.stop_reason for event in logged(store, session) if isinstance(event, ResponseCame)
    ]
    assert reasons == [reply.reason(), "end_turn"]


def test_a_call_cut_by_max_tokens_goes_on(simulator, store, session, thread):
    cut = {"type": "tool_use", "id": "m1", "name": "look", "input": {}}
    simulator.play(session, [Reply(content=[cut], stop_reason="max_tokens"), DONE, DONE])
    agent, at = thread
    agent.invoke(ask("go"), at)
    agent.invoke(ask("more"), at)

    sound(store, session, exchanges_of(simulator, session))


# Forms of calling


def test_sync_async_streamed_and_whole_calls_may_mix_on_one_thread(
    simulator, store, session, thread, loop
):
    simulator.play(session, [step for each in "abcd" for step in (looking(each), DONE)])
    agent, at = thread

    async def streamed():
        async for _ in agent.astream(ask("three"), at, stream_mode="messages"):
            pass

    agent.invoke(ask("one"), at)
    list(agent.stream(ask("two"), at, stream_mode="messages"))
    loop.run(streamed())
    loop.run(agent.ainvoke(ask("four"), at))

    sound(store, session, exchanges_of(simulator, session))
    assert departures(store, session) == []


def test_a_system_message_in_mid_history_is_refused_with_what_to_do(simulator, store, session):
    simulator.play(session, [DONE])
    agent = agent_at(simulator.url, session, store)
    with pytest.raises(UsageError, match=r"SystemMessage .*stands in the middle") as refused:
        agent.invoke(
            {"messages": [HumanMessage("one"), SystemMessage("be brief"), HumanMessage("two")]},
            config(session),
        )
    assert "system_prompt" in refused.value.next_step
    assert exchanges_of(simulator, session) == []
