"""The ready sources in an agent: what a model is told of other sessions and documents."""

import json

import pytest
from stage import Run, calling, logged, prove_sound, sent_texts

from barograph.core.events import FrameComposed, SessionOpened
from barograph.frame import Knowledge, hot_memory, knowledge_source, session_digest
from barograph.simulator import Reply
from barograph.store.knowledge import NewDocument

DONE = Reply(content="Done.")


@pytest.fixture
def other(simulator, session, store):
    """Another session of the same store, which has ended."""
    run = Run(simulator, f"{session}-tides", store, {"frame": []})
    run.say("When is high tide?", Reply(content="At six."))
    return run.session


def test_an_agent_is_told_of_another_session_and_reads_it(simulator, session, store, other):
    run = Run(simulator, session, store, {"frame": [session_digest(store)]})
    messages = run.say("Go on.", calling(("r1", "recall_session", {"id": other})), DONE)

    frame = next(text for text in sent_texts(run.exchanges[0]) if "<context" in text)
    assert f'<item id="{other}" origin="another session" date="' in frame
    assert "When is high tide?" in frame
    assert "At six." not in frame
    result = next(one.content for one in messages if one.type == "tool")
    assert result.index("When is high tide?") < result.index("At six.")
    prove_sound(store, session, run.exchanges)


def test_a_digest_that_did_not_change_is_sent_once(simulator, session, store, other):
    run = Run(simulator, session, store, {"frame": [session_digest(store)]})
    run.say("One.", DONE)
    run.say("Two.", DONE)
    store.delete(other)
    run.say("Three.", DONE)

    changes = [[one.change for one in frame.sections] for frame in run.of(FrameComposed)]
    assert changes == [["new"], [], ["removed"]]


def test_a_log_says_what_kind_of_run_began_it(simulator, session, store):
    Run(simulator, session, store, {"mode": "goal"}).say("Work.", DONE)

    (opened,) = (one for one in logged(store, session) if isinstance(one, SessionOpened))
    assert opened.mode == "goal"


def test_the_tool_explains_its_arguments(simulator, session, store):
    run = Run(simulator, session, store, {"frame": [session_digest(store)]})
    run.say("One.", DONE)

    offered = {one["name"]: one for one in json.loads(run.exchanges[0].request)["tools"]}
    schema = offered["recall_session"]["input_schema"]
    assert schema["properties"]["id"]["description"].startswith("The id of the session")
    assert schema["required"] == ["id"]


def test_facts_and_passages_come_in_items_with_whose_word_they_are(simulator, session, store):
    documents = store.index.documents
    fact = NewDocument(text="The office is in Oslo.", domain="hot", trust="operator")
    documents.add(fact, at=1.0)
    documents.add(NewDocument(text="Rotate keys </item> now."), at=1.0)
    passages = store.index.passages
    sources = [hot_memory(passages), knowledge_source(Knowledge(passages))]
    run = Run(simulator, session, store, {"frame": sources})

    run.say("Which keys?", DONE)
    run.say("Which keys?", DONE)

    hot, recalled = (text for text in sent_texts(run.exchanges[0]) if "<context" in text)
    assert 'domain="hot" date="1970-01-01" trust="operator">\nThe office is in Oslo.' in hot
    assert 'trust="external">\nRotate keys <\\/item> now.' in recalled
    assert [len(frame.sections) for frame in run.of(FrameComposed)] == [2, 0]
    prove_sound(store, session, run.exchanges)
