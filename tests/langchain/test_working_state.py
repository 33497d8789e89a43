"""Agents that say what they work at: told once, told again when it changed, and never lost."""

import json

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from stage import (
    SYSTEM,
    Run,
    ask,
    calling,
    config,
    exchanges_of,
    logged,
    look,
    model_at,
    prove,
    prove_sound,
    sent_texts,
)

from barograph.core.events import Compacted, FrameComposed, SourceKept
from barograph.core.policy import Policy
from barograph.frame import working_state
from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")
SECTION = '<context from="working state"'


@tool
def long(path: str) -> str:
    """Read a long file."""
    return f"{path} line of text\n" * 400


class Working(Run):
    """An agent with a working state, and what was said of it."""

    def changes(self):
        return [[one.change for one in frame.sections] for frame in self.of(FrameComposed)]

    def sections(self, number=-1):
        """What a request says of the working state, oldest first."""
        return [one for one in sent_texts(self.exchanges[number]) if one.startswith(SECTION)]

    def answers(self):
        """What the tools said, in the order of the log."""
        history = self.agent.get_state(config(self.session)).values["messages"]
        return [one.content for one in history if one.type == "tool"]


@pytest.fixture
def run(simulator, session, store):
    def make(goal="", **more):
        ours = {"frame": [working_state(goal=goal)], "policy": more.pop("policy", Policy())}
        return Working(simulator, session, store, {**ours, **more.pop("ours", {})}, **more)

    return make


def setting(number, **given):
    return calling((f"n{number}", "update_working_state", given))


def test_it_is_told_once_and_again_when_it_changed_and_taken_back(run, store, session):
    agent = run()
    agent.say("one", setting(1, goal="Ship it.", add_tasks=["Write", "Test"]), DONE)
    agent.say("two", DONE)
    [first] = agent.sections()
    agent.say("three", DONE)
    agent.say("four", setting(2, plan="Test first.", finish_tasks=["t1"]), DONE)
    agent.say("five", DONE)
    _, second = agent.sections()
    agent.say("six", setting(3, goal="", plan="", finish_tasks=["t2"]), DONE)
    agent.say("seven", DONE)

    assert agent.changes() == [["new"], [], [], ["changed"], [], ["removed"]]
    assert "> Ship it." in first
    assert "> t1: Write\n> t2: Test" in first
    assert "takes the place" in second
    assert "> Test first." in second
    assert "t1" not in second
    assert "no longer holds" in agent.sections()[-1]
    prove(store, session, agent.exchanges)


def test_in_mid_turn_the_tools_say_what_holds_and_the_frame_does_not_move(run, store, session):
    agent = run()
    agent.say("one", setting(1, goal="Ship it."), DONE)
    agent.say(
        "two",
        setting(2, goal="Stop it."),
        calling(("r", "read_working_state", {})),
        DONE,
    )

    assert len(agent.sections()) == 1
    assert "> Ship it." in agent.sections()[0]
    assert "> Stop it." in agent.answers()[-1]
    prove(store, session, agent.exchanges)


def test_what_is_refused_is_said_and_nothing_of_it_is_kept(run):
    agent = run()
    agent.say("one", setting(1, goal="Ship it.", plan="x" * 1_501, add_tasks=["Write"]), DONE)

    assert agent.of(SourceKept) == []
    assert "1,501 characters, at most 1,500" in agent.answers()[-1]


def test_two_changes_that_a_round_asks_for_at_once_are_both_made(run):
    agent = run()
    both = calling(
        *((f"n{n}", "update_working_state", {"add_tasks": [f"Task {n}"]}) for n in range(8))
    )
    agent.say("one", both, DONE)
    agent.say("two", DONE)

    [said] = agent.sections()
    assert all(f": Task {n}" in said for n in range(8))
    assert all(f"> t{n}: " in said for n in range(1, 9))


def test_after_a_compaction_it_is_to_be_seen_again(run, store, session):
    policy = Policy(name="bound-once", window_tokens=12_000, summary="digest")
    agent = run(policy=policy, tools=(long,))
    agent.say("begin", setting(0, goal="Ship it."), DONE)
    for turn in range(6):
        reads = (calling((f"{turn}-{i}", "long", {"path": f"{turn}-{i}"})) for i in range(3))
        agent.say(f"ask {turn}", *reads, DONE)

    told = [change for frame in agent.changes() for change in frame]
    assert agent.of(Compacted)
    assert told[0] == "new"
    assert set(told[1:]) == {"again"}
    assert all(len(agent.sections(n)) == 1 for n in range(2, len(agent.exchanges)))
    prove_sound(store, session, agent.exchanges)


def test_another_process_goes_on_with_it(run, store, session):
    agent = run()
    agent.say("one", setting(1, goal="Ship it.", add_tasks=["Write"]), DONE)
    agent.restart()
    agent.say("two", setting(2, add_tasks=["Test"]), DONE)
    agent.restart()
    agent.say("three", DONE)

    assert agent.changes() == [["new"], ["changed"]]
    assert "> t1: Write\n> t2: Test" in agent.sections()[-1]
    prove(store, session, agent.exchanges)


def test_history_that_is_taken_back_takes_along_what_was_set_in_it(run, simulator, store, session):
    agent = run()
    agent.say("one", setting(1, goal="Ship it.", add_tasks=["Write"]), DONE)
    agent.say("two", DONE)
    before = agent.agent.get_state(config(session)).config
    agent.say("three", setting(2, goal="Stop it.", finish_tasks=["t1"]), DONE)
    simulator.play(session, [setting(3, add_tasks=["Test"]), DONE])
    agent.agent.invoke(ask("another three"), before)

    assert "> Ship it." in agent.answers()[-1]
    assert "> t1: Write\n> t2: Test" in agent.answers()[-1]
    assert not any("Stop it." in text for text in sent_texts(agent.exchanges[-1]))
    prove_sound(store, session, agent.exchanges)


@pytest.mark.parametrize("again", ["model", "tools"])
def test_what_is_done_again_takes_along_what_was_set_by_it(run, simulator, store, session, again):
    after = {"model": "human", "tools": "ai"}[again]
    agent = run()
    agent.say("one", setting(1, goal="Ship it."), DONE)
    agent.say("two", setting(2, goal="Stop it."), DONE)
    before = next(
        each.config
        for each in agent.agent.get_state_history(config(session))
        if (each.next, each.values["messages"][-1].type) == ((again,), after)
        and sum(one.type == "human" for one in each.values["messages"]) == 2
    )
    simulator.play(session, [DONE])
    agent.agent.invoke(ask("another two"), before)
    agent.say("three", calling(("r", "read_working_state", {})), DONE)

    assert "> Ship it." in agent.answers()[-1]
    assert not any("> Stop it." in text for text in agent.sections())
    prove_sound(store, session, agent.exchanges)


def test_a_subagent_has_a_state_of_its_own(simulator, store, session):
    frame = [working_state(goal="Ship it.")]
    child = create_agent(
        model_at(simulator.url, f"{session}-child", account=session),
        [look],
        system_prompt=SYSTEM,
        middleware=[Barograph(store, frame=frame)],
    )

    @tool
    def research(topic: str) -> str:
        """Find something out."""
        return child.invoke(ask(topic))["messages"][-1].text

    main = Working(simulator, session, store, {"frame": frame}, tools=[research])
    reads = calling(("r", "read_working_state", {}))
    simulator.play(f"{session}-child", [setting(1, goal="Find it."), reads, DONE])
    main.say("go", setting(2, plan="Ask."), calling(("r", "research", {"topic": "it"})), DONE)
    main.say("on", DONE)

    kept = {(event.path, event.key, event.text) for event in main.of(SourceKept)}
    assert kept == {("main", "plan", "Ask."), ("main/research#1", "goal", "Find it.")}
    its = exchanges_of(simulator, f"{session}-child")
    assert "own words:\\n> Find it." in its[-1].request.decode()
    assert "Ship it." not in its[-1].request.decode()
    assert "Find it." not in "".join(main.sections())
    everything = sorted([*main.exchanges, *its], key=lambda each: each.number)
    prove_sound(store, session, everything)


def test_a_goal_from_outside_holds_from_the_first_turn_and_is_not_the_models_to_change(run):
    agent = run(goal="Ship it.", ours={"mode": "goal"})
    agent.say("one", setting(1, goal="Stop it.", plan="Stop."), DONE)
    agent.restart()
    agent.ours["frame"] = [working_state(goal="Ship it twice.")]
    agent.restart()
    agent.say("two", DONE)

    assert "given by whoever runs you:\n> Ship it." in agent.sections()[0]
    assert "only they change it" in agent.answers()[-1]
    assert agent.of(SourceKept) == []
    assert agent.changes() == [["new"], ["changed"]]


def test_a_private_session_has_it_too(simulator, session):
    barograph = Barograph(mode="private", frame=[working_state()])
    agent = create_agent(
        model_at(simulator.url, session), [look], system_prompt=SYSTEM, middleware=[barograph]
    )
    simulator.play(session, [setting(1, goal="Ship it."), DONE, DONE])
    said = agent.invoke(ask("one"), config(session))["messages"]
    agent.invoke({"messages": [*said, *ask("two")["messages"]]}, config(session))

    [frame] = [e for e in logged(barograph.store, session) if isinstance(e, FrameComposed)]
    assert [one.change for one in frame.sections] == ["new"]


def test_its_tools_are_offered_with_their_limits(run):
    agent = run()
    agent.say("one", DONE)

    offered = {one["name"]: one for one in json.loads(agent.exchanges[0].request)["tools"]}
    given = offered["update_working_state"]["input_schema"]["properties"]
    assert set(given) == {"goal", "plan", "add_tasks", "finish_tasks"}
    assert "1500 characters" in given["plan"]["description"]
    assert offered["update_working_state"]["input_schema"].get("required", []) == []
    assert offered["read_working_state"]["input_schema"]["properties"] == {}
