"""Agents in long turns: one nudge, a cap that hands back, a stall that is told and then stopped."""

import itertools
import json

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from stage import (
    SYSTEM,
    Run,
    agent_at,
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
    sent_texts,
)

from barograph.core.events import CallPlanned, HandedBack, MessageSeen, Nudged, Replaced
from barograph.core.policy import Policy
from barograph.core.steeringtexts import handed_back, rounds_alike, rounds_spent
from barograph.langchain import Barograph
from barograph.simulator import Reply

DONE = Reply(content="Done.")
OWN_BLOCK, IN_RESULT = "claude-opus-4-8", "claude-haiku-4-5"
NOTE = "Note from the system"


class NudgedRun(Run):
    @property
    def noted(self):
        """How many nudges each request shows."""
        return [each.request.decode().count(NOTE) for each in self.exchanges]


CAPS = [("cap_tokens", 12_000, "token_cap"), ("cap_usd", 0.03, "cost_cap")]


@pytest.fixture
def run(simulator, session, store):
    return lambda **knobs: NudgedRun(simulator, session, store, {"policy": Policy(**knobs)})


def rounds(count, first=0):
    return [looking(f"r{n}") for n in range(first, first + count)]


def stuck(count, first=0):
    asked = {"path": "same.txt"}
    return [calling((f"s{n}", "look", asked)) for n in range(first, first + count)]


def thinker(simulator, session, store, policy, model):
    """An agent whose model thinks, with instructions that every model caches."""
    budget = {"type": "enabled", "budget_tokens": 1024}
    how = {"type": "adaptive"} if model == "claude-opus-5-5" else budget
    chat = model_at(simulator.url, session, model=model, thinking=how, max_tokens=2048)
    return NudgedRun(
        simulator, session, store, {"policy": policy}, model=chat, system_prompt=SYSTEM * 3
    )


def thinking(reply, number):
    thought = {"type": "thinking", "thinking": f"Step {number}. " * 30, "signature": ""}
    return Reply(content=[thought, *reply.content])


def test_after_25_rounds_the_request_shows_one_nudge(run):
    agent = run()
    agent.say("Find the leak.", *rounds(30), DONE)

    assert agent.noted == [0] * 25 + [1] * 6
    *_, result, nudge = json.loads(agent.exchanges[25].request)["messages"][-1]["content"]
    assert result["type"] == "tool_result"
    assert "You have worked for 25 rounds" in nudge["text"]
    assert "<request>\nFind the leak.\n</request>" in nudge["text"]
    prove(agent.store, agent.session, agent.exchanges)
    prove_sound(agent.store, agent.session, agent.exchanges)


@pytest.mark.parametrize("model", [OWN_BLOCK, IN_RESULT, "claude-opus-5-5"])
def test_a_nudge_costs_neither_the_cache_nor_the_thinking(simulator, session, store, model):
    """The newest of them bind thinking to what precedes it, the oldest drop it before user text."""
    policy = Policy(nudge_at_rounds=3, nudge_every_rounds=2)
    agent = thinker(simulator, session, store, policy, model)
    agent.say("Find the leak.", *(thinking(reply, n) for n, reply in enumerate(rounds(9))), DONE)

    assert agent.noted == [0, 0, 0, 1, 1, 2, 2, 3, 3, 4]
    prove_sound(store, session, agent.exchanges)
    for before, after in itertools.pairwise(each.usage for each in agent.exchanges):
        assert after.read_tokens == before.read_tokens + before.write_tokens > 0


def test_a_block_of_its_own_would_have_cost_the_cache_there(simulator, session, store, monkeypatch):
    monkeypatch.setattr("barograph.core.steering._newest_result", lambda _surface: None)
    agent = thinker(simulator, session, store, Policy(nudge_at_rounds=3), IN_RESULT)
    agent.say("Find the leak.", *(thinking(reply, n) for n, reply in enumerate(rounds(4))), DONE)
    before, after = (each.usage for each in agent.exchanges[2:4])
    assert after.read_tokens < before.read_tokens + before.write_tokens


def test_a_new_process_in_every_turn_shows_the_same_nudges(run):
    agent = run(nudge_at_rounds=2)
    for turn in range(3):
        agent.say(f"Part {turn}.", *rounds(4, 4 * turn), DONE)
        agent.restart()
    assert agent.noted[-1] == 3
    assert agent.of(Replaced) == []
    prove(agent.store, agent.session, agent.exchanges)


def test_the_cap_hands_the_turn_back_and_the_next_word_goes_on(run):
    agent = run(nudge_at_rounds=4, cap_rounds=8)
    said = agent.say("Find the leak.", *rounds(20))[-1]

    assert isinstance(said, AIMessage)
    assert said.text == handed_back(rounds_spent(8))
    assert said.response_metadata["stop_reason"] == "round_cap"
    assert not said.tool_calls
    assert len(agent.exchanges) == len(agent.of(CallPlanned)) == 8
    (back,) = agent.of(HandedBack)
    assert (back.cause, back.rounds) == ("round_cap", 8)

    agent.restart()
    agent.simulator.play(agent.session, [])
    answer = agent.say("continue", *rounds(2, 20), DONE)[-1]
    assert answer.text == "Done."
    assert len(agent.exchanges) == 11
    assert sent_texts(agent.exchanges[8])[-2:] == [said.text, "continue"]
    assert agent.of(Replaced) == []
    logs = dict(agent.store.read(agent.session))
    taken = [logs[e.same_as] for e in agent.of(MessageSeen) if e.same_as]
    assert [one for one in taken if isinstance(one, HandedBack)] == [back]
    prove(agent.store, agent.session, agent.exchanges)
    prove_sound(agent.store, agent.session, agent.exchanges)


@pytest.mark.parametrize(("knob", "cap", "cause"), CAPS, ids=["tokens", "money"])
def test_a_budget_hands_the_turn_back_and_any_word_goes_on(run, knob, cap, cause):
    agent = run(**{knob: cap})
    said = agent.say("Find the leak.", *rounds(20))[-1]
    assert said.response_metadata["stop_reason"] == cause
    stopped = len(agent.exchanges)
    assert 1 < stopped < 20

    agent.restart()
    agent.simulator.play(agent.session, [])
    assert agent.say("continue", *rounds(1, 20), DONE)[-1].text == "Done."
    assert len(agent.exchanges) == stopped + 2
    prove(agent.store, agent.session, agent.exchanges)


def test_after_it_went_on_the_cap_counts_anew(run):
    agent = run(cap_rounds=3)
    agent.say("Find the leak.", *rounds(5))
    agent.say("continue", *rounds(5, 5))
    assert [event.rounds for event in agent.of(HandedBack)] == [3, 3]
    assert len(agent.exchanges) == 6


@pytest.mark.parametrize("is_streaming", [False, True])
def test_async_agents_and_streams_are_handed_back_too(
    simulator, session, store, loop, *, is_streaming
):
    simulator.play(session, rounds(9))
    model = model_at(simulator.url, session, streaming=is_streaming)
    ours = {"policy": Policy(cap_rounds=2)}
    agent = agent_at(simulator.url, session, store, model=model, barograph=ours)

    async def go():
        return [
            step
            async for step in agent.astream(
                ask("go"), config(session), stream_mode=["messages", "values"]
            )
        ]

    steps = loop.run(go())
    told = "".join(data[0].text for mode, data in steps if mode == "messages" and _is_ai(data[0]))
    assert told.endswith(handed_back(rounds_spent(2)))
    last = [data for mode, data in steps if mode == "values"][-1]["messages"][-1]
    assert last.text == handed_back(rounds_spent(2))
    assert len(exchanges_of(simulator, session)) == 2


def test_a_synchronous_stream_tells_it_once(simulator, session, store):
    simulator.play(session, rounds(9))
    ours = {"policy": Policy(cap_rounds=2)}
    agent = agent_at(simulator.url, session, store, barograph=ours)
    streamed = agent.stream(ask("go"), config(session), stream_mode="messages")
    told = "".join(message.text for message, _ in streamed if _is_ai(message))
    assert told.count(handed_back(rounds_spent(2))) == 1


def _is_ai(message):
    return isinstance(message, AIMessage)


def test_rounds_that_repeat_themselves_are_told_and_then_stopped(run):
    agent = run()
    said = agent.say("Find the leak.", *stuck(20))[-1]

    assert agent.noted == [0, 0, 0, 1, 1, 1]
    assert [event.causes for event in agent.of(Nudged)] == [("stall",)]
    assert "last 3 rounds made the same tool calls" in agent.of(Nudged)[0].text
    assert said.text == handed_back(rounds_alike(6))
    assert said.response_metadata["stop_reason"] == "stall"
    prove(agent.store, agent.session, agent.exchanges)


def test_long_results_that_are_the_same_are_a_stall_too(run):
    """What the model sees of them differs: each names its own original."""
    agent = run(max_result_chars=200)
    agent.say("Find the leak.", *stuck(4), DONE)
    assert [event.causes for event in agent.of(Nudged)] == [("stall",)]


def test_other_words_break_a_stall(run):
    agent = run()
    agent.say("Find the leak.", *stuck(2), *rounds(1), *stuck(2, 2), DONE)
    assert agent.of(Nudged) == []


def test_where_the_policy_is_off_nothing_is_said_and_nothing_stopped(run):
    agent = run(name="off")
    agent.say("Find the leak.", *stuck(30), DONE)
    assert agent.noted == [0] * 31


def test_a_subagent_is_counted_for_itself(simulator, session, store):
    ours = Barograph(store, policy=Policy(nudge_at_rounds=3, cap_rounds=5))
    helper = create_agent(
        model_at(simulator.url, f"{session}-helper"),
        [look],
        system_prompt=SYSTEM,
        middleware=[ours],
    )

    @tool
    def delegate(task: str) -> str:
        """Ask the helper."""
        return helper.invoke({"messages": [HumanMessage(task)]})["messages"][-1].text

    simulator.play(f"{session}-helper", rounds(9))
    asked = calling(("d1", "delegate", {"task": "Look around."}))
    simulator.play(session, [looking("r0"), asked, DONE])
    agent = agent_at(simulator.url, session, store, [look, delegate], middleware=[ours])
    agent.invoke(ask("go"), config(session))

    told = [(e.path, type(e).__name__) for e in logged(store, session) if isinstance(e, _STEERED)]
    assert told == [("main/delegate#1", "Nudged"), ("main/delegate#1", "HandedBack")]
    last = exchanges_of(simulator, session)[-1]
    assert "Stopped after 5 rounds" in last.request.decode()
    assert NOTE not in last.request.decode()


_STEERED = (Nudged, HandedBack)
