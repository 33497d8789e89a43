"""A tool of a server that the agent has another one for is not offered, and it is said."""

import json
import random
import sys
from pathlib import Path

import pytest
from langchain.agents import create_agent
from stage import SYSTEM, act, ask, calling, config, exchanges_of, look, model_at, prove

from barograph.langchain import Barograph
from barograph.langchain.mcp import McpServers
from barograph.simulator import Reply

SCRIPT = Path(__file__).with_name("tool_server.py")
DONE = Reply(content="done")


@pytest.fixture
def serving(tmp_path):
    """Connections to a server that has these tools."""

    def connect(name, *tools):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps([{"name": each} for each in tools]), "utf-8")
        environment = {"TOOLS": str(file), "SERVER": name}
        run = {"command": sys.executable, "args": [str(SCRIPT), str(random.random())]}
        return {name: {**run, "env": environment}}

    return connect


def agent_with(simulator, session, *middleware, tools=(look, act)):
    model = model_at(simulator.url, session)
    return create_agent(model, list(tools), system_prompt=SYSTEM, middleware=list(middleware))


def warned(caplog):
    return [one.getMessage() for one in caplog.records if "is not offered" in one.getMessage()]


def names_sent(exchange):
    return [one["name"] for one in json.loads(exchange.request)["tools"]]


def test_a_tool_of_the_agent_stands_in_its_place_and_both_are_named_once(
    simulator, session, store, serving, caplog
):
    simulator.play(session, [calling(("c1", "look", {"path": "a"})), DONE, DONE])
    with McpServers(serving("files", "look", "zip")) as servers:
        agent = agent_with(simulator, session, servers, Barograph(store))
        state = agent.invoke(ask("go"), config(session))
        agent.invoke(ask("go"), config(session))

    (said,) = warned(caplog)
    assert "the tool look of server 'files'" in said
    assert "another one of that name, stage.look. Where both are needed, give that one" in said
    assert [m.text for m in state["messages"] if m.type == "tool"] == ["contents of a\n" * 20]
    assert {"look", "zip"} <= set(names_sent(exchanges_of(simulator, session)[0]))


def test_a_tool_of_another_server_is_named_with_it(simulator, session, store, serving, caplog):
    simulator.play(session, [DONE])
    with McpServers(serving("files", "zip")) as one, McpServers(serving("shop", "zip")) as other:
        agent = agent_with(simulator, session, one, Barograph(store), tools=other.tools)
        agent.invoke(ask("go"), config(session))

    (said,) = warned(caplog)
    assert "zip of server 'files' is not offered" in said
    assert "of server 'shop'" in said


def test_one_that_comes_in_mid_session_is_spoken_of_too(simulator, session, store, serving, caplog):
    simulator.play(session, [DONE, calling(("c1", "grow", {"what": "it"})), DONE])
    with McpServers(serving("files", "grow")) as servers:
        agent = agent_with(simulator, session, servers, Barograph(store))
        said = agent.invoke(ask("hello"), config(session))["messages"]
        assert warned(caplog) == []
        serving("files", "grow", "look")
        agent.invoke({"messages": [*said, *ask("go")["messages"]]}, config(session))

    assert ["look of server 'files'" in one for one in warned(caplog)] == [True]
    prove(store, session, exchanges_of(simulator, session))


def test_what_the_provider_runs_itself_hides_a_later_tool(
    simulator, session, store, serving, caplog
):
    simulator.play(session, [calling(("c1", "grow", {"what": "it"})), DONE])
    search = {"type": "web_search_20250305", "name": "web_search"}
    with McpServers(serving("files", "grow")) as servers:
        agent = agent_with(simulator, session, servers, Barograph(store), tools=(look, search))
        serving("files", "grow", "web_search")
        agent.invoke(ask("go"), config(session))

    (said,) = warned(caplog)
    assert "web_search_20250305, which the provider runs" in said


def test_nothing_is_said_where_no_tool_is_hidden(simulator, session, store, serving, caplog):
    simulator.play(session, [DONE])
    with McpServers({**serving("files", "zip"), **serving("shop", "zip")}) as servers:
        agent_with(simulator, session, servers, Barograph(store)).invoke(ask("go"), config(session))

    assert warned(caplog) == []
    sent = names_sent(exchanges_of(simulator, session)[0])
    assert {"files_zip", "shop_zip"} <= set(sent)
