"""What a fold hides is archived first; where that fails, an agent goes on and a person does not."""

import pytest

from barograph.core.engine import Engine
from barograph.core.errors import ArchiveRefused, StoreBusy, StoreUnavailable
from barograph.core.events import ArchiveMissed, Compacted
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, CallWanted, Header
from barograph.core.parts import Text
from barograph.core.policy import Policy
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.store import MemoryStore
from barograph.store.archive import archive_of
from barograph.store.folding import compact_session
from barograph.store.session import Session

TIGHT = Policy(name="bound-once", window_tokens=4_000, summary="digest")
HEADER = Header(model="claude-opus-4-8")


class Talk:
    """A session of many turns, each of which says much."""

    def __init__(self, store, policy):
        engine = Engine(AnthropicCodec(), policy)
        self.store = store
        self.session = Session.open(store, "s", engine, at=0.0, made_by="test")
        self.history, self.at = [], 0.0

    def turn(self, number):
        self.at += 1
        said = f"request {number}: " + f"word{number} " * 300
        self.history.append(Incoming("user", (Text(said),)))
        wanted = CallWanted(at=self.at, path="main", header=HEADER, messages=tuple(self.history))
        self.session.want(wanted)
        body = b'{"model":"claude-opus-4-8","messages":[]}'
        self.session.leave(at=self.at, path="main", header=HEADER, body=body, observed=True)
        answer = (Text(f"answer {number}"),)
        self.history.append(Incoming("assistant", answer))
        self.session.take(
            Answered(at=self.at, path="main", parts=answer, stop_reason="end_turn", usage=None)
        )

    def turns(self, count):
        for number in range(count):
            self.turn(number)
        return self

    def events(self, kind):
        return [event for _, event in self.store.read("s") if isinstance(event, kind)]


def locked(*_, **__):
    raise StoreBusy("The index is locked.")


def test_what_is_hidden_can_be_searched_before_it_is_hidden():
    talk = Talk(MemoryStore(), TIGHT).turns(10)
    folds = talk.events(Compacted)
    assert folds
    hits = talk.store.index.search([archive_of("s")], "word0", 5)
    assert hits
    assert int(hits[0].key) in folds[0].shadows


def test_an_agent_goes_on_where_the_archive_fails_and_the_log_says_so(monkeypatch, caplog):
    store = MemoryStore()
    monkeypatch.setattr(type(store.index), "add", locked)
    talk = Talk(store, TIGHT).turns(10)
    assert talk.events(Compacted)
    missed = talk.events(ArchiveMissed)
    assert len(missed) == talk.session.failed_archives > 0
    assert "locked" in missed[0].reason
    assert "compacted all the same" in caplog.text


def test_a_person_is_refused_where_the_archive_fails_and_nothing_changes(monkeypatch):
    store = MemoryStore()
    talk = Talk(store, Policy(name="off")).turns(6)
    before = list(store.read("s"))
    monkeypatch.setattr(type(store.index), "add", locked)
    with pytest.raises(ArchiveRefused, match="nothing changed") as refused:
        compact_session(talk.session, "main", at=100.0)
    assert refused.value.ids["reason"] == "archive_failed"
    assert list(store.read("s")) == before


def test_nothing_is_folded_while_the_store_is_down(monkeypatch):
    store = MemoryStore()
    talk = Talk(store, TIGHT).turns(4)

    def gone(*_, **__):
        raise StoreUnavailable("gone")

    append = store.append
    monkeypatch.setattr(store, "append", gone)
    for number in range(4, 12):
        talk.turn(number)
    state = talk.session.state
    assert not [entry for entry in state.surface("main").entries if entry.hides]
    with pytest.raises(ArchiveRefused) as refused:
        compact_session(talk.session, "main", at=100.0)
    assert refused.value.ids["reason"] == "store_down"
    monkeypatch.setattr(store, "append", append)
    for number in range(12, 15):
        talk.turn(number)
    assert talk.events(Compacted)


def refused_reason(session):
    before = list(session.store.read(session.id))
    with pytest.raises(ArchiveRefused, match="nothing changed") as refused:
        compact_session(session, "main", at=100.0)
    assert list(session.store.read(session.id)) == before
    return refused.value.ids["reason"]


def test_a_person_is_refused_before_the_first_call_and_while_one_is_under_way():
    talk = Talk(MemoryStore(), Policy(name="off"))
    assert refused_reason(talk.session) == "no_call"
    talk.turns(6)
    history = (*talk.history, Incoming("user", (Text("go on"),)))
    talk.session.want(CallWanted(at=50.0, path="main", header=HEADER, messages=history))
    assert refused_reason(talk.session) == "under_way"


def test_a_session_with_nothing_worth_hiding_is_no_refusal():
    talk = Talk(MemoryStore(), Policy(name="off")).turns(1)
    assert compact_session(talk.session, "main", at=100.0) is None
