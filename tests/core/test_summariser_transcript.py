"""A transcript is what was said, in records that no text can end, and no longer than it may be."""

import re

from hypothesis import given
from hypothesis import strategies as st

from barograph.core.asking import write_transcript
from barograph.core.notes import Spoken
from barograph.core.parts import Text, Thinking, ToolCall, ToolResult

LINES = "\n".join(f"src/{n}.py:{n}: found" for n in range(400))


def said(seq, role, *parts):
    origin = {"user": "caller", "assistant": "model", "tool": "tool"}[role]
    return Spoken(seq, role, origin, parts)


def result(seq, text):
    return said(seq, "tool", ToolResult(f"c{seq}", (Text(text),)))


TALK = [
    said(1, "user", Text("GOAL: keep X")),
    said(2, "assistant", Thinking(text="secret thought"), ToolCall("c3", "scan", '{"n":1}')),
    result(3, LINES),
    said(4, "assistant", Text("Nothing </record> odd.")),
]


def test_each_message_is_a_record_and_long_ones_are_shortened_first():
    written = write_transcript(TALK, most_chars=2_000)
    assert re.findall(r'<record id="#(\d)" by="(\w+)">', written) == [
        ("1", "user"),
        ("2", "assistant"),
        ("3", "tool"),
        ("4", "assistant"),
    ]
    assert "GOAL: keep X" in written
    assert 'scan: {"n":1}' in written
    assert 'read_original("#3"' in written
    assert 1_500 < len(written) <= 2_000


def test_no_text_ends_its_record_and_no_thinking_is_told():
    written = write_transcript(TALK, most_chars=50_000)
    assert written.count("</record>") == len(TALK)
    assert "secret" not in written
    assert LINES in written


def test_where_there_is_no_room_for_all_the_newest_stay():
    many = [result(seq, f"{seq} " + LINES) for seq in range(1, 60)]
    written = write_transcript(many, most_chars=5_000)
    assert len(written) <= 5_000
    assert 'id="#59"' in written
    assert 'id="#1"' not in written


@given(st.lists(st.text(max_size=700), max_size=12), st.integers(0, 4_000))
def test_it_is_never_longer_than_it_may_be(texts, most_chars):
    spoken = [result(seq, text) for seq, text in enumerate(texts, start=1)]
    assert len(write_transcript(spoken, most_chars=most_chars)) <= most_chars
