"""Tools of a source below the main agent: there where it is asked, and honest where bytes rule."""

import json

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from stage import SYSTEM, act, ask, calling, config, exchanges_of, look, model_at, prove_sound

from barograph.core.events import SourceKept
from barograph.core.policy import Policy
from barograph.frame import Source, SourceTool, session_digest, skills, working_state
from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")
REFUSED = "[This works for the main agent only. Nothing was read or changed.]"


def _jot(caller, what: str) -> str:
    """Write something down for the next turn."""
    caller.keep({"note": what})
    return "Written down."


def pad(*, everywhere=False, **more):
    jot = SourceTool(name="jot", run=_jot, subagents=everywhere)
    return Source(name="pad", compose=lambda ask: ask.kept("pad").get("note"), tools=(jot,), **more)


class House:
    """A main agent whose tool `delegate` asks a child, and what the provider saw of both."""

    def __init__(self, simulator, session, store, *frame, **more):
        self.simulator, self.session, self.store = simulator, session, store
        self.ours = Barograph(store, frame=frame, **more)
        self.child_tools = [look]
        self.results = []

        @tool
        def delegate(what: str) -> str:
            """Have it done."""
            child = self.agent(f"{session}-child", *self.child_tools)
            said = child.invoke(ask(what))["messages"]
            self.results += [one.text for one in said if one.type == "tool"]
            return said[-1].text

        self.delegate = delegate

    def agent(self, name, *tools):
        model = model_at(self.simulator.url, name, account=self.session)
        return create_agent(model, list(tools), system_prompt=SYSTEM, middleware=[self.ours])

    def go(self, *of_child, tools=(), calls=1):
        """One turn of the main agent, in which it delegates so often."""
        self.simulator.play(f"{self.session}-child", list(of_child))
        each = [calling((f"d{n}", "delegate", {"what": f"part {n}"})) for n in range(calls)]
        self.simulator.play(self.session, [*each, DONE])
        self.agent(self.session, self.delegate, *tools).invoke(ask("go"), config(self.session))

    @property
    def mains(self):
        return exchanges_of(self.simulator, self.session)

    @property
    def childs(self):
        return exchanges_of(self.simulator, f"{self.session}-child")

    def prove(self):
        prove_sound(self.store, self.session, sorted([*self.mains, *self.childs], key=_number))


@pytest.fixture
def house(simulator, session, store):
    return lambda *frame, **more: House(simulator, session, store, *frame, **more)


def _number(exchange):
    return exchange.number


def tools_in(exchange):
    return json.loads(exchange.request)["tools"]


def names_in(exchange):
    return [one["name"] for one in tools_in(exchange)]


def jotting(number):
    return calling((f"j{number}", "jot", {"what": "High tide at six."}))


@pytest.mark.parametrize(
    ("source", "offered"),
    [(pad(), False), (pad(subagents=True), True), (pad(everywhere=True), True)],
    ids=["main only", "asked below", "tool everywhere"],
)
def test_a_child_is_offered_the_tool_where_the_source_is_asked_or_the_tool_says_so(
    house, source, offered
):
    house = house(source)
    house.go(DONE)

    assert "jot" in names_in(house.mains[0])
    assert ("jot" in names_in(house.childs[0])) is offered
    house.prove()


def test_children_of_one_kind_share_their_bytes(house):
    house = house(pad())
    house.go(DONE, DONE, calls=2)

    first, second = house.childs
    assert tools_in(first) == tools_in(second)
    assert "jot" not in names_in(first)
    assert second.usage.read_tokens > 0
    house.prove()


def test_a_child_with_the_tools_of_its_parent_keeps_the_bytes_and_the_tool_refuses(house, store):
    house = house(pad())
    house.child_tools = [house.delegate]
    house.go(jotting(1), DONE)

    assert [tools_in(one) for one in house.childs] == [tools_in(house.mains[0])] * 2
    assert house.results == [REFUSED]
    assert not [one for _, one in store.read(house.session) if isinstance(one, SourceKept)]
    house.prove()


def test_a_child_that_calls_it_all_the_same_is_refused_and_goes_on(house):
    house = house(pad())
    house.go(jotting(1), DONE)

    assert house.results == [REFUSED]
    house.prove()


def test_a_child_that_began_with_the_bytes_of_its_parent_keeps_them_when_it_finds_more(house):
    house = house(pad(), policy=Policy(base_tools=("delegate",)))
    house.child_tools = [house.delegate, act]
    house.go(calling(("s1", "search_tools", {"query": "act"})), DONE, tools=(act,))

    first, second = map(names_in, house.childs)
    assert first == names_in(house.mains[0])
    assert second == [*first, "act"]
    house.prove()


def test_tool_order_may_name_it(house):
    house = house(pad(), policy=Policy(tool_order=("jot",)))
    house.go(DONE)

    assert names_in(house.mains[0])[0] == "jot"
    assert "jot" not in names_in(house.childs[0])


def test_of_the_ready_sources_a_child_can_load_skills_and_read_no_other_session(
    house, store, tmp_path
):
    (tmp_path / "tides").mkdir()
    said = "---\nname: tides\ndescription: For tides.\n---\nLook at the moon.\n"
    (tmp_path / "tides" / "SKILL.md").write_text(said, "utf-8")
    house = house(skills(tmp_path), session_digest(store))
    house.go(calling(("s1", "load_skill", {"name": "tides"})), DONE)

    assert {"load_skill", "recall_session"} <= set(names_in(house.mains[0]))
    assert "recall_session" not in names_in(house.childs[0])
    assert "Look at the moon." in house.results[0]
    house.prove()


def test_an_agent_that_is_a_node_of_a_graph_is_a_main_agent(simulator, session, store):
    house = House(simulator, session, store, pad(), working_state(goal="Sell the eggs."))
    simulator.play(session, [calling(("j1", "jot", {"what": "A dozen."})), DONE, DONE])
    outer = StateGraph(MessagesState)
    outer.add_node("worker", house.agent(session, look))
    outer.add_edge(START, "worker")
    graph = outer.compile(checkpointer=InMemorySaver())
    for text in ("What have we got?", "And now?"):
        graph.invoke(ask(text), config(session))

    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    assert b"Sell the eggs." in exchanges[0].request
    assert b"A dozen." in exchanges[-1].request.partition(b"And now?")[2]
    digest = Barograph(store, frame=[session_digest(store)]).preview_frame("hi", session="other")
    assert "What have we got?" in digest.parts[0].text


SEARCHING = ("s1", "search_tools", {"query": "act"})


def test_a_child_of_a_parent_that_found_more_begins_as_its_parent_began(house):
    house = house(pad(), policy=Policy(base_tools=("delegate",)))
    house.child_tools = [house.delegate, act]
    simulator, session = house.simulator, house.session
    simulator.play(f"{session}-child", [DONE])
    simulator.play(session, [calling(SEARCHING), calling(("d1", "delegate", {"what": "it"})), DONE])
    house.agent(session, house.delegate, act).invoke(ask("go"), config(session))

    assert "act" in names_in(house.mains[1])
    assert tools_in(house.childs[0]) == tools_in(house.mains[0])
    house.prove()


@pytest.mark.parametrize("is_node", [False, True], ids=["agent", "node of a graph"])
def test_a_fork_keeps_the_bytes_that_it_began_with_when_it_finds_more(house, is_node):
    house = house(pad(), policy=Policy(base_tools=("delegate",)))
    simulator, session = house.simulator, house.session

    @tool
    def delegate(what: str, runtime: ToolRuntime) -> str:
        """Have it done."""
        child = house.agent(f"{session}-child", house.delegate, act)
        if is_node:
            graph = StateGraph(MessagesState)
            graph.add_node("worker", child)
            graph.add_edge(START, "worker")
            child = graph.compile()
        shown = [*runtime.state["messages"][:-1], HumanMessage(what)]
        return child.invoke({"messages": shown})["messages"][-1].text

    house.delegate = delegate
    simulator.play(f"{session}-child", [calling(SEARCHING), DONE])
    simulator.play(session, [calling(("d1", "delegate", {"what": "it"})), DONE])
    house.agent(session, delegate, act).invoke(ask("go"), config(session))

    first, second = map(names_in, house.childs)
    assert first == names_in(house.mains[0])
    assert second == [*first, "act"]
    house.prove()
