"""Old history gives way to a summary; what was said stays in the log, and the agent goes on."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from stage import agent_at, ask, config, exchanges_of, logged, prove_sound, scanner, scanning

from barograph.audit.score import broken_requests
from barograph.core.events import Compacted, SummaryAsked
from barograph.core.policy import Policy
from barograph.simulator import Reply

SMALL = Policy(name="bound-once", window_tokens=24_000)
ALONE = Policy(name="bound-once", window_tokens=24_000, summary="digest")
DONE = Reply(content="Done.")
scan = scanner(160)
SUMMARY = Reply(content="<summary>Parts 0 to 3 were scanned; nothing odd was found.</summary>")


def play(simulator, session, store, replies, *, policy=SMALL, says="go", **more):
    simulator.play(session, replies)
    agent = agent_at(simulator.url, session, store, [scan], barograph={"policy": policy}, **more)
    return agent.invoke(ask(says), config(session))


def events_of(store, session, kind):
    return [event for event in logged(store, session) if isinstance(event, kind)]


def texts_of(request):
    return [
        block["text"]
        for message in json.loads(request)["messages"]
        for block in message["content"]
        if block["type"] == "text"
    ]


def test_the_digest_alone_takes_the_place_of_old_rounds(simulator, session, store):
    replies = [*(scanning(n) for n in range(14)), DONE]
    answer = play(simulator, session, store, replies, policy=ALONE, says="go through all parts")

    assert answer["messages"][-1].text == "Done."
    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    folds = events_of(store, session, Compacted)
    assert 1 <= len(folds) <= 4
    assert {fold.cause for fold in folds} == {"pressure"}
    assert len(broken_requests(exchanges)) == len(folds)
    assert all(fold.tokens_after < 0.5 * fold.tokens_before for fold in folds)
    assert texts_of(exchanges[-1].request)[0] == "go through all parts"


def test_a_model_sums_up_in_a_call_of_its_own_that_reads_the_cache(simulator, session, store):
    replies = [*(scanning(n) for n in range(5)), SUMMARY, scanning(5), DONE]
    answer = play(simulator, session, store, replies)

    assert [m.text for m in answer["messages"] if isinstance(m, AIMessage)][-1] == "Done."
    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    (asked,) = events_of(store, session, SummaryAsked)
    (fold,) = events_of(store, session, Compacted)
    assert fold.narrated_by
    assert not fold.failures
    asking, after = exchanges[5], exchanges[6]
    assert texts_of(asking.request)[-1] == asked.parts[0].text
    assert asking.usage.read_tokens > 0.5 * asking.usage.input_total_tokens
    assert "nothing odd was found" in " ".join(texts_of(after.request))
    assert len(after.request) < 0.7 * len(asking.request)


@pytest.mark.parametrize(
    "failing",
    [
        Reply(content="I'm sorry, but I can't help with that."),
        Reply(content="<summary>  </summary>"),
        Reply(content="<summary>cut off"),
        Reply(content=[{"type": "tool_use", "id": "x", "name": "scan", "input": {"path": "a"}}]),
        Reply(content="<summary>" + "long " * 20_000 + "</summary>"),
    ],
    ids=["refusal", "empty", "cut-off", "tool-call", "too-long"],
)
def test_what_is_no_summary_is_asked_for_once_more_and_then_done_without(
    simulator, session, store, failing
):
    replies = [*(scanning(n) for n in range(5)), failing, failing, DONE]
    answer = play(simulator, session, store, replies)

    assert answer["messages"][-1].text == "Done."
    assert [m.type for m in answer["messages"]].count("tool") == 5
    (fold,) = events_of(store, session, Compacted)
    assert len(fold.failures) == 2
    assert fold.narrated_by is None
    prove_sound(store, session, exchanges_of(simulator, session))


def test_a_thread_goes_on_over_turns_and_its_user_words_stay(simulator, session, store):
    saver = InMemorySaver()
    said = [f"Request {n}: never touch file-{n}.cfg." for n in range(6)]
    for n, words in enumerate(said):
        replies = [scanning(3 * n), scanning(3 * n + 1), scanning(3 * n + 2), DONE]
        play(simulator, session, store, replies, policy=ALONE, says=words, checkpointer=saver)
    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    assert len(events_of(store, session, Compacted)) >= 3
    last = "\n".join(texts_of(exchanges[-1].request))
    assert all(words in last for words in said)


def test_a_rewind_into_what_a_summary_hides_takes_the_history_in_again(simulator, session, store):
    replies = [*(scanning(n) for n in range(8)), DONE]
    answer = play(simulator, session, store, replies, policy=ALONE)
    (fold, *_) = events_of(store, session, Compacted)
    kept = answer["messages"][:3]

    simulator.play(session, [DONE])
    agent = agent_at(simulator.url, session, store, [scan], barograph={"policy": ALONE})
    agent.invoke({"messages": [*kept, HumanMessage("and now?")]}, config(session))

    exchanges = exchanges_of(simulator, session)
    prove_sound(store, session, exchanges)
    shown = json.loads(exchanges[-1].request)["messages"]
    assert [message["role"] for message in shown] == ["user", "assistant", "user"]
    assert fold.parts[0].text not in exchanges[-1].request.decode()
