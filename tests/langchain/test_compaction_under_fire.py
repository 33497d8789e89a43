"""A compaction meets what goes wrong: no loop, no loss, no word of a summary in the stream."""

import json

import pytest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel
from stage import (
    agent_at,
    ask,
    calling,
    config,
    exchanges_of,
    model_at,
    prove_sound,
)
from test_compacting_agents import (
    ALONE,
    DONE,
    SMALL,
    SUMMARY,
    events_of,
    play,
    scan,
    scanning,
    texts_of,
)

from barograph.audit.verify import verify_session
from barograph.core.errors import SurfaceError
from barograph.core.events import Compacted, SummaryAsked
from barograph.core.inputs import Answered
from barograph.langchain.calls import ModelCall
from barograph.simulator import Reply
from barograph.store.search import archive_of
from barograph.store.session import Session

FIVE = [scanning(n) for n in range(5)]
QUESTION = b"is about to be replaced by a summary"


class Verdict(BaseModel):
    """What was found."""

    finding: str


class Killed(BaseException):
    """The process is gone."""


def agent_of(simulator, session, store, *, policy=SMALL, **more):
    return agent_at(simulator.url, session, store, [scan], barograph={"policy": policy}, **more)


def told(messages):
    return "".join(chunk.text for chunk, _ in messages if chunk.type.startswith("AI"))


def fold_of(store, session):
    (fold,) = events_of(store, session, Compacted)
    return fold


def test_the_user_s_stream_has_the_answer_and_not_a_word_of_the_summary(simulator, session, store):
    simulator.play(session, [*FIVE, SUMMARY, DONE])
    agent = agent_of(simulator, session, store)
    said = told(agent.stream(ask("go"), config(session), stream_mode="messages"))
    assert said == "Scanning." * 5 + "Done."
    assert fold_of(store, session).narrated_by
    prove_sound(store, session, exchanges_of(simulator, session))


def test_the_archive_holds_what_will_go_before_a_model_is_asked_about_it(simulator, session, store):
    kept = []

    def summary(_body, _index):
        kept.append(store.index.position(archive_of(session)))
        return SUMMARY

    replies = [*FIVE, summary, DONE]
    simulator.play(session, lambda body, i: one(body, i) if callable(one := replies[i]) else one)
    agent_of(simulator, session, store).invoke(ask("go"), config(session))
    assert kept[0] >= max(fold_of(store, session).shadows)


def test_the_same_holds_for_async_agents(simulator, session, store, loop):
    simulator.play(session, [*FIVE, SUMMARY, DONE])
    agent = agent_of(simulator, session, store)

    async def stream():
        parts = agent.astream(ask("go"), config(session), stream_mode="messages")
        return told([part async for part in parts])

    assert loop.run(stream()) == "Scanning." * 5 + "Done."
    assert fold_of(store, session).narrated_by
    prove_sound(store, session, exchanges_of(simulator, session))


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
def test_an_agent_whose_answers_have_a_form_is_summed_up_in_plain_text(
    simulator, session, store, strategy
):
    by_tool = calling(("v", "Verdict", {"finding": "ok"}))
    last = by_tool if strategy is ToolStrategy else Reply(content='{"finding": "ok"}')
    form = strategy(Verdict)
    answer = play(simulator, session, store, [*FIVE, SUMMARY, last], response_format=form)

    assert answer["structured_response"] == Verdict(finding="ok")
    assert fold_of(store, session).failures == ()
    exchanges = exchanges_of(simulator, session)
    assert "tool_choice" not in json.loads(exchanges[5].request)
    prove_sound(store, session, exchanges)


def test_a_summary_that_the_bookkeeping_lost_is_not_the_agent_s_answer(
    simulator, session, store, monkeypatch
):
    take = Session.take

    def lose(self, given):
        if isinstance(given, Answered) and "~summary" in given.path:
            raise SurfaceError("A defect.", next_step="Say so.")
        return take(self, given)

    monkeypatch.setattr(Session, "take", lose)
    answer = play(simulator, session, store, [*FIVE, SUMMARY, DONE])
    assert answer["messages"][-1].text == "Done."
    assert fold_of(store, session).narrated_by is None


@pytest.mark.parametrize(
    "kind",
    ["rate_limit", "overloaded", "overflow", "hang", "drop", "cut", "server_error", "too_large"],
)
@pytest.mark.parametrize("times", [1, 2])
def test_a_summary_call_that_fails_once_is_made_again_and_one_that_fails_twice_is_done_without(
    simulator, session, store, kind, times
):
    simulator.play(session, [*FIVE, *([SUMMARY] if times == 1 else []), DONE])
    simulator.fault(kind, session=session, index=5, times=times)
    model = model_at(simulator.url, session, default_request_timeout=1.0)
    answer = agent_of(simulator, session, store, model=model).invoke(ask("go"), config(session))

    assert answer["messages"][-1].text == "Done."
    fold = fold_of(store, session)
    assert len(fold.failures) == times
    assert bool(fold.narrated_by) == (times == 1)
    assert len(events_of(store, session, SummaryAsked)) == 2
    assert verify_session(store, session).findings == ()


def test_who_is_killed_while_a_summary_is_written_asks_for_it_again(
    simulator, session, store, monkeypatch
):
    def die(self, _response):
        if "~summary" in self._prepared.path:
            raise Killed
        finish(self, _response)

    saver, finish = InMemorySaver(), ModelCall.finish
    simulator.play(session, [*FIVE, SUMMARY])
    killed = agent_of(simulator, session, store, checkpointer=saver)
    monkeypatch.setattr(ModelCall, "finish", die)
    with pytest.raises(Killed):
        killed.invoke(ask("go"), config(session))
    monkeypatch.undo()

    simulator.play(session, [SUMMARY, DONE])
    again = agent_of(simulator, session, store, checkpointer=saver)
    answer = again.invoke(None, config(session))
    assert answer["messages"][-1].text == "Done."
    assert fold_of(store, session).narrated_by
    assert len(events_of(store, session, SummaryAsked)) == 2
    prove_sound(store, session, exchanges_of(simulator, session))


def test_an_edit_of_the_request_right_behind_a_fold_keeps_what_the_fold_stands_for(
    simulator, session, store
):
    saver = InMemorySaver()
    for words, first in (("FIRST", 0), ("SECOND", 4)):
        replies = [*(scanning(first + n) for n in range(4 if not first else 2)), DONE]
        state = play(
            simulator, session, store, replies, policy=ALONE, says=words, checkpointer=saver
        )
    assert len(events_of(store, session, Compacted)) == 1
    kept = state["messages"]
    kept = kept[: [message.text for message in kept].index("SECOND")]

    simulator.play(session, [DONE])
    agent = agent_of(simulator, session, store, policy=ALONE)
    agent.invoke({"messages": [*kept, HumanMessage("THIRD")]}, config(session))
    exchanges = exchanges_of(simulator, session)
    *before, last = texts_of(exchanges[-1].request)
    assert last == "THIRD"
    assert "FIRST" in "\n".join(before)
    prove_sound(store, session, exchanges)


@pytest.mark.parametrize("policy", [SMALL, ALONE], ids=["by-a-model", "by-the-log"])
def test_thinking_that_is_bound_to_what_a_fold_hides_goes_with_it(
    simulator, session, store, policy
):
    """The provider refuses thinking whose prefix changed."""
    thinks = {"model": "claude-opus-5-5", "thinking": {"type": "adaptive"}}
    model, saver = model_at(simulator.url, session, **thinks), InMemorySaver()
    steps = iter([thinking(n) if n % 6 != 5 else DONE for n in range(18)])
    simulator.play(session, lambda body, _: SUMMARY if asks_for_summary(body) else next(steps))
    agent = agent_of(simulator, session, store, policy=policy, model=model, checkpointer=saver)
    for turn in range(3):
        answer = agent.invoke(ask(f"turn {turn}"), config(session))
        assert answer["messages"][-1].text == "Done."
    assert any(fold.stubs for fold in events_of(store, session, Compacted))
    prove_sound(store, session, exchanges_of(simulator, session))


def thinking(number):
    thought = {"type": "thinking", "thinking": f"Part {number} is next.", "signature": ""}
    return Reply(content=[thought, *scanning(number).content])


def asks_for_summary(body):
    return QUESTION.decode() in json.dumps(body["messages"][-1])
