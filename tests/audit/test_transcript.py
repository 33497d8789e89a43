"""A transcript: everything that was said once, and a fold as one marker."""

import pytest

from barograph.audit.transcript import transcript_of
from barograph.core.events import ConfigChanged, Forked, MessageLeftOut, Replaced, StoreGap
from barograph.core.parts import Document, Opaque, Text, Thinking
from barograph.store import MemoryStore
from cli.everything import CODE, record
from talk import Talk


@pytest.fixture
def store():
    return MemoryStore()


def told(store, session):
    return list(transcript_of(store.read(session)))


def said(entries):
    return [(one.who, [p.text for p in one.pieces if p.text]) for one in entries if one.who]


def happened(entries):
    return [one.what for one in entries if not one.who]


def test_what_was_said_is_told_once_in_its_order(store):
    talk = Talk(store, "short")
    talk.call(say="read it", reply=[("read", {"path": "a.py"})], results=["text of a.py"])
    talk.call(reply="done")
    talk.call(say="thanks", reply="welcome")

    assert said(told(store, "short")) == [
        ("user", ["read it"]),
        ("assistant", ['{"path":"a.py"}']),
        ("tool", ["text of a.py"]),
        ("assistant", ["done"]),
        ("user", ["thanks"]),
        ("assistant", ["welcome"]),
    ]


def test_a_compaction_is_one_marker_and_hides_nothing(store):
    talk = Talk(store, "folded")
    for number in range(4):
        talk.call(say=f"question {number}", reply=f"answer {number}")
    seqs = tuple(entry.seq for entry in list(talk.entries())[:4])
    talk.log(
        Replaced(
            at=talk.at,
            path="main",
            shadows=seqs,
            cause="compaction",
            planned=True,
            role="user",
            parts=(Text("the summary"),),
        )
    )
    talk.call(say="go on")
    entries = told(store, "folded")

    assert [texts[0] for who, texts in said(entries) if who == "user"] == [
        *(f"question {number}" for number in range(4)),
        "go on",
    ]
    [marker] = [one for one in entries if "compaction" in one.what]
    assert marker.what == (
        f"compaction: out of the model's sight from here on: 4 entries, events {seqs[0]} to "
        f"{seqs[-1]}; in their place:"
    )
    assert [piece.text for piece in marker.pieces] == ["the summary"]


def test_turns_failures_and_changes_are_told(store):
    record(store)
    entries = told(store, "refactor-billing")
    events = happened(entries)

    assert events[0] == "session refactor-billing begins, logged by talk"
    assert events[1:3] == ["turn 1", "model claude-opus-4-8, a system prompt of 6800 characters"]
    assert "changed: tools" in events
    assert any(one.startswith("call 7 failed: ApiError: Overloaded") for one in events)
    assert {one.path for one in entries if one.who} == {"main", "main/researcher#1"}
    assert CODE in [texts[0] for who, texts in said(entries) if who == "tool"]
    assert [one.seq for one in entries] == sorted(one.seq for one in entries)


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (
            ConfigChanged(at=1.0, knob="ttl", before='"5m"', after='"1h"'),
            'setting ttl: "5m" became "1h"',
        ),
        (
            Forked(at=1.0, path="main/task#1", of="main"),
            "begins with the history of main",
        ),
        (
            MessageLeftOut(at=1.0, path="main", role="tool", reason="orphan_result"),
            "not sent, a message of the tool: orphan_result",
        ),
        (
            StoreGap(
                at=9.0,
                since=1.0,
                reason="disk full",
                first_late=5,
                late=2,
                lost=3,
                first_call=0,
                last_call=0,
                calls=4,
            ),
            "the store could not be written (disk full): 2 events late, 3 lost",
        ),
    ],
)
def test_what_nobody_said(event, what):
    [entry] = transcript_of([(1, event)])

    assert (entry.who, entry.what) == ("", what)


def test_thinking_and_blocks_are_named():
    parts = (Thinking("hm"), Document('{"a":1}'), Opaque("server_tool", "{}"))
    event = MessageLeftOut(at=1.0, path="main", role="user", reason="no_content", parts=parts)
    [entry] = transcript_of([(1, event)])

    assert [(piece.title, piece.text) for piece in entry.pieces] == [
        ("thinking", "hm"),
        ("document, 7 characters of JSON", ""),
        ("server_tool, 2 characters of JSON", ""),
    ]
