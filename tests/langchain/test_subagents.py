"""Subagents of every making: legal markers, the cache, the parent's bill, and a short answer."""

import json

import pytest
from deepagents import create_deep_agent, register_harness_profile
from deepagents.profiles.harness import harness_profiles
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from stage import (
    SYSTEM,
    ask,
    calling,
    config,
    exchanges_of,
    logged,
    look,
    looking,
    model_at,
    prove_sound,
)

from barograph.audit.limits import reuse_ceilings
from barograph.audit.score import _prompts, most_breakpoints
from barograph.audit.series_reader import read_series
from barograph.core.events import CallPlanned, ResponseCame, ToolEnded
from barograph.core.policy import Policy
from barograph.langchain import Barograph, deep_agent_profile
from barograph.simulator import Reply

DONE = Reply(content="Done.")
LONG = ("Found it. " * 2000).strip()
MOST_CHARS = 2000
POLICY = Policy(max_result_chars=MOST_CHARS)


@pytest.fixture(autouse=True)
def no_profile_stays(monkeypatch):
    """`deepagents` keeps profiles for the whole process."""
    monkeypatch.setattr(harness_profiles, "_HARNESS_PROFILES", {})


def child_at(simulator, session, store):
    return create_agent(
        model_at(simulator.url, f"{session}-child", account=session),
        [look],
        system_prompt=SYSTEM,
        middleware=[Barograph(store, policy=POLICY)],
    )


def main_with(simulator, session, store, tools):
    return create_agent(
        model_at(simulator.url, session),
        tools,
        system_prompt=SYSTEM,
        middleware=[Barograph(store, policy=POLICY)],
    )


def in_a_tool(simulator, session, store):
    """`create_agent` in a tool."""
    child = child_at(simulator, session, store)

    @tool
    def research(topic: str) -> str:
        """Find something out."""
        return child.invoke(ask(topic))["messages"][-1].text

    return main_with(simulator, session, store, [research]), "research", {"topic": "it"}


def in_a_subgraph(simulator, session, store):
    """A graph of the user's own in a tool, with the agent as its node."""
    graph = StateGraph(MessagesState)
    graph.add_node("worker", child_at(simulator, session, store))
    graph.add_edge(START, "worker")
    inner = graph.compile()

    @tool
    def research(topic: str) -> str:
        """Find something out."""
        return inner.invoke(ask(topic))["messages"][-1].text

    return main_with(simulator, session, store, [research]), "research", {"topic": "it"}


def in_deepagents(simulator, session, store):
    """The task tool of `deepagents`."""
    register_harness_profile("anthropic", deep_agent_profile(Barograph(store, policy=POLICY)))
    helper = {
        "name": "reader",
        "description": "reads",
        "system_prompt": SYSTEM,
        "model": model_at(simulator.url, f"{session}-child", account=session),
    }
    agent = create_deep_agent(
        model_at(simulator.url, session), [look], system_prompt=SYSTEM, subagents=[helper]
    )
    return agent, "task", {"description": "it", "subagent_type": "reader"}


@pytest.fixture(params=[in_a_tool, in_a_subgraph, in_deepagents], ids=lambda make: make.__name__)
def played(request, simulator, session, store):
    """A main agent that looked, had a subagent look three times, and looked again."""
    agent, name, given = request.param(simulator, session, store)
    asked = calling(("r1", name, given))
    simulator.play(session, [looking("a"), asked, looking("b"), DONE])
    looks = [looking(each) for each in ("c", "d", "e")]
    simulator.play(f"{session}-child", [*looks, Reply(content=LONG)])
    agent.invoke(ask("go"), config(session))
    mine, its = (exchanges_of(simulator, one) for one in (session, f"{session}-child"))
    return mine, its


def test_its_requests_are_logged_and_carry_legal_markers(simulator, session, store, played):
    mine, its = played
    everything = sorted([*mine, *its], key=lambda each: each.number)
    prove_sound(store, session, everything)
    assert 1 <= most_breakpoints(everything) <= 4
    assert all(each.usage.write_tokens for each in its)


def test_after_its_first_call_it_reads_all_that_can_be_read(played):
    for exchanges in played:
        ceilings = reuse_ceilings(_prompts(exchanges), minimum_tokens=1024)
        assert [each.usage.read_tokens for each in exchanges][1:] == list(ceilings)[1:]


def test_its_usage_is_on_the_parents_bill_and_not_on_the_parents_meter(session, store, played):
    mine, its = played
    series = read_series(store, session)
    used = [each.usage for each in (*mine, *its)]
    assert series.total.calls == len(used)
    assert series.total.sum_input_tokens == sum(usage.input_total_tokens for usage in used)
    assert series.total.read_tokens == sum(usage.read_tokens for usage in used)
    assert series.total.output_tokens == sum(usage.output_tokens for usage in used)
    own = [row for row in series.calls if row.path == "main"]
    child = [row for row in series.calls if row.path != "main"]
    assert [row.input_total_tokens for row in own] == [e.usage.input_total_tokens for e in mine]
    assert series.total.cost_usd == pytest.approx(sum(row.cost_usd for row in (*own, *child)))
    # how full the session is, and will be, is how full the main agent is
    assert series.total.last_input_tokens == mine[-1].usage.input_total_tokens
    plans = [e for e in logged(store, session) if isinstance(e, CallPlanned) and e.path == "main"]
    for plan, each in zip(plans[2:], mine[2:], strict=True):
        assert plan.projected_tokens == pytest.approx(each.usage.input_total_tokens, rel=0.1)


def test_only_its_last_message_returns_and_it_is_bounded_like_any_result(session, store, played):
    mine, _ = played
    body = json.loads(mine[2].request)
    (result,) = (
        block
        for message in body["messages"]
        for block in message["content"]
        if block.get("tool_use_id") == "r1"
    )
    told = "".join(leaf["text"] for leaf in result["content"])
    assert told.startswith("Found it. ")
    assert len(told) <= MOST_CHARS
    assert "contents of c.txt" not in mine[2].request.decode()
    # the whole is in the log, where the child said it
    (said,) = (
        event
        for event in logged(store, session)
        if isinstance(event, ResponseCame)
        and event.path != "main"
        and event.stop_reason == "end_turn"
    )
    assert said.parts[0].text == LONG
    ended = {e.call_id: e for e in logged(store, session) if isinstance(e, ToolEnded)}
    assert LONG in str(ended["r1"].parts)
