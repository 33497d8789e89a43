"""Histories that are shown whole, rewound, forked or edited: known again, or named."""

import json
from uuid import uuid4

import pytest
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from stage import (
    agent_at,
    ask,
    config,
    exchanges_of,
    kinds,
    logged,
    looking,
    prove,
    prove_sound,
    replaced,
    sent_texts,
    turns,
)

from barograph.core.events import ResponseCame
from barograph.simulator import Reply

DONE = Reply(content="Done.")


def _plain(message):
    """A message rebuilt from what it says, as callers do that keep rows of their own."""
    match message:
        case AIMessage():
            return AIMessage(message.text, tool_calls=message.tool_calls)
        case ToolMessage():
            return ToolMessage(message.text, tool_call_id=message.tool_call_id)
        case _:
            return HumanMessage(message.text)


def _bare(messages):
    return [_plain(m) for m in messages]


class TestStateless:
    """Callers that keep the history themselves and show all of it each time."""

    @pytest.mark.parametrize(
        "again",
        [
            lambda messages: [m.model_copy(update={"id": str(uuid4())}) for m in messages],
            lambda messages: [m.model_copy(update={"id": None}) for m in messages],
            lambda messages: messages_from_dict(json.loads(json.dumps(messages_to_dict(messages)))),
            lambda messages: [_plain(m) for m in messages],
        ],
        ids=["fresh ids", "no ids", "through json", "bare messages"],
    )
    def test_the_whole_history_is_recognised(self, simulator, store, session, again):
        simulator.play(session, turns(3))
        agent = agent_at(simulator.url, session, store)
        messages = []
        for text in ("one", "two", "three"):
            messages = again([*messages, HumanMessage(text)])
            messages = agent.invoke({"messages": messages}, config(session))["messages"]

        prove(store, session, exchanges_of(simulator, session))
        prove_sound(store, session, exchanges_of(simulator, session))
        assert replaced(store, session) == []
        assert kinds(store, session)["TurnBegan"] == 3

    def test_two_processes_that_take_turns_know_the_same_history(self, simulator, store, session):
        simulator.play(session, turns(4))
        messages = []
        for number in range(4):
            agent = agent_at(simulator.url, session, store)
            messages = _bare([*messages, HumanMessage(f"turn {number}")])
            messages = agent.invoke({"messages": messages}, config(session))["messages"]

        prove(store, session, exchanges_of(simulator, session))
        prove_sound(store, session, exchanges_of(simulator, session))
        assert replaced(store, session) == []

    def test_a_caller_that_drops_tool_rounds_is_named_as_a_rewind(self, simulator, store, session):
        simulator.play(session, turns(2))
        agent = agent_at(simulator.url, session, store)
        messages = agent.invoke(ask("one"), config(session))["messages"]
        speech = [messages[0], messages[-1]]

        agent.invoke({"messages": [*speech, HumanMessage("two")]}, config(session))

        prove(store, session, exchanges_of(simulator, session), breaks=1)
        prove_sound(store, session, exchanges_of(simulator, session))
        assert replaced(store, session) == [("rewound", False)]


class TestTimeTravel:
    """A thread with a checkpointer that goes back and goes on."""

    def test_a_tool_run_again_in_another_branch_keeps_the_log_sound(
        self, simulator, store, session
    ):
        simulator.play(session, [looking("t0"), DONE, Reply(content="Done again."), DONE])
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
        agent.invoke(ask("one"), config(session))
        before_tools = [
            state.config
            for state in agent.get_state_history(config(session))
            if state.next == ("tools",)
        ]

        agent.invoke(None, before_tools[0])
        agent.invoke(ask("and now?"), config(session))

        prove_sound(store, session, exchanges_of(simulator, session))
        assert kinds(store, session)["ToolEnded"] == 2

    def test_branches_that_take_turns_each_read_what_they_wrote(self, simulator, store, session):
        simulator.play(session, turns(9))
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
        agent.invoke(ask("trunk"), config(session))
        root = agent.get_state(config(session)).config
        heads = {"left": root, "right": root}
        for step in range(4):
            for branch, head in heads.items():
                agent.invoke(ask(f"{branch} {step}"), head)
                heads[branch] = agent.get_state(config(session)).config

        exchanges = exchanges_of(simulator, session)
        prove(store, session, exchanges, breaks=7)
        prove_sound(store, session, exchanges)
        assert replaced(store, session) == [("rewound", False)] * 7
        assert not any("left" in str(text) for text in sent_texts(exchanges[-1]))

    def test_a_state_edited_at_an_earlier_checkpoint_forks_and_both_go_on(
        self, simulator, store, session
    ):
        simulator.play(session, turns(5))
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
        agent.invoke(ask("one"), config(session))
        earlier = agent.get_state(config(session))
        agent.invoke(ask("two"), config(session))
        main = agent.get_state(config(session)).config
        last = earlier.values["messages"][-1]
        fork = agent.update_state(
            earlier.config, {"messages": [AIMessage("Another answer.", id=last.id)]}
        )
        for text in ("three", "four"):
            agent.invoke(ask(f"{text} in the fork"), fork)
            fork = agent.get_state(config(session)).config
            if text == "three":
                agent.invoke(ask(f"{text} in the main line"), main)

        exchanges = exchanges_of(simulator, session)
        prove(store, session, exchanges, breaks=3)
        prove_sound(store, session, exchanges)
        assert [cause for cause, _ in replaced(store, session)] == ["edited", "edited", "edited"]
        assert "Another answer." in sent_texts(exchanges[-1])
        assert "Another answer." not in sent_texts(exchanges[-3])


class TestEdits:
    """Messages that the caller takes out or writes anew under their id."""

    @pytest.mark.parametrize(
        "which", ["first answer", "tool round", "one result", "one call", "last answer"]
    )
    def test_removed_messages_leave_the_surface_and_not_the_log(
        self, simulator, store, session, which
    ):
        simulator.play(session, turns(3))
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
        agent.invoke(ask("one"), config(session))
        messages = agent.invoke(ask("two"), config(session))["messages"]
        gone = {
            "first answer": messages[3:4],
            "tool round": messages[1:3],
            "one result": messages[2:3],
            "one call": messages[1:2],
            "last answer": messages[-1:],
        }[which]
        agent.update_state(config(session), {"messages": [RemoveMessage(m.id) for m in gone]})

        agent.invoke(ask("three"), config(session))

        exchanges = exchanges_of(simulator, session)
        # the last answer was never sent: nothing that left is changed
        breaks = 0 if which == "last answer" else 1
        prove(store, session, exchanges, breaks=breaks)
        prove_sound(store, session, exchanges)
        assert [cause for cause, _ in replaced(store, session)] == ["rewound"] * breaks
        said = [e.parts for e in logged(store, session) if isinstance(e, ResponseCame)]
        assert len(said) == 6

    def test_a_history_rewritten_to_the_same_is_no_change(self, simulator, store, session):
        simulator.play(session, turns(2))
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
        messages = agent.invoke(ask("one"), config(session))["messages"]
        again = [RemoveMessage(REMOVE_ALL_MESSAGES), *_bare(messages)]
        agent.update_state(config(session), {"messages": again})

        agent.invoke(ask("two"), config(session))

        prove(store, session, exchanges_of(simulator, session))
        prove_sound(store, session, exchanges_of(simulator, session))
        assert replaced(store, session) == []

    @pytest.mark.parametrize(
        ("place", "breaks"), [(0, 1), (2, 1), (3, 1), (4, 1), (-1, 0)], ids=str
    )
    def test_an_edited_message_is_sent_as_it_is_now(self, simulator, store, session, place, breaks):
        simulator.play(session, turns(3))
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
        agent.invoke(ask("one"), config(session))
        messages = agent.invoke(ask("two"), config(session))["messages"]
        edited = messages[place].model_copy(update={"content": "said otherwise"})
        agent.update_state(config(session), {"messages": [edited]})

        agent.invoke(ask("three"), config(session))

        exchanges = exchanges_of(simulator, session)
        prove(store, session, exchanges, breaks=breaks)
        prove_sound(store, session, exchanges)
        assert replaced(store, session) == [("edited", False)] * breaks
        assert b"said otherwise" in exchanges[4].request

    def test_an_edit_and_its_undoing_come_back_to_what_was_cached(self, simulator, store, session):
        simulator.play(session, turns(4))
        agent = agent_at(simulator.url, session, store)
        messages = agent.invoke(ask("one"), config(session))["messages"]
        other = [HumanMessage("said otherwise", id=messages[0].id), *messages[1:]]
        for history in (other, messages, other):
            agent.invoke({"messages": [*history, HumanMessage("two")]}, config(session))

        prove(store, session, exchanges_of(simulator, session), breaks=3)
        prove_sound(store, session, exchanges_of(simulator, session))
        assert replaced(store, session) == [("edited", False)] * 3
