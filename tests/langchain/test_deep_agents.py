"""`deepagents`, whole: main agent, subagents of each kind, and memory, under Barograph."""

import json

import pytest
from deepagents import create_deep_agent, register_harness_profile
from deepagents.backends import FilesystemBackend
from deepagents.profiles.harness import harness_profiles
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from stage import (
    SYSTEM,
    ask,
    calling,
    config,
    exchanges_of,
    look,
    looking,
    model_at,
    prove,
    prove_sound,
    records,
)

from barograph.core.errors import UsageError
from barograph.langchain import Barograph, check, deep_agent_parts
from barograph.simulator import Reply

DONE = Reply(content="Done.")
NOTES = "The user likes short answers.\n<!-- for editors -->\n"


@pytest.fixture(autouse=True)
def no_profile_stays(monkeypatch):
    """`deepagents` keeps profiles for the whole process."""
    monkeypatch.setattr(harness_profiles, "_HARNESS_PROFILES", {})


@pytest.fixture
def model(simulator, session):
    return model_at(simulator.url, session)


@pytest.fixture
def backend(tmp_path):
    (tmp_path / "AGENTS.md").write_text(NOTES, "utf-8")
    return FilesystemBackend(root_dir=tmp_path, virtual_mode=True)


def deep_agent(model, store, *, memory=(), backend=None, **more):
    parts = deep_agent_parts(Barograph(store), memory=memory, backend=backend)
    register_harness_profile("anthropic", parts.profile)
    agent = create_deep_agent(
        model, [look], system_prompt=SYSTEM, middleware=parts.middleware, backend=backend, **more
    )
    check(agent)
    return agent


@pytest.fixture(params=["sync", "async"])
def way(request, loop):
    """How an agent is called."""
    if request.param == "sync":
        return lambda agent, *given: agent.invoke(*given)
    return lambda agent, *given: loop.run(agent.ainvoke(*given))


def task(call_id, kind="general-purpose", what="read b"):
    return calling((call_id, "task", {"description": what, "subagent_type": kind}))


def paths(store, session):
    return [record.path for record in records(store, session)]


def systems_of(exchanges):
    return ["\n".join(b["text"] for b in json.loads(e.request)["system"]) for e in exchanges]


def test_a_deep_agent_and_its_general_purpose_subagent_are_governed(
    simulator, session, model, store, way
):
    simulator.play(session, [looking("a"), task("t1"), looking("b"), DONE, DONE])
    agent = deep_agent(model, store)
    way(agent, ask("go"), config(session))

    # to the subagent and back again: two conversations, each of them unbroken
    prove(store, session, exchanges_of(simulator, session), breaks=2)
    assert paths(store, session) == ["main", "main", "main/task#1", "main/task#1", "main"]


def test_named_and_compiled_subagents_are_governed_too(simulator, session, model, store):
    ours = Barograph(store)
    compiled = create_agent(model, [look], system_prompt=SYSTEM, middleware=[ours])
    helpers = [
        {"name": "reader", "description": "reads", "system_prompt": SYSTEM},
        {"name": "other", "description": "reads too", "runnable": compiled},
    ]
    replies = [task("t1", "reader"), looking("b"), DONE, task("t2", "other"), looking("c"), DONE]
    simulator.play(session, [*replies, DONE])
    deep_agent(model, store, subagents=helpers).invoke(ask("go"), config(session))

    prove_sound(store, session, exchanges_of(simulator, session))
    assert paths(store, session) == [
        "main",
        *["main/task#1"] * 2,
        "main",
        *["main/task#2"] * 2,
        "main",
    ]


@pytest.mark.filterwarnings("ignore:The feature `forked subagents` is in beta")
def test_a_fork_goes_on_in_its_parents_cache(simulator, session, model, store):
    """A fork begins with its parent's history, under the same tools and system."""
    helper = {"name": "twin", "description": "goes on", "mode": "fork"}
    simulator.play(session, [looking("a"), task("t1", "twin"), looking("b"), DONE, DONE])
    deep_agent(model, store, subagents=[helper]).invoke(ask("go"), config(session))

    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    assert paths(store, session).count("main/task#1") == 2
    parent, fork = exchanges[1].usage, exchanges[2].usage
    assert fork.read_tokens == parent.read_tokens + parent.write_tokens


def test_memory_comes_ahead_and_is_in_the_surface(simulator, session, model, store, backend):
    simulator.play(session, [looking("a"), task("t1"), looking("b"), DONE, DONE, DONE])
    agent = deep_agent(
        model, store, memory=["/AGENTS.md"], backend=backend, checkpointer=InMemorySaver()
    )
    agent.invoke(ask("go"), config(session))
    agent.invoke(ask("on"), config(session))

    exchanges = exchanges_of(simulator, session)
    prove(store, session, exchanges, breaks=2)
    told = ["The user likes short answers." in system for system in systems_of(exchanges)]
    assert told == [True, True, False, False, True, True]  # as with `memory=`: not the subagent


def test_what_memory_says_now_can_be_asked_for(store, backend, tmp_path):
    parts = deep_agent_parts(Barograph(store), memory=["/AGENTS.md", "/none.md"], backend=backend)
    assert parts.memory() == "/AGENTS.md\n\nThe user likes short answers."
    (tmp_path / "AGENTS.md").write_text("The user likes tables.", "utf-8")
    assert parts.memory() == "/AGENTS.md\n\nThe user likes tables."
    (tmp_path / "AGENTS.md").unlink()
    assert parts.memory() == ""


def test_memory_that_cannot_be_read_is_said(store, backend):
    parts = deep_agent_parts(Barograph(store), memory=["/"], backend=backend)
    with pytest.raises(UsageError, match="memory file /"):
        parts.memory()


def test_without_memory_there_is_nothing_to_ask_and_nothing_to_add(store):
    parts = deep_agent_parts(Barograph(store), system_prompt_suffix="Be brief.")
    assert parts.memory is None
    assert parts.middleware == ()
    assert parts.profile.system_prompt_suffix == "Be brief."
