"""Reading recorded sessions: finding files, following deltas, legal content, notes."""

import gzip
import json

import pytest

from barograph.audit.legal import IMAGE_STAND_IN
from barograph.audit.recorded import find_recordings, read_recording
from barograph.core.errors import UsageError


def text(words):
    return {"type": "text", "text": words}


def ask(tool_id, name="look", **arguments):
    return {"type": "tool_use", "id": tool_id, "name": name, "input": arguments}


def answer(tool_id, content="found"):
    return {"type": "tool_result", "tool_use_id": tool_id, "content": content}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def line(call, append, response, **more):
    return {"call": call, "agent": "main", "append": append, "response": response, **more}


@pytest.fixture
def write(tmp_path):
    def write(*lines, name="talk.jsonl"):
        path = tmp_path / name
        raw = "".join(json.dumps(each) + "\n" for each in lines).encode()
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return write


def requests_of(recording, agent="main"):
    """The full request of each call, rebuilt as a replay does."""
    history, requests = [], []
    for call in recording.calls:
        if call.agent != agent:
            continue
        if call.cut is not None:
            del history[call.cut :]
        history.extend(call.append)
        requests.append(list(history))
        if call.response:
            history.append(assistant(*call.response))
    return requests


TWO_CALLS = (
    line(1, [user(text("hello"))], [ask("a")]),
    line(2, [user(answer("a"))], [text("bye")]),
)


def test_a_folder_gives_its_recordings_sorted_and_passes_over_other_files(write, tmp_path):
    late, early = write(*TWO_CALLS, name="b.jsonl"), write(*TWO_CALLS, name="a.jsonl.gz")
    (tmp_path / "index.json").write_text("{}")
    (tmp_path / "folder.jsonl").mkdir()
    assert find_recordings([tmp_path, late]) == [early, late]


def test_a_named_file_may_have_any_name(write):
    path = write(*TWO_CALLS, name="talk.txt")
    assert find_recordings([path]) == [path]


def test_a_missing_path_and_a_folder_without_recordings_are_refused_by_name(tmp_path):
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(UsageError, match=path.name) as refused:
            find_recordings([path])
        assert refused.value.ids == {"path": str(path)}
        assert refused.value.next_step


@pytest.mark.parametrize(
    ("content", "line_number", "problem"),
    [
        (b"", 1, "empty"),
        (b"\n \n", 1, "empty"),
        (b"not json\n", 1, "malformed"),
        (b'{"call": 1}\n', 1, "agent"),
        (b"\xff\xfe\n", 1, "not a recorded session"),
        (json.dumps(TWO_CALLS[0]).encode() + b'\n\n{"call": 2,', 3, "truncated"),
        (json.dumps(line(1, [{"role": "system", "content": "x"}], [])).encode(), 1, "role"),
        (json.dumps(line(1, [user({"text": "x"})], [])).encode(), 1, "`type`"),
        (json.dumps(line(1, [], [{"type": "tool_use", "id": "a"}])).encode(), 1, "`name`"),
        (json.dumps(line(1, [user(text("x"))], [], replace_from=4)).encode(), 1, "replace_from"),
        (gzip.compress(json.dumps(TWO_CALLS[0]).encode(), mtime=0)[:-9], 1, "cannot be read"),
        (gzip.compress(b"x" * 99, mtime=0)[:12] + b"\x00\x01\x02\x03" * 5, 1, "cannot be read"),
    ],
    ids=[
        "empty",
        "blank",
        "no json",
        "fields missing",
        "no utf-8",
        "torn third line",
        "unknown role",
        "untyped block",
        "nameless tool call",
        "cut too long",
        "gzip cut short",
        "gzip damaged",
    ],
)
def test_what_is_no_recording_is_refused_with_file_line_and_expectation(
    tmp_path, content, line_number, problem
):
    path = tmp_path / "wrong.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_recording(path)
    assert refused.value.ids == {"path": str(path), "line": line_number}
    assert f"{path}, line {line_number}" in str(refused.value)
    assert problem in str(refused.value)
    assert "Expected one JSON object per line" in refused.value.next_step


def test_a_wrong_file_is_already_refused_when_files_are_looked_for(tmp_path):
    (tmp_path / "wrong.jsonl").write_text('{"type": "summary"}\n')
    with pytest.raises(UsageError, match="line 1"):
        find_recordings([tmp_path])


@pytest.mark.parametrize("name", ["talk.jsonl", "talk.jsonl.gz"])
def test_calls_are_deltas_with_everything_that_was_recorded(write, name):
    usage = {"input_tokens": 3, "cache_read_input_tokens": None, "service_tier": "standard"}
    path = write(
        line(1, [user(text("hello"))], [ask("a")], t="2026-01-01T10:00:00.500Z", usage=usage),
        line(2, [user(answer("a"))], [text("bye")], t="2026-01-01T10:00:02Z", model="claude-x"),
        line(3, [user(text("more"))], [text("no")], t=None, events=[{"event": "aborted"}]),
        name=name,
    )
    recording = read_recording(path)
    first, second, third = recording.calls
    assert recording.name == "talk"
    assert recording.tool_names == ("look",)
    assert [call.number for call in recording.calls] == [1, 2, 3]
    assert (first.t_seconds, second.t_seconds, third.t_seconds) == (0.0, 1.5, None)
    assert (first.model, second.model) == (None, "claude-x")
    assert first.usage.input_tokens == 3
    assert first.usage.cache_read_input_tokens is None
    assert second.usage is None
    assert third.events == ({"event": "aborted"},)
    assert all(call.cut is None for call in recording.calls)
    assert requests_of(recording)[1] == [
        user(text("hello")),
        assistant(ask("a")),
        user(answer("a")),
    ]


def test_subagents_are_sessions_of_their_own_in_order_of_first_call(write):
    sub = {"agent": "sub:1", "parent_tool_use_id": "t", "system": "be brief"}
    path = write(
        line(1, [user(text("go"))], [ask("t")]),
        {**line(2, [user(text("look there"))], [ask("s")]), **sub},
        line(3, [user(answer("t"))], [text("meanwhile")]),
        {**line(4, [user(answer("s"))], [text("done")]), "agent": "sub:1"},
    )
    recording = read_recording(path)
    main, child = recording.agents
    assert [call.number for call in main.calls] == [1, 3]
    assert [call.number for call in child.calls] == [2, 4]
    assert (main.parent_tool_use_id, child.parent_tool_use_id) == (None, "t")
    assert (main.system, child.system) == (None, "be brief")
    assert child.calls[1].system == "be brief"
    assert recording.notes == {"stop_reasons_inferred": 4}
    assert len(requests_of(recording, "sub:1")[1]) == 3


REWRITTEN = (
    line(1, [user(text("hello"))], [text("one"), ask("a")]),
    line(2, [user(answer("a", "long"))], [ask("b")]),
    line(
        3,
        [
            user(text("summary")),
            assistant(text("one"), ask("a")),
            user(answer("a", "cleared"), text("hello"), text("hello")),
        ],
        [text("end")],
        replace_from=0,
    ),
    line(4, [user(text("more"))], [], replace_from=4),
)


def test_a_rewrite_is_applied_as_a_cut(write):
    recording = read_recording(write(*REWRITTEN))
    assert [call.cut for call in recording.calls] == [None, None, 0, None]
    assert requests_of(recording)[2] == REWRITTEN[2]["append"]
    assert requests_of(recording)[3][-2:] == [assistant(text("end")), user(text("more"))]
    assert recording.notes["rewrites_applied"] == 2
    assert "unpaired_tool_calls" not in recording.notes


def test_an_ignored_rewrite_only_appends_what_is_not_held(write):
    recording = read_recording(write(*REWRITTEN), rewrites="ignore")
    assert all(call.cut is None for call in recording.calls)
    # held blocks count: the second "hello" is new, the first was held once
    assert recording.calls[2].append == (user(text("summary")), user(text("hello")))
    assert recording.notes["rewrites_ignored"] == 2
    assert recording.notes["blocks_already_held"] == 4
    assert recording.notes["unpaired_tool_calls"] == 1


def test_a_rewrite_that_only_repeats_leaves_a_request_ending_in_the_assistant(write):
    path = write(*TWO_CALLS, line(3, [user(text("hello"))], [text("again")], replace_from=0))
    recording = read_recording(path, rewrites="ignore")
    assert recording.calls[2].append == ()
    assert recording.notes["requests_ending_in_assistant"] == 1


def test_cuts_count_the_messages_that_are_left_out(write):
    path = write(
        line(1, [user(text("hello"))], [text(" \n")]),  # nothing legal is left of this response
        line(2, [user(text("still there?"))], [text("yes")]),
        line(3, [user(text("other"))], [text("ok")], replace_from=3),
    )
    recording = read_recording(path)
    assert recording.calls[0].response == ()
    assert recording.calls[2].cut == 2
    assert requests_of(recording)[2] == [
        user(text("hello")),
        user(text("still there?")),
        user(text("other")),
    ]
    assert recording.notes == {
        "blank_texts_dropped": 1,
        "consecutive_user_messages": 2,
        "empty_messages_dropped": 1,
        "rewrites_applied": 1,
        "stop_reasons_inferred": 3,
    }


def test_content_becomes_legal_and_every_change_is_counted(write):
    thinking = {"type": "thinking", "thinking": "", "signature": "omitted:40"}
    omitted = {"type": "image", "source": {"type": "omitted", "media_type": "image/png"}}
    shown = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    path = write(
        line(
            1,
            [{"role": "user", "content": "hello"}, user(omitted, shown, text("  "))],
            [thinking, ask("c#1", "look at"), ask("c_1") | {"input": "raw"}, thinking],
        ),
        line(2, [user(answer("c#1", [text(""), omitted]), answer("c_1", [text("")]))], []),
    )
    recording = read_recording(path)
    stand_in = text(IMAGE_STAND_IN)
    first, second = recording.calls
    assert first.append == (user(text("hello")), user(stand_in, shown))
    assert first.response == (
        thinking,
        ask("c_1", "look_at"),
        {"type": "tool_use", "id": "c_1_", "name": "look", "input": {"input": "raw"}},
    )
    assert second.append == (user(answer("c_1", [stand_in]), answer("c_1_", "")),)
    assert recording.tool_names == ("look", "look_at")
    assert recording.notes == {
        "blank_texts_dropped": 3,
        "consecutive_user_messages": 1,
        "empty_responses": 1,
        "images_replaced": 2,
        "stop_reasons_inferred": 2,
        "tool_ids_rewritten": 2,
        "tool_inputs_wrapped": 1,
        "tool_names_rewritten": 1,
        "trailing_thinking_dropped": 1,
    }


@pytest.mark.parametrize(
    ("recorded", "response", "expected"),
    [
        ("toolUse", [ask("a")], "tool_use"),
        ("stop", [text("done")], "end_turn"),
        ("length", [text("do")], "max_tokens"),
        ("refusal", [text("no")], "refusal"),
        ("aborted", [ask("a")], "tool_use"),
        (None, [text("done")], "end_turn"),
        (None, [], "end_turn"),
    ],
)
def test_stop_reasons_are_in_the_providers_words(write, recorded, response, expected):
    path = write(line(1, [user(text("hi"))], response, stop_reason=recorded))
    assert read_recording(path).calls[0].stop_reason == expected


def test_irregular_pairing_is_counted_once_and_never_repaired(write):
    path = write(
        line(1, [user(text("go"))], [ask("a"), ask("b"), ask("c")]),
        # b is answered too late in its turn, c never, x was never asked for
        line(2, [user(answer("a")), user(text("by the way"), answer("b"), answer("x"))], []),
        line(3, [user(text("go on")), assistant(text("one"))], [text("two")]),
        line(4, [user(text("end"))], [ask("last")]),
    )
    recording = read_recording(path)
    assert recording.notes == {
        "consecutive_assistant_messages": 1,
        "consecutive_user_messages": 2,
        "empty_responses": 1,
        "requests_ending_in_assistant": 1,
        "stop_reasons_inferred": 4,
        "tool_results_behind_other_content": 2,
        "unpaired_tool_calls": 1,
        "unpaired_tool_results": 1,
    }
    assert len(requests_of(recording)[3]) == 8


def test_a_changed_system_prompt_is_noted_and_followed(write):
    path = write(
        line(1, [user(text("a"))], [text("b")], system="one", stop_reason="end_turn"),
        line(2, [user(text("c"))], [text("d")], system="two", stop_reason="end_turn"),
    )
    recording = read_recording(path)
    assert [call.system for call in recording.calls] == ["one", "two"]
    assert recording.notes == {"system_changes": 1}


def test_the_fit_beside_the_file_is_read_by_name(write, tmp_path):
    path, other = write(*TWO_CALLS, name="talk.jsonl.gz"), write(*TWO_CALLS, name="other.jsonl")
    fit = {"base_tokens": 9000, "tokens_per_char": 0.31, "r2": 0.99}
    entries = [
        {"file": "talk.jsonl", "fit_recorded_tokens_vs_chars": fit},
        {"file": "other.jsonl", "fit_recorded_tokens_vs_chars": None},
    ]
    (tmp_path / "index.json").write_text(json.dumps({"trajectories": entries}))
    known, unknown = read_recording(path), read_recording(other)
    assert (known.base_tokens, known.tokens_per_char) == (9000, 0.31)
    assert (unknown.base_tokens, unknown.tokens_per_char) == (None, None)


@pytest.mark.parametrize("index", ["[]", "{", '{"trajectories": 3}'])
def test_an_unrelated_index_is_passed_over(write, tmp_path, index):
    path = write(*TWO_CALLS)
    (tmp_path / "index.json").write_text(index)
    assert read_recording(path).base_tokens is None
