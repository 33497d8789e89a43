"""Agents inside agents: each has a path of its own, stable over turns, restarts and races."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from stage import SYSTEM, ask, calling, config, exchanges_of, logged, look, looking, model_at

from barograph.audit.verify import verify_session
from barograph.core.events import CallPlanned
from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")


def paths(store, session):
    return [event.path for event in logged(store, session) if isinstance(event, CallPlanned)]


def sound(store, session, count):
    report = verify_session(store, session)
    assert report.findings == ()
    assert report.exact == report.derived == report.requests == count


@pytest.fixture
def play(simulator, session):
    """Scripts for the main agent and for a child, which is a session of its own there."""

    def script(main, child):
        simulator.play(session, main)
        simulator.play(f"{session}-child", child)

    return script


def researcher(simulator, session, store):
    """A tool that runs an agent of its own."""
    child = create_agent(
        model_at(simulator.url, f"{session}-child", account=session),
        [look],
        system_prompt=SYSTEM,
        middleware=[Barograph(store)],
    )

    @tool
    async def research(topic: str) -> str:
        """Find something out."""
        # the first of two is the slower one, so that they do not start in the order asked for
        await asyncio.sleep(0.2 if topic == "first" else 0.0)
        answer = await child.ainvoke(ask(topic))
        return answer["messages"][-1].text

    return research


def main_agent(simulator, session, store, tools, saver=None):
    return create_agent(
        model_at(simulator.url, session),
        tools,
        system_prompt=SYSTEM,
        middleware=[Barograph(store)],
        checkpointer=saver,
    )


def test_children_of_one_answer_are_numbered_in_the_order_asked_for(
    simulator, session, store, play, loop
):
    asked = calling(("r1", "research", {"topic": "first"}), ("r2", "research", {"topic": "second"}))
    play([asked, DONE], [DONE, DONE])
    agent = main_agent(simulator, session, store, [researcher(simulator, session, store)])
    loop.run(agent.ainvoke(ask("go"), config(session)))

    sound(store, session, 4)
    assert sorted(paths(store, session)) == [
        "main",
        "main",
        "main/research#1",
        "main/research#2",
    ]
    first = {e.path: e for e in logged(store, session) if type(e).__name__ == "MessageSeen"}
    assert first["main/research#1"].parts[0].text == "first"
    assert first["main/research#2"].parts[0].text == "second"


def test_siblings_share_tools_and_system_and_write_them_once(simulator, session, store, play, loop):
    one = calling(("r1", "research", {"topic": "one"}))
    two = calling(("r2", "research", {"topic": "two"}))
    play([one, two, DONE], [DONE, DONE])
    agent = main_agent(simulator, session, store, [researcher(simulator, session, store)])
    loop.run(agent.ainvoke(ask("go"), config(session)))

    first, second = exchanges_of(simulator, f"{session}-child")
    assert first.usage.read_tokens == 0
    assert second.usage.read_tokens > 1024
    assert second.usage.write_tokens < 100


def test_a_child_after_a_restart_gets_the_next_number(simulator, session, store, play, loop):
    asks = [calling((f"r{n}", "research", {"topic": f"t{n}"})) for n in (1, 2)]
    play([asks[0], DONE, asks[1], DONE], [DONE, DONE])
    saver = InMemorySaver()
    for _ in range(2):  # all objects anew, on the same store
        tools = [researcher(simulator, session, store)]
        agent = main_agent(simulator, session, store, tools, saver)
        loop.run(agent.ainvoke(ask("go"), config(session)))

    sound(store, session, 6)
    assert [path for path in paths(store, session) if path != "main"] == [
        "main/research#1",
        "main/research#2",
    ]


def test_two_agents_inside_one_tool_call_are_told_apart(simulator, session, store, play, loop):
    child = create_agent(
        model_at(simulator.url, f"{session}-child", account=session),
        [look],
        system_prompt=SYSTEM,
        middleware=[Barograph(store)],
    )

    @tool
    async def compare(one: str, other: str) -> str:
        """Ask two agents at once."""
        answers = await asyncio.gather(child.ainvoke(ask(one)), child.ainvoke(ask(other)))
        return " / ".join(answer["messages"][-1].text for answer in answers)

    play([calling(("c1", "compare", {"one": "red", "other": "blue"})), DONE], [DONE, DONE])
    agent = main_agent(simulator, session, store, [compare])
    loop.run(agent.ainvoke(ask("go"), config(session)))

    sound(store, session, 4)
    inner = {path for path in paths(store, session) if path != "main"}
    assert len(inner) == 2
    assert all(path.startswith("main/compare#1") for path in inner)


@pytest.mark.parametrize("turns", [3])
def test_a_main_agent_that_is_a_node_keeps_its_path_over_turns(simulator, session, store, turns):
    """LangGraph gives the node another namespace in every turn."""
    simulator.play(session, [step for n in range(turns) for step in (looking(f"a{n}"), DONE)])
    inner = main_agent(simulator, session, store, [look])
    outer = StateGraph(MessagesState)
    outer.add_node("worker", inner)
    outer.add_edge(START, "worker")
    graph = outer.compile(checkpointer=InMemorySaver())
    for turn in range(turns):
        graph.invoke(ask(f"turn {turn}"), config(session))

    sound(store, session, 2 * turns)
    assert set(paths(store, session)) == {"main/worker"}
    exchanges = exchanges_of(simulator, session)
    assert all(each.usage.uncached_tokens == 0 for each in exchanges[1:])


def test_an_agent_called_in_a_node_by_hand_is_a_path_below_it(simulator, session, store):
    simulator.play(session, [looking("a"), DONE, DONE])
    inner = main_agent(simulator, session, store, [look])

    def work(state):
        return {"messages": inner.invoke({"messages": state["messages"]})["messages"]}

    outer = StateGraph(MessagesState)
    outer.add_node("step", work)
    outer.add_edge(START, "step")
    graph = outer.compile(checkpointer=InMemorySaver())
    for text in ("one", "two"):
        graph.invoke(ask(text), config(session))

    sound(store, session, 3)
    assert len(set(paths(store, session))) == 1


def test_a_child_with_a_thread_of_its_own_has_a_log_of_its_own(simulator, session, store, play):
    child = create_agent(
        model_at(simulator.url, f"{session}-child", account=session),
        [look],
        middleware=[Barograph(store)],
    )

    @tool
    def delegate(what: str) -> str:
        """Hand over to another session."""
        answer = child.invoke(ask(what), config(f"{session}-other"))
        return answer["messages"][-1].text

    play([calling(("d1", "delegate", {"what": "it"})), DONE], [DONE])
    main_agent(simulator, session, store, [delegate]).invoke(ask("go"), config(session))

    sound(store, session, 2)
    sound(store, f"{session}-other", 1)
    assert paths(store, f"{session}-other") == ["main"]


def test_three_generations_have_three_names(simulator, session, store):
    simulator.play(f"{session}-leaf", [DONE])
    leaf = create_agent(model_at(simulator.url, f"{session}-leaf"), middleware=[Barograph(store)])

    @tool
    def deeper() -> str:
        """Go one down."""
        return leaf.invoke(ask("leaf"))["messages"][-1].text

    simulator.play(f"{session}-mid", [calling(("m1", "deeper", {})), DONE])
    middle = create_agent(
        model_at(simulator.url, f"{session}-mid"), [deeper], middleware=[Barograph(store)]
    )

    @tool
    def deep() -> str:
        """Go one down."""
        return middle.invoke(ask("middle"))["messages"][-1].text

    simulator.play(session, [calling(("t1", "deep", {})), DONE])
    main_agent(simulator, session, store, [deep]).invoke(ask("go"), config(session))

    sound(store, session, 5)
    assert set(paths(store, session)) == {"main", "main/deep#1", "main/deep#1/deeper#1"}


@pytest.mark.parametrize("is_new_process", [False, True], ids=["same process", "another"])
def test_a_child_that_runs_again_for_the_same_call_keeps_its_number(
    simulator, session, store, play, is_new_process
):
    """A tool that interrupts is run anew on resume, and its child with it."""

    def made():
        child = create_agent(
            model_at(simulator.url, f"{session}-child", account=session),
            [look],
            system_prompt=SYSTEM,
            middleware=[Barograph(store)],
            checkpointer=False,  # else what it has done is not done again
        )

        @tool
        def research(topic: str) -> str:
            """Find something out."""
            found = child.invoke(ask(topic))["messages"][-1].text
            return f"{found} {interrupt('good?')}" if topic == "second" else found

        return main_agent(simulator, session, store, [research], saver)

    first = calling(("r1", "research", {"topic": "first"}))
    second = calling(("r2", "research", {"topic": "second"}))
    play([first, second, DONE], [looking("a"), DONE, looking("b"), DONE, looking("c"), DONE])
    saver = InMemorySaver()
    agent = made()
    agent.invoke(ask("go"), config(session))
    agent = made() if is_new_process else agent
    agent.invoke(Command(resume="yes"), config(session))

    sound(store, session, 9)
    assert [path for path in paths(store, session) if path != "main"] == [
        *["main/research#1"] * 2,
        *["main/research#2"] * 4,
    ]


def test_children_of_threads_share_what_the_first_one_wrote(simulator, session, store, play):
    child = create_agent(
        model_at(simulator.url, f"{session}-child", account=session),
        [look],
        system_prompt=SYSTEM,
        middleware=[Barograph(store)],
    )

    @tool
    def research(topic: str) -> str:
        """Find something out."""
        return child.invoke(ask(topic))["messages"][-1].text

    topics = [f"topic {number}" for number in range(6)]
    asked = calling(*((f"r{n}", "research", {"topic": topic}) for n, topic in enumerate(topics)))
    play([asked, DONE], [DONE] * len(topics))
    agent = main_agent(simulator, session, store, [research])
    agent.invoke(ask("go"), config(session))

    sound(store, session, 2 + len(topics))
    children = exchanges_of(simulator, f"{session}-child")
    header = {each.blocks[1].prefix_key for each in children}
    assert len(header) == 1
    assert sum(each.usage.read_tokens == 0 for each in children) == 1
    asked_by = {
        event.path: event.parts[0].text
        for event in logged(store, session)
        if type(event).__name__ == "MessageSeen" and event.role == "user"
    }
    assert {f"main/research#{n}": topic for n, topic in enumerate(topics, 1)}.items() <= (
        asked_by.items()
    )


def test_agents_that_a_graph_sends_out_side_by_side_stay_apart(simulator, session, store):
    simulator.play(session, [DONE] * 6)
    inner = main_agent(simulator, session, store, [look])
    graph = StateGraph(MessagesState)
    graph.add_node("plan", lambda _state: {})
    graph.add_node("worker", lambda state: {"messages": inner.invoke(state)["messages"][-1:]})
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan", lambda _state: [Send("worker", ask(f"part {n}")) for n in range(3)], ["worker"]
    )
    compiled = graph.compile(checkpointer=InMemorySaver())
    for _ in range(2):
        compiled.invoke(ask("go"), config(session))

    sound(store, session, 6)
    assert {path.partition("~")[0] for path in paths(store, session)} == {"main/worker"}


def test_a_graph_that_hands_over_between_agents_gives_each_its_path(simulator, session, store):
    simulator.play(session, [step for each in "abcd" for step in (looking(each), DONE)])
    graph = StateGraph(MessagesState)
    graph.add_node("first", main_agent(simulator, session, store, [look]))
    graph.add_node("second", main_agent(simulator, session, store, [look]))
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    compiled = graph.compile(checkpointer=InMemorySaver())
    for text in ("one", "two"):
        compiled.invoke(ask(text), config(session))

    sound(store, session, 8)
    assert paths(store, session) == ["main/first", "main/first", "main/second", "main/second"] * 2
