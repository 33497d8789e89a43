"""Knowledge in the frame: passages for what the user says, and none where that says nothing."""

import pytest

from barograph.core.recall import telling_words
from barograph.core.state import State
from barograph.frame import Ask, Composer, Knowledge, knowledge_source
from barograph.store import MemoryStore
from barograph.store.knowledge import NewDocument


@pytest.fixture
def store():
    opened = MemoryStore()
    for text in (
        "Rotate the signing keys every month, thanks to the script.",
        "This is what you should know of leave: ask a week before.",
    ):
        opened.index.documents.add(NewDocument(text=text, trust="operator"), at=1.0)
    opened.index.documents.add(NewDocument(text="Keys are evil."), at=1.0)
    opened.index.documents.add(
        NewDocument(text="Keys are in Oslo.", domain="hot", trust="operator"), at=1.0
    )
    yield opened
    opened.close()


def recalled(store, text, **more):
    source = knowledge_source(Knowledge(store.index.passages), **more)
    ask = Ask(session="s", path="main", text=text, at=0.0, mode="normal", state=State())
    (section,) = Composer([source]).compose(ask).sections
    assert section.adds
    return [one.text.split()[0] for one in section.items]


@pytest.mark.parametrize("text", ["thanks", "OK, go on.", "What is this? And why?", "", "…"])
def test_a_message_that_tells_nothing_recalls_nothing(store, text):
    assert recalled(store, text) == []


def test_words_that_any_text_has_recall_nothing_beside_others(store):
    assert recalled(store, "What should you know of the moon?") == []
    assert recalled(store, "What should I know of leave?") == ["This"]


def test_what_hot_memory_tells_is_left_to_it_unless_it_is_asked_for(store):
    assert recalled(store, "Which keys?") == ["Keys", "Rotate"]
    assert recalled(store, "Which keys?", domains=("hot",)) == ["Keys"]


def test_floor_limit_and_budget_hold(store):
    assert recalled(store, "Which keys?", floor="operator") == ["Rotate"]
    assert recalled(store, "Which keys or leave?", limit=1) == ["This"]
    assert recalled(store, "Which keys?", budget_chars=20) == ["Keys"]
    assert recalled(store, "Which keys?", namespaces=("other",)) == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("What's the key, please?", "key,"),
        ("Don\u2019t you rotate (the) keys?", "rotate keys?"),
        ("Was ist das?", "ist das?"),
        ("the who", ""),
        ("src/the/who.py", "src/the/who.py"),
    ],
)
def test_words_of_any_english_text_are_no_telling_ones(query, words):
    assert telling_words(query) == words


def test_a_question_of_such_words_alone_is_still_searched_for_whoever_asks(store):
    assert Knowledge(store.index.passages).retrieve("what is this") != ()
