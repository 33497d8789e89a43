"""k switches of model, effort, tool choice, system text or tools: k breaks, each with its name."""

import itertools

import pytest
from langchain.agents.middleware import AgentMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from stage import SYSTEM, act, agent_at, ask, config, exchanges_of, logged, look, model_at

from barograph.audit.explain import list_calls
from barograph.audit.verify import verify_session
from barograph.core.events import HeaderSet
from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")


class Choosing(AgentMiddleware):
    """Sets the tool choice."""

    def __init__(self, choice):
        self.choice = choice

    def wrap_model_call(self, request, handler):
        return handler(request.override(tool_choice=self.choice))


def setting(**given):
    return given


# what is switched: how it stands before and after, and how the break is called
SWITCHES = {
    "model": (
        setting(model="claude-opus-4-8"),
        setting(model="claude-sonnet-5"),
        "model_changed",
    ),
    "effort": (setting(effort="low"), setting(effort="high"), "parameters_changed"),
    "tool choice": (setting(choice="auto"), setting(choice="none"), "parameters_changed"),
    "system": (
        setting(system_prompt=SYSTEM),
        setting(system_prompt=SYSTEM + " Be brief."),
        "system_changed",
    ),
    "tools": (setting(tools=[look]), setting(tools=[look, act]), "tools_changed"),
}


def turn(simulator, session, store, saver, *, model="claude-opus-4-8", effort=None, **more):
    extra = {"output_config": {"effort": effort}} if effort else {}
    choice = more.pop("choice", None)
    middleware = [*([Choosing(choice)] if choice else []), Barograph(store)]
    agent = agent_at(
        simulator.url,
        session,
        store,
        more.pop("tools", (look, act)),
        middleware=middleware,
        model=model_at(simulator.url, session, model=model, **extra),
        checkpointer=saver,
        **more,
    )
    agent.invoke(ask("go on"), config(session))


def breaks_of(store, session):
    rows = list_calls(store, session)
    return [row.verdict for row in rows if row.verdict.lost_tokens]


@pytest.mark.parametrize("what", SWITCHES)
@pytest.mark.parametrize("times", [1, 3])
def test_as_many_breaks_as_switches_and_each_is_named(simulator, session, store, what, times):
    before, after, name = SWITCHES[what]
    simulator.play(session, [DONE] * (3 * (times + 1)))
    saver = InMemorySaver()
    for each in itertools.islice(itertools.cycle((before, after)), times + 1):
        for _ in range(3):
            turn(simulator, session, store, saver, **each)

    assert verify_session(store, session).findings == ()
    found = breaks_of(store, session)
    # going back to what is still cached loses nothing and is no break
    assert [verdict.cause for verdict in found] == [name] * len(found)
    headers = [event for event in logged(store, session) if isinstance(event, HeaderSet)]
    assert len(headers) == times + 1
    first = exchanges_of(simulator, session)[3]
    assert found[0].compared_with == 3
    assert first.usage.read_tokens < exchanges_of(simulator, session)[2].usage.input_total_tokens
    assert 1 <= len(found) <= times


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(SWITCHES, 2)))
def test_two_switches_at_once_are_one_break(simulator, session, store, one, other):
    simulator.play(session, [DONE] * 4)
    saver = InMemorySaver()
    for side in (0, 1):
        for _ in range(2):
            turn(
                simulator, session, store, saver, **{**SWITCHES[one][side], **SWITCHES[other][side]}
            )

    (found,) = breaks_of(store, session)
    assert {SWITCHES[one][2], SWITCHES[other][2]} >= {found.cause}
    (changed,) = [
        event.changed for event in logged(store, session) if isinstance(event, HeaderSet)
    ][1:]
    kinds = {"model": "model", "system": "system", "tools": "tools"}
    assert {kinds.get(one, "parameters"), kinds.get(other, "parameters")} <= set(changed)


@pytest.mark.parametrize("switches", [1, 5])
def test_switches_to_what_was_never_there_are_exactly_as_many_breaks(
    simulator, session, store, switches
):
    simulator.play(session, [DONE] * (2 * (switches + 1)))
    saver = InMemorySaver()
    for number in range(switches + 1):
        for _ in range(2):
            turn(simulator, session, store, saver, system_prompt=f"{SYSTEM} Edition {number}.")

    assert [verdict.cause for verdict in breaks_of(store, session)] == ["system_changed"] * switches


@pytest.mark.parametrize("what", SWITCHES)
def test_switching_back_and_forth_is_one_named_break_each_time(simulator, session, store, what):
    """Of tools too, where under the longer header as much is read as the shorter one left."""
    before, after, name = SWITCHES[what]
    simulator.play(session, [DONE] * 15)
    saver = InMemorySaver()
    for each in (before, after, before, after, before):
        for _ in range(3):
            turn(simulator, session, store, saver, **each)

    causes = {row.call: row.verdict.cause for row in list_calls(store, session)}
    assert {call: cause for call, cause in causes.items() if cause != "held"} == {
        1: "cold_start",
        **dict.fromkeys((4, 7, 10, 13), name),
    }
    assert all(verdict.named_by for verdict in breaks_of(store, session))


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(SWITCHES, 2)))
def test_two_switches_at_once_are_both_named(simulator, session, store, one, other):
    simulator.play(session, [DONE] * 4)
    saver = InMemorySaver()
    for side in (0, 1):
        for _ in range(2):
            given = {**SWITCHES[one][side], **SWITCHES[other][side]}
            turn(simulator, session, store, saver, **given)

    (found,) = breaks_of(store, session)
    levels = {"model": "model", "system": "system", "tools": "tools"}
    for what in (one, other):
        assert levels.get(what, "parameters") in found.named_by.cause
