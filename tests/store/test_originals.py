"""What a pass hid is read back whole, by the handle that its stub names."""

import pytest
from vocabulary import message, turn

from barograph.core.errors import UnknownHandle
from barograph.core.events import MessageSeen, ToolEnded
from barograph.core.parts import Text, Thinking, ToolCall, ToolResult
from barograph.store import MemoryStore
from barograph.store.originals import MOST_CHARS, excerpt_of, lines_with, read_original

TEXT = "one\ntwo\nthree\n" * 500


@pytest.fixture
def store():
    kept = MemoryStore()
    result = (ToolResult("c", (Text(TEXT),)),)
    ended = ToolEnded(at=1.0, path="main", call_id="c", name="look", parts=result, is_error=False)
    named = MessageSeen(at=1.0, path="main", role="tool", origin="tool", same_as=2)
    asked = (Thinking("secret"), Text("I ask."), ToolCall("c", "look", '{"n":1}'))
    spoken = MessageSeen(at=1.0, path="main", role="assistant", origin="model", parts=asked)
    kept.append("s", [turn(1), ended, named, message("plain"), spoken], after=0)
    return kept


@pytest.mark.parametrize("handle", ["#3", "3", " #3 "])
def test_a_handle_gives_the_content_that_its_event_names(store, handle):
    assert read_original(store, "s", handle) == TEXT


def test_an_event_of_its_own_gives_its_own(store):
    assert read_original(store, "s", "#2") == TEXT
    assert read_original(store, "s", "#4") == "plain"


def test_thinking_is_never_read_back_and_arguments_are(store):
    assert read_original(store, "s", "#5") == 'I ask.\n{"n":1}'


@pytest.mark.parametrize("handle", ["#1", "#6", "#0", "#-1", "", "#", "x", "#٣", "9" * 40])
def test_what_has_no_content_is_said(store, handle):
    with pytest.raises(UnknownHandle, match="has no original") as refused:
        read_original(store, "s", handle)
    assert refused.value.ids == {"session": "s", "handle": handle}


def test_a_piece_is_within_the_text_and_within_reason():
    assert excerpt_of(TEXT, 4, 3).text == "two"
    assert excerpt_of(TEXT, -5, 3).text == "one"
    assert excerpt_of(TEXT, 10**9, 3).text == ""
    assert len(excerpt_of("x" * 10**6, 0, 10**9).text) == MOST_CHARS
    assert excerpt_of(TEXT, 0, 0).text == "o"


def test_pieces_one_after_the_other_are_the_whole():
    pieces, start = [], 0
    while piece := excerpt_of(TEXT, start, 1234).text:
        pieces.append(piece)
        start += len(piece)
    assert "".join(pieces) == TEXT


def test_lines_that_hold_a_word_come_with_their_numbers_up_to_a_limit():
    assert lines_with("a\nba\nc", "a") == ["1: a", "2: ba"]
    assert lines_with("a\nba\nc", "z") == []
    assert len("\n".join(lines_with("match\n" * 10**5, "match", 300))) <= 300
