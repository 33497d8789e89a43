"""Histories that wait for a person, that have a hole, or that come by every way of calling."""

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from stage import (
    agent_at,
    ask,
    calling,
    config,
    exchanges_of,
    logged,
    looking,
    prove,
    prove_sound,
    replaced,
    sent_texts,
    turns,
)

from barograph.core.events import ResponseCame, ToolBegan
from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")


def repairs(store, session):
    return [e for e in logged(store, session) if getattr(e, "origin", "") == "repair"]


def _run(agent, mode, text, session):
    if mode == "invoke":
        agent.invoke(ask(text), config(session))
    else:
        list(agent.stream(ask(text), config(session), stream_mode="messages"))


class TestApprovals:
    """Interrupts: a thread that waits for a person, in a tool or before it."""

    def test_an_interrupt_beside_other_calls_runs_those_once(self, simulator, store, session):
        ran = []

        @tool
        def confirm(what: str) -> str:
            """Ask a person."""
            return f"{what}: {interrupt('sure?')}"

        @tool
        def note(what: str) -> str:
            """Take a note."""
            ran.append(what)
            return "noted"

        simulator.play(
            session,
            [calling(("c1", "confirm", {"what": "a"}), ("n1", "note", {"what": "b"})), DONE],
        )
        agent = agent_at(
            simulator.url, session, store, [confirm, note], checkpointer=InMemorySaver()
        )
        agent.invoke(ask("go"), config(session))

        agent.invoke(Command(resume="yes"), config(session))

        prove(store, session, exchanges_of(simulator, session))
        prove_sound(store, session, exchanges_of(simulator, session))
        assert ran == ["b"]
        assert sent_texts(exchanges_of(simulator, session)[1])[1:] == ["c1", "n1", "c1", "n1"]

    def test_a_new_message_instead_of_a_resume_closes_the_call(self, simulator, store, session):
        @tool
        def confirm(what: str) -> str:
            """Ask a person."""
            return f"{what}: {interrupt('sure?')}"

        simulator.play(session, [calling(("c1", "confirm", {"what": "sell"})), DONE])
        agent = agent_at(simulator.url, session, store, [confirm], checkpointer=InMemorySaver())
        agent.invoke(ask("sell"), config(session))

        agent.invoke(ask("forget it"), config(session))

        prove(store, session, exchanges_of(simulator, session))
        prove_sound(store, session, exchanges_of(simulator, session))
        (repair,) = repairs(store, session)
        assert repair.parts[0].call_id == "c1"

    @pytest.mark.parametrize(
        "decision",
        [
            {"type": "approve"},
            {"type": "reject", "message": "not today"},
            {
                "type": "edit",
                "edited_action": {"name": "act", "args": {"what": "something safer"}},
            },
        ],
        ids=["approve", "reject", "edit"],
    )
    @pytest.mark.parametrize("way", ["batched", "per_call", "batched, in another process"])
    def test_a_person_decides(self, simulator, store, session, decision, way):
        interrupt_mode, _, is_new_process = way.partition(", ")
        simulator.play(
            session, [looking("t0"), calling(("d1", "act", {"what": "risk"})), DONE, DONE]
        )
        saver, now = InMemorySaver(), 0.0

        def made():
            asking = HumanInTheLoopMiddleware({"act": True}, interrupt_mode=interrupt_mode)
            ours = Barograph(store, clock=lambda: now)
            return agent_at(
                simulator.url, session, store, middleware=[asking, ours], checkpointer=saver
            )

        agent = made()
        agent.invoke(ask("go"), config(session))
        agent = made() if is_new_process else agent
        now += 5.0  # a person needs a while

        answer = decision if interrupt_mode == "per_call" else {"decisions": [decision]}
        agent.invoke(Command(resume=answer), config(session))
        agent.invoke(ask("and now?"), config(session))

        exchanges = exchanges_of(simulator, session)
        assert len(exchanges) == 4
        prove(store, session, exchanges)
        prove_sound(store, session, exchanges)
        assert replaced(store, session) == []
        assert repairs(store, session) == []
        ran = [e.arguments for e in logged(store, session) if isinstance(e, ToolBegan)][1:]
        expected = {
            "approve": ['{"what":"risk"}'],
            "edit": ['{"what":"something safer"}'],
            "reject": [],
        }
        assert ran == expected[decision["type"]]

    def test_a_call_rewritten_before_it_was_ever_sent_costs_nothing(
        self, simulator, store, session
    ):
        simulator.play(session, [looking("t0"), calling(("d1", "act", {"what": "risk"})), DONE])
        agent = agent_at(
            simulator.url,
            session,
            store,
            checkpointer=InMemorySaver(),
            interrupt_before=["tools"],
        )
        agent.invoke(ask("go"), config(session))
        agent.invoke(None, config(session))
        said = agent.get_state(config(session)).values["messages"][-1]
        call = {**said.tool_calls[0], "args": {"what": "something safer"}}
        milder = said.model_copy(update={"tool_calls": [call]})
        agent.update_state(config(session), {"messages": [milder]})

        agent.invoke(None, config(session))

        exchanges = exchanges_of(simulator, session)
        prove(store, session, exchanges)
        prove_sound(store, session, exchanges)
        assert replaced(store, session) == []
        assert b"something safer" in exchanges[2].request
        assert b"risk" not in exchanges[2].request
        asked = [e for e in logged(store, session) if isinstance(e, ResponseCame)][1]
        assert "risk" in asked.parts[0].arguments


class TestBrokenOff:
    """Histories with a hole: calls that nobody answered, or that could not be read."""

    def test_a_result_that_comes_after_its_repair_takes_its_place(self, simulator, store, session):
        simulator.play(session, [looking("k1"), DONE, DONE])
        agent = agent_at(simulator.url, session, store)
        call = {"name": "look", "args": {"path": "k1.txt"}, "id": "k1", "type": "tool_call"}
        history = [HumanMessage("go"), AIMessage("Let me look.", tool_calls=[call])]
        agent.invoke(ask("go"), config(session))

        late = [*history, HumanMessage("hm"), ToolMessage("late", tool_call_id="k1")]
        agent.invoke({"messages": late}, config(session))

        prove_sound(store, session, exchanges_of(simulator, session))

    @pytest.mark.parametrize(
        ("mode", "given"),
        [
            ("invoke", {}),
            ("invoke", {"what": "half of"}),
            ("stream", {}),
            ("stream", {"what": "half of"}),
            ("stream", ""),
            ("stream", '{"wh'),
            ("stream", '{"what": "half of'),
            ("stream", '{"what": "half of", '),
        ],
    )
    def test_a_call_cut_by_max_tokens_is_answered_and_the_thread_goes_on(
        self, simulator, store, session, mode, given
    ):
        blocks = [
            {"type": "text", "text": "Let me write."},
            {"type": "tool_use", "id": "m1", "name": "act", "input": given},
        ]
        cut = Reply(content=blocks, stop_reason="max_tokens")
        simulator.play(session, [cut, DONE, DONE])
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
        _run(agent, mode, "go", session)
        _run(agent, mode, "and now?", session)

        prove(store, session, exchanges_of(simulator, session))
        prove_sound(store, session, exchanges_of(simulator, session))
        assert replaced(store, session) == []

    @pytest.mark.parametrize("given", ['{"what": "half', "", "[1]", '{"what": NaN}'], ids=repr)
    def test_a_call_that_cannot_be_read_is_repaired_in_place(
        self, simulator, store, session, given
    ):
        simulator.play(session, [*turns(1), DONE, DONE])
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
        agent.invoke(ask("one"), config(session))
        broken = {"name": "act", "args": given, "id": "b1", "type": "invalid_tool_call"}
        said = AIMessage("Let me act.", invalid_tool_calls=[{**broken, "error": "unreadable"}])
        agent.update_state(config(session), {"messages": [HumanMessage("act"), said]})

        agent.invoke(ask("go on"), config(session))
        agent.invoke(ask("and now?"), config(session))

        exchanges = exchanges_of(simulator, session)
        prove(store, session, exchanges)
        prove_sound(store, session, exchanges)
        assert replaced(store, session) == []
        assert repairs(store, session) == []  # the framework's own answer is there

    @pytest.mark.parametrize(
        "ending",
        [
            ("So far", "max_tokens"),
            ("", "end_turn"),
            ([], "end_turn"),
            ([], "refusal"),
            ("I cannot", "refusal"),
            ("up to here", "stop_sequence"),
            ("", "pause_turn"),
            ("Still searching.", "pause_turn"),
            ("As far as the window", "model_context_window_exceeded"),
            ("  \n ", "end_turn"),
            ("ends in space \n", "end_turn"),
        ],
    )
    @pytest.mark.parametrize("mode", ["invoke", "stream"])
    def test_an_answer_may_end_for_any_reason(self, simulator, store, session, ending, mode):
        content, stop_reason = ending
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        odd = Reply(content=blocks, stop_reason=stop_reason)
        simulator.play(session, [*turns(1), odd, *turns(1, 5)])
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
        for text in ("one", "two", "three"):
            _run(agent, mode, text, session)

        exchanges = exchanges_of(simulator, session)
        assert len(exchanges) == 5
        prove(store, session, exchanges)
        prove_sound(store, session, exchanges)
        assert replaced(store, session) == []
        answers = [e.stop_reason for e in logged(store, session) if isinstance(e, ResponseCame)]
        assert answers[2] == stop_reason


class TestMixed:
    """One session, called in every way."""

    def test_every_way_of_calling_may_follow_every_other(self, loop, simulator, store, session):
        modes = ["invoke", "stream", "ainvoke", "astream"]
        order = [second for first in modes for second in (first, *modes)]
        simulator.play(session, turns(len(order)))
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())

        async def everything():
            for number, mode in enumerate(order):
                match mode:
                    case "ainvoke":
                        await agent.ainvoke(ask(f"turn {number}"), config(session))
                    case "astream":
                        async for _ in agent.astream(
                            ask(f"turn {number}"), config(session), stream_mode="messages"
                        ):
                            pass
                    case _:
                        _run(agent, mode, f"turn {number}", session)

        loop.run(everything())

        exchanges = exchanges_of(simulator, session)
        assert len(exchanges) == 2 * len(order)
        prove(store, session, exchanges)
        prove_sound(store, session, exchanges)
        assert replaced(store, session) == []

    def test_a_stream_that_nobody_reads_to_the_end_leaves_a_sound_log(
        self, simulator, store, session
    ):
        simulator.play(session, turns(3))
        agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())
        agent.invoke(ask("one"), config(session))
        stream = agent.stream(ask("two"), config(session), stream_mode="messages")
        next(stream)
        stream.close()

        agent.invoke(ask("three"), config(session))

        prove_sound(store, session, exchanges_of(simulator, session))
