"""Long results are bounded when they come: the model sees both ends, the log keeps the whole."""

import json

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from stage import agent_at, ask, calling, config, exchanges_of, logged

from barograph.audit.score import broken_requests
from barograph.audit.verify import verify_session
from barograph.core.events import MessageSeen, Replaced
from barograph.core.policy import Policy
from barograph.simulator import Reply
from barograph.store.originals import read_original

DONE = Reply(content="Done.")
ONCE = {"policy": Policy(name="bound-once", max_result_chars=2_000)}
LONG = "HEAD\n" + "row: aaaaaaaa\n" * 5_000 + "TAIL"


@tool
def dump() -> str:
    """Say everything."""
    return LONG


@tool
def listed() -> list:
    """Say everything, in pieces."""
    return [{"type": "text", "text": LONG[:40_000]}, {"type": "text", "text": LONG[40_000:]}]


def results_of(exchange):
    messages = json.loads(exchange.request)["messages"]
    return [
        "".join(leaf["text"] for leaf in block["content"])
        for message in messages
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def sound(store, session, exchanges):
    report = verify_session(store, session)
    assert report.findings == ()
    assert report.exact == report.derived == report.requests == len(exchanges)
    assert broken_requests(exchanges) == []
    assert not [event for event in logged(store, session) if isinstance(event, Replaced)]


def handle_of(store, session):
    (seq,) = [
        seq for seq, e in store.read(session) if isinstance(e, MessageSeen) and e.role == "tool"
    ]
    return f"#{seq}"


@pytest.mark.parametrize("used", [dump, listed], ids=["text", "list"])
def test_the_model_sees_both_ends_and_the_log_has_the_whole(simulator, session, store, used):
    simulator.play(session, [calling(("d1", used.name, {})), DONE])
    agent = agent_at(simulator.url, session, store, [used], barograph=ONCE)
    answer = agent.invoke(ask("go"), config(session))

    exchanges = exchanges_of(simulator, session)
    (shown,) = results_of(exchanges[-1])
    assert len(shown) <= 2_000
    assert shown.startswith("HEAD")
    assert shown.endswith("TAIL")
    handle = handle_of(store, session)
    assert f'read_original("{handle}"' in shown
    assert read_original(store, session, handle).replace("\n", "") == LONG.replace("\n", "")
    assert max(len(str(m.content)) for m in answer["messages"]) > 60_000  # the graph keeps it all
    sound(store, session, exchanges)


def test_it_is_recognised_in_every_later_call_and_after_a_restart(simulator, session, store):
    saver = InMemorySaver()
    simulator.play(session, [calling(("d1", "dump", {})), DONE, DONE, DONE])
    for text in ("go", "on", "and on"):
        agent = agent_at(simulator.url, session, store, [dump], barograph=ONCE, checkpointer=saver)
        agent.invoke(ask(text), config(session))

    exchanges = exchanges_of(simulator, session)
    assert len({results_of(each)[0] for each in exchanges[1:]}) == 1
    sound(store, session, exchanges)


def test_an_error_is_bounded_too_and_stays_an_error(simulator, session, store):
    @tool
    def fails() -> str:
        """Fail at length."""
        raise ValueError(LONG)

    from langchain.agents.middleware import ToolErrorMiddleware

    from barograph.langchain import Barograph

    simulator.play(session, [calling(("f1", "fails", {})), DONE])
    stack = [
        ToolErrorMiddleware(on_error=lambda _request, error: str(error)),
        Barograph(store, **ONCE),
    ]
    agent = agent_at(simulator.url, session, store, [fails], middleware=stack)
    agent.invoke(ask("go"), config(session))

    exchanges = exchanges_of(simulator, session)
    assert len(results_of(exchanges[-1])[0]) <= 2_000
    assert b'"is_error":true' in exchanges[-1].request
    sound(store, session, exchanges)


def test_a_tool_may_have_a_limit_of_its_own_or_none(simulator, session, store):
    policy = Policy(name="bound-once", max_result_chars=2_000, tool_result_chars={"dump": 0})
    simulator.play(session, [calling(("d1", "dump", {}), ("l1", "listed", {})), DONE])
    agent = agent_at(simulator.url, session, store, [dump, listed], barograph={"policy": policy})
    agent.invoke(ask("go"), config(session))

    whole, bounded = results_of(exchanges_of(simulator, session)[-1])
    assert whole == LONG
    assert len(bounded) <= 2_000


def test_short_results_are_not_touched_and_are_stored_once(simulator, session, store):
    @tool
    def brief() -> str:
        """Say little."""
        return "x" * 1_999

    simulator.play(session, [calling(("b1", "brief", {})), DONE])
    agent = agent_at(simulator.url, session, store, [brief], barograph=ONCE)
    agent.invoke(ask("go"), config(session))

    (seen,) = [e for e in logged(store, session) if getattr(e, "role", "") == "tool"]
    assert seen.same_as is not None
    assert (seen.original, seen.original_in, seen.known_by) == ((), None, None)


def test_a_result_whose_tool_was_not_seen_is_kept_beside_what_is_shown(simulator, session, store):
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    call = {"name": "dump", "args": {}, "id": "o1", "type": "tool_call"}
    history = [
        HumanMessage("go"),
        AIMessage("", tool_calls=[call]),
        ToolMessage(LONG, tool_call_id="o1"),
    ]
    simulator.play(session, [DONE])
    agent = agent_at(simulator.url, session, store, [dump], barograph=ONCE)
    agent.invoke({"messages": history}, config(session))

    assert read_original(store, session, handle_of(store, session)) == LONG
    sound(store, session, exchanges_of(simulator, session))
