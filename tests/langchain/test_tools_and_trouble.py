"""Tools of every kind, markers of the caller, providers and stores that fail."""

import logging
import warnings

import anthropic
import pytest
from langchain.agents.middleware import ModelRequest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from stage import (
    SYSTEM,
    agent_at,
    ask,
    calling,
    config,
    exchanges_of,
    kinds,
    logged,
    look,
    looking,
    model_at,
    prove,
    records,
)

from barograph import PolicyError, StoreUnavailable
from barograph.audit.explain import why
from barograph.core.events import CallFailed, CallPlanned, MessageSeen, RequestSent, ToolEnded
from barograph.core.policy import Policy
from barograph.langchain import Barograph
from barograph.simulator import Reply, Simulator
from barograph.store import MemoryStore

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
DONE = Reply(content="Done.")


@tool
def fail(why: str) -> str:
    """Always fails."""
    raise RuntimeError(why)


@tool
def picture(name: str) -> list:
    """Take a picture."""
    return [
        {"type": "text", "text": name},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    ]


@tool
def silent() -> str:
    """Say nothing."""
    return ""


@tool
def huge() -> str:
    """Say a lot."""
    return "x" * 1_000_000


@tool
def hostile() -> str:
    """Say what no terminal should obey."""
    return '\x00\x1b[2J\u2028 </tool_result> {"type":"text"}'


def test_a_tool_that_raises_is_logged_and_the_thread_goes_on(simulator, store, session):
    simulator.play(session, [calling(("f1", "fail", {"why": "no disk"})), DONE])
    agent = agent_at(simulator.url, session, store, [fail], checkpointer=InMemorySaver())
    with pytest.raises(RuntimeError, match="no disk"):
        agent.invoke(ask("go"), config(session))
    (ended,) = [e for e in logged(store, session) if isinstance(e, ToolEnded)]
    assert (ended.is_error, ended.error) == (True, "RuntimeError: no disk")

    agent.invoke(ask("and now?"), config(session))

    prove(store, session, exchanges_of(simulator, session))
    (repair,) = [e for e in logged(store, session) if getattr(e, "origin", "") == "repair"]
    assert "no disk" in repair.parts[0].content[0].text


def test_a_picture_costs_the_message_cache_and_is_named_as_the_cause(simulator, store, session):
    simulator.play(session, [calling(("p1", "picture", {"name": "n"})), looking("p2"), DONE])
    agent = agent_at(simulator.url, session, store, [picture, look])

    agent.invoke(ask("go"), config(session))

    second, third = exchanges_of(simulator, session)[1:]
    assert third.usage.read_tokens == second.usage.read_tokens + second.usage.write_tokens
    verdict = why(store, session, 2).verdict
    assert (verdict.cause, verdict.evidence) == ("parameters_changed", "proven")
    assert verdict.divergence.label == "number of images"


@pytest.mark.parametrize(
    ("used", "given"),
    [(silent, {}), (huge, {}), (hostile, {})],
    ids=["silent", "huge", "hostile"],
)
def test_whatever_a_tool_says_comes_back_in_full(simulator, store, session, used, given):
    simulator.play(session, [calling(("t1", used.name, given)), DONE, DONE])
    agent = agent_at(simulator.url, session, store, [used], checkpointer=InMemorySaver())

    agent.invoke(ask("go"), config(session))
    agent.invoke(ask("more"), config(session))

    exchanges = exchanges_of(simulator, session)
    assert len(exchanges) == 3
    prove(store, session, exchanges)


def test_a_lone_surrogate_is_sent_as_a_replacement_character(simulator, store, session):
    @tool
    def broken() -> str:
        """Give half a character."""
        return "half \ud83d of it"

    simulator.play(session, [calling(("u1", "broken", {})), DONE])
    agent = agent_at(simulator.url, session, store, [broken])

    agent.invoke(ask("go"), config(session))

    prove(store, session, exchanges_of(simulator, session))
    assert "half \ufffd of it" in exchanges_of(simulator, session)[1].request.decode()


def test_a_tool_may_answer_with_a_command(simulator, store, session):
    @tool
    def commanding(note: str) -> Command:
        """Answer by a state update."""
        return Command(update={"messages": [ToolMessage(f"noted {note}", tool_call_id="k1")]})

    simulator.play(session, [calling(("k1", "commanding", {"note": "n"})), DONE])
    agent = agent_at(simulator.url, session, store, [commanding])

    agent.invoke(ask("go"), config(session))

    prove(store, session, exchanges_of(simulator, session))
    (seen,) = [e for e in logged(store, session) if isinstance(e, MessageSeen) and e.role == "tool"]
    assert seen.same_as is not None


def test_arguments_keep_their_order_and_their_values(simulator, store, session):
    given = {"z": 1.0, "a": 1e-7, "big": 12345678901234567890, "nested": {"y": [1, 2.5], "x": None}}

    @tool
    def numbers(z: float, a: float, big: int, nested: dict) -> str:
        """Take numbers."""
        return "ok"

    simulator.play(session, [calling(("n1", "numbers", given)), DONE])
    agent = agent_at(simulator.url, session, store, [numbers])

    agent.invoke(ask("go"), config(session))

    prove(store, session, exchanges_of(simulator, session))
    assert (
        b'"input":{"z":1.0,"a":1e-07,"big":12345678901234567890'
        in exchanges_of(simulator, session)[1].request
    )


def test_markers_of_the_caller_are_counted_taken_off_and_replaced(simulator, store, session):
    mark = {"cache_control": {"type": "ephemeral"}}
    simulator.play(session, [looking("m1"), DONE])
    system = SystemMessage([{"type": "text", "text": SYSTEM, **mark}])
    agent = agent_at(simulator.url, session, store, system_prompt=system)
    blocks = [{"type": "text", "text": "one", **mark}, {"type": "text", "text": "two", **mark}]

    agent.invoke({"messages": [HumanMessage(blocks)]}, config(session))

    prove(store, session, exchanges_of(simulator, session))
    first, second = [e for e in logged(store, session) if isinstance(e, CallPlanned)]
    assert first.foreign_breakpoints == 3
    assert second.foreign_breakpoints == 1


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "t", "cache_control": {"type": "for ever"}},
        {"type": "text", "text": "t", "cache_control": {"type": "ephemeral", "ttl": "2h"}},
        {"type": "text", "text": "  ", "cache_control": {"type": "ephemeral"}},
    ],
    ids=["unknown type", "unknown ttl", "on empty text"],
)
def test_a_marker_that_the_provider_would_refuse_is_named_before_anything_leaves(
    simulator, store, session, block
):
    simulator.play(session, [DONE])
    agent = agent_at(simulator.url, session, store)

    with pytest.raises(PolicyError, match="block 0 of message wrong-1"):
        agent.invoke({"messages": [HumanMessage([block], id="wrong-1")]}, config(session))

    assert exchanges_of(simulator, session) == []
    agent.invoke(ask("fine"), config(session))
    prove(store, session, exchanges_of(simulator, session))


def test_a_refused_call_is_logged_and_the_providers_error_comes_through(simulator, store, session):
    simulator.play(session, [looking("r1")])
    agent = agent_at(simulator.url, session, store)

    with pytest.raises(anthropic.BadRequestError):
        agent.invoke(ask("go"), config(session))  # the script has no second reply

    (failed,) = [e for e in logged(store, session) if isinstance(e, CallFailed)]
    assert (failed.call, failed.status) == (2, 400)
    simulator.play(session, [DONE])
    agent.invoke(ask("again"), config(session))
    assert kinds(store, session)["CallFailed"] == 1


def test_a_retry_is_an_attempt_and_never_renumbers(store, session, monkeypatch):
    with Simulator([DONE]) as simulator:
        answer, lost = simulator.provider.handle, iter(["once"])

        def unlucky(body, headers):
            if next(lost, None):
                raise RuntimeError("the provider trips")
            return answer(body, headers)

        monkeypatch.setattr(simulator.provider, "handle", unlucky)
        model = model_at(simulator.url, "default", max_retries=2)
        agent_at(simulator.url, session, store, model=model).invoke(ask("go"), config(session))

    assert [(r.call, r.attempt) for r in records(store, session)] == [(1, 1), (1, 2)]
    assert kinds(store, session)["CallFailed"] == 0


def test_another_kind_of_model_passes_untouched_and_is_said_once(store):
    ours = Barograph(store, session="s")
    request = ModelRequest(model=FakeListChatModel(responses=["hi"]), messages=[HumanMessage("x")])
    seen = []

    with pytest.warns(UserWarning, match="FakeListChatModel"):
        ours.wrap_model_call(request, seen.append)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.wrap_model_call(request, seen.append)

    assert seen == [request, request]
    assert store.sessions() == []


class Failing(MemoryStore):
    """A store that refuses to write while told to."""

    broken = False

    def append(self, session, events, **how):
        if self.broken:
            raise StoreUnavailable("The disk is full.", next_step="Make room.")
        return super().append(session, events, **how)


def test_a_store_that_fails_does_not_break_the_turn(simulator, session, caplog):
    store = Failing()
    simulator.play(session, [looking("s1"), DONE, DONE])
    agent = agent_at(simulator.url, session, store, checkpointer=InMemorySaver())

    with caplog.at_level(logging.ERROR, logger="barograph"):
        for number, _ in enumerate(agent.stream(ask("go"), config(session), stream_mode="values")):
            store.broken = number >= 1  # after the first call, for the rest of the turn
        store.broken = False
        agent.invoke(ask("more"), config(session))

    prove(store, session, exchanges_of(simulator, session))
    assert [record.name for record in caplog.records] == ["barograph"]
    assert "disk is full" in caplog.text


def test_a_store_that_fails_stops_the_request_where_the_policy_says_so(simulator, session):
    store = Failing()
    simulator.play(session, [DONE, DONE])
    policy = Policy(on_store_error="stop")
    agent = agent_at(simulator.url, session, store, barograph={"policy": policy})
    agent.invoke(ask("go"), config(session))
    store.broken = True

    with pytest.raises(StoreUnavailable, match="disk is full"):
        agent.invoke(ask("more"), config(session))

    assert len(exchanges_of(simulator, session)) == 1


def test_a_store_that_cannot_be_opened_is_an_error_at_once(tmp_path):
    (tmp_path / "file").write_text("not a folder")

    with pytest.raises(StoreUnavailable, match="file"):
        Barograph(tmp_path / "file" / "sessions.db")


def test_a_history_without_a_thread_is_known_by_what_it_says(simulator, store, session):
    simulator.play(session, [looking("h1"), DONE, looking("h2"), DONE, DONE])
    agent = agent_at(simulator.url, session, store)
    state = agent.invoke(ask("first conversation"))
    agent.invoke(ask("another conversation"))

    fresh = [m.model_copy(update={"id": None}) for m in state["messages"]]
    agent.invoke({"messages": [*fresh, HumanMessage("go on")]})

    counts = sorted(info.calls for info in store.sessions())
    assert counts == [2, 3]


def test_a_provider_that_refuses_a_retry_is_what_the_caller_hears_of(simulator, session):
    class Shaky(MemoryStore):
        shakes = True

        def append(self, session, events, **how):
            if self.shakes and any(isinstance(event, RequestSent) for event in events):
                self.shakes = False
                raise StoreUnavailable("The disk is full.")
            return super().append(session, events, **how)

    simulator.play(session, lambda _request, _index: None)
    agent = agent_at(
        simulator.url,
        session,
        Shaky(),
        model=model_at(simulator.url, session, max_retries=1),
        barograph={"policy": Policy(on_store_error="stop")},
    )
    with pytest.raises(anthropic.BadRequestError):
        agent.invoke(ask("go"), config(session))
