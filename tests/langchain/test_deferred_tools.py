"""Tools that are found when they are needed: log state, widened at the end, one change each."""

import json

import pytest
from langchain_core.tools import StructuredTool
from stage import act, agent_at, ask, calling, config, exchanges_of, logged, look, prove

from barograph.audit.explain import list_calls
from barograph.core.events import Compacted, HeaderSet, Nudged, Pruned, ToolsLoaded
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.simulator import Reply

POLICY = Policy(base_tools=("look",), tool_order=("look", "search_tools"))
BASE = ["look", "search_tools", "history_read", "history_search", "read_original"]


def tool_named(name, about):
    def run(what: str = "") -> str:
        return f"{name} {what}"

    return StructuredTool.from_function(run, name=name, description=about)


MORE = [
    tool_named("send_mail", "Send an email."),
    tool_named("read_mail", "Read the newest email."),
    tool_named("book_room", "Book a meeting room. " + "Rooms are many. " * 30),
]
EVERY = (*MORE, act, look)


def offered(exchange):
    return [one["name"] for one in json.loads(exchange.request)["tools"]]


def searching(call_id, query, limit=5):
    return calling((call_id, "search_tools", {"query": query, "limit": limit}))


def loaded(store, session):
    return [e.names for e in logged(store, session) if isinstance(e, ToolsLoaded)]


def widenings(store, session):
    headers = [event for event in logged(store, session) if isinstance(event, HeaderSet)]
    return [header.changed for header in headers[1:]]


def more(state, text):
    return {"messages": [*state["messages"], *ask(text)["messages"]]}


def test_what_is_found_is_offered_behind_the_rest_in_the_next_process_too(
    simulator, session, store
):
    simulator.play(
        session,
        [
            searching("c1", "book a room"),
            calling(("c2", "book_room", {"what": "A"})),
            searching("c3", "email"),
            Reply(content="done"),
            searching("c4", "read_mail"),
            Reply(content="hello"),
        ],
    )
    agent = agent_at(simulator.url, session, store, EVERY, barograph={"policy": POLICY})
    state = agent.invoke(ask("go"), config(session))
    agent = agent_at(simulator.url, session, store, EVERY, barograph={"policy": POLICY})
    state = agent.invoke(more(state, "more"), config(session))

    exchanges = exchanges_of(simulator, session)
    wide = [*BASE, "book_room"]
    wider = [*wide, "read_mail", "send_mail"]
    assert [offered(each) for each in exchanges] == [BASE, wide, wide, wider, wider, wider]
    assert loaded(store, session) == [("book_room",), ("send_mail", "read_mail")]
    assert widenings(store, session) == [("tools",), ("tools",)]
    causes = [row.cause for row in list_calls(store, session)]
    assert causes.count("tools_changed") == 2
    prove(store, session, exchanges, breaks=2)

    said = {m.tool_call_id: m.text for m in state["messages"] if m.type == "tool"}
    assert said["c2"] == "book_room A"
    first, *found = said["c1"].splitlines()
    assert first == "[You can call these tools from now on.]"
    assert found[0].startswith("book_room: Book a meeting room. Rooms are many.")
    assert found[0].endswith("…")
    assert not any(isinstance(event, Nudged) for event in logged(store, session))


async def test_async_agents_find_tools_too(simulator, session, store):
    simulator.play(
        session,
        [
            calling(
                ("c1", "search_tools", {"query": "read_mail", "limit": 1}),
                ("c2", "search_tools", {"query": "book", "limit": 1}),
            ),
            calling(("c3", "read_mail", {})),
            Reply(content="done"),
        ],
    )
    agent = agent_at(simulator.url, session, store, EVERY, barograph={"policy": POLICY})
    await agent.ainvoke(ask("go"), config(session))
    assert offered(exchanges_of(simulator, session)[-1]) == [*BASE, "book_room", "read_mail"]
    assert widenings(store, session) == [("tools",)]


def test_a_search_that_finds_nothing_says_what_there_is(simulator, session, store):
    simulator.play(session, [searching("c1", "submarine"), Reply(content="done")])
    agent = agent_at(simulator.url, session, store, EVERY, barograph={"policy": POLICY})
    state = agent.invoke(ask("go"), config(session))
    (said,) = [m.text for m in state["messages"] if m.type == "tool"]
    assert said == (
        "[No tool was found. Those that can be found are: act, book_room, read_mail, send_mail.]"
    )
    assert loaded(store, session) == []
    assert widenings(store, session) == []


def test_all_tools_are_offered_where_the_policy_names_none(simulator, session, store):
    simulator.play(session, [Reply(content="done")])
    agent_at(simulator.url, session, store, EVERY).invoke(ask("go"), config(session))
    (exchange,) = exchanges_of(simulator, session)
    assert {tool.name for tool in EVERY} < set(offered(exchange))
    assert "search_tools" not in offered(exchange)


@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param(
            {"name": "fixed", "prune_after_rounds": 1, "prune_at_ratio": 0.3}, id="pruned"
        ),
        pytest.param(
            {"name": "bound-once", "summary": "digest", "compact_at_ratio": 0.5}, id="compacted"
        ),
    ],
)
def test_what_was_found_survives_folds_and_what_a_search_said_is_not_pruned(
    simulator, session, store, knobs
):
    many = [tool_named(f"mail_{number}", "Mail. " * 40) for number in range(10)]
    replies = [searching("c0", "mail", 10)]
    replies += [calling((f"c{n}", "look", {"path": f"{n:02}.txt " * 200})) for n in range(1, 12)]
    policy = Policy(
        base_tools=("look",),
        window_tokens=100_000,
        **knobs,
    )
    simulator.play(session, [*replies, Reply(content="done")])
    ours = {"policy": policy}
    agent = agent_at(simulator.url, session, store, (*many, look), barograph=ours)
    agent.invoke(ask("go"), config(session))

    exchanges = exchanges_of(simulator, session)
    assert all(each.status == 200 for each in exchanges)
    folds = [e for e in logged(store, session) if isinstance(e, Pruned | Compacted)]
    assert {type(fold) for fold in folds} == {Pruned if knobs["name"] == "fixed" else Compacted}
    names = sorted(tool.name for tool in many)
    assert all(offered(each)[-10:] == names for each in exchanges[1:])
    assert widenings(store, session) == [("tools",)]
    if knobs["name"] == "fixed":
        assert b"mail_9: Mail. Mail." in exchanges[-1].request


def test_a_search_before_the_first_call_of_a_process_asks_to_be_repeated(store):
    search = next(t for t in Barograph(store, policy=POLICY).tools if t.name == "search_tools")
    assert search.invoke({"query": "mail"}) == (
        "[What can be found is not known yet. Search once more.]"
    )
