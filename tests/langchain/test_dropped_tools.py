"""A tool that the client leaves out of its requests: it is said, and the header has none of it."""

import json

import pytest
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool, tool
from stage import act, agent_at, ask, calling, config, exchanges_of, logged, look, model_at, prove

from barograph.core.events import HeaderSet, Nudged, ToolsLoaded
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.simulator import Reply

pytestmark = pytest.mark.filterwarnings("ignore:Dropping tool")

DONE = Reply(content="done")


def tool_with(name="zip", about="Zip files.", **root):
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, **root}
    return StructuredTool(
        name=name, description=about, args_schema=schema, func=lambda **given: str(given)
    )


UNION = tool_with(oneOf=[{"required": ["path"]}])


def sent_names(exchange):
    return [one["name"] for one in json.loads(exchange.request).get("tools", ())]


def header_names(store, session):
    headers = [event for event in logged(store, session) if isinstance(event, HeaderSet)]
    return [[one["name"] for one in json.loads(each.tools or "[]")] for each in headers]


def warned(caplog):
    return [one.getMessage() for one in caplog.records if "never reaches" in one.getMessage()]


@pytest.mark.parametrize("key", ["oneOf", "anyOf", "allOf", "not"])
def test_what_the_client_drops_is_what_is_spoken_of_and_has_no_place_in_the_header(
    simulator, session, store, caplog, key
):
    given = tool_with(**{key: {} if key == "not" else [{"required": ["path"]}]})
    simulator.play(session, [DONE])
    agent_at(simulator.url, session, store, (look, given)).invoke(ask("go"), config(session))

    (exchange,) = exchanges_of(simulator, session)
    assert header_names(store, session) == [sent_names(exchange)]
    assert [f"{key} at its root" in one for one in warned(caplog)] == [True] * (
        "zip" not in sent_names(exchange)
    )
    (header,) = (event for event in logged(store, session) if isinstance(event, HeaderSet))
    assert header.adopted == ()


def test_one_that_comes_in_mid_session_is_not_announced_and_costs_nothing(
    simulator, session, store
):
    simulator.play(session, [DONE] * 3)
    said = []
    for tools in ((look, act), (look, act, UNION), (UNION, act, look)):
        agent = agent_at(simulator.url, session, store, tools)
        more = {"messages": [*said, *ask("on")["messages"]]}
        said = agent.invoke(more, config(session))["messages"]

    assert not [event for event in logged(store, session) if isinstance(event, Nudged)]
    assert len(header_names(store, session)) == 1
    prove(store, session, exchanges_of(simulator, session))


def test_it_is_said_once_of_a_session_with_what_to_do(simulator, session, store, caplog):
    simulator.play(session, [calling(("c1", "delegate", {"what": "a"})), DONE, DONE, DONE])
    ours = Barograph(store)

    def agent(*tools):
        model = model_at(simulator.url, session)
        return create_agent(model, [*tools, UNION], middleware=[ours])

    @tool
    def delegate(what: str) -> str:
        """Have it done."""
        return agent(look).invoke(ask(what))["messages"][-1].text

    for _ in range(2):
        agent(delegate).invoke(ask("go"), config(session))

    (said,) = warned(caplog)
    assert f"the tool zip of main in session {session}" in said
    assert "Move that below `properties`" in said


def test_the_marker_stands_on_the_last_tool_that_leaves(simulator, session, store):
    simulator.play(session, [DONE])
    wide = [tool_with(f"tool{number}", "It does much. " * 200) for number in range(4)]
    agent_at(simulator.url, session, store, (*wide, UNION), system_prompt=None).invoke(
        ask("go"), config(session)
    )

    (exchange,) = exchanges_of(simulator, session)
    *_, last = json.loads(exchange.request)["tools"]
    assert "cache_control" in last
    prove(store, session, [exchange])


def test_a_child_with_the_tools_of_its_parent_begins_with_the_parents_bytes(
    simulator, session, store
):
    ours = Barograph(store)
    simulator.play(session, [DONE, calling(("c1", "look", {"path": "a"})), DONE, DONE])

    def agent(*tools):
        return create_agent(model_at(simulator.url, session), list(tools), middleware=[ours])

    @tool("look")
    def delegate(path: str) -> str:
        """Look at a file."""
        return agent(delegate, act, UNION, early).invoke(ask(path))["messages"][-1].text

    early = tool_with("a_new_one")
    agent(act, delegate, UNION).invoke(ask("hello"), config(session))
    agent(early, delegate, UNION, act).invoke(ask("look"), config(session))

    _, widened, child, _ = exchanges_of(simulator, session)
    assert sent_names(widened)[-1] == "a_new_one"
    assert sent_names(child) == sent_names(widened)


def test_a_search_does_not_find_it(simulator, session, store):
    policy = Policy(base_tools=("look",), tool_order=("look",))
    simulator.play(session, [calling(("c1", "search_tools", {"query": "zip files"})), DONE])
    agent_at(
        simulator.url, session, store, (look, act, UNION), barograph={"policy": policy}
    ).invoke(ask("go"), config(session))

    assert not [event for event in logged(store, session) if isinstance(event, ToolsLoaded)]


def test_tool_order_may_name_it(simulator, session, store):
    policy = Policy(tool_order=("zip", "look"))
    simulator.play(session, [DONE])
    agent_at(simulator.url, session, store, (look, UNION), barograph={"policy": policy}).invoke(
        ask("go"), config(session)
    )

    assert sent_names(exchanges_of(simulator, session)[0])[0] == "look"


def test_where_no_tool_is_left_the_client_refuses_as_always(simulator, session, store):
    agent = agent_at(
        simulator.url, session, store, (UNION,), barograph={"policy": Policy(name="off")}
    )
    with pytest.raises(ValueError, match="No tool is left"):
        agent.invoke(ask("go"), config(session))
