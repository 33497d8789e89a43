"""Tools that the provider runs itself: they leave as they were given, and what they say is kept."""

import json

import pytest
from stage import agent_at, config, exchanges_of, look, model_at, prove

from barograph.core.policy import Policy
from barograph.simulator import Reply

SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
SEARCHED = Reply(
    content=[
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "tide"},
        },
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "High tide at six."},
    ]
)


def talk(simulator, session, store, tools, **more):
    said = []
    simulator.play(session, [SEARCHED, Reply(content="done")])
    for text in ("When?", "Thanks."):
        agent = agent_at(simulator.url, session, store, tools, **more)
        state = agent.invoke({"messages": [*said, ("user", text)]}, config(session))
        said = state["messages"]
    return exchanges_of(simulator, session)


@pytest.mark.parametrize(
    "given",
    [
        SEARCH,
        {"type": "bash_20250124", "name": "bash"},
        {"type": "mcp_toolset", "mcp_server_name": "maps"},
    ],
    ids=lambda given: given["type"],
)
def test_they_leave_as_they_were_given(simulator, session, store, given):
    exchanges = talk(simulator, session, store, (look, given))

    assert given in json.loads(exchanges[0].request)["tools"]
    prove(store, session, exchanges)


def test_a_marker_of_the_callers_is_taken_off_and_ours_stands_on_the_last(
    simulator, session, store
):
    given = {**SEARCH, "cache_control": {"type": "ephemeral"}}
    long = model_at(simulator.url, session, model="claude-opus-4-8")
    exchanges = talk(simulator, session, store, (look, given), model=long, system_prompt=None)

    *others, last = json.loads(exchanges[0].request)["tools"]
    assert "cache_control" not in json.dumps(others)
    assert {key: last[key] for key in SEARCH} == SEARCH
    prove(store, session, exchanges)


def test_they_are_offered_where_other_tools_are_to_be_found(simulator, session, store):
    policy = Policy(base_tools=())
    exchanges = talk(simulator, session, store, (look, SEARCH), barograph={"policy": policy})

    assert SEARCH in json.loads(exchanges[0].request)["tools"]
    prove(store, session, exchanges)


@pytest.mark.parametrize(
    "given",
    [
        {"title": "note", "description": "Note it.", "type": "object", "properties": {}},
        {"type": "function", "function": {"name": "note", "parameters": {"type": "object"}}},
        {"type": "custom", "name": "note", "description": "", "input_schema": {"type": "object"}},
    ],
    ids=lambda given: given["type"],
)
def test_definitions_of_any_form_are_the_callers_own_and_keep_their_place(
    simulator, session, store, given
):
    exchanges = talk(simulator, session, store, (look, given))

    assert "note" in [one["name"] for one in json.loads(exchanges[0].request)["tools"]]
    prove(store, session, exchanges)
