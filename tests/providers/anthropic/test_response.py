import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barograph.core.parts import Document, Image, Opaque, Text, Thinking, ToolCall
from barograph.providers.anthropic.response import Answer, read_response

ODD = '{"y": 1.0, "f": 1e-7, "big": 12345678901234567890}'
CONTENT = (
    '[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"caf\\u00e9"},'
    '{"type":"tool_use","id":"t","name":"look","input":' + ODD + "},"
    '{"type":"server_tool_use","id":"s","name":"web","input":' + ODD + "},"
    '{"type":"text","text":"cited","citations":[{"n":1e-7}]},'
    '{"type":"image","source":{}},{"type":"document","source":{}}]'
)
PARTS = (
    Thinking("hm", "sig"),
    Text("caf\u00e9"),
    ToolCall("t", "look", ODD),
    Opaque(
        "server_tool_use", '{"type":"server_tool_use","id":"s","name":"web","input":' + ODD + "}"
    ),
    Opaque("text", '{"type":"text","text":"cited","citations":[{"n":1e-7}]}'),
    Image('{"type":"image","source":{}}'),
    Document('{"type":"document","source":{}}'),
)


def whole(content, **more):
    fields = {"id": "msg", "model": "m", "stop_reason": "tool_use"} | more
    return (json.dumps(fields)[:-1] + f', "content": {content}}}').encode()


def event(kind, **fields):
    data = json.dumps({"type": kind} | fields, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


def started(usage=None):
    return event("message_start", message={"id": "msg", "model": "m", "usage": usage})


def block(index, content, *deltas):
    return (
        event("content_block_start", index=index, content_block=content)
        + b"".join(event("content_block_delta", index=index, delta=delta) for delta in deltas)
        + event("content_block_stop", index=index)
    )


def ended(usage=None):
    return event("message_delta", delta={"stop_reason": "end_turn"}, usage=usage) + event(
        "message_stop"
    )


def arguments(*pieces):
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


TOOL = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
SERVER_TOOL = {"type": "server_tool_use", "id": "s", "name": "web", "input": {}}


def test_a_whole_message_keeps_what_was_written():
    answer = read_response(whole(CONTENT, usage={"input_tokens": 3}), streamed=False)
    assert answer.parts == PARTS
    assert (answer.stop_reason, answer.provider_id, answer.model) == ("tool_use", "msg", "m")
    assert answer.usage.uncached_tokens == 3


def test_a_stream_says_the_same_as_a_whole_message():
    stream = (
        started({"input_tokens": 3, "output_tokens": 1})
        + event("ping")
        + block(0, {"type": "thinking", "thinking": ""},
                {"type": "thinking_delta", "thinking": "h"},
                {"type": "thinking_delta", "thinking": "m"},
                {"type": "signature_delta", "signature": "sig"})
        + block(1, {"type": "text", "text": ""},
                {"type": "text_delta", "text": "caf"}, {"type": "text_delta", "text": "\u00e9"})
        + block(2, TOOL, *arguments("", ODD[:9], ODD[9:]))
        + block(3, SERVER_TOOL, *arguments(ODD[:20], ODD[20:]))
        + ended({"output_tokens": 9})
    )  # fmt: skip
    answer = read_response(stream, streamed=True)
    assert answer.parts == PARTS[:4]
    assert (answer.stop_reason, answer.provider_id, answer.model) == ("end_turn", "msg", "m")
    assert (answer.usage.uncached_tokens, answer.usage.output_tokens) == (3, 9)


def test_line_ends_and_separators_inside_texts_do_not_break_a_stream():
    stream = started() + block(
        0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a\u2028\u0085\r\nb"}
    )
    for form in (stream, stream.replace(b"\n", b"\r\n")):
        assert read_response(form, streamed=True).parts == (Text("a\u2028\u0085\r\nb"),)


def test_citations_of_a_stream_are_kept_with_their_text():
    stream = started() + block(
        0,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "x"},
        {"type": "citations_delta", "citation": {"n": 1}},
    )
    assert read_response(stream, streamed=True).parts == (
        Opaque("text", '{"type":"text","text":"x","citations":[{"n":1}]}'),
    )


@pytest.mark.parametrize("deltas", [(), ("",), ("{}",)])
def test_a_tool_without_arguments_gets_an_empty_object(deltas):
    stream = started() + block(0, TOOL, *arguments(*deltas)) + ended()
    assert read_response(stream, streamed=True).parts == (ToolCall("t", "look", "{}"),)
    stream = started() + block(0, SERVER_TOOL, *arguments(*deltas)) + ended()
    (part,) = read_response(stream, streamed=True).parts
    assert json.loads(part.block) == SERVER_TOOL


def test_a_stream_that_was_cut_keeps_what_came():
    cut = started({"input_tokens": 3}) + block(0, TOOL, *arguments('{"a": 1'))[:-10]
    answer = read_response(cut, streamed=True)
    assert answer.parts == (ToolCall("t", "look", '{"a": 1'),)
    assert (answer.stop_reason, answer.usage.uncached_tokens) == (None, 3)
    server = started({"input_tokens": 3}) + block(0, SERVER_TOOL, *arguments('{"a": 1'))
    answer = read_response(server, streamed=True)
    assert json.loads(answer.parts[0].block) == SERVER_TOOL
    assert answer.usage.uncached_tokens == 3


def test_a_stream_cut_inside_an_event_ends_there():
    stream = started() + block(0, {"type": "text", "text": "x"}) + event("message_delta")[:-20]
    assert read_response(stream, streamed=True).parts == (Text("x"),)


def test_an_error_in_mid_stream_leaves_what_came_before():
    stream = started() + block(0, {"type": "text", "text": "x"}) + event("error", error={})
    assert read_response(stream, streamed=True).parts == (Text("x"),)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{}", b"\xff", b'{"type":"error"}', b'{"content":7}', b"data: 1"]
)
def test_what_is_no_response_is_none(body, streamed):
    assert read_response(body, streamed=streamed) is None


def test_a_call_that_another_tool_made_is_kept_whole():
    raw = '{"type":"tool_use","id":"t","name":"look","input":{},"caller":{"type":"code","n":1.0}}'
    (part,) = read_response(whole(f"[{raw}]"), streamed=False).parts
    assert part == Opaque("tool_use", raw)


def test_a_null_caller_is_no_caller():
    raw = '{"type":"tool_use","id":"t","name":"look","input":{},"caller":null}'
    (part,) = read_response(whole(f"[{raw}]"), streamed=False).parts
    assert part == ToolCall("t", "look", "{}")


def test_an_unreported_usage_is_none_and_not_zero():
    assert read_response(whole("[]"), streamed=False).usage is None
    assert read_response(started() + ended(), streamed=True).usage is None


def test_an_unsplit_write_takes_the_lifetime_asked_for():
    body = whole("[]", usage={"input_tokens": 3, "cache_creation_input_tokens": 9})
    assert read_response(body, streamed=False, ttl="1h").usage.write_1h_tokens == 9
    assert read_response(body, streamed=False).usage.write_5m_tokens == 9


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(("tool_use", "text", "thinking", "server_tool_use", "text_delta")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "id",
                    "name",
                    "input",
                    "text",
                    "usage",
                    "content",
                    "message",
                    "index",
                    "delta",
                    "content_block",
                    "partial_json",
                    "citation",
                    "thinking",
                    "caller",
                ]
            ),
            inner,
        )
    ),
    max_leaves=12,
)
kinds = st.sampled_from(
    ("message_start", "content_block_start", "content_block_delta", "message_delta", "ping")
)


@given(st.lists(st.tuples(kinds, st.dictionaries(st.just("x"), anything), anything), max_size=6))
def test_no_stream_makes_reading_fail(events):
    stream = b""
    for kind, fields, value in events:
        more = value if isinstance(value, dict) else fields
        stream += b"data: " + json.dumps(more | {"type": kind}).encode() + b"\n\n"
    assert is_storable(read_response(stream, streamed=True))


@given(anything)
def test_no_body_makes_reading_fail(value):
    assert is_storable(read_response(json.dumps(value).encode(), streamed=False))
    assert is_storable(read_response(whole(json.dumps(value)), streamed=False))


def is_storable(answer):
    return msgspec.json.decode(msgspec.json.encode(answer), type=Answer | None) == answer
