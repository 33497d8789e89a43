"""The archive has every message of a session, whole, once, and can be made again at any time."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vocabulary import message, turn

from barograph.core.errors import ArchiveError, ArchiveFailed, StoreBusy, UnknownHandle
from barograph.core.events import MessageSeen, ResponseCame, ToolEnded
from barograph.core.parts import Text, Thinking, ToolCall, ToolResult
from barograph.store import archive as archive_module
from barograph.store.archive import archive_messages, fill_archive
from barograph.store.history import MOST_FOUND, read_history, search_history
from barograph.store.search import archive_of


def answer(call, name, arguments="{}", say="I ask."):
    parts = (Thinking("a secret thought"), Text(say), ToolCall(call, name, arguments))
    return ResponseCame(at=2.0, path="main", call=1, parts=parts, stop_reason=None, usage=None)


def ended(call, name, text):
    parts = (ToolResult(call, (Text(text),)),)
    return ToolEnded(at=3.0, path="main", call_id=call, name=name, parts=parts, is_error=False)


def seen(role, **more):
    origin = {"user": "caller", "assistant": "model", "tool": "tool"}[role]
    return MessageSeen(at=4.0, path=more.pop("path", "main"), role=role, origin=origin, **more)


def talk(store):
    stub = (ToolResult("c", (Text("bounded"),)),)
    events = [
        message("where is the harbour"),
        answer("c", "look", '{"where":"quay\\nberth","\\u6771":1}'),
        seen("assistant", same_as=2),
        ended("c", "look", "the whole of a lighthouse"),
        seen("tool", parts=stub, original_in=4),
        seen("user", parts=(Text("short"),), original=(Text("a long schooner"),)),
    ]
    store.append("s", events, after=0)


def found(store, query, session="s"):
    return [hit.key for hit in search_history(store, session, query, 20)]


def test_each_message_is_found_whole_with_its_role_its_tool_and_its_number(store):
    talk(store)
    assert archive_messages(store, "s", [1, 3, 5, 6]) == 4
    (hit,) = search_history(store, "s", "lighthouse", 5)
    assert (hit.key, hit.kind, hit.source, hit.at) == ("5", "tool look", "main", 4.0)
    assert found(store, "schooner") == ["6"]
    assert found(store, "harbour") == ["1"]


def test_arguments_are_found_by_their_words_whatever_json_makes_of_them(store):
    talk(store)
    assert found(store, "quay berth 東") == ["3"]


def test_thinking_is_never_archived(store):
    talk(store)
    assert found(store, "secret") == []
    assert "secret" not in store.index.get(archive_of("s"), "3").text


def test_archiving_again_changes_nothing(store):
    talk(store)
    archive_messages(store, "s", [1, 3])
    assert archive_messages(store, "s", [1, 3]) == 0
    store.index.forget(archive_of("s"))
    assert archive_messages(store, "s", [1, 3]) == 4


def test_a_search_finds_what_was_never_archived_and_what_came_since(store):
    talk(store)
    assert found(store, "harbour") == ["1"]
    store.append("s", [message("a new breakwater")], after=6)
    assert found(store, "breakwater") == ["7"]


def test_a_result_knows_its_tool_though_the_call_was_archived_before(store):
    call = (ToolCall("x", "dredge", "{}"),)
    store.append("s", [seen("assistant", parts=call)], after=0)
    fill_archive(store, "s")
    store.append("s", [seen("tool", parts=(ToolResult("x", (Text("silt"),)),))], after=1)
    (hit,) = search_history(store, "s", "silt", 5)
    assert hit.kind == "tool dredge"


def test_what_recall_tools_asked_and_returned_does_not_echo(store):
    talk(store)
    events = [
        answer("h", "history_search", '{"query":"lighthouse"}'),
        seen("assistant", same_as=7),
        ended("h", "history_search", "the whole of a lighthouse"),
        seen("tool", same_as=9),
    ]
    store.append("s", events, after=6)
    assert found(store, "lighthouse") == ["5"]


def test_a_message_taken_in_twice_is_found_once(store):
    store.append("s", [message("an anchor"), message("an anchor"), message("anchor")], after=0)
    assert found(store, "anchor") in (["3", "2"], ["2", "3"])


def test_a_session_finds_its_own_alone(store):
    talk(store)
    store.append("other", [message("an unrelated harbour")], after=0)
    assert found(store, "harbour", "other") == ["1"]
    assert found(store, "lighthouse", "other") == []


def test_long_logs_are_archived_in_batches(store, monkeypatch):
    monkeypatch.setattr(archive_module, "_BATCH_EVENTS", 3)
    store.append("s", [message(f"number w{number}w") for number in range(10)], after=0)
    assert fill_archive(store, "s") == 10
    assert found(store, "w7w") == ["8"]
    assert store.index.position(archive_of("s")) == 10
    assert len(search_history(store, "s", "number", 10**6)) == 10 <= MOST_FOUND


def test_a_failure_has_its_cause_and_hides_nothing(store, monkeypatch):
    talk(store)

    def busy(*_, **__):
        raise StoreBusy("The store is locked.", next_step="Try again.")

    with monkeypatch.context() as broken:
        broken.setattr(store.index, "add", busy)
        with pytest.raises(ArchiveFailed, match="locked") as failed:
            archive_messages(store, "s", [1])
    assert isinstance(failed.value, ArchiveError)
    assert isinstance(failed.value.__cause__, StoreBusy)
    assert failed.value.next_step == "Try again."
    assert found(store, "harbour") == ["1"]


def test_what_is_not_in_the_log_is_not_archived(store):
    talk(store)
    with pytest.raises(ArchiveFailed, match="ends at event 6; 2 messages from 7 on"):
        archive_messages(store, "s", [1, 7, 8])
    with pytest.raises(ArchiveFailed, match="No session"):
        archive_messages(store, "nobody", [])


def test_a_record_is_read_with_its_neighbours_of_the_same_path(store):
    store.append(
        "s",
        [
            message("one"),
            seen("user", path="main/child#1", parts=(Text("aside"),)),
            message("two"),
            turn(1),
            message("three"),
            message("four"),
        ],
        after=0,
    )

    def read(handle, around):
        return [one.text for one in read_history(store, "s", handle, around)]

    assert read("#3", 0) == ["two"]
    assert read("3", 1) == ["one", "two", "three"]
    assert read("#6", 10**9) == ["one", "two", "three", "four"]
    assert read("#2", 5) == ["aside"]
    for handle in ("#4", "#7", "#0", "-1", "", "x", "#٣", "9" * 40):
        with pytest.raises(UnknownHandle, match="has no message"):
            read(handle, 2)


WORDS = st.text("abcXYZ019 _-./我們在東京開會한글かな\n", min_size=1, max_size=60)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(WORDS, min_size=1, max_size=6, unique=True))
def test_every_word_of_every_message_is_found_again(new_store, texts):
    store = new_store()
    store.append("s", [message(text) for text in texts], after=0)
    fill_archive(store, "s")
    for seq, text in enumerate(texts, start=1):
        for word in re.findall(r"\w{4,}", text):
            if word.strip("_"):
                hits = store.index.search((archive_of("s"),), word, 20)
                assert str(seq) in [hit.key for hit in hits]
