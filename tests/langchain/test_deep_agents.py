"""`deepagents`, whole: main agent, subagents of each kind, and memory, under Barograph."""

import json

import pytest
from deepagents import create_deep_agent, register_harness_profile
from deepagents.backends import FilesystemBackend
from deepagents.backends.utils import create_file_data
from deepagents.profiles.harness import harness_profiles
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
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
    prove,
    prove_sound,
    records,
    sent_texts,
)

from barograph.core.events import FrameComposed
from barograph.frame import Source
from barograph.langchain import Barograph, check, deep_agent_memory, deep_agent_profile
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


def deep_agent(model, store, *, frame=(), **more):
    register_harness_profile("anthropic", deep_agent_profile(Barograph(store, frame=frame)))
    agent = create_deep_agent(model, [look], system_prompt=SYSTEM, **more)
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


@pytest.mark.filterwarnings("ignore:The feature `forked subagents` is in beta")
def test_a_fork_begins_with_the_frames_of_its_parent(simulator, session, model, store, way):
    """Byte for byte where they stood; what it is told itself comes behind them."""
    memory = Source(name="memory", compose=lambda _: "Be brief.", trust="operator")
    place = Source(name="place", compose=lambda ask: ask.path, subagents=True, trust="operator")
    helper = {"name": "twin", "description": "goes on", "mode": "fork"}
    saver = InMemorySaver()
    agent = deep_agent(model, store, frame=[memory, place], subagents=[helper], checkpointer=saver)
    replies = [looking("a"), DONE, looking("b"), task("t1", "twin"), looking("c"), DONE, DONE]
    simulator.play(session, replies)
    way(agent, ask("go"), config(session))
    way(agent, ask("on"), config(session))

    exchanges = exchanges_of(simulator, session)
    # back from the fork, where the main agent goes on, is the only other beginning
    prove(store, session, exchanges, breaks=1)
    prove_sound(store, session, exchanges)
    assert paths(store, session)[3:6] == ["main", "main/task#1", "main/task#1"]
    parent, fork = exchanges[3], exchanges[4]
    assert fork.usage.read_tokens == parent.usage.read_tokens + parent.usage.write_tokens
    told = [text for text in sent_texts(fork) if "<context from=" in text]
    assert [text in sent_texts(parent) for text in told] == [True, True, False]
    assert "main/task#1" in told[-1]
    (own,) = [e for e in logged(store, session) if isinstance(e, FrameComposed) and e.turn == 3]
    assert [(one.source, one.change) for one in own.sections] == [("place", "changed")]


def frames_of(store, session):
    """What each frame of the main agent says."""
    return [
        [part.text for part in event.parts]
        for event in logged(store, session)
        if isinstance(event, FrameComposed) and event.path == "main"
    ]


def test_memory_comes_in_the_frame_when_it_changed_and_never_in_the_system_message(
    simulator, session, model, store, backend
):
    memory = deep_agent_memory(["/AGENTS.md", "/none.md"], backend)
    agent = deep_agent(model, store, frame=[memory], backend=backend, checkpointer=InMemorySaver())
    simulator.play(session, [looking("a"), task("t1"), looking("b"), DONE, DONE, DONE, DONE])
    agent.invoke(ask("go"), config(session))
    agent.invoke(ask("on"), config(session))
    (backend.cwd / "AGENTS.md").write_text("The user likes tables.", "utf-8")
    agent.invoke(ask("on"), config(session))

    exchanges = exchanges_of(simulator, session)
    prove(store, session, exchanges, breaks=2)
    first, unchanged, changed = frames_of(store, session)
    assert "/AGENTS.md\n\nThe user likes short answers.\n</context>" in first[0]
    assert unchanged == []
    assert "The user likes tables." in changed[0]
    told = ["The user likes" in exchange.request.decode() for exchange in exchanges]
    assert told == [True, True, False, False, True, True, True]  # as there: not the subagent
    systems = systems_of(exchanges)
    assert not any("The user likes" in system for system in systems)
    mains = [one for one, is_main in zip(systems, told, strict=True) if is_main]
    assert len(set(mains)) == 1


def test_memory_in_the_state_of_the_graph_is_read_there(simulator, session, model, store, way):
    agent = deep_agent(
        model, store, frame=[deep_agent_memory(["/AGENTS.md"])], checkpointer=InMemorySaver()
    )
    edit = {"file_path": "/AGENTS.md", "old_string": "short", "new_string": "long"}
    simulator.play(session, [calling(("e1", "edit_file", edit)), DONE, DONE])
    way(agent, ask("go") | {"files": {"/AGENTS.md": create_file_data(NOTES)}}, config(session))
    way(agent, ask("on"), config(session))

    prove(store, session, exchanges_of(simulator, session))
    first, second = (texts[0] for texts in frames_of(store, session))
    assert "The user likes short answers." in first
    assert "The user likes long answers." in second


def test_memory_that_cannot_be_read_leaves_what_it_said_before_in_force(
    simulator, session, model, store, backend
):
    simulator.play(session, [DONE, DONE])
    memory = deep_agent_memory(["/AGENTS.md"], backend)
    agent = deep_agent(model, store, frame=[memory], backend=backend, checkpointer=InMemorySaver())
    agent.invoke(ask("go"), config(session))
    (backend.cwd / "AGENTS.md").unlink()
    (backend.cwd / "AGENTS.md").mkdir()
    agent.invoke(ask("on"), config(session))

    composed = [event for event in logged(store, session) if isinstance(event, FrameComposed)]
    assert composed[1].sections == ()
    assert "The memory file /AGENTS.md cannot be read" in composed[1].missed[0].reason


def test_memory_that_an_agent_writes_to_itself_can_be_material(backend):
    memory = deep_agent_memory(["/AGENTS.md"], backend, trust="derived", budget_chars=900)
    assert (memory.trust, memory.budget_chars) == ("derived", 900)


def test_other_fields_of_the_profile_are_passed_on(store):
    profile = deep_agent_profile(Barograph(store), system_prompt_suffix="Be brief.")
    assert profile.system_prompt_suffix == "Be brief."
