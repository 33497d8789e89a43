"""A tool keeps the place that it had when it first came."""

import json

from langchain.agents import create_agent
from langchain_core.tools import tool
from stage import act, agent_at, ask, calling, config, exchanges_of, logged, look, model_at, prove

from barograph.core.events import HeaderSet
from barograph.core.tooling import in_place, settled_schema
from barograph.langchain import Barograph
from barograph.simulator import Reply


@tool
def buy(what: str) -> str:
    """Buy something."""
    return f"bought {what}"


def names_sent(exchange):
    return [one["name"] for one in json.loads(exchange.request)["tools"]]


def tools_changed(store, session, path="main"):
    headers = [e for e in logged(store, session) if isinstance(e, HeaderSet) and e.path == path]
    return ["tools" in header.changed for header in headers[1:]].count(True)


def test_known_names_keep_their_place_and_new_ones_follow():
    places = in_place(["d", "a", "c", "b"], known=["c", "x", "a"], first=["d"])
    assert sorted(places, key=places.get) == ["c", "a", "d", "b"]


def test_all_spellings_of_a_schema_settle_to_one():
    one = {"type": "object", "properties": {"b": {"enum": ["z", "a"]}, "a": {}}, "required": ["b"]}
    other = {"required": ["b"], "properties": {"a": {}, "b": {"enum": ["z", "a"]}}}
    assert json.dumps(settled_schema(one)) == json.dumps(settled_schema({**other, **one}))
    assert settled_schema(one)["properties"]["b"]["enum"] == ["z", "a"]


def test_a_tool_that_comes_later_stands_at_the_end_in_the_next_process_too(
    simulator, session, store
):
    simulator.play(session, [Reply(content=str(number)) for number in range(4)])
    for tools in ((look, act), (look, act, buy), (buy, look, act), (buy, act, look)):
        # each time a middleware that knows no more than what the log holds
        agent_at(simulator.url, session, store, tools).invoke(ask("go on"), config(session))

    exchanges = exchanges_of(simulator, session)
    ends = [names_sent(one)[-3:] for one in exchanges]
    assert ends[1:] == [[*names_sent(exchanges[0])[-2:], "buy"]] * 3
    assert names_sent(exchanges[1])[:-1] == names_sent(exchanges[0])
    assert tools_changed(store, session) == 1


def test_a_tool_that_comes_and_goes_comes_back_to_its_place(simulator, session, store):
    simulator.play(session, [Reply(content=str(number)) for number in range(3)])
    for tools in ((look, act, buy), (look, buy), (look, act, buy)):
        agent_at(simulator.url, session, store, tools).invoke(ask("go on"), config(session))

    first, _, last = exchanges_of(simulator, session)
    assert names_sent(last) == names_sent(first)


def test_a_child_with_the_tools_of_its_parent_begins_with_the_parents_bytes(
    simulator, session, store
):
    ours = Barograph(store)
    simulator.play(
        session,
        [
            Reply(content="hello"),
            calling(("c1", "look", {"path": "a"})),
            Reply(content="from the child"),
            Reply(content="done"),
        ],
    )

    def agent(*tools):
        model = model_at(simulator.url, session)
        return create_agent(model, list(tools), middleware=[ours])

    @tool("look")
    def delegate(path: str) -> str:
        """Look at a file."""
        return agent(delegate, act, buy).invoke(ask(path))["messages"][-1].text

    agent(act, delegate).invoke(ask("hello"), config(session))
    agent(delegate, act, buy).invoke(ask("look"), config(session))

    _, widened, child, _ = exchanges_of(simulator, session)
    assert names_sent(widened)[-1] == "buy"
    assert json.loads(child.request)["tools"] == json.loads(widened.request)["tools"]


def test_the_tools_of_a_widened_session_are_proved(simulator, session, store):
    simulator.play(session, [Reply(content="one"), Reply(content="two"), Reply(content="three")])
    for tools in ((look, act), (look, act), (look, act, buy)):
        agent_at(simulator.url, session, store, tools).invoke(ask("on"), config(session))
    prove(store, session, exchanges_of(simulator, session), breaks=1)
