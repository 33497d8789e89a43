"""A tool that means what it meant is sent in the bytes it had."""

import json
from itertools import permutations

import pytest
from langchain.agents.middleware import AgentMiddleware
from stage import agent_at, ask, config, exchanges_of, prove

from barograph.core.canonical import dump_json
from barograph.core.events import HeaderSet
from barograph.langchain import Barograph
from barograph.langchain.header import definitions_in, read_tools
from barograph.simulator import Reply

QUERY = {
    "name": "query",
    "description": "Ask the database.",
    "input_schema": {
        "type": "object",
        "properties": {
            "thought": {"type": "string"},
            "sql": {"type": "string"},
            "mode": {"enum": ["fast", "exact"], "default": {"required": ["b", "a"]}},
            "required": {"type": "array", "items": {"type": "object", "required": ["y", "x"]}},
        },
        "required": ["sql", "mode"],
    },
}


def shuffled(value, *, required=True):
    """The same, every object and every list of required names turned round."""
    if isinstance(value, dict):
        turned = {}
        for key in reversed(value):
            inner = value[key]
            is_list = key == "required" and isinstance(inner, list)
            turned[key] = inner[::-1] if is_list and required else inner
            if key not in ("default", "enum") and not is_list:
                turned[key] = shuffled(inner, required=required)
        return turned
    return value


def changed(path, value):
    copy = json.loads(json.dumps(QUERY))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return shuffled(copy)


def definitions(tool, *sent):
    return json.loads(read_tools([tool], (), {one["name"]: one for one in sent}).definitions)


def test_tools_that_many_agents_share_are_parsed_once(monkeypatch):
    parsed = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(text) or loads(text))
    one, other = (dump_json([{**QUERY, "name": name}]).decode() for name in ("one", "other"))
    headers = [
        HeaderSet(at=0.0, path="", model="", system=(), tools=tools, parameters="", changed=())
        for tools in [one, other] * 50
    ]

    assert set(definitions_in([None, *headers])) == {"one", "other"}

    assert parsed == [one, other]


def test_another_spelling_is_sent_as_before():
    assert dump_json(definitions(shuffled(QUERY), QUERY)) == dump_json([QUERY])
    assert dump_json(definitions(shuffled(QUERY))) == dump_json([shuffled(QUERY)])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("description",), "Ask it."),
        (("input_schema", "required"), ["sql"]),
        (("input_schema", "properties", "sql"), {"type": "integer"}),
        (("input_schema", "properties", "mode", "enum"), ["exact", "fast"]),
        (("input_schema", "properties", "mode", "default"), {"required": ["a", "b"]}),
        (("input_schema", "properties", "required"), True),
    ],
)
def test_another_meaning_is_sent_as_it_is(path, value):
    now = changed(path, value)
    assert dump_json(definitions(now, QUERY)) == dump_json([now])


class Reconnecting(AgentMiddleware):
    """Offers the tools in another order and spelling for each request."""

    def __init__(self):
        super().__init__()
        other = {"name": "other", "input_schema": {"type": "object", "properties": {}}}
        offers = permutations([QUERY, other, {"name": "third", "input_schema": {}}])
        self._offers = [list(offer) for offer in offers]
        self.calls = 0

    def wrap_model_call(self, request, handler):
        self.calls += 1
        offer = self._offers[self.calls % len(self._offers)]
        tools = [shuffled(tool) if self.calls % 2 else tool for tool in offer]
        return handler(request.override(tools=tools))


def test_invariant_4_tools_of_a_server_that_reconnects_keep_their_bytes(simulator, tmp_path):
    session, path = "reconnects", tmp_path / "log.db"
    simulator.play(session, [Reply(content="ok")] * 6)
    history = []
    for turn in range(6):
        middleware = Barograph(path)  # each turn in a process of its own
        before = Reconnecting()
        before.calls = turn
        agent = agent_at(simulator.url, session, None, (), middleware=[before, middleware])
        state = agent.invoke({"messages": [*history, *ask(str(turn))["messages"]]}, config(session))
        history = state["messages"]
        if turn == 5:
            prove(middleware.store, session, exchanges_of(simulator, session))
        middleware.close()
    bodies = [json.loads(each.request) for each in exchanges_of(simulator, session)]
    assert {json.dumps(body["tools"]) for body in bodies} == {json.dumps(bodies[0]["tools"])}
